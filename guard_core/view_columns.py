"""Views of a few segments each in columns, so that thousands of them are priced and compared at once.

A policy that edits every request anew has another view at every step, and each of them has a handful of segments.
Sums over them are differences of prefix sums, an array at a time; what two neighbours have in common is, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints, Ledger
from guard_core.trace import Head
from guard_core.views import Segment, Span, Synthetic, View

MOST_SEGMENTS = 8  # of a view in columns; ours: each one more is a pass over all views
Bools = NDArray[np.bool_]


class ViewColumns(NamedTuple):
    """Views, a column of `starts`, `stops` and `forms` each, with a row per segment.

    A segment is the events `start` to `stop` (exclusive) in the form of that place in `names`, whose first is none. A
    message that no event holds has -1 less its place in `messages` as its start and its stop; where both are
    equal otherwise there is no segment.
    """

    starts: Ints
    stops: Ints
    forms: Ints
    names: tuple[str, ...] = ("",)
    messages: tuple[Synthetic, ...] = ()

    @classmethod
    def of(cls, views: Sequence[View]) -> ViewColumns | None:
        """The columns of some views; None where one has too many segments, or one of a recorded compaction."""
        most = max(map(len, views), default=0)
        if most > MOST_SEGMENTS:
            return None
        segments = list(chain.from_iterable(views))
        kinds = set(map(type, segments))
        if not kinds <= {Span, Synthetic}:
            return None
        messages: dict[Segment, int] = {}
        if Synthetic in kinds:  # each as a span from and to the number of its message
            segments = [item if type(item) is Span else _numbered(item, messages) for item in segments]
        spans, names = cast(list[Span], segments), {"": 0}
        firsts, lasts = [item.start for item in spans], [item.stop for item in spans]
        named = [names.setdefault(item.form, len(names)) if item.form else 0 for item in spans]
        sizes = np.fromiter(map(len, views), dtype=np.int64, count=len(views))
        numbers = np.repeat(np.arange(len(views)), sizes)
        rows = np.arange(len(segments)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns = np.zeros((3, most, len(views)), dtype=np.int64)
        columns[:, rows, numbers] = firsts, lasts, named
        starts, stops, forms = columns
        return cls(starts, stops, forms, tuple(names), cast(tuple[Synthetic, ...], tuple(messages)))

    @classmethod
    def spans(cls, *bounds: tuple[Ints | int, Ints | int], forms: Sequence[str] = ()) -> ViewColumns:
        """Views of spans one after the other, each given by where it starts and where it ends in every view; what ends
        before it starts is empty. `forms` are those of the spans, "" for none."""
        rows = [np.broadcast_arrays(*(np.atleast_1d(each) for each in pair)) for pair in bounds]
        size = max(len(starts) for starts, _ in rows)
        starts = np.vstack([np.broadcast_to(start, size) for start, _ in rows]).astype(np.int64)
        stops = np.vstack([np.broadcast_to(stop, size) for _, stop in rows]).astype(np.int64)
        names = ("", *dict.fromkeys(filter(None, forms)))
        numbers = [names.index(form) for form in forms] or [0] * len(rows)
        places = np.repeat(np.array(numbers, dtype=np.int64)[:, None], size, axis=1)
        return cls(starts, np.maximum(starts, stops), places, names)

    @property
    def is_span(self) -> Bools:
        """Which segments are events of the log."""
        return np.asarray(self.starts < self.stops)

    @property
    def is_message(self) -> Bools:
        """Which segments are messages that no event holds."""
        return np.asarray(self.starts < 0)

    @property
    def contents(self) -> Ints:
        """How many messages each view has."""
        return np.asarray((self.stops - self.starts + self.is_message).sum(axis=0))

    def at(self, places: Ints | Bools | slice) -> ViewColumns:
        """Some of the views."""
        return self._replace(starts=self.starts[:, places], stops=self.stops[:, places], forms=self.forms[:, places])

    def without_forms(self) -> ViewColumns:
        """The views with their events as they are in the log."""
        return self._replace(forms=np.zeros_like(self.forms), names=("",))

    def behind(self, starts: Ints, stops: Ints, forms: Ints | int = 0) -> ViewColumns:
        """The views with one segment more each."""
        columns = zip(self[:3], (starts, stops, forms), strict=True)
        grown = [np.vstack([old, np.broadcast_to(row, len(starts))]) for old, row in columns]
        return self._replace(starts=grown[0], stops=grown[1], forms=grown[2])

    def normal(self) -> ViewColumns:
        """The views with neighbouring spans of one form joined, and segments first, as `usage.normal`."""
        size = self.starts.shape[1]
        starts, stops, forms = np.zeros((3, *self.starts.shape), dtype=np.int64)
        filled, all_views = np.zeros(size, dtype=np.int64), np.arange(size)
        for start, stop, form in zip(*self[:3], strict=True):
            last = np.maximum(filled - 1, 0)
            joins = (filled > 0) & (start >= 0) & (stops[last, all_views] == start) & (start < stop)
            joins &= (starts[last, all_views] >= 0) & (forms[last, all_views] == form)
            stops[last[joins], all_views[joins]] = stop[joins]
            adds = np.flatnonzero(((start < stop) | (start < 0)) & ~joins)
            place = filled[adds]
            starts[place, adds], stops[place, adds], forms[place, adds] = start[adds], stop[adds], form[adds]
            filled[adds] += 1
        most = int(filled.max(initial=0))
        return self._replace(starts=starts[:most], stops=stops[:most], forms=forms[:most])

    def total(
        self,
        prefix: Callable[[str], Ints],
        segment: Callable[[Segment], int],
        alone: Callable[[Sequence[Span]], Sequence[int]],
    ) -> Ints:
        """Sums over the segments of each view: of spans by the prefix sums of their form, of a message by `segment`,
        and of events that are alone in a form by what `alone` gives for many."""
        plain, sums = self.is_span & (self.forms == 0), prefix("")
        total = np.where(plain, sums[np.where(plain, self.stops, 0)] - sums[np.where(plain, self.starts, 0)], 0)
        return np.asarray((total + self.by_message(segment)).sum(axis=0) + self.of_forms(prefix, alone))

    def of_forms(self, prefix: Callable[[str], Ints], alone: Callable[[Sequence[Span]], Sequence[int]]) -> Ints:
        """The same over the spans in a form alone."""
        total = np.zeros_like(self.starts)
        rows, columns = np.nonzero(self.is_span & (self.forms > 0))
        starts, stops, forms = (values[rows, columns] for values in self[:3])
        several = np.bincount(forms, minlength=len(self.names)) > 1
        longer = np.bincount(forms, stops - starts > 1, len(self.names)) > 0
        in_sums = (several & longer)[forms]
        for number in np.unique(forms[in_sums]).tolist():
            own, sums = np.flatnonzero(forms == number), prefix(self.names[number])
            total[rows[own], columns[own]] = sums[stops[own]] - sums[starts[own]]
        spans: dict[Span, list[tuple[int, int]]] = {}  # those that are summed by themselves, and where they are
        cells = (values[~in_sums].tolist() for values in (starts, stops, forms, rows, columns))
        for start, stop, number, row, column in zip(*cells, strict=True):
            spans.setdefault(Span(start, stop, self.names[number]), []).append((row, column))
        for value, places in zip(alone(list(spans)), spans.values(), strict=True):
            for place in places:
                total[place] = value
        return np.asarray(total.sum(axis=0))

    def by_message(self, cost: Callable[[Synthetic], int]) -> Ints:
        """A number of each segment that is a message, 0 of the others."""
        if not self.messages:
            return np.zeros_like(self.starts)
        costs = np.array([*map(cost, self.messages), 0], dtype=np.int64)
        return costs[np.where(self.is_message, -1 - self.starts, len(self.messages))]

    def views(self) -> list[View]:
        """The views themselves, without empty segments."""
        segments = [self._segments(row) for row in range(len(self.starts))]
        if not segments:
            return [()] * self.starts.shape[1]
        if (self.starts != self.stops).all():
            return list(zip(*segments, strict=True))
        return [tuple([item for item in view if item is not None]) for view in zip(*segments, strict=True)]

    def _segments(self, row: int) -> list[Segment | None]:
        """The segments of one row, None where there is none."""
        starts, stops, forms = (column[row].tolist() for column in self[:3])
        if min(starts, default=0) >= 0 and not any(forms):
            return [Span(start, stop) if start < stop else None for start, stop in zip(starts, stops, strict=True)]
        names, messages = self.names, self.messages
        return [
            messages[-1 - start] if start < 0 else Span(start, stop, names[form]) if start < stop else None
            for start, stop, form in zip(starts, stops, forms, strict=True)
        ]

    def equal(self, other: ViewColumns) -> Bools:
        """Which views are those of the same place in other columns, which share `names` and `messages`."""
        rows = max(len(self.starts), len(other.starts))
        mine, others = (columns.rows(rows) for columns in (self, other))
        same = [(ours == theirs).all(axis=0) for ours, theirs in zip(mine, others, strict=True)]
        return np.asarray(np.logical_and.reduce(same))

    def rows(self, count: int) -> tuple[Ints, Ints, Ints]:
        """`starts`, `stops` and `forms` with so many rows."""
        starts, stops, forms = (np.pad(rows, ((0, count - len(rows)), (0, 0))) for rows in self[:3])
        return starts, stops, forms


def _numbered(message: Segment, messages: dict[Segment, int]) -> Span:
    """A message as a span that has its number for both ends."""
    number = -1 - messages.setdefault(message, len(messages))
    return Span(number, number)


def sent_views(ledger: Ledger, heads: Sequence[Head], places: Ints, at: Ints) -> ViewColumns | None:
    """The views over `at` events that begin with some of the heads (`Head.at`); None as of `ViewColumns.of`."""
    if max((len(head.view) for head in heads), default=0) >= MOST_SEGMENTS:
        return None
    columns = ViewColumns.of([(*head.view, Span(head.kept_from, head.kept_from, head.form)) for head in heads])
    if columns is None:
        return None
    changed = [ledger.first_changed(head.kept_from, head.form) if head.form else 0 for head in heads]
    rows = np.array([len(head.view) for head in heads], dtype=np.int64)[places]
    columns, views = columns.at(places), np.arange(len(places))
    columns.stops[rows, views] = np.maximum(columns.starts[rows, views], at)
    columns.forms[rows, views] *= np.array(changed, dtype=np.int64)[places] < at
    return columns


def common_beginnings(ledger: Ledger, first: ViewColumns, second: ViewColumns) -> tuple[ViewColumns, Bools]:
    """What two views of each place begin with in common, as `sent.common_beginning`, and where that cannot be said
    without looking at messages. Both share `names` and `messages`, are `normal` and `named`."""
    size = first.starts.shape[1]
    own, other = (tuple(np.pad(rows, ((0, 1), (0, 0))) for rows in columns[:3]) for columns in (first, second))
    stops = np.zeros_like(first.starts)  # of what is in common, by row of the first
    unsure, active = np.zeros(size, dtype=np.bool_), np.arange(size)
    row, against = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    begin, opposite = own[0][0].copy(), other[0][0].copy()
    while len(active):
        mine, theirs = row[active], against[active]
        start, stop, form = begin[active], own[1][mine, active], own[2][mine, active]
        start_2, stop_2, form_2 = opposite[active], other[1][theirs, active], other[2][theirs, active]
        unsure[active[(start < 0) & (start == start_2)]] = True
        same = (start >= 0) & (start == start_2) & (start < stop) & (start < stop_2)
        active = active[same]
        if not len(active):
            break
        mine, theirs, start, form, form_2 = mine[same], theirs[same], start[same], form[same], form_2[same]
        stop, stop_2 = stop[same], stop_2[same]
        nearer = np.minimum(stop, stop_2)
        end, differs = nearer.copy(), np.flatnonzero(form != form_2)
        changed = _changed_from(ledger, first.names, start[differs], nearer[differs], (form[differs], form_2[differs]))
        end[differs] = np.minimum(nearer[differs], changed)
        stops[mine, active] = np.maximum(end, start)
        goes = end == nearer
        whole, whole_2 = goes & (stop == nearer), goes & (stop_2 == nearer)
        row[active] += whole
        against[active] += whole_2
        begin[active] = np.where(whole, own[0][row[active], active], nearer)
        opposite[active] = np.where(whole_2, other[0][against[active], active], nearer)
        active = active[goes]
    starts = np.maximum(first.starts, 0)
    return first._replace(starts=starts, stops=np.maximum(starts, stops), messages=()), unsure


def _changed_from(ledger: Ledger, names: tuple[str, ...], starts: Ints, stops: Ints, forms: tuple[Ints, Ints]) -> Ints:
    """The first event of each stretch that one of its two forms changes, or one behind it."""
    firsts = np.full(len(starts), ledger.event_count)
    is_one = stops - starts <= 1
    for place in np.flatnonzero(is_one).tolist():
        if ledger.changes_event(starts.item(place), *(names[numbers[place]] for numbers in forms)):
            firsts[place] = starts[place]
    several = np.flatnonzero(~is_one)
    for numbers in forms:
        for number in np.unique(numbers[several]).tolist():
            if number:
                own = several[numbers[several] == number]
                changed = [ledger.first_changed(event, names[number]) for event in starts[own].tolist()]
                firsts[own] = np.minimum(firsts[own], changed)
    return firsts
