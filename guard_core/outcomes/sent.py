"""The requests of a recording, or of a replay of it, in one shape: their sizes, and how much each shares with the one
before.

A provider's cache gives what a request shares with the one before it, from its beginning on. Between compactions a
request only grows, so it shares all of the one before; where its head changes, the two views are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from guard_core.defaults import CACHE_LEAST
from guard_core.estimation.cached_prefix import smallest_cached_prefix
from guard_core.estimation.estimators import Estimator, Heuristic
from guard_core.estimation.usage import GrowingRequests, counts_of, growing_counts, normal
from guard_core.events import Event, ReasoningPart, part_text
from guard_core.findings.facts import Case, Facts, Fired
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies import policy_kind
from guard_core.summaries.continuation import repeats_request
from guard_core.trace import Head, Trace
from guard_core.view_columns import ViewColumns, common_beginnings, sent_views
from guard_core.view_sums import ViewSums
from guard_core.views import (
    LONG,
    Inserted,
    Segment,
    Span,
    Synthetic,
    View,
    common_length,
    exchanged,
    followed,
    tuples_of,
)

SameMessage = Callable[[Inserted, Inserted], bool]


@dataclass(frozen=True)
class SentRequests:
    """The requests of one side of a session, in prompt tokens per step."""

    case: Case

    @classmethod
    def recorded(cls, facts: Facts) -> SentRequests:
        """Those of the recording."""
        return cls(facts.recording)

    @classmethod
    def replayed(cls, facts: Facts, trace: Trace) -> SentRequests:
        """Those of a replay of it."""
        return cls(facts.replay(trace))

    @property
    def facts(self) -> Facts:
        return self.case.facts

    @property
    def tokens(self) -> Ints:
        return self.case.tokens

    @property
    def fired(self) -> tuple[Fired, ...]:
        """The compactions that a call followed."""
        return self.case.fired

    @cached_property
    def steps_as_recorded(self) -> int:
        """How many requests a replay under the rule of the recording's own agent begins with that are the recorded
        ones; 0 of a replay under another rule."""
        rule = self.facts.explanation.rule
        if self.trace is None or rule is None or rule.policy != self.trace.policy:
            return 0
        changed = np.flatnonzero(self.tokens != self.facts.requests.tokens)
        return int(changed[0]) if len(changed) else len(self.tokens)

    @cached_property
    def compactions_as_recorded(self) -> dict[int, Fired]:
        """The recorded compactions, by step, that the replay makes again within these requests."""
        if not self.steps_as_recorded:
            return {}
        steps = {item.step for item in self.fired if item.step < self.steps_as_recorded}
        return {item.step: item for item in self.facts.recording.fired if item.step in steps}

    @cached_property
    def repeated(self) -> Ints:
        """The message of the user that a replayed policy repeats in the request of each step; -1 where it does not."""
        users = self.ledger.steps["user_event"]
        repeated = np.full(len(users), -1, dtype=np.int64)
        if self.trace is None or not self.fired:
            return repeated
        if self.columns is not None:
            repeating = self.columns.by_message(repeats_request).any(axis=0)
        elif not any(map(repeats_request, chain.from_iterable(tuples_of(head.view for head in self.trace.heads)))):
            return repeated
        else:
            repetitions = ViewSums(repeats_request)
            by_head = np.array([repetitions.total(head.view) > 0 for head in self.trace.heads])
            repeating = by_head[self.trace.columns["head"]]
        compacted = np.array([item.step for item in self.fired], dtype=np.int64)
        steps = np.flatnonzero(repeating)
        steps = steps[steps >= compacted[0]]
        repeated[steps] = users[compacted[np.searchsorted(compacted, steps, side="right") - 1]]
        for item in self.fired:
            if item.record and item.record.in_turn:
                repeated[item.step : item.record.turn_end] = users[item.step]
        return repeated

    @property
    def trace(self) -> Trace | None:
        """The replay; None for the recording."""
        return self.case.trace

    @property
    def ledger(self) -> Ledger:
        return self.case.facts.ledger

    @cached_property
    def compacted(self) -> NDArray[np.bool_]:
        """At which steps a compaction changed the request."""
        steps = np.zeros(self.ledger.step_count, dtype=np.bool_)
        steps[[item.step for item in self.fired]] = True
        return steps

    def view(self, step: int) -> tuple[View, int]:
        """What was sent at a step, and the epoch whose inserted messages it means (-1: none)."""
        if self.trace is None:
            return self.ledger.recorded_view(step)
        known = self._views.get(step)
        if known is None:
            known = self._views[step] = self.trace.view(step, self._at[step], self.ledger)
        return known, -1

    @cached_property
    def _views(self) -> dict[int, View]:
        """The views of a replay that were asked for: each is compared with the one before and the one after it."""
        return {}

    @cached_property
    def _at(self) -> list[int]:
        """How many events are in the log at every step."""
        at: list[int] = self.ledger.steps["at"].tolist()
        return at

    @cached_property
    def changed(self) -> Ints:
        """The steps whose request does not simply extend the one before."""
        heads = self.ledger.steps["epoch"] if self.trace is None else self.trace.columns["head"]
        return np.flatnonzero(np.concatenate([[False], (np.diff(heads) != 0) | self.compacted[1:]])[: len(heads)])

    @cached_property
    def columns(self) -> ViewColumns | None:
        """The views of all steps of a replay in normal form; None where one has many segments, and of a recording."""
        if self.trace is None:
            return None
        views = sent_views(self.ledger, self.trace.heads, self.trace.columns["head"], self.ledger.steps["at"])
        return None if views is None else views.normal()

    @cached_property
    def shared(self) -> Ints:
        """Prompt tokens of the beginning that each request has in common with the one before."""
        shared: Ints = np.concatenate([[0], self.tokens[:-1]])[: len(self.tokens)]
        changed = self.changed
        if self.columns is not None and len(changed):
            shared[changed], unsure = self._commons(self.columns, changed)
            changed = changed[unsure]
        elif self.trace is not None:
            changed = self._write_grown(shared, self.trace, changed)
        for step in changed.tolist():
            begin, epoch = self.common(step)
            shared[step] = self._priced(begin, step, epoch)
        shared = np.minimum(shared, self.tokens)
        if self.compactions_as_recorded:
            again = slice(self.steps_as_recorded)
            shared[again] = SentRequests.recorded(self.facts).shared[again]
        return shared

    def _commons(self, views: ViewColumns, steps: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Prompt tokens of what is in `common` at some steps, and where a message has to be looked at to know."""
        before, after = views.at(steps - 1), views.at(steps)
        common, unsure = common_beginnings(self.ledger, before, after)
        if unsure.any():
            unsure &= ~self.compacted[steps] | _has_more_messages(before, after)
        return self._counted(common, steps), unsure

    def _counted(self, common: ViewColumns, steps: Ints) -> Ints:
        """Prompt tokens of what requests at some steps begin with."""
        heuristics = np.zeros(len(steps), dtype=np.int64)
        if self.ledger.usage_ratio is not None:  # a simulated provider counts by the policy's estimate
            costs = self._estimator
            heuristics = costs.fixed + common.total(costs.log, costs.segment, costs.segments)
        counted = counts_of(self.facts.usage, steps, common, heuristics).tokens
        if self.ledger.usage_ratio is None:
            counted = np.where(common.is_span.any(axis=0), counted, self.fixed)
        return counted

    def shared_without(self, fired: Sequence[Fired]) -> Ints:
        """Prompt tokens that the request before each compaction and the one that this replaced begin with: all of the
        former, unless the policy makes its requests anew from the whole log."""
        steps = np.array([item.step for item in fired], dtype=np.int64)
        shared: Ints = np.where(steps > 0, self.tokens[steps - 1], 0)
        if self.trace is None:
            return shared
        places = np.flatnonzero(steps > 0).tolist()
        pairs = [(self.view(fired[place].step - 1)[0], fired[place].replaced) for place in places]
        anew = [place for place, pair in zip(places, pairs, strict=True) if not _continues(*pair)]
        if anew:
            chosen = set(anew)
            pairs = [pair for place, pair in zip(places, pairs, strict=True) if place in chosen]
            shared[anew] = self._shared_anew(pairs, steps[anew])
        return shared

    def _shared_anew(self, pairs: Sequence[tuple[View, View]], steps: Ints) -> Ints:
        """The same, message by message, of what was sent before and what would have been sent at some steps."""
        columns = ViewColumns.of([*(sent for sent, _ in pairs), *(replaced for _, replaced in pairs)])
        shared, unsure = np.zeros(len(pairs), dtype=np.int64), np.ones(len(pairs), dtype=np.bool_)
        if columns is not None:
            columns = columns.normal()
            halves = columns.at(slice(len(pairs))), columns.at(slice(len(pairs), None))
            common, unsure = common_beginnings(self.ledger, *halves)
            shared = self._counted(common, steps)
        for place in np.flatnonzero(unsure).tolist():
            sent, replaced = pairs[place]
            same = frozenset(_kinds(sent))  # nothing was inserted between the two
            begin = common_beginning(self.ledger, sent, replaced, same, common_length(sent, replaced))
            shared[place] = self._priced(begin, int(steps[place]), -1)
        return shared

    def _write_grown(self, shared: Ints, trace: Trace, steps: Ints) -> Ints:
        """Write what is in common where the head of a request is that of the one before and more; the other steps."""
        others: list[int] = []
        places, firsts = trace.columns["head"].tolist(), FirstKinds()
        grown = _Grown(firsts)
        for step in steps.tolist():
            before, after = (trace.heads[places[each]] for each in (step - 1, step))
            is_compacted = bool(self.compacted[step])
            if grown.steps and not grown.takes(before, after, is_compacted=is_compacted):
                self._write(shared, grown, others)
                grown = _Grown(firsts)
            if not grown.steps and not grown.takes(before, after, is_compacted=is_compacted):
                others.append(step)
                continue
            grown.add(step, before, after, self._at[step - 1])
        self._write(shared, grown, others)
        return np.array(sorted(others), dtype=np.int64)

    def _write(self, shared: Ints, grown: _Grown, others: list[int]) -> None:
        """Write what is in common at the steps of a row of requests; to the `others` where that is not known."""
        steps = grown.steps
        if steps:
            numbers = (np.array(row, dtype=np.int64) for row in (steps, grown.filled, grown.kept, grown.stops))
            rows, filled, kept, stops = numbers
            requests = GrowingRequests(rows, grown.begin, grown.segments, filled, kept, stops)
            counted = growing_counts(self.facts.usage, requests, self._grown_estimates(requests))
            if counted is None:
                others += steps
            else:
                shared[rows] = counted.tokens

    def _grown_estimates(self, requests: GrowingRequests) -> Ints:
        """The policy's estimates of requests, by which a simulated provider counts; a recorded one does not ask."""
        if self.ledger.usage_ratio is None:
            return np.zeros_like(requests.steps)
        costs = self._estimator
        segments = prefix_sums(np.array([costs.segment(item) for item in requests.segments], dtype=np.int64))
        log = costs.log()[np.maximum(requests.stop, requests.kept_from)] - costs.log()[requests.kept_from]
        return np.asarray(costs.fixed + self._estimates.total(requests.head) + segments[requests.filled] + log)

    def shared_behind(self, place: int, step: int) -> int:
        """Prompt tokens that a request behind a recorded compaction (-1: none) shares with that of a step: all of it,
        unless the compaction came later."""
        if place <= int(self.ledger.steps["epoch"][step]):
            return int(self.tokens[step])
        views = normal(self.view(step)[0]), normal(self.ledger.bases[place].view)
        kept = [view[0].stop if view and isinstance(view[0], Span) and not view[0].start else 0 for view in views]
        shared = self._priced((Span(0, min(kept)),) if min(kept) else (), step, -1)
        return shared if shared >= CACHE_LEAST else 0

    def _priced(self, view: View, step: int, epoch: int) -> int:
        """Prompt tokens of what a request begins with."""
        if self.ledger.usage_ratio is not None:  # a simulated provider counts by the policy's estimate
            heuristic = self._estimator.fixed + self._estimates.total(view)
            return self.facts.usage.one(step, view, heuristic, epoch).tokens
        return self.facts.usage.one(step, view, 0, epoch).tokens if view else self.fixed

    def common(self, step: int) -> tuple[View, int]:
        """The messages that the requests of a step and the one before begin with, and their epoch as in `view`."""
        (before, old), (after, epoch) = self.view(step - 1), self.view(step)
        same = common_length(before, after) if self.trace is not None else 0
        kinds: frozenset[str] = frozenset()
        if old == epoch and self.compacted[step]:
            removed, added = (before, after) if self.trace is None else exchanged(before, after)[:2]
            kinds = frozenset(Counter(_kinds(added)) - Counter(_kinds(removed)))
        elif old == epoch:
            kinds = frozenset(_kinds(after[same:])) | self._inserted.kinds(before[:same])
        return common_beginning(
            self.ledger, before, after, kinds, same, self._repeats(old, epoch), self._inserted
        ), epoch

    def _repeats(self, old: int, new: int) -> SameMessage:
        """Is a message that a recorded compaction inserted the same, word for word, as one that an earlier one had
        inserted: a cache compares what is sent. What is not readable is never the same."""

        def same(mine: Inserted, other: Inserted) -> bool:
            one, two = (self.facts.session.compactions[place].messages for place in (old, new))
            if mine.index >= len(one) or other.index >= len(two) or not is_readable(two[other.index]):
                return False
            return (one[mine.index].role, one[mine.index].parts) == (two[other.index].role, two[other.index].parts)

        return same if self.trace is None and -1 < old != new > -1 else _none_is

    @cached_property
    def _inserted(self) -> FirstKinds:
        return FirstKinds()

    @cached_property
    def _estimates(self) -> ViewSums:
        return ViewSums(self._estimator.segment)

    @cached_property
    def fixed(self) -> int:
        """Prompt tokens that requests without a message in common begin with: system prompt and tools. The overhead may
        hold more, such as files that are attached again; what a recorded compaction's first call read proves it."""
        overhead, proven = self.facts.attribution.overhead, smallest_cached_prefix(self.ledger)
        return min(overhead, proven) if proven else overhead

    @cached_property
    def _estimator(self) -> Estimator:
        return estimator_of(self.ledger, self.trace)


