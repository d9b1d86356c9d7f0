"""What left the requests of a side: users' messages, rules that someone stated, tool calls without their results."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import EVENT_COLUMNS, HAS_RESULT, IN_PAIR, STARTS_TURN, SYSTEM, USER
from guard_core.events import Event, Role
from guard_core.facts.instructions import rule_sentences
from guard_core.ledger import Ints, Ledger
from guard_core.outcomes.sent import SentRequests
from guard_core.summaries.continuation import repeats_request
from guard_core.view_columns import ViewColumns
from guard_core.view_sums import SHORT, ViewSums, sums_of
from guard_core.views import (
    CHUNK,
    JOINED,
    NO_ROW,
    Inserted,
    Rewritten,
    Segment,
    Span,
    View,
    common_length,
    exchanged,
)

AT_ONCE = 1_000_000  # pairs of calls and results; ours: some 50 MB
_CHANGED = Event(Role.USER, ())  # what a changed result says now is not asked
# A tokenizer does not count what compactions insert.
_KNOWN_BY = tuple(name for name in EVENT_COLUMNS if name not in ("flags", "time_ms", "tokenizer_tokens"))


class Losses(msgspec.Struct, frozen=True):
    """`requests` messages that began a turn, of them `requests_dropped` that were not in some later request as they
    were, nor repeated in it by the policy; `rules` sentences that state a rule, of them `rules_gone` from the last
    request (-1: not looked for); `parted_steps` requests with a tool call whose result is missing, or the reverse,
    though the log has both. `is_least`: the file does not hold all that the recording's compactions removed, so that
    more may be missing."""

    requests: int
    requests_dropped: int
    rules: int
    rules_gone: int
    parted_steps: int
    is_least: bool = False


class StatedRule(msgspec.Struct, frozen=True):
    """A message with sentences that state a rule: its place in the log, and the sentences."""

    event: int
    sentences: tuple[str, ...]


def may_state_rules(ledger: Ledger) -> Ints:
    """The events whose texts are looked at for rules: those of users and of the system, without tool results."""
    flags = ledger.events["flags"]
    return np.flatnonzero(((flags & (USER | SYSTEM)) > 0) & ((flags & HAS_RESULT) == 0))


def stated_rules(events: Iterable[tuple[int, Event]]) -> tuple[StatedRule, ...]:
    """The rules that these messages state, by their places in the log."""
    stated = ((index, tuple(rule_sentences(event))) for index, event in events)
    return tuple(StatedRule(index, rules) for index, rules in stated if rules)


def stated_in(log: Sequence[Event], ledger: Ledger) -> tuple[StatedRule, ...]:
    """The rules that a whole log states."""
    return stated_rules((index, log[index]) for index in may_state_rules(ledger).tolist())


def losses_of(sent: SentRequests, rules: Sequence[StatedRule] | None) -> Losses:
    """The losses of a side; `rules` None: they were not looked for."""
    sent = _with_repeated(sent)
    ledger, size = sent.ledger, sent.ledger.step_count
    ats = ledger.steps["at"]
    users = np.flatnonzero(ledger.events["flags"] & STARTS_TURN)
    seen = int(np.searchsorted(users, int(ats.max(initial=0))))
    texts = Verbatim(ledger, np.array([*users, *(rule.event for rule in rules or ())], dtype=np.int64))
    pairs = Pairs(ledger)
    looks = _Looks(ledger, texts, pairs)
    missing = np.zeros(len(users) + 1, dtype=np.int64)
    stretches, parted, all_gaps = _stretches(sent, pairs), 0, list[Ints]()
    if sent.columns is not None:
        starts, stops = np.array(stretches, dtype=np.int64).reshape(-1, 2).T
        seen_at_once = _ViewLooks(texts, sent.columns.at(starts), ats[starts])
        all_gaps += seen_at_once.gaps()
        parted = int((stops - starts)[seen_at_once.are_parted(pairs)].sum())
        stretches = [stretches[place] for place in np.flatnonzero(~seen_at_once.in_order).tolist()]
    for start, stop in stretches:
        view, at = _in_place(ledger, *sent.view(start)), int(ats[start])
        if looks.look(view, at):
            parted += (stop - start) if looks.are_parted(at) else 0
            continue
        firsts, lasts = _gaps(texts.ranges(view), at)
        np.add.at(missing, np.searchsorted(users, firsts), 1)
        np.add.at(missing, np.searchsorted(users, lasts), -1)
        parted += (stop - start) if pairs.are_parted(view, at) else 0
    for gaps in (*all_gaps, np.array([*looks.gaps], dtype=np.int64).reshape(-1, 2)):
        np.add.at(missing, np.searchsorted(users, gaps[:, 0]), 1)
        np.add.at(missing, np.searchsorted(users, gaps[:, 1]), -1)
    total, remaining = _rules(sent, texts, rules or ())
    return Losses(
        requests=seen,
        requests_dropped=int((np.cumsum(missing[:seen]) > 0).sum()),
        rules=total if rules is not None and size else -1,
        rules_gone=total - remaining if rules is not None and size else -1,
        parted_steps=parted,
        is_least=sent.trace is None and bool(sent.facts.unseen),
    )


def _with_repeated(sent: SentRequests) -> SentRequests:
    """The same requests, with a message of the user itself where the policy repeats it, word for word."""
    trace, steps = sent.trace, np.flatnonzero(sent.repeated >= 0)
    if trace is None or not len(steps):
        return sent
    heads, places = list(trace.heads), trace.columns["head"].copy()
    restored: dict[tuple[int, int], int] = {}  # by head and message: the place of the head that has the message
    for step, head, message in zip(steps.tolist(), places[steps].tolist(), sent.repeated[steps].tolist(), strict=True):
        if (head, message) not in restored:
            restored[head, message] = len(heads)
            view = (Span(message, message + 1) if repeats_request(part) else part for part in heads[head].view)
            heads.append(heads[head]._replace(view=tuple(view)))
        places[step] = restored[head, message]
    changed = replace(trace, heads=tuple(heads), columns={**trace.columns, "head": places})
    return SentRequests(replace(sent.case, trace=changed))


def _rules(sent: SentRequests, texts: Verbatim, rules: Sequence[StatedRule]) -> tuple[int, int]:
    """How many sentences state a rule before the last request, and how many of them it has."""
    size = sent.ledger.step_count
    if not size:
        return 0, 0
    stated = [rule for rule in rules if rule.event < int(sent.ledger.steps["at"][size - 1])]
    view, epoch = sent.view(size - 1)
    again = _of_system_again(sent, view, epoch)
    firsts, lasts = texts.ranges(_in_place(sent.ledger, view, epoch)).T
    events = np.array([rule.event for rule in stated], dtype=np.int64)
    reach = np.maximum.accumulate(np.append(0, lasts))  # of the ranges that begin up to an event, the farthest end
    remains = reach[np.searchsorted(firsts, events, side="right")] > events
    return sum(len(rule.sentences) for rule in stated), sum(
        len(rule.sentences) if is_in else sum(sentence in again for sentence in rule.sentences)
        for rule, is_in in zip(stated, remains.tolist(), strict=True)
    )


def _of_system_again(sent: SentRequests, view: View, epoch: int) -> frozenset[str]:
    """The rules in messages of the agent's software that a recorded compaction put in again: Codex writes them anew,
    so that the new one may differ from the one in the log in a date or a path."""
    if epoch < 0:
        return frozenset()
    messages = sent.facts.session.compactions[epoch].messages
    inserted = [messages[segment.index] for segment in view if isinstance(segment, Inserted)]
    return frozenset(
        sentence for message in inserted if message.role is Role.SYSTEM for sentence in rule_sentences(message)
    )


def _stretches(sent: SentRequests, pairs: Pairs) -> list[tuple[int, int]]:
    """Runs of steps whose requests begin alike and only reach further, by calls with their results alone: all of them
    lack what the first one lacks, and part what it parts."""
    shorter = np.flatnonzero(np.diff(sent.ledger.steps["at"]) < 0) + 1
    edges = np.unique(np.concatenate([[0], sent.changed, shorter, pairs.late, [sent.ledger.step_count]]))
    return list(pairwise(edges.tolist()))


def _in_place(ledger: Ledger, view: View, epoch: int) -> View:
    """A recorded view with what it has of the log under other names: the results that it has changed (a call whose
    result was cleared still has one), messages that are only joined with others, and users' messages that the
    compaction put in again, word for word."""
    if epoch < 0:
        return view
    replaced, again = ledger.replaced_results(epoch), _put_in_again(ledger, epoch)
    return tuple(_placed(segment, replaced, again) for segment in view)


def _placed(segment: Segment, replaced: dict[int, int], again: dict[int, int]) -> Segment:
    if isinstance(segment, Rewritten) and segment.reason == JOINED:
        return Span(segment.event, segment.event + 1)
    if not isinstance(segment, Inserted):
        return segment
    if segment.index in replaced:
        return Rewritten(replaced[segment.index], _CHANGED, "changed")
    event = again.get(segment.index)
    return segment if event is None else Span(event, event + 1)


def _put_in_again(ledger: Ledger, epoch: int) -> dict[int, int]:
    """The users' messages of the log that a recorded compaction inserted again, by the number of the inserted one: the
    last of them that are not taken yet. A message is known again by its costs, as in `Ledger.repeated`."""
    base = ledger.bases[epoch]
    inserted = list(zip(*(base.costs[name] for name in _KNOWN_BY), strict=True)) if base.costs.get("flags") else []
    left: dict[tuple[int, ...], list[int]] = {}
    again: dict[int, int] = {}
    for index in reversed(range(len(inserted))):
        if inserted[index] not in left:
            events = _users_messages(ledger).get(inserted[index], [])
            left[inserted[index]] = events[: bisect_left(events, base.at)]
        if base.costs["flags"][index] & USER and base.costs["bytes"][index] and left[inserted[index]]:
            again[index] = left[inserted[index]].pop()
    return again


def _users_messages(ledger: Ledger) -> dict[tuple[int, ...], list[int]]:
    """The users' messages of a log by their costs, in its order."""
    if "users' messages" not in ledger.derived:
        messages: dict[tuple[int, ...], list[int]] = {}
        flags = ledger.events["flags"]
        places = np.flatnonzero((flags & USER > 0) & (flags & HAS_RESULT == 0))
        rows = zip(*(ledger.events[name][places].tolist() for name in _KNOWN_BY), strict=True)
        for place, row in zip(places.tolist(), rows, strict=True):
            messages.setdefault(row, []).append(place)
        ledger.derived["users' messages"] = messages
    known: dict[tuple[int, ...], list[int]] = ledger.derived["users' messages"]
    return known


