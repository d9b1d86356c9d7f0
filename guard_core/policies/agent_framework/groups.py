"""The groups of Agent Framework: a message of the system, of the user, an answer, or calls with their results.

Groups stay or go whole. Reasoning around a call belongs to its group, as do results that do not follow their call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL, HAS_MEDIA, HAS_REASONING, HAS_TEXT, RESULT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import ASSISTANT, SYSTEM_ROLE, TOOL, USER, Costs, roles_of
from guard_core.view_sums import FirstPlaces
from guard_core.views import Segment, Span, Synthetic, View, followed

SYSTEM_GROUP, USER_GROUP, ANSWER, TOOL_GROUP = range(4)
_KINDS = {SYSTEM_ROLE: SYSTEM_GROUP, USER: USER_GROUP, TOOL: TOOL_GROUP}
Bools = NDArray[np.bool_]


class Runs(NamedTuple):
    """Neighbouring messages of one group, in the log: where each run starts (and one entry more, the log's end), its
    kind, and the first run of its group."""

    starts: Ints
    kinds: Ints
    group: Ints


def runs_of(ledger: Ledger) -> Runs:
    """The runs of a log."""
    if "agent-framework groups" not in ledger.derived:
        starts, kinds = zip(*_runs(ledger), strict=True) if ledger.event_count else ((), ())
        bounds = np.array([*starts, ledger.event_count], dtype=np.int64)
        runs = Runs(bounds, np.array(kinds, dtype=np.int64), _linked(ledger, bounds))
        ledger.derived["agent-framework groups"] = runs
    found: Runs = ledger.derived["agent-framework groups"]
    return found


def _runs(ledger: Ledger) -> Iterator[tuple[int, int]]:
    """Start and kind of every run."""
    roles, flags = roles_of(ledger), ledger.events["flags"]
    calls = ((roles == ASSISTANT) & (flags & HAS_CALL > 0)).tolist()
    others = HAS_TEXT | HAS_CALL | HAS_MEDIA
    reasons = ((roles == ASSISTANT) & (flags & HAS_REASONING > 0) & (flags & others == 0)).tolist()
    results, count = (roles == TOOL).tolist(), len(roles)

    def after(place: int, marked: list[bool]) -> int:
        while place < count and marked[place]:
            place += 1
        return place

    place = 0
    while place < count:
        call = after(place, reasons)
        if call < count and calls[call]:
            yield place, TOOL_GROUP
            place = after(after(call + 1, reasons), results)
        else:
            yield place, _KINDS.get(int(roles[place]), ANSWER)
            place = after(place, results) if results[place] else place + 1


def _linked(ledger: Ledger, bounds: Ints) -> Ints:
    """The first run of every run's group: results that do not follow their call are of the call's group."""
    groups = np.arange(len(bounds) - 1)
    parts = ledger.parts
    rows = np.flatnonzero((parts["kind"] == RESULT) & (parts["answers"] >= 0))
    result_runs = np.searchsorted(bounds, parts["event"][rows], side="right") - 1
    call_runs = np.searchsorted(bounds, parts["event"][parts["answers"][rows]], side="right") - 1
    for result, call in zip(
        *(runs[result_runs != call_runs].tolist() for runs in (result_runs, call_runs)), strict=True
    ):
        left, right = sorted((int(groups[result]), int(groups[call])))
        groups[groups == right] = left
    return groups


def _starts_of(ledger: Ledger, wanted: Bools) -> Ints:
    """1 at every event that begins a group of a wanted kind."""
    runs = runs_of(ledger)
    marks = np.zeros(ledger.event_count, dtype=np.int64)
    first = runs.group == np.arange(len(runs.group))
    marks[runs.starts[:-1][first & wanted]] = 1
    return marks


NOT_SYSTEM_GROUPS = Costs(
    "agent-framework groups",
    lambda ledger, parts: _starts_of(ledger, runs_of(ledger).kinds != SYSTEM_GROUP),
    lambda message: 1,
)
TOOL_GROUPS = Costs(
    "agent-framework tool groups",
    lambda ledger, parts: _starts_of(ledger, runs_of(ledger).kinds == TOOL_GROUP),
    lambda message: 0,
)
NOT_SYSTEM_MESSAGES = Costs(
    "agent-framework messages",
    lambda ledger, parts: (roles_of(ledger) != SYSTEM_ROLE).astype(np.int64),
    lambda message: 1,
)

SYSTEM_MESSAGES = Costs(
    "agent-framework system",
    lambda ledger, parts: (roles_of(ledger) == SYSTEM_ROLE).astype(np.int64),
    lambda message: 0,
)


# Of every event, is it of a tool group; and how many inserted messages there are.
IN_TOOL_GROUP = Costs(
    "agent-framework in tool groups", lambda ledger, parts: _in_tool_groups(ledger), lambda message: 0
)
INSERTED = Costs(
    "agent-framework inserted", lambda ledger, parts: np.zeros(ledger.event_count, dtype=np.int64), lambda message: 1
)


def tokens_in(ledger: Ledger, inserted: tuple[int, ...]) -> int:
    """The tokens of inserted messages together; of the ones that were asked for last they are known."""
    known: tuple[tuple[int, ...], int] = ledger.derived.get("agent-framework inserted tokens", ((), 0))
    if known[0] is not inserted:
        known = inserted, sum(inserted)
        ledger.derived["agent-framework inserted tokens"] = known
    return known[1]


class Included(NamedTuple):
    """The messages that the library sends: a view, the tokens of each message inserted in it, in order, and `added`,
    how many messages were ever inserted into the library's list, which keeps those that it does not send."""

    view: View
    inserted: tuple[int, ...]
    added: int

    def parted(self, ledger: Ledger) -> tuple[Included, Included]:
        """The list up to the first segment with a message of a tool group, and from there on. All groups but those of
        tools lie together, so that each is on one side; `added` is of the second."""
        place = _tool_places(ledger).first(self.view)
        first = self.view[:place]
        messages = INSERTED.view(ledger, first)
        before = Included(first, self.inserted[:messages], 0)
        return before, Included(self.view[place:], self.inserted[messages:], self.added)

    def behind(self, before: Included) -> Included:
        """The list behind one that comes before it."""
        view, size = self.view, len(before.view)
        last, first = before.view[-1] if size else None, view[0] if view else None
        if isinstance(last, Span) and isinstance(first, Span) and last.stop == first.start:
            view, size = (Span(last.start, first.stop), *view[1:]), size - 1
        return Included(followed(before.view, size, view), before.inserted + self.inserted, self.added)


def _tool_places(ledger: Ledger) -> FirstPlaces:
    """Where views have their first message of a tool group."""
    if "agent-framework tool places" not in ledger.derived:
        ledger.derived["agent-framework tool places"] = FirstPlaces(partial(IN_TOOL_GROUP.segment, ledger))
    places: FirstPlaces = ledger.derived["agent-framework tool places"]
    return places


def _in_tool_groups(ledger: Ledger) -> Ints:
    runs = runs_of(ledger)
    return np.repeat((runs.kinds == TOOL_GROUP).astype(np.int64), np.diff(runs.starts))


class Groups(NamedTuple):
    """A list in groups. A row of `first`, `stop` and `group` is a run of neighbouring messages (an inserted message
    has -1 and its place among `messages`); a row of the others is a group, in the order of their first messages."""

    included: Included
    messages: tuple[Synthetic, ...]
    first: Ints
    stop: Ints
    group: Ints
    kinds: Ints
    tokens: Ints
    sizes: Ints
    begins: Ints  # the row of its first run

    @property
    def plain(self) -> Ints:
        """The groups that are not of the system."""
        return np.flatnonzero(self.kinds != SYSTEM_GROUP)

    @property
    def least(self) -> int:
        """The group that always stays: the newest that is not of the system."""
        return int(self.plain[-1]) if len(self.plain) else len(self.kinds) - 1

    def members(self, group: int) -> Iterator[range]:
        """The events of a group."""
        for row in np.flatnonzero(self.group == group).tolist():
            if self.first[row] >= 0:
                yield range(int(self.first[row]), int(self.stop[row]))

    def only(self, kept: Bools, new: Mapping[int, tuple[Synthetic, int]] | None = None) -> Included:
        """The list with some groups left, and `new` messages, with their tokens, before where a group begins."""
        stays, new = kept[self.group], new or {}
        before = {int(self.begins[group]): item for group, item in new.items()}
        view: list[Segment] = []
        inserted: list[int] = []
        start = 0
        for row in [*sorted(before), len(stays)]:
            rows = np.flatnonzero(stays[start:row]) + start
            view += self._segments(rows)
            inserted += [self.included.inserted[int(self.stop[each])] for each in rows[self.first[rows] < 0].tolist()]
            if row in before:
                message, tokens = before[row]
                view.append(message)
                inserted.append(tokens)
            start = row
        return Included(tuple(view), tuple(inserted), self.included.added + len(new))

    def _segments(self, rows: Ints) -> Iterator[Segment]:
        """Runs as spans, neighbours joined, and inserted messages."""
        first, stop = self.first[rows], self.stop[rows]
        joined = np.zeros(len(rows), dtype=np.bool_)
        joined[1:] = (first[1:] >= 0) & (first[:-1] >= 0) & (first[1:] == stop[:-1])
        ends = np.append(~joined[1:], True)[: len(rows)]
        for start, last in zip(first[~joined].tolist(), stop[ends].tolist(), strict=True):
            yield Span(start, last) if start >= 0 else self.messages[last]


def groups_of(ledger: Ledger, costs: Costs, included: Included) -> Groups:
    """The groups of a list, with the tokens of each."""
    runs = runs_of(ledger)
    messages = [segment for segment in included.view if isinstance(segment, Synthetic)]
    bounds = np.array(_bounds(included.view), dtype=np.int64).reshape(-1, 2)
    is_span = bounds[:, 0] >= 0
    low = np.searchsorted(runs.starts, bounds[:, 0], side="right") - 1
    high = np.searchsorted(runs.starts, bounds[:, 1], side="left")
    counts = np.where(is_span, high - low, 1)
    segment = np.repeat(np.arange(len(bounds)), counts)
    spans = is_span[segment]
    place = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
    run = np.where(spans, low[segment] + place, 0)
    starts, stops = bounds[segment, 0], bounds[segment, 1]
    first = np.where(spans, np.maximum(runs.starts[run], starts), -1)
    stop = np.where(spans, np.minimum(runs.starts[run + 1], stops), stops)
    names = np.where(spans, runs.group[run], -1 - stops)
    kinds = np.where(spans, runs.kinds[run], ANSWER)
    group, begins = _numbered(names)
    prefix = costs.prefix(ledger)
    own = np.where(first >= 0, prefix[stop] - prefix[np.maximum(first, 0)], 0)
    own[first < 0] = included.inserted
    sizes = np.where(first >= 0, stop - first, 1)
    tokens, lengths = (np.bincount(group, weights, len(begins)).astype(np.int64) for weights in (own, sizes))
    return Groups(included, tuple(messages), first, stop, group, kinds[begins], tokens, lengths, begins)


def _bounds(view: View) -> list[tuple[int, int]]:
    """Of each segment the first event and the end; of an inserted message -1 and its place among those."""
    places = count()
    return [(item.start, item.stop) if isinstance(item, Span) else (-1, next(places)) for item in view]


def _numbered(names: Ints) -> tuple[Ints, Ints]:
    """Names as numbers in the order in which they first occur, and where each first occurs."""
    begins = np.append(True, names[1:] != names[:-1])[: len(names)]
    firsts = names[begins]
    spans = firsts[firsts >= 0]
    if (
        spans[1:] > spans[:-1]
    ).all():  # each name is in one place, as in most lists: that of an inserted one is its own
        return np.cumsum(begins) - 1, np.flatnonzero(begins)
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]