def estimator_of(ledger: Ledger, trace: Trace | None) -> Estimator:
    """The estimator of a replay's policy; of a recording the plain heuristic."""
    if trace is None:
        return Heuristic.of(ledger)
    kind = policy_kind(trace.policy)
    published = {item.name: trace.settings[item.name] for item in kind.settings if item.name in trace.settings}
    return kind.make(trace.settings.get("profile"), **published).estimator(ledger)


def _continues(view: View, longer: View) -> bool:
    """Does a view surely begin with another, but for its last span, which may be longer."""
    if not view:
        return True
    same = len(view) - 1
    is_short = len(view) <= LONG and len(longer) <= LONG
    if len(longer) <= same or (longer[:same] != view[:same] if is_short else common_length(view, longer) < same):
        return False
    last, other = view[same], longer[same]
    if last == other:
        return True
    if not (isinstance(last, Span) and isinstance(other, Span)):
        return False
    return (last.start, last.form) == (other.start, other.form) and last.stop <= other.stop


def is_readable(message: Event) -> bool:
    """Does the file have the text of a message."""
    is_sealed = any(isinstance(part, ReasoningPart) and part.opaque_bytes for part in message.parts)
    return not is_sealed and any(part_text(part) for part in message.parts)


def _none_is(mine: Inserted, other: Inserted) -> bool:
    return False


