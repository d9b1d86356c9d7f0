"""Filling: how many prompt tokens of each class a request holds, at any step of a recording or of a replay.

A request is a head, which many steps share, and the log's events behind it. The classes of a head are added up once;
behind it they are one difference of prefix sums. What the count of a request has beyond its messages, or less, is a
class of its own, so that the classes add up to the count at every step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from guard_core.context.classes import ClassCosts, ContextClass
from guard_core.ledger import Ints, Ledger
from guard_core.outcomes.sent import SentRequests
from guard_core.trace import Head
from guard_core.views import Rewritten, Span, View, common_length, content_count, event_count


class HeadRun(msgspec.Struct, frozen=True):
    """Steps `start` to `stop` (exclusive) whose requests have one head; `epoch` says whose inserted messages it has."""

    start: int
    stop: int
    head: Head
    epoch: int


class ClassMessage(msgspec.Struct, frozen=True):
    """One message of a request, as far as it is of one class; where `count` is more than 1, several small ones.

    `place` is the class, `event` the message's index in the log (None: it is not part of it), `position` its index
    in the request; both are those of the first where there are several.
    """

    place: int
    tokens: int
    event: int | None
    position: int
    count: int = 1


@dataclass(frozen=True)
class ContextFilling:
    """The requests of one side of a session by class."""

    sent: SentRequests
    costs: ClassCosts

    @classmethod
    def of(cls, sent: SentRequests) -> ContextFilling:
        """The filling of a side's requests."""
        return cls(sent, ClassCosts.of(sent.facts))

    @property
    def ledger(self) -> Ledger:
        return self.sent.ledger

    @property
    def classes(self) -> tuple[ContextClass, ...]:
        return self.costs.classes

    @cached_property
    def heads(self) -> Ints:
        """The number of every step's head: of a recording the epoch, of a replay the index into its heads."""
        trace = self.sent.trace
        heads: Ints = self.ledger.steps["epoch"] if trace is None else trace.columns["head"]
        return heads

    def areas(self, steps: Ints) -> Ints:
        """The tokens of every class in the requests of these steps (ascending), a row per step and a column per class.
        Each row adds up to the request's count; the last column, what nothing explains, may be less than 0."""
        table = np.zeros((len(steps), len(self.classes)), dtype=np.int64)
        sums = _HeadSums(self.costs)
        at, first = self.ledger.steps["at"], self.costs.first_event_class
        for start, stop in _alike(self.heads[steps]):
            run = self._run(int(steps[start]), int(steps[stop - 1]) + 1)
            repeated = self.ledger.repeated[run.epoch] if run.epoch >= 0 else frozenset()
            rows = table[start:stop]
            head, events, begins = sums.total(run.head.view, run.epoch, repeated)
            rows += head
            ends = np.maximum(at[steps[start:stop]], run.head.kept_from)
            prefix = self.costs.costs(run.head.form).prefix
            rows[:, first : first + prefix.shape[1]] += prefix[ends] - prefix[run.head.kept_from]
            if events >= run.head.kept_from:  # no message of the log was left out (`has_beginning`)
                has_first = (ends > 0) & (run.head.kept_from == 0)
                rows[has_first | (begins > 0), first - 1] += self.costs.attribution.prologue
        table[:, :first] += self.costs.fixed
        table[:, -1] = self.sent.tokens[steps] - table.sum(axis=1)
        return table

    def runs(self) -> Iterator[HeadRun]:
        """All steps, by heads."""
        return (self._run(start, stop) for start, stop in _alike(self.heads))

    def items(self, step: int, most: int) -> list[ClassMessage]:
        """The messages of a request by class, the largest first, and of each class the smaller ones as one: about
        `most` at most. They add up to the classes of events, summaries and repeated messages."""
        view, epoch = self.sent.view(step)
        tables = list(self._tables(view, epoch))
        if not tables:
            return []
        places, events, positions, tokens = (np.concatenate(columns) for columns in zip(*tables, strict=True))
        order = np.argsort(-tokens, kind="stable")
        shown = order[: max(1, most)]
        items = [
            ClassMessage(
                int(places[row]), int(tokens[row]), None if events[row] < 0 else int(events[row]), int(positions[row])
            )
            for row in shown
        ]
        rest = np.sort(order[len(shown) :])
        for place in np.unique(places[rest]).tolist():
            rows = rest[places[rest] == place]
            event = None if events[rows[0]] < 0 else int(events[rows[0]])
            items.append(ClassMessage(place, int(tokens[rows].sum()), event, int(positions[rows[0]]), len(rows)))
        return items

    def _tables(self, view: View, epoch: int) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Class, event (-1: none), position and tokens of the messages of each segment."""
        first, position = self.costs.first_event_class, 0
        repeated = self.ledger.repeated[epoch] if epoch >= 0 else frozenset()
        for segment in view:
            if isinstance(segment, Span):
                columns = self.costs.costs(segment.form).rows(segment.start, segment.stop)
                rows, places = np.nonzero(columns)
                yield places + first, rows + segment.start, rows + position, columns[rows, places]
            else:
                row = self.costs.segment(segment, epoch, repeated)
                (places,) = np.nonzero(row)
                event = segment.event if isinstance(segment, Rewritten) else -1
                same = np.ones(len(places), dtype=np.int64)
                yield places, event * same, position * same, row[places]
            position += content_count((segment,))

    def _run(self, start: int, stop: int) -> HeadRun:
        trace, number = self.sent.trace, int(self.heads[start])
        if trace is not None:
            return HeadRun(start, stop, trace.heads[number], -1)
        if number < 0:
            return HeadRun(start, stop, Head((), 0), -1)
        base = self.ledger.bases[number]
        return HeadRun(start, stop, Head(base.view, base.at), number)


class _HeadSums:
    """The classes of heads, how many messages of the log they have and how many of their segments begin it. Where one
    begins as the one before, only what differs is added up again."""

    def __init__(self, costs: ClassCosts) -> None:
        self._costs = costs
        self._view: View = ()
        self._epoch = -1
        self._sums: list[Ints] = [np.zeros(len(costs.classes) + 2, dtype=np.int64)]

    def total(self, view: View, epoch: int, repeated: frozenset[int]) -> tuple[Ints, int, int]:
        same = common_length(self._view, view) if epoch == self._epoch else 0
        del self._sums[same + 1 :]
        for segment in view[same:]:
            is_beginning = isinstance(segment, Span) and segment.start == 0 < segment.stop
            self._sums.append(
                self._sums[-1]
                + np.append(self._costs.segment(segment, epoch, repeated), [event_count((segment,)), is_beginning])
            )
        self._view, self._epoch = view, epoch
        *_, events, begins = self._sums[-1].tolist()
        return self._sums[-1][:-2], events, begins


def _alike(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Runs of equal numbers, as places."""
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return ((start, stop) for start, stop in itertools.pairwise(edges) if start < stop)
