"""Usage: how many prompt tokens the provider counts for a request, and whether it reports that.

A policy learns the provider's count after each step. In a replay it comes from here: the recorded figure while the
request is the one that was really sent, and a modelled figure from the first divergence on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.agents_view import ComparedCounts, ExceededWindow
from guard_core.estimation.anchors import Anchors
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.baseline_notes import baseline_notes
from guard_core.estimation.compaction_sizes import FEWER, CompactionSizes, fewer_bytes, whole_from
from guard_core.forms import get_form
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.trace import Head
from guard_core.view_columns import ViewColumns
from guard_core.view_sums import ManySums, PlainViews
from guard_core.views import Inserted, Segment, Span, Synthetic, View, followed

# Indices into guard_core.trace.PROMPT_SOURCES.
PROVIDER, MODELLED, ASSUMED = 1, 2, 3


class RequestCount(NamedTuple):
    """The provider's count of one request. `reported`: does the agent (and its policy) get to see it."""

    tokens: int  # -1: not known
    reported: bool
    source: int  # index into guard_core.trace.PROMPT_SOURCES


class CountedRun(NamedTuple):
    """The same for a run of steps, as arrays."""

    tokens: Ints
    reported: NDArray[np.bool_]
    source: Ints


class Usage(Protocol):
    """A model of the provider for one session."""

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        """The count of the request `view` sent at `step`, whose heuristic estimate (all of it) is `heuristic`."""
        ...

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        """The counts of steps `start` to `stop`, where step k sends `head` and the events `kept_from` to `at[k]`, in
        `form` if one is named."""
        ...

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        """What a reader of the counts must know; `compacted`: of a replay that made compactions of its own, which left
        something else than the recorded ones did."""
        ...


def counts_of(usage: Usage, steps: Ints, views: ViewColumns, heuristics: Ints) -> CountedRun:
    """The counts of requests with views of their own, as `Usage.one` gives them: at once where a usage can (`many`)."""
    many = getattr(usage, "many", None)
    counted: CountedRun | None = many(steps, views, heuristics) if many is not None else None
    if counted is not None:
        return counted
    rows = zip(steps.tolist(), views.views(), heuristics.tolist(), strict=True)
    tokens, reported, source = zip(*(usage.one(*row) for row in rows), strict=True) if len(steps) else ((), (), ())
    integers = (np.array(values, dtype=np.int64) for values in (tokens, source))
    return CountedRun(next(integers), np.array(reported, dtype=np.bool_), next(integers))


class GrowingRequests(NamedTuple):
    """Requests at some steps that begin with `head` and the first `filled` of the `segments`, and then have the events
    from `kept_from` to `stop` (an entry per step)."""

    steps: Ints
    head: View
    segments: Sequence[Segment]
    filled: Ints
    kept_from: Ints
    stop: Ints


def growing_counts(usage: Usage, requests: GrowingRequests, heuristics: Ints) -> CountedRun | None:
    """The counts of requests of which each begins with more of the same; None where they cannot be had at once."""
    growing = getattr(usage, "growing", None)
    counted: CountedRun | None = growing(requests, heuristics) if growing is not None else None
    return counted


def staged_counts(usage: Usage, start: int, heads: Sequence[Head], places: Ints, heuristics: Ints) -> CountedRun | None:
    """The counts of the steps from `start` on, of which each sends the head of its place and the log behind it; None
    where they cannot be had at once."""
    staged = getattr(usage, "staged", None)
    counted: CountedRun | None = staged(start, heads, places, heuristics) if staged is not None else None
    return counted