def common_beginning(
    ledger: Ledger,
    first: View,
    second: View,
    kinds: Collection[str],
    same: int = 0,
    repeats: SameMessage = _none_is,
    inserted: FirstKinds | None = None,
) -> View:
    """What two requests begin with. `kinds` are those of inserted messages that are the same ones where they are equal:
    a new summary may have the size of the old one. `same` segments at the beginning are known to be equal. `repeats`
    says which inserted messages behind them are the same whatever their kind; the indices of those in the result are of
    the second request. `inserted` remembers what the request before began with."""
    stays = (inserted or FirstKinds()).first_but(kinds, first[:same])
    shared: list[Segment] = []
    ours, others = (iter(normal(view[stays:] if stays == same else ())) for view in (first, second))
    mine, other = next(ours, None), next(others, None)
    while mine is not None and other is not None:
        if not (isinstance(mine, Span) and isinstance(other, Span)):
            is_repeated = isinstance(mine, Inserted) and isinstance(other, Inserted) and repeats(mine, other)
            if not is_repeated and (mine != other or ((kind := _kind(mine)) and kind not in kinds)):
                break
            shared.append(other)
            mine, other = next(ours, None), next(others, None)
            continue
        stop = min(mine.stop, other.stop)
        end = min(stop, _first_different(ledger, mine, other))
        if end > mine.start:
            shared.append(ledger.span(mine.start, end, mine.form))
        if end < stop or mine.start != other.start:
            break
        mine = Span(stop, mine.stop, mine.form) if mine.stop > stop else next(ours, None)
        other = Span(stop, other.stop, other.form) if other.stop > stop else next(others, None)
    sure = max(stays - 1, 0)
    return followed(first, sure, normal((*first[sure:stays], *shared)))


