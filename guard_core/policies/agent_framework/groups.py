"""The groups of Agent Framework: a message of the system, of the user, an answer, or calls with their results.

Groups stay or go whole. Reasoning around a call belongs to its group, as do results that do not follow their call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL, HAS_MEDIA, HAS_REASONING, HAS_TEXT, RESULT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import ASSISTANT, SYSTEM_ROLE, TOOL, USER, MessageCosts, roles_of
from guard_core.view_sums import FirstPlaces, sums_of
from guard_core.views import Segment, Span, Synthetic, View, followed

SYSTEM_GROUP, USER_GROUP, ANSWER, TOOL_GROUP = range(4)
_KINDS = {SYSTEM_ROLE: SYSTEM_GROUP, USER: USER_GROUP, TOOL: TOOL_GROUP}
Bools = NDArray[np.bool_]


class GroupRuns(NamedTuple):
    """Neighbouring messages of one group, in the log: where each run starts (and one entry more, the log's end), its
    kind, and the first run of its group."""

    starts: Ints
    kinds: Ints
    group: Ints


def runs_of(ledger: Ledger) -> GroupRuns:
    """The runs of a log."""
    if "agent-framework groups" not in ledger.derived:
        starts, kinds = zip(*_runs(ledger), strict=True) if ledger.event_count else ((), ())
        bounds = np.array([*starts, ledger.event_count], dtype=np.int64)
        runs = GroupRuns(bounds, np.array(kinds, dtype=np.int64), _linked(ledger, bounds))
        ledger.derived["agent-framework groups"] = runs
    computed: GroupRuns = ledger.derived["agent-framework groups"]
    return computed


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


NOT_SYSTEM_GROUPS = MessageCosts(
    "agent-framework groups",
    lambda ledger, parts: _starts_of(ledger, runs_of(ledger).kinds != SYSTEM_GROUP),
    lambda message: 1,
)
TOOL_GROUPS = MessageCosts(
    "agent-framework tool groups",
    lambda ledger, parts: _starts_of(ledger, runs_of(ledger).kinds == TOOL_GROUP),
    lambda message: 0,
)
NOT_SYSTEM_MESSAGES = MessageCosts(
    "agent-framework messages",
    lambda ledger, parts: (roles_of(ledger) != SYSTEM_ROLE).astype(np.int64),
    lambda message: 1,
)

SYSTEM_MESSAGES = MessageCosts(
    "agent-framework system",
    lambda ledger, parts: (roles_of(ledger) == SYSTEM_ROLE).astype(np.int64),
    lambda message: 0,
)


# Of every event, is it of a tool group; and how many inserted messages there are.
IN_TOOL_GROUP = MessageCosts(
    "agent-framework in tool groups", lambda ledger, parts: _in_tool_groups(ledger), lambda message: 0
)
INSERTED = MessageCosts(
    "agent-framework inserted", lambda ledger, parts: np.zeros(ledger.event_count, dtype=np.int64), lambda message: 1
)


class Insertion(NamedTuple):
    """An inserted message: its tokens, and the event of the log that it was inserted before."""

    tokens: int
    before: int


def tokens_in(ledger: Ledger, inserted: tuple[Insertion, ...]) -> int:
    """The tokens of inserted messages together; of many only what differs from the list before is added up."""
    return sums_of(ledger, "agent-framework inserted tokens", attrgetter("tokens")).total(cast(View, inserted))


class Included(NamedTuple):
    """The messages that the library sends: a view, each message `inserted` in it, in order (many of them share their
    beginning as views do), and `added`, how many messages were ever inserted into the library's list, which keeps those
    that it does not send."""

    view: View
    inserted: tuple[Insertion, ...]
    added: int

    def parted(self, ledger: Ledger) -> tuple[Included, Included]:
        """The list up to the first segment with a message of a tool group, and from there on. All groups but those of
        tools lie together, so that each is on one side; `added` is of the second."""
        place = _tool_places(ledger).first(self.view)
        first = self.view[:place]
        messages = INSERTED.view(ledger, first)
        before = Included(first, self.inserted[:messages], 0)
        return before, Included(self.view[place:], self.inserted[messages:], self.added)

    def split(self, size: int) -> tuple[Included, Included]:
        """The first `size` segments, and what comes behind them; `added` is of the first."""
        first = tuple(self.view[:size])
        messages = sum(not isinstance(segment, Span) for segment in first)
        begin = Included(first, tuple(self.inserted[:messages]), self.added)
        return begin, Included(self.view[size:], self.inserted[messages:], 0)

    def behind(self, before: Included) -> Included:
        """The list behind one that comes before it."""
        view, size = self.view, len(before.view)
        last, first = before.view[-1] if size else None, view[0] if view else None
        if isinstance(last, Span) and isinstance(first, Span) and last.stop == first.start:
            view, size = (Span(last.start, first.stop), *view[1:]), size - 1
        inserted = followed(before.inserted, len(before.inserted), self.inserted)
        return Included(followed(before.view, size, view), inserted, self.added)


def _tool_places(ledger: Ledger) -> FirstPlaces:
    """Where views have their first message of a tool group, remembered with the ledger."""
    if "agent-framework tool places" not in ledger.derived:
        ledger.derived["agent-framework tool places"] = FirstPlaces(partial(IN_TOOL_GROUP.segment, ledger))
    places: FirstPlaces = ledger.derived["agent-framework tool places"]
    return places


def _in_tool_groups(ledger: Ledger) -> Ints:
    """1 for each message that is in a tool group, else 0."""
    runs = runs_of(ledger)
    return np.repeat((runs.kinds == TOOL_GROUP).astype(np.int64), np.diff(runs.starts))


class GroupedList(NamedTuple):
    """A list in groups. A row of `first`, `stop` and `group` is a run of neighbouring messages (an inserted message
    has -1 and its place among `messages`); a row of the others is a group, in the order of their first messages.

    Plain lists: a library that acts at every step mostly looks at few groups each time."""

    included: Included
    messages: list[Synthetic]
    first: list[int]
    stop: list[int]
    group: Sequence[int]
    kinds: list[int]
    tokens: list[int]
    sizes: list[int]
    begins: Sequence[int]  # the row of its first run
    edges: list[int]  # the rows at which segments of the view begin: within one, each run follows the one before

    def of_kind(self, kind: int) -> list[int]:
        """The groups of a kind."""
        return [group for group, other in enumerate(self.kinds) if other == kind]

    @property
    def plain(self) -> list[int]:
        """The groups that are not of the system."""
        if SYSTEM_GROUP not in self.kinds:
            return list(range(len(self.kinds)))
        return [group for group, kind in enumerate(self.kinds) if kind != SYSTEM_GROUP]

    @property
    def least(self) -> int:
        """The group that always stays: the newest that is not of the system."""
        last = len(self.kinds) - 1
        return next((group for group in range(last, -1, -1) if self.kinds[group] != SYSTEM_GROUP), last)

    def members(self, group: int) -> Iterator[range]:
        """The events of a group."""
        rows = range(group, group + 1) if self.is_each_a_run else range(len(self.group))
        for row in rows:
            if self.group[row] == group and self.first[row] >= 0:
                yield range(self.first[row], self.stop[row])

    @property
    def is_each_a_run(self) -> bool:
        """Is each group of the list a run of neighbours."""
        return isinstance(self.group, range)

    def begin_of(self, group: int) -> int:
        """The event that a group begins with, or that it was inserted before."""
        row = self.begins[group]
        return self.first[row] if self.first[row] >= 0 else self.included.inserted[self.stop[row]].before

    def only(self, chosen: Collection[int]) -> Included:
        """The list with some groups left."""
        return self.without(set(range(len(self.kinds))).difference(chosen))

    def without(self, removed: Set[int], new: Mapping[int, tuple[Synthetic, Insertion]] | None = None) -> Included:
        """The list without some groups, and with `new` messages before where a group begins."""
        messages = {self.begins[group]: item for group, item in new.items()} if new else {}
        view: list[Segment] = []
        inserted: list[Insertion] = []
        start = stop = -1  # of the span that is not in the view yet: neighbours are joined
        for row, end in self._blocks(removed, messages):
            if row in messages:
                if start >= 0:
                    view.append(Span(start, stop))
                    start = stop = -1
                message, insertion = messages[row]
                view.append(message)
                inserted.append(insertion)
            if self.group[row] in removed:
                continue
            first, last = self.first[row], self.stop[end - 1]
            if first >= 0 and first == stop:
                stop = last
                continue
            if start >= 0:
                view.append(Span(start, stop))
            start, stop = first, last
            if first < 0:
                view.append(self.messages[last])
                inserted.append(self.included.inserted[last])
                stop = -1
        if start >= 0:
            view.append(Span(start, stop))
        return Included(tuple(view), tuple(inserted), self.included.added + len(messages))

    def _blocks(self, removed: Set[int], messages: Collection[int]) -> Iterator[tuple[int, int]]:
        """Rows, first and end, that stay or go together and lie together in a segment, with a message only before. Most
        of what goes are neighbours, so that there are few of them in a long list."""
        count = len(self.group)
        if not self.is_each_a_run:
            return pairwise(range(count + 1))
        is_removed = np.zeros(count + 1, dtype=np.bool_)
        is_removed[[*removed]] = True
        changes = np.flatnonzero(is_removed[1:] != is_removed[:-1]) + 1
        return pairwise(sorted({*self.edges, *changes.tolist(), *messages, count}))


def groups_of(ledger: Ledger, costs: MessageCosts, included: Included) -> GroupedList:
    """The groups of a list, with the tokens of each."""
    starts, run_kinds, run_groups, run_sizes = _run_lists(ledger)
    prefix = costs.prefix(ledger)
    run_tokens, insertions = _run_tokens(ledger, costs), tuple(included.inserted)
    messages: list[Synthetic] = []
    first: list[int] = []
    stop: list[int] = []
    names: list[int] = []
    kinds: list[int] = []
    tokens: list[int] = []
    sizes: list[int] = []
    edges: list[int] = []
    for segment in included.view:
        edges.append(len(first))
        if not isinstance(segment, Span):
            assert isinstance(segment, Synthetic)
            place = len(messages)
            messages.append(segment)
            first.append(-1)
            stop.append(place)
            names.append(-1 - place)
            kinds.append(ANSWER)
            tokens.append(insertions[place].tokens)
            sizes.append(1)
            continue
        low, high = bisect_right(starts, segment.start) - 1, bisect_left(starts, segment.stop)
        if low >= high:
            continue
        row, last = len(first), len(first) + high - low - 1
        first += starts[low:high]
        stop += starts[low + 1 : high + 1]
        names += run_groups[low:high]
        kinds += run_kinds[low:high]
        tokens += run_tokens[low:high]
        sizes += run_sizes[low:high]
        first[row], stop[last] = segment.start, segment.stop  # the first and the last run may be held in part
        for each in {row, last}:
            tokens[each] = prefix.item(stop[each]) - prefix.item(first[each])
            sizes[each] = stop[each] - first[each]
    count = len(names)
    if len(set(names)) == count:  # each group is one run, as in most lists
        return GroupedList(included, messages, first, stop, range(count), kinds, tokens, sizes, range(count), edges)
    numbers: dict[int, int] = {}
    group = [numbers.setdefault(name, len(numbers)) for name in names]
    begins = sorted(dict(zip(reversed(group), range(count - 1, -1, -1), strict=True)).values())
    own, lengths = [0] * len(numbers), [0] * len(numbers)
    for number, cost, size in zip(group, tokens, sizes, strict=True):
        own[number] += cost
        lengths[number] += size
    return GroupedList(
        included, messages, first, stop, group, [kinds[row] for row in begins], own, lengths, begins, edges
    )


class ReturningGroup(NamedTuple):
    """What a result brings back that comes after other messages: event `at` of the log, and the events of its group
    that the list lacks."""

    at: int
    events: list[int]


def next_returning(ledger: Ledger, head: View, kept_from: int) -> ReturningGroup | None:
    """The first group of a list (`head`, then the log from `kept_from` on) that comes back with a late result."""
    first: ReturningGroup | None = None
    for events in _parted_groups(ledger):
        place = bisect_left(events, kept_from)
        if not 0 < place < len(events) or (first is not None and first.at <= events[place]):
            continue
        spans = [segment for segment in head if isinstance(segment, Span)]
        absent = [event for event in events[:place] if not any(span.start <= event < span.stop for span in spans)]
        if absent:
            first = ReturningGroup(events[place], absent)
    return first


def with_events(view: View, inserted: Iterable[Insertion], events: Iterable[int]) -> View:
    """A view with some more events of the log, each in its place."""
    places, new = iter(inserted), deque(sorted(events))
    segments: list[Segment] = []
    for segment in view:
        begin = segment.start if isinstance(segment, Span) else next(places).before
        while new and new[0] < begin:
            event = new.popleft()
            segments.append(Span(event, event + 1))
        segments.append(segment)
    return (*segments, *(Span(event, event + 1) for event in new))


def _parted_groups(ledger: Ledger) -> list[list[int]]:
    """The events of each group of a log that is not a run of neighbours."""
    key = "agent-framework parted groups"
    if key not in ledger.derived:
        runs, parted = runs_of(ledger), dict[int, list[int]]()
        numbers, counts = np.unique(runs.group, return_counts=True)
        for row in np.flatnonzero(np.isin(runs.group, numbers[counts > 1])).tolist():
            parted.setdefault(runs.group.item(row), []).extend(range(runs.starts.item(row), runs.starts.item(row + 1)))
        ledger.derived[key] = list(parted.values())
    groups: list[list[int]] = ledger.derived[key]
    return groups


def run_starts(ledger: Ledger) -> list[int]:
    """Where runs start, and the log's end, as plain numbers."""
    return _run_lists(ledger)[0]


def is_plain(ledger: Ledger, start: int) -> bool:
    """Does a group begin at an event, is each of a log a run of neighbours, and none of the system."""
    runs = runs_of(ledger)
    if not is_each_a_run(ledger) or (runs.kinds == SYSTEM_GROUP).any():
        return False
    return runs.starts.item(int(np.searchsorted(runs.starts, start))) == start


def is_each_a_run(ledger: Ledger) -> bool:
    """Is each group of a log a run of neighbours."""
    key = "agent-framework groups are runs"
    if key not in ledger.derived:
        group = runs_of(ledger).group
        ledger.derived[key] = bool((group == np.arange(len(group))).all())
    are_runs: bool = ledger.derived[key]
    return are_runs


def _run_lists(ledger: Ledger) -> tuple[list[int], list[int], list[int], list[int]]:
    """`runs_of` as plain numbers, and how many messages each run has."""
    key = "agent-framework run lists"
    if key not in ledger.derived:
        runs = runs_of(ledger)
        ledger.derived[key] = tuple(column.tolist() for column in (*runs, np.diff(runs.starts)))
    lists: tuple[list[int], list[int], list[int], list[int]] = ledger.derived[key]
    return lists


def _run_tokens(ledger: Ledger, costs: MessageCosts) -> list[int]:
    """The tokens of every run, counted once for a ledger."""
    key = "agent-framework run tokens", costs.key
    if key not in ledger.derived:
        ledger.derived[key] = np.diff(costs.prefix(ledger)[runs_of(ledger).starts]).tolist()
    tokens: list[int] = ledger.derived[key]
    return tokens