class _ViewLooks:
    """What lies between the messages of many short views over `at` events, of those that hold the log in its order."""

    def __init__(self, texts: Verbatim, views: ViewColumns, at: Ints) -> None:
        self._texts, self._views, self._at = texts, views, at
        reach = np.zeros(len(at), dtype=np.int64)
        self.in_order = np.ones(len(at), dtype=np.bool_)
        self._reaches: list[Ints] = []  # where the spans before each row of segments stop
        for start, stop in zip(views.starts, views.stops, strict=True):
            is_span = start < stop
            self.in_order &= ~is_span | (start >= reach)
            self._reaches.append(reach)
            reach = np.where(is_span, stop, reach)
        self._reach = reach

    def gaps(self) -> Iterator[Ints]:
        """Events that some view leaves out or has changed, as rows of ranges."""
        for reach, start, stop in zip(self._reaches, *self._views[:2], strict=True):
            yield self._ranges(reach, start, (start < stop) & (reach < start))
        yield self._ranges(self._reach, self._at, self._reach < self._at)
        changed = {event for span in self._formed() for event in self._texts.changed_in(span)}
        yield np.array([(event, event + 1) for event in changed], dtype=np.int64).reshape(-1, 2)

    def _ranges(self, starts: Ints, stops: Ints, chosen: NDArray[np.bool_]) -> Ints:
        return np.column_stack([starts, stops])[chosen & self.in_order]

    def _formed(self) -> Iterator[Span]:
        """The events that the views have in each form, as few spans as there can be."""
        views = self._views.at(self.in_order)
        chosen = views.is_span & (views.forms > 0)
        forms, starts, stops = (rows[chosen] for rows in (views.forms, views.starts, views.stops))
        order = np.lexsort((starts, forms))
        name, first, last = -1, 0, 0
        for form, start, stop in zip(*(rows[order].tolist() for rows in (forms, starts, stops)), strict=True):
            if form != name or start > last or (last - first == 1 and (start, stop) != (first, last)):
                if name >= 0:
                    yield Span(first, last, views.names[name])
                name, first, last = form, start, stop
            last = max(last, stop)
        if name >= 0:
            yield Span(first, last, views.names[name])

    def are_parted(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Which views have a call without its result, or a result without its call, though the log has both."""
        flags, views = pairs.ledger.events["flags"], self._views
        edges: list[tuple[Ints, Ints]] = []
        inside = (self._reach > 0) & (self._reach < self._at)
        rows = [(self._reach, inside)]
        for reach, start, stop in zip(self._reaches, *views[:2], strict=True):
            is_gap = (start < stop) & (reach < start)
            rows += [(reach, is_gap & (reach > 0)), (start, is_gap)]
        for edge, chosen in rows:
            places = np.flatnonzero(chosen & self.in_order)
            places = places[(flags[edge[places]] & IN_PAIR) > 0]
            edges.append((places, edge[places]))
        parted = np.zeros(len(self._at), dtype=np.bool_)
        views_of, events = map(np.concatenate, zip(*edges, strict=True))
        for places, call, result in pairs.all_across(views_of, events, self._at):
            differs = self._hold(places, call) != self._hold(places, result)
            parted[places[differs]] = True
        return parted

    def _hold(self, places: Ints, events: Ints) -> NDArray[np.bool_]:
        """Which of some views have an event."""
        held = np.zeros(len(places), dtype=np.bool_)
        for start, stop in zip(*self._views[:2], strict=True):
            held |= (start[places] <= events) & (events < stop[places])
        return held


class _Looked(NamedTuple):
    """Some segments of a view, one after the other. Of each where it `starts`, where it `stops` (an inserted message
    does both where the one before it stops), and how many of the `edges` come up to it: events between a call and its
    result before which a gap begins or ends."""

    starts: list[int]
    stops: list[int]
    edges: list[int]
    counts: list[int]

    def behind_events(self, first: int, stop: int) -> _Looked:
        """Those of the segments `first` to `stop` (exclusive) that come behind one with events: what is between them
        does not depend on what comes before."""
        place = first
        while place < stop and self.starts[place] == self.stops[place]:
            place += 1
        if place >= stop:
            return _Looked([], [], [], [])
        rows, begins = slice(place + 1, stop), self.counts[place]
        edges = self.edges[begins : self.counts[stop - 1]]
        return _Looked(self.starts[rows], self.stops[rows], edges, [count - begins for count in self.counts[rows]])

    def append(self, others: _Looked) -> None:
        """Add other segments behind these."""
        self.counts.extend([count + len(self.edges) for count in others.counts])
        for own, added in zip(self[:3], others[:3], strict=True):
            own.extend(added)

    def keep(self, size: int) -> None:
        """Forget what is behind the first `size` segments."""
        del self.starts[size:], self.stops[size:], self.counts[size:]
        del self.edges[self.counts[-1] if size else 0 :]


class _Looks:
    """What lies between the messages of views that hold the log in its order, one view after the other: of one that
    begins as the last one did, or has a long row of its segments, only what differs is looked at."""

    def __init__(self, ledger: Ledger, texts: Verbatim, pairs: Pairs) -> None:
        self.gaps: set[tuple[int, int]] = set()  # events that some view left out, or has changed
        self._texts, self._pairs = texts, pairs
        self._in_pair: list[bool] = ((ledger.events["flags"] & IN_PAIR) > 0).tolist()
        self._view: View = ()
        self._looked = _Looked([], [], [], [])
        self._covered: dict[str, tuple[int, int]] = {}  # events that were looked at in a form

    def look(self, view: View, at: int) -> bool:
        """Look at a view over `at` events; False: it is not in the log's order, and was not looked at."""
        same = common_length(self._view, view)
        row = exchanged(self._view, view).kept if len(view) - same > CHUNK else NO_ROW
        known = self._looked.behind_events(row.old, row.old + row.size)
        end = row.new + row.size if row.size else same
        self._looked.keep(same)
        in_order = self._walk(view[same : max(end - len(known.starts), same)])
        self._looked.append(known)
        if not in_order or not self._walk(view[end:]):
            self._looked.keep(0)
            self._view = ()
            return False
        self._view = view
        reach = self._looked.stops[-1] if view else 0
        if reach < at:
            self.gaps.add((reach, at))
        return True

    def _walk(self, segments: View) -> bool:
        """Look at segments behind those that are known; False: they are not in the log's order."""
        starts, stops, edges, counts = self._looked
        reach = stops[-1] if stops else 0
        for segment in segments:
            first = reach
            if isinstance(segment, Span):
                first = segment.start
                if first < reach:
                    return False
                if first < segment.stop:
                    if first > reach:
                        self._gap(reach, first)
                    if segment.form:
                        self._changed(segment)
                    reach = segment.stop
                else:
                    first = reach
            elif isinstance(segment, Rewritten):
                return False
            starts.append(first)
            stops.append(reach)
            counts.append(len(edges))
        return True

    def are_parted(self, at: int) -> bool:
        """Has the last view, over `at` events, a call without its result, or a result without its call."""
        reach = self._looked.stops[-1] if self._looked.stops else 0
        last = (reach,) if 0 < reach < at and self._in_pair[reach] else ()
        across = self._pairs.across((*self._looked.edges, *last), at)
        return any(self._is_held(call) != self._is_held(result) for call, result in across)

    def _gap(self, start: int, stop: int) -> None:
        """Note what is left out, and each end of it that is between a call and its result."""
        self.gaps.add((start, stop))
        if start and self._in_pair[start]:
            self._looked.edges.append(start)
        if self._in_pair[stop]:
            self._looked.edges.append(stop)

    def _changed(self, span: Span) -> None:
        """What the form of a span changes is not there as it was; events are looked at once in a form."""
        first, last = self._covered.get(span.form, (span.start, span.start))
        if not first <= span.start <= last:
            first = last = span.start
        if last < span.stop:
            self.gaps.update((event, event + 1) for event in self._texts.changed_in(Span(last, span.stop, span.form)))
        self._covered[span.form] = first, max(last, span.stop)

    def _is_held(self, event: int) -> bool:
        place = bisect_right(self._looked.starts, event) - 1
        return place >= 0 and event < self._looked.stops[place]


def reach(ranges: Ints, events: Ints) -> bool:
    """Is any of some events, in order, in ranges of events (a row each)."""
    starts, stops = np.searchsorted(events, ranges).reshape(-1, 2).T
    return bool((starts < stops).any())


@dataclass
class Verbatim:
    """Where views have some messages of the log (`events`) as they are. A form may change them, or only the messages
    between them."""

    ledger: Ledger
    events: Ints
    _changed: dict[str, Ints] = field(default_factory=dict)

    def ranges(self, view: View) -> Ints:
        """Sorted ranges of events, a row each: those of the messages asked for that are in them are as they were."""
        if not self._changes.total(view):
            return spans_of(self.ledger, view, Span)
        spans = [self._unchanged(segment) for segment in view if isinstance(segment, Span)]
        ranges = np.concatenate(spans)
        return ranges[np.argsort(ranges[:, 0], kind="stable")]

    @cached_property
    def _changes(self) -> ViewSums:
        """How many of the messages asked for are changed."""
        return ViewSums(self._changes_in)

    def _changes_in(self, segment: Segment) -> int:
        if not isinstance(segment, Span) or not segment.form:
            return 0
        if self.ledger.changes_one(segment.start, segment.stop, segment.form) is not None:
            return len(self.changed_in(segment))
        changed = self._changed_by(segment.form)
        return int(np.searchsorted(changed, segment.stop) - np.searchsorted(changed, segment.start))

    def _unchanged(self, span: Span) -> Ints:
        """The ranges of a span without the messages that its form changes."""
        inside = np.array(self.changed_in(span) if span.form else (), dtype=np.int64)
        return np.column_stack([np.append(span.start, inside + 1), np.append(inside, span.stop)])

    def changed_in(self, span: Span) -> list[int]:
        """The messages asked for that the form of a span changes in it."""
        changes = self.ledger.changes_one(span.start, span.stop, span.form)
        if changes is not None:
            return [span.start] if changes and (self.events == span.start).any() else []
        changed = self._changed_by(span.form)
        inside: list[int] = changed[np.searchsorted(changed, span.start) : np.searchsorted(changed, span.stop)].tolist()
        return inside

    def _changed_by(self, form: str) -> Ints:
        if form not in self._changed:
            changed = self.ledger.changed_by(form)
            self._changed[form] = np.unique(self.events[changed[self.events]])
        return self._changed[form]


def spans_of(ledger: Ledger, view: View, *kinds: type) -> Ints:
    """The ranges of events that segments of some kinds hold, sorted, a row each."""
    if len(view) < SHORT:
        bounds = [
            tuple(_bound(kinds, place, segment) for place in range(2)) for segment in view if isinstance(segment, kinds)
        ]
        return np.array(sorted(bounds), dtype=np.int64).reshape(-1, 2)
    columns = [
        sums_of(ledger, ("bounds", kinds, place), partial(_bound, kinds, place)).prefix(view) for place in range(2)
    ]
    rows: Ints = np.diff(columns, axis=1).T
    rows = rows[rows[:, 0] >= 0]
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _bound(kinds: tuple[type, ...], place: int, segment: Segment) -> int:
    """The first event of a segment, or with `place` 1 the end; -1: it is of another kind."""
    if not isinstance(segment, kinds):
        return -1
    assert isinstance(segment, Span | Rewritten)
    first, stop = (segment.start, segment.stop) if isinstance(segment, Span) else (segment.event, segment.event + 1)
    return stop if place else first


def _gaps(ranges: Ints, stop: int) -> tuple[Ints, Ints]:
    """What lies between sorted ranges, up to `stop`: where each gap begins and ends."""
    begins = np.concatenate([[0], np.maximum.accumulate(ranges[:, 1])])
    ends = np.append(np.minimum(ranges[:, 0], stop), stop)
    is_gap = begins < ends
    return begins[is_gap], ends[is_gap]


@dataclass(frozen=True)
class Pairs:
    """The tool calls of a log and their results, by the events that hold them."""

    ledger: Ledger

    def are_parted(self, view: View, at: int) -> bool:
        """Does a request over `at` events have a call without its result, or a result without its call."""
        ranges = spans_of(self.ledger, view, Span, Rewritten)
        edges = np.concatenate(_gaps(ranges, at))
        edges = edges[(edges > 0) & (edges < at)]
        if not (self.ledger.events["flags"][edges] & IN_PAIR).any():
            return False
        begins, ends = np.minimum(ranges, at).T
        held = np.cumsum(np.bincount(begins, minlength=at + 1) - np.bincount(ends, minlength=at + 1))[:-1] > 0
        calls, results = self._events
        inside = results < at
        return bool((held[calls[inside]] != held[results[inside]]).any())

    def across(self, edges: Iterable[int], at: int) -> Iterator[tuple[int, int]]:
        """Calls before some edges with their results behind them, as events of a log of `at`."""
        if not edges:
            return
        calls, results, oldest = self._lists
        for edge in edges:
            for pair in range(oldest[edge], bisect_left(calls, edge)):
                if edge <= results[pair] < at:
                    yield calls[pair], results[pair]

    def all_across(self, places: Ints, edges: Ints, at: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Some places, and for each of its edges the calls before it with their results behind it, as in `across`; `at`
        is by place. In several parts, for an old call without a result makes them many."""
        calls, results = self._events
        oldest = self._oldest[edges]
        counts = np.maximum(np.searchsorted(calls, edges) - oldest, 0)
        for part in np.array_split(np.arange(len(edges)), 1 + int(counts.sum()) // AT_ONCE):
            sizes = counts[part]
            pair = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(oldest[part], sizes)
            place, edge = np.repeat(places[part], sizes), np.repeat(edges[part], sizes)
            crosses = (edge <= results[pair]) & (results[pair] < at[place])
            yield place[crosses], calls[pair[crosses]], results[pair[crosses]]

    @cached_property
    def late(self) -> Ints:
        """The steps whose log has a result of which that of the step before had only the call."""
        ats = self.ledger.steps["at"]
        steps = np.arange(1, len(ats))
        across = [np.unique(places) for places, _, _ in self.all_across(steps, ats[:-1], ats)]
        return np.concatenate([steps[:0], *across])

    @cached_property
    def _events(self) -> tuple[Ints, Ints]:
        """The events of calls, in their order, and of their results."""
        parts = self.ledger.parts
        rows = np.flatnonzero(parts["answers"] >= 0)
        calls, results = parts["event"][parts["answers"][rows]], parts["event"][rows]
        order = np.argsort(calls, kind="stable")
        return calls[order], results[order]

    @cached_property
    def _oldest(self) -> Ints:
        """For every event the first pair whose result is not before it."""
        calls, results = self._events
        oldest = np.full(self.ledger.event_count + 1, len(calls), dtype=np.int64)
        np.minimum.at(oldest, results, np.arange(len(calls)))
        return np.minimum.accumulate(oldest[::-1])[::-1]

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[int]]:
        """The same as plain numbers."""
        calls, results = self._events
        return calls.tolist(), results.tolist(), self._oldest.tolist()