class _Grown:
    """Requests of which each begins as the one before and then has more: what each has in common with that one."""

    def __init__(self, firsts: FirstKinds) -> None:
        self._firsts = firsts
        self.begin: View = ()
        self.segments: list[Segment] = []  # behind the beginning, of the last head but one
        self.steps: list[int] = []
        self.filled: list[int] = []  # how many of the segments are in common, and then which events of the log
        self.kept: list[int] = []
        self.stops: list[int] = []
        self._kinds: frozenset[str] = frozenset()  # of what all have in common
        self._last: View = ()
        self._new: View = ()  # what the last head has more than the one before it

    def takes(self, before: Head, after: Head, *, is_compacted: bool) -> bool:
        """Does the next request begin as the last one did, with messages that are the same ones."""
        size = len(before.view)
        last = before.view[-1] if size else None
        if not size or (self.steps and before.view is not self._last) or before.form or after.form:
            return False
        if isinstance(last, Span) and last.stop == before.kept_from:
            return False
        if len(after.view) < size or common_length(before.view, after.view) < size:
            return False
        self._kinds = self._kinds.union(_kinds(self._new)) if self.steps else self._firsts.kinds(before.view)
        return not is_compacted or not self._kinds or self._kinds <= set(_kinds(after.view[size:]))

    def add(self, step: int, before: Head, after: Head, at: int) -> None:
        """The next request, and what it has in common with the one before, which was made over `at` events."""
        size = len(before.view)
        if not self.steps:
            self.begin = before.view
        self.segments += self._new
        new = after.view[size:]
        first = new[0] if new else Span(after.kept_from, max(at, after.kept_from))
        begins = isinstance(first, Span) and first.start == before.kept_from
        self.steps.append(step)
        self.filled.append(len(self.segments))
        self.kept.append(before.kept_from)
        self.stops.append(min(first.stop, at) if begins and isinstance(first, Span) else before.kept_from)
        self._new, self._last = new, after.view