@dataclass(frozen=True)
class RatioUsage:
    """A simulated provider: prompt tokens = trunc(heuristic x ratio), reported from a given step on.

    Source: the simulator of ContextGuard's own tests.
    """

    ratio: float
    reported_from: int = 0

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        return RequestCount(int(heuristic * self.ratio), step >= self.reported_from, 2)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        tokens = (heuristics * self.ratio).astype(np.int64)
        source = np.full(stop - start, MODELLED, dtype=np.int64)
        return CountedRun(tokens, np.arange(start, stop) >= self.reported_from, source)

    def many(self, steps: Ints, views: ViewColumns, heuristics: Ints) -> CountedRun:
        """As `one`, for many steps."""
        tokens = (heuristics * self.ratio).astype(np.int64)
        return CountedRun(tokens, steps >= self.reported_from, np.full(len(steps), MODELLED, dtype=np.int64))

    def growing(self, requests: GrowingRequests, heuristics: Ints) -> CountedRun:
        """As `growing_counts`."""
        tokens = (heuristics * self.ratio).astype(np.int64)
        reported = requests.steps >= self.reported_from
        return CountedRun(tokens, reported, np.full(len(tokens), MODELLED, dtype=np.int64))

    def staged(self, start: int, heads: Sequence[Head], places: Ints, heuristics: Ints) -> CountedRun:
        """As `staged_counts`."""
        return self.run(start, start + len(places), (), 0, heuristics)

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class AttributedUsage:
    """The recorded provider: its own figure while the request is the one really sent, else a modelled one.

    A modelled request that extends a recorded one costs that one's count plus what was added. So does one that a
    replayed compaction has cut as the recorded compaction did: it is the recorded one. One that was cut otherwise costs
    the overhead, what it keeps, its new messages, and what the agent adds after a compaction without recording it. A
    policy sees a count exactly at the steps where the recorded provider reported one.
    """

    ledger: Ledger
    attribution: Attribution
    exceeded: ExceededWindow | None = None
    find_compared: Callable[[], ComparedCounts | None] = lambda: None

    @cached_property
    def compared(self) -> ComparedCounts | None:
        """What the agent compared, found when it is asked for first."""
        return self.find_compared()

    @cached_property
    def anchors(self) -> Anchors:
        """What requests are anchored at."""
        return Anchors.of(self.ledger, self.attribution)

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        recorded: int = self.ledger.steps["prompt_tokens"].item(step)
        sums = self._sums(view)
        at, is_formed = self.ledger.steps["at"].item(step), bool(view) and bool(getattr(view[-1], "form", ""))
        if places := [] if is_formed else self._as_recorded(view, sums, at, at):
            base, epoch = self.ledger.bases[places[-1]], places[-1]
            view = (*base.view, Span(base.at, at))
            sums = self._sums(view)
        if self._is_replaced(sums):
            same, tokens = False, self._price_cut(step, view, sums, epoch)
        else:
            plain = self._plain.of(view)
            same = recorded > 0 and self._same(step, plain, epoch)
            if same and not sums.formed:
                return RequestCount(recorded, True, PROVIDER)
            tokens = recorded if same else self._price(step, view, plain, sums, epoch)[0]
        return RequestCount(max(0, tokens - sums.saved), recorded > 0, self._source)

    def many(self, steps: Ints, views: ViewColumns, heuristics: Ints) -> CountedRun | None:
        """As `one`, for views without messages of the recording; None where a recorded compaction left what a view of a
        replay can be equal to, so that each has to be looked at."""
        if not self._knows_views:
            return None
        recorded, epochs, at = (self.ledger.steps[name][steps] for name in ("prompt_tokens", "epoch", "at"))
        prices, anchors, overhead = self.attribution.prices, self.anchors, self.attribution.overhead
        prologue = self.attribution.prologue
        is_span, written = views.is_span, views.is_message.any(axis=0)
        starts, stops = (np.maximum(rows, 0) for rows in views[:2])  # of messages, which are not spans, any event
        spans = np.where(is_span, np.maximum(anchors.kept[stops] - anchors.kept[starts], 0), 0)
        tokens = (spans + views.by_message(lambda message: prices.segment(message, -1))).sum(axis=0)
        events = np.where(is_span, stops - starts, 0).sum(axis=0)
        begins = (is_span & (views.starts == 0)).any(axis=0) & (events >= at)
        cut = overhead + np.where(begins, prologue, 0) + np.where(written, anchors.unrecorded.tokens, 0) + tokens
        saved = views.of_forms(self._saved, self._saved_by_each)
        plain = views.without_forms().normal()
        stop = np.maximum(plain.stops[0], 0) if len(plain.stops) else np.zeros(len(steps), dtype=np.int64)
        extends = ~written & ~(plain.is_span[1:]).any(axis=0) & ~(plain.starts[:1] > 0).any(axis=0)
        whole = overhead + prologue + int(anchors.begins[0]) + anchors.whole[stop] - int(anchors.whole[0])
        sent = extends & (recorded > 0) & (epochs < 0) & (stop == at)
        modelled = np.where(sent, recorded, np.where(extends, whole, cut)) - saved
        as_it_is = sent & ~(is_span & (views.forms > 0)).any(axis=0)
        source = np.where(as_it_is, PROVIDER, self._source)
        counted = CountedRun(np.where(as_it_is, recorded, np.maximum(modelled, 0)), recorded > 0, source)
        replaced = np.flatnonzero(written) if self._sizes.left else np.zeros(0, dtype=np.int64)
        alike = replaced[self._sizes.alike(self._sizes.of_views(views.at(replaced)) - self._sizes.log[at[replaced]])]
        if len(alike):
            self._count_again(counted, steps, alike, views.at(alike).views())
        return counted

    def growing(self, requests: GrowingRequests, heuristics: Ints) -> CountedRun | None:
        """As `growing_counts`, for spans of the log as it is and messages that a policy wrote."""
        steps, head, segments, filled, kept_from, at = requests
        first, sums = int(kept_from[0]), self._sums(head)
        if not self._knows_views or sums.formed or sums.inserted or sums.rewritten:
            return None
        if not sums.written and first == sum(item.stop - item.start for item in head if isinstance(item, Span)):
            return None  # all of the log, as the recorded request may be
        if any(not isinstance(item, Synthetic) and getattr(item, "form", True) for item in segments):
            return None
        recorded = self.ledger.steps["prompt_tokens"][steps]
        columns = np.array([self._sums_of((item,)) for item in segments], dtype=np.int64)
        added = _SegmentSums._make(prefix_sums(column)[filled] for column in columns.reshape(-1, len(sums)).T)
        tokens, written, begins, events = added.tokens, added.written, added.begins, added.events
        has_first = begins + sums.begins + ((kept_from == 0) & (at > 0)) > 0
        is_whole = has_first & (sums.events + events + np.maximum(at - kept_from, 0) >= at)
        cut = np.where(is_whole, self.attribution.prologue, 0)
        cut += np.where(written + sums.written > 0, self.anchors.unrecorded.tokens, 0)
        kept = self.anchors.kept
        tail = np.where(at > kept_from, np.maximum(kept[np.maximum(at, kept_from)] - kept[kept_from], 0), 0)
        modelled = self.attribution.overhead + cut + sums.tokens + tokens + tail
        source = np.full(len(steps), self._source, dtype=np.int64)
        counted = CountedRun(np.maximum(modelled, 0), recorded > 0, source)
        alike = self._sizes.alike(sums.bytes + added.bytes - self._sizes.log[np.minimum(kept_from, at)])
        grown = ((*segments[: int(filled[row])], Span(int(kept_from[row]), int(at[row]))) for row in alike.tolist())
        self._count_again(counted, steps, alike, [followed(head, len(head), rest) for rest in grown])
        return counted

    def staged(self, start: int, heads: Sequence[Head], places: Ints, heuristics: Ints) -> CountedRun | None:
        """As `staged_counts`, for requests that have all of the log, and differ from it by their forms alone."""
        saved, formed = np.zeros((2, len(heads)), dtype=np.int64)
        spans = (item for item in heads[-1].view if isinstance(item, Span) and item.form)
        self.ledger.look_up((item for item in spans if item.stop - item.start == 1), FEWER, fewer_bytes)
        for place, (view, kept_from, form) in enumerate(heads):
            if form or self._plain.of(view) != ((Span(0, kept_from),) if kept_from else ()):
                return None
            sums = self._sums(view)
            saved[place], formed[place] = sums.saved, sums.formed
        plain = self.run(start, start + len(places), (), 0, heuristics)
        source = np.where(formed[places] > 0, self._source, plain.source)
        return CountedRun(np.maximum(plain.tokens - saved[places], 0), plain.reported, source)

    @cached_property
    def _knows_views(self) -> bool:
        """Can no view of a replay be equal to what a recorded compaction left, or to a request with messages that some
        policy wrote."""
        repeats = self._writes or any(self.ledger.whole_resumes)
        return not repeats and all(each.has_inserted for each in self._beginnings[1:])

    @cached_property
    def _sizes(self) -> CompactionSizes:
        return CompactionSizes(self.ledger)

    @cached_property
    def _plain(self) -> PlainViews:
        return PlainViews()

    def _sums(self, view: View) -> _SegmentSums:
        return _SegmentSums._make(self._many.totals(view))

    @cached_property
    def _many(self) -> ManySums:
        return ManySums(self._sums_of)  # kept, as it remembers the sums of the view before

    def _sums_of(self, segments: View) -> tuple[int, ...]:
        """`_SegmentSums` of some segments, in one pass: every request of a replay asks for them."""
        saved = tokens = begins = written = formed = inserted = rewritten = events = size = 0
        for segment in segments:
            if isinstance(segment, Span):
                tokens += self._segment(segment, -1)
                size += self._sizes.of(segment)
                events += segment.stop - segment.start
                begins += segment.start == 0 < segment.stop
                if segment.form:
                    formed += 1
                    saved += self._saved_by(segment)
            elif isinstance(segment, Synthetic):
                tokens += self._segment(segment, -1)
                size += segment.bytes
                written += 1
            elif isinstance(segment, Inserted):
                inserted += 1
            else:
                rewritten += 1
                size += self._sizes.of(segment)
        return saved, tokens, begins, written, formed, inserted, rewritten, events + rewritten, size

    def _saved_by_each(self, spans: Sequence[Span]) -> list[int]:
        self.ledger.look_up(spans, FEWER, fewer_bytes)  # all at once, as far as they can be joined
        return [self._saved_by(span) for span in spans]

    def _saved_by(self, segment: Span) -> int:
        start, stop, form = segment.start, segment.stop, segment.form
        alone = self.ledger.of_one(start, stop, form, FEWER, fewer_bytes)
        if alone is not None:
            return alone * self.attribution.tokens.item(start) // max(self.ledger.events["bytes"].item(start), 1)
        saved = self._saved(form)
        return saved.item(stop) - saved.item(start)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        """As `one`, step by step. Inserted messages in `head` are those of the epoch of step `start`."""
        if form:  # steps are in the log's order, so that the form changes the requests of the later ones
            changed = self.ledger.first_changed(kept_from, form)
            split = start + int(np.searchsorted(self.ledger.steps["at"][start:stop], changed, side="right"))
            if split < stop:
                plain = self.run(start, split, head, kept_from, heuristics[: split - start])
                formed = self._formed(split, stop, head, kept_from, heuristics[split - start :], form)
                return CountedRun(*(np.concatenate(pair) for pair in zip(plain, formed, strict=True)))
        sums, at = self._sums(head), self.ledger.steps["at"]
        epoch = int(self.ledger.steps["epoch"][start]) if sums.inserted else -1
        if start == stop or not self._is_replaced(sums):
            return self._run_recorded(start, stop, head, kept_from, epoch)
        places = self._as_recorded(head, sums, kept_from, at.item(stop - 1))
        bases = [self.ledger.bases[place] for place in places]
        edges = [*(start + int(np.searchsorted(at[start:stop], base.at)) for base in bases), stop]
        runs = [self._run_replaced(start, edges[0], head, kept_from, epoch, sums)] if start < edges[0] else []
        for place, base, (since, until) in zip(places, bases, pairwise(edges), strict=True):
            runs += [self._run_recorded(since, until, base.view, base.at, place)] if since < until else []
        return runs[0] if len(runs) == 1 else CountedRun(*map(np.concatenate, zip(*runs, strict=True)))

    def _run_replaced(
        self, start: int, stop: int, head: View, kept_from: int, epoch: int, sums: _SegmentSums
    ) -> CountedRun:
        """As `run`, for requests with a message that some policy wrote, which are none of the recorded ones."""
        at = self.ledger.steps["at"][start:stop]
        begins, events = sums.begins + (kept_from == 0 < at.item(0)), sums.events + at.item(0) - kept_from
        price = self._price_cut(start, head, sums._replace(begins=begins, events=events), epoch)
        tokens = self._span(kept_from, at) + price
        if price < 0 or sums.saved:
            tokens = np.maximum(np.maximum(tokens, 0) - sums.saved, 0)
        reported = self.ledger.steps["prompt_tokens"][start:stop] > 0
        return CountedRun(tokens, reported, np.full(stop - start, self._source, dtype=np.int64))

    def _run_recorded(self, start: int, stop: int, head: View, kept_from: int, epoch: int) -> CountedRun:
        """As `run`, for requests that may be recorded ones, or extend one; inserted messages in `head` are those of the
        recorded compaction `epoch`."""
        recorded, sums = self.ledger.steps["prompt_tokens"][start:stop], self._sums(head)
        reported = recorded > 0
        modelled, sent = np.zeros(stop - start, dtype=np.int64), np.zeros(stop - start, dtype=np.bool_)
        for first, last in self._alike(start, stop, kept_from):
            view = followed(head, len(head), (Span(kept_from, int(self.ledger.steps["at"][first])),))
            place = slice(first - start, last - start)
            as_it_is = self._plain.of(view)
            modelled[place] = self._price_run(first, last, view, as_it_is, epoch)
            sent[place] = self._same(first, as_it_is, epoch)
        sent &= reported
        source = np.where(sent & (not sums.formed), PROVIDER, self._source).astype(np.int64)
        tokens = np.where(sent, recorded, np.maximum(modelled, 0)) - sums.saved
        return CountedRun(np.maximum(tokens, 0), reported, source)

    def _formed(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str) -> CountedRun:
        """The counts of steps in whose requests a form changes something, so that none of them was sent."""
        plain = self.run(start, stop, head, kept_from, heuristics)
        saved = self._saved(form)
        tokens = plain.tokens - (saved[self.ledger.steps["at"][start:stop]] - saved[kept_from])
        return CountedRun(np.maximum(tokens, 0), plain.reported, np.full(stop - start, self._source, dtype=np.int64))

    def _saved(self, form: str) -> Ints:
        """Prefix sums of what a form saves, in attributed tokens: of each event the share of its bytes."""
        if form not in self._savings:
            fewer = -get_form(form).changes(self.ledger, "bytes", self.ledger.parts_in(form))
            total = np.maximum(self.ledger.events["bytes"], 1)
            self._savings[form] = prefix_sums(fewer * self.attribution.tokens // total)
        return self._savings[form]

    @cached_property
    def _savings(self) -> dict[str, Ints]:
        return {}

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        """What a reader of modelled counts must know; `compacted` as in `Usage.notes`."""
        known, notes = self.anchors.unrecorded, []
        if compacted and known.tokens:
            notes.append(
                f"the first prompt after each replayed compaction that the recording does not have holds "
                f"{known.tokens:,} tokens that are not in this file (files attached again, reminders): {known.source}"
            )
        return (*notes, *self._baseline_notes)

    @cached_property
    def _baseline_notes(self) -> tuple[str, ...]:
        return baseline_notes(self.ledger, self.attribution)  # kept, as every replay of a sweep asks for them

    def _price(self, step: int, view: View, plain: View, sums: _SegmentSums, epoch: int) -> tuple[int, bool]:
        """Tokens of a request that is not the one sent at this step, without what its forms save, and whether it
        extends a recorded one. `plain` is the view without forms."""
        if self._is_replaced(sums):
            return self._price_cut(step, view, sums, epoch), False
        prices, anchors = self.attribution.prices, self.anchors
        overhead, current = self.attribution.overhead, self.ledger.steps["epoch"].item(step)
        resumed = self.ledger.last_resumes.item(current) if current >= 0 else -1
        for place in dict.fromkeys((resumed, -1, current, epoch if sums.inserted else -1)):
            stop = self._extends(place, plain, epoch)
            if stop is not None:
                at, base = self._left_by(place)
                begin = overhead + (prices.view(base, place, at) if base else prices.prologue)
                return int(begin + anchors.begins[place + 1] + anchors.whole[stop] - anchors.whole[at]), True
        return self._price_cut(step, view, sums, epoch), False

    def _price_cut(self, step: int, view: View, sums: _SegmentSums, epoch: int) -> int:
        """The same of a request that extends no recorded one."""
        if epoch < 0 and not sums.inserted and not sums.rewritten:
            tokens = sums.tokens
        else:
            tokens = sum(self._segment(item, epoch) for item in view)
        # With a request that was cut goes the part before the file (`has_beginning`) while no message of the log was
        # left out, and what is not recorded.
        unrecorded = self.anchors.unrecorded.tokens if sums.written else 0
        at = self.ledger.steps["at"].item(step)
        begins = self.attribution.prologue and sums.begins and sums.events >= at
        return self.attribution.overhead + ((self.attribution.prologue if begins else 0) + unrecorded) + tokens

    def _is_replaced(self, sums: _SegmentSums) -> bool:
        """Has a view a message that some policy wrote, as no recorded request has."""
        return sums.written > 0 and not self._writes

    def _as_recorded(self, view: View, sums: _SegmentSums, stop: int, at: int) -> list[int]:
        """The recorded compactions, in their order, behind which the recording sent the same requests as a replay: they
        left as many bytes. `sums` are those of `view`, which the log behind its first `stop` events follows; by step
        `at` events are in it."""
        if not self._sizes.left or not self._is_replaced(sums) or sums.inserted:
            return []
        places = self._sizes.left.get(sums.bytes - self._sizes.log.item(stop), [])
        kept_from = whole_from(view, stop) if places else stop
        return [place for place in places if kept_from <= self.ledger.bases[place].at <= at]

    def _count_again(self, counted: CountedRun, steps: Ints, rows: Ints, views: Sequence[View]) -> None:
        """Put in the counts of some requests one by one."""
        for row, view in zip(rows.tolist(), views, strict=True):
            counted.tokens[row], counted.reported[row], counted.source[row] = self.one(int(steps[row]), view, 0)

    @cached_property
    def _writes(self) -> bool:
        """Has a recorded view such messages after all."""
        return any(isinstance(segment, Synthetic) for base in self.ledger.bases for segment in base.view)

    def _price_run(self, first: int, last: int, view: View, plain: View, epoch: int) -> Ints:
        """As `_price`, for steps whose requests only reach further than `view`, that of the first."""
        tokens, extends = self._price(first, view, plain, self._sums(view), epoch)
        at, tail = self.ledger.steps["at"][first:last], view[-1]
        if extends:
            return np.asarray(tokens + self.anchors.whole[at] - self.anchors.whole[at[0]])
        start = tail.start if isinstance(tail, Span) else int(at[0])
        spans = self._span(start, at)
        return np.asarray(spans - spans[:1] + tokens)

    def _left_by(self, place: int) -> tuple[int, View]:
        """Where a recorded compaction is and what it left; the empty log for -1."""
        return (self.ledger.bases[place].at, self.ledger.bases[place].view) if place >= 0 else (0, ())

    def _extends(self, place: int, plain: View, epoch: int) -> int | None:
        """Where a request ends that only extends what was sent after the recorded compaction `place`; else None."""
        at, last = self._beginnings[place + 1].at, plain[-1] if plain else None
        stop = max(at, last.stop) if isinstance(last, Span) else at
        # all of the log, which the agent sent as the resumed history `place` has it
        is_resumed = place >= 0 and self.ledger.whole_resumes[place] and plain == (Span(0, stop),)
        return stop if is_resumed or self._is_up_to(place, stop, plain, epoch) else None

    def _is_up_to(self, place: int, stop: int, plain: View, epoch: int) -> bool:
        """Is a view without forms what was sent after the recorded compaction `place` once `stop` events were in the
        log. Inserted messages of the view are those of the compaction `epoch`."""
        begin = self._beginnings[place + 1]
        if epoch != place and begin.has_inserted:
            return False
        if stop <= begin.at:
            return plain == begin.whole
        last = plain[-1] if plain else None
        if not isinstance(last, Span) or (last.start, last.stop) != (begin.start, stop):
            return False
        return len(plain) == len(begin.head) + 1 and plain[:-1] == begin.head

    @cached_property
    def _beginnings(self) -> tuple[_EpochBeginning, ...]:
        """What requests begin with after each recorded compaction, by its place + 1; the first: before all."""
        return tuple(_EpochBeginning.of(*self._left_by(place)) for place in range(-1, len(self.ledger.bases)))

    def _segment(self, segment: Segment, epoch: int) -> int:
        if isinstance(segment, Span):
            prefix = self.anchors.kept  # as `_span`, for one number: this is asked for at every compaction
            return max(prefix.item(segment.stop) - prefix.item(segment.start), 0) if segment.stop > segment.start else 0
        return self.attribution.prices.segment(segment, epoch)

    def _span(self, start: int, stop: Ints) -> Ints:
        prefix = self.anchors.kept
        return np.maximum(prefix[np.maximum(stop, start)] - prefix.item(start), 0)

    def _alike(self, start: int, stop: int, kept_from: int) -> Iterator[tuple[int, int]]:
        """Runs of steps whose requests differ only in how far they reach.

        Within an epoch two requests whose last spans are both open are the same at every step or at none, so one step
        answers for all later ones.
        """
        at, epochs = self.ledger.steps["at"][start:stop], self.ledger.steps["epoch"][start:stop]
        seen = np.minimum(at, np.maximum(self._bases[epochs + 1], kept_from) + 1)
        changed = np.flatnonzero((epochs[1:] != epochs[:-1]) | (seen[1:] != seen[:-1])) + 1
        return pairwise([start, *(start + int(row) for row in changed), stop] if stop > start else [])

    @cached_property
    def _bases(self) -> Ints:
        """The place of each recorded compaction, by epoch + 1."""
        return np.array([0, *(base.at for base in self.ledger.bases)], dtype=np.int64)

    def _same(self, step: int, plain: View, epoch: int) -> bool:
        """Is a view without its forms the request of this step: as recorded, or all of the log where the recorded one
        is a resumed history, because without a compaction the agent would have resumed it just so."""
        recorded, at = (self.ledger.steps[name].item(step) for name in ("epoch", "at"))
        return self._is_up_to(recorded, at, plain, epoch) or self.ledger.sends_whole_log(step, plain)

    @property
    def _source(self) -> int:
        return MODELLED if self.attribution.measured else ASSUMED


class _SegmentSums(NamedTuple):
    """Sums over a view: tokens that its forms save, tokens of its segments that depend on no epoch, and how many
    segments begin the log, were written by a policy, have a form, are inserted or rewritten messages of a recording;
    how many messages of the log all of them have; and their bytes without inserted messages."""

    saved: int
    tokens: int
    begins: int
    written: int
    formed: int
    inserted: int
    rewritten: int
    events: int
    bytes: int


class _EpochBeginning(NamedTuple):
    """What requests begin with after a recorded compaction behind `at` events, in normal form: `whole` where no event
    has followed, else `head` and the events from `start` on."""

    at: int
    whole: View
    head: View
    start: int
    has_inserted: bool

    @classmethod
    def of(cls, at: int, base: View) -> _EpochBeginning:
        *head, tail = normal((*base, Span(at, at + 1)))
        assert isinstance(tail, Span)
        return cls(at, normal(base), tuple(head), tail.start, any(isinstance(item, Inserted) for item in base))


def normal(view: View) -> View:
    """The same view with neighbouring spans joined and empty ones left out."""
    segments: list[Segment] = []
    for segment in view:
        if not isinstance(segment, Span):
            segments.append(segment)
        elif segment.start < segment.stop:
            last = segments[-1] if segments else None
            if isinstance(last, Span) and (last.stop, last.form) == (segment.start, segment.form):
                segments[-1] = Span(last.start, segment.stop, segment.form)
            else:
                segments.append(segment)
    return tuple(segments)


def usage_for(
    ledger: Ledger,
    attribution: Attribution | None,
    exceeded: ExceededWindow | None = None,
    find_compared: Callable[[], ComparedCounts | None] = lambda: None,
) -> Usage:
    """The model of the provider that fits a session: simulated where it was simulated, attributed otherwise.
    `exceeded`: the window that is taken for the session's, where larger requests were answered. `find_compared` gives
    what the agent compared."""
    if ledger.usage_ratio is not None:
        return RatioUsage(ledger.usage_ratio, ledger.usage_reported_from)
    known = attribution if attribution is not None else attribute(ledger)
    return AttributedUsage(ledger, known, exceeded, find_compared)
