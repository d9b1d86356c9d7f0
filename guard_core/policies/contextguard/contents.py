"""A view as ContextGuard sees it: a list of contents with heuristic tokens, of which profiles count more or less.

Everything is priced by prefix sums; single contents are looked at only where a split walks over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from guard_core.costs import HAS_CALL, HAS_RESULT, HAS_TEXT, MODEL, USER
from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ints, Ledger
from guard_core.policies.contextguard.settings import Settings
from guard_core.views import Segment, Span, View, content_count


def costs_of(ledger: Ledger, settings: Settings) -> Heuristic:
    """The heuristic with what the settings count."""
    return Heuristic.of(
        ledger, tools=settings.count_tools, inline=settings.count_inline, metadata=settings.count_metadata
    )


@dataclass(frozen=True, slots=True)
class Contents:
    """Random access to the contents of a view."""

    view: View
    costs: Heuristic

    def __len__(self) -> int:
        return content_count(self.view)

    def _place(self, index: int) -> tuple[Segment, int]:
        for segment in self.view:
            size = segment.stop - segment.start if isinstance(segment, Span) else 1
            if index < size:
                return segment, index
            index -= size
        raise IndexError(index)

    def reach(self, budget: int) -> int:
        """The last content from which on the tokens reach a budget; -1 where all of them do not."""
        total, end, prefix = 0, len(self), self.costs.prefix
        for segment in reversed(self.view):
            if isinstance(segment, Span):
                enough = prefix[segment.stop] + total - budget
                offset = int(np.searchsorted(prefix[segment.start : segment.stop], enough, side="right")) - 1
                end -= segment.stop - segment.start
                if offset >= 0:
                    return end + offset
            else:
                end -= 1
                if total + self.costs.segment(segment) >= budget:
                    return end
            total += self.costs.segment(segment)
        return -1

    def flags(self, index: int) -> int:
        """Flag bits of one content (guard_core.ledger)."""
        segment, offset = self._place(index)
        if isinstance(segment, Span):
            return int(self.costs.ledger.events["flags"][segment.start + offset])
        return USER | HAS_TEXT

    def outside_chain(self, index: int) -> int:
        """The last content up to one that is in no tool chain, -1: all of them are calls of a model and results of a
        user."""
        begin, outside = len(self), _outside_chains(self.costs.ledger)
        for segment in reversed(self.view):
            begin -= segment.stop - segment.start if isinstance(segment, Span) else 1
            if begin > index:
                continue
            if not isinstance(segment, Span):
                return begin
            event = outside.item(min(segment.start + index - begin, segment.stop - 1))
            if event >= segment.start:
                return begin + event - segment.start
        return -1

    def slice(self, start: int, stop: int) -> View:
        """Contents `start` to `stop` (exclusive) as a view."""
        return tuple(self._slices(start, stop))

    def _slices(self, start: int, stop: int) -> Iterator[Segment]:
        begin = 0
        for segment in self.view:
            size = segment.stop - segment.start if isinstance(segment, Span) else 1
            low, high = max(start - begin, 0), min(stop - begin, size)
            if low < high:
                yield Span(segment.start + low, segment.start + high) if isinstance(segment, Span) else segment
            begin += size


def _outside_chains(ledger: Ledger) -> Ints:
    """For every event of the log the last one up to it that is neither a model's call nor a user's result, -1: none."""
    if "events outside chains" not in ledger.derived:
        flags = ledger.events["flags"]
        result = ((flags & USER) > 0) & ((flags & HAS_RESULT) > 0)
        call = ((flags & MODEL) > 0) & ((flags & HAS_CALL) > 0)
        places = np.where(result | call, -1, np.arange(len(flags)))
        ledger.derived["events outside chains"] = np.maximum.accumulate(places)
    places_outside: Ints = ledger.derived["events outside chains"]
    return places_outside


def truncate(view: View, costs: Heuristic, budget: int) -> tuple[View, int, int]:
    """What the summariser is given: while over budget and more than two remain, the oldest content is dropped.

    Gives the view, its heuristic tokens (contents only, uncalibrated) and the number dropped (specification, section
    6.4).
    """
    total, count = costs.contents(view), content_count(view)
    if total <= budget or count <= 2:
        return view, total, 0
    dropped, rest = 0, list(view)
    while rest and total > budget and count - dropped > 2:
        segment = rest.pop(0)
        removed = _drop(segment, costs, total - budget, count - dropped - 2)
        dropped += removed
        total -= costs.segment(Span(segment.start, segment.start + removed) if isinstance(segment, Span) else segment)
        if isinstance(segment, Span) and segment.start + removed < segment.stop:
            rest.insert(0, Span(segment.start + removed, segment.stop))
    return tuple(rest), total, dropped


def _drop(segment: Segment, costs: Heuristic, excess: int, most: int) -> int:
    """How many contents of the first segment must go: the fewest that hold the excess, at most `most`."""
    if not isinstance(segment, Span):
        return 1
    prefix = costs.prefix[segment.start + 1 : segment.stop + 1]
    enough = int(np.searchsorted(prefix, costs.prefix[segment.start] + excess, side="left")) + 1
    return min(enough, segment.stop - segment.start, most)