class FirstKinds:
    """Where views have their first inserted message of each kind, one view after the other: of one that begins as the
    last one did, only what differs is looked at."""

    def __init__(self) -> None:
        self._view: View = ()
        self._firsts: dict[str, int] = {}

    def first_but(self, kinds: Collection[str], view: View) -> int:
        """The place of the first inserted message of a view that is of none of these kinds; its length where all
        are."""
        return min((place for kind, place in self._look(view).items() if kind not in kinds), default=len(view))

    def kinds(self, view: View) -> frozenset[str]:
        """The kinds of the inserted messages of a view."""
        return frozenset(self._look(view))

    def _look(self, view: View) -> dict[str, int]:
        """Where a view has its first inserted message of each kind."""
        same = common_length(self._view, view)
        firsts = {kind: place for kind, place in self._firsts.items() if place < same}
        for place, segment in enumerate(view[same:], same):
            if not isinstance(segment, Span) and (kind := _kind(segment)) and kind not in firsts:
                firsts[kind] = place
        self._view, self._firsts = view, firsts
        return firsts


def _first_different(ledger: Ledger, mine: Span, other: Span) -> int:
    """The first event that two spans do not hold alike, as far as their forms say; `mine.start` for none in common."""
    if mine.start != other.start:
        return mine.start
    if mine.form == other.form:
        return min(mine.stop, other.stop)
    if min(mine.stop, other.stop) - mine.start <= 1:
        return mine.start + (not ledger.changes_event(mine.start, mine.form, other.form))
    return min(ledger.first_changed(mine.start, form) for form in (mine.form, other.form) if form)


def _has_more_messages(before: ViewColumns, after: ViewColumns) -> NDArray[np.bool_]:
    """Which views have more inserted messages of some kind than those before them. Behind a compaction that leaves no
    more of any kind, each is a new one (see `_kinds`)."""
    has_more = np.zeros(after.starts.shape[1], dtype=np.bool_)
    for kind in {message.kind for message in after.messages}:
        has_more |= _count_of(kind, before) < _count_of(kind, after)
    return has_more


def _count_of(kind: str, views: ViewColumns) -> Ints:
    """How many inserted messages of a kind each view has."""
    return np.asarray(views.by_message(lambda message: message.kind == kind).sum(axis=0))


def _kinds(view: View) -> list[str]:
    """The kinds of the inserted messages of a view, one for each. A compaction that leaves more of a kind than there
    were has added its own behind the others; where there are as many, they are new."""
    return [kind for segment in view if (kind := _kind(segment))]


def _kind(segment: Segment) -> str:
    """The kind of an inserted message; "" for events of the log."""
    if isinstance(segment, Inserted):
        return "inserted"
    return segment.kind if isinstance(segment, Synthetic) else ""
