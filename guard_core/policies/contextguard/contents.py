"""A view as ContextGuard sees it: a list of contents with heuristic tokens, of which profiles count more or less.

Everything is priced by prefix sums; single contents are looked at only where a split walks over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from guard_core.costs import HAS_TEXT, USER, event_columns
from guard_core.ledger import Ints, Ledger
from guard_core.policies.contextguard.settings import Settings
from guard_core.views import Rewritten, Segment, Span, Synthetic, View, content_count


@dataclass(frozen=True, slots=True)
class Costs:
    """Heuristic tokens of one ledger under one profile: `fixed` is system prompt and tools."""

    ledger: Ledger
    prefix: Ints
    fixed: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, ledger: Ledger, settings: Settings) -> Costs:
        """What the settings count."""
        counted = {"inline_tokens": settings.count_inline, "metadata_tokens": settings.count_metadata}
        names = ("text_tokens", *(name for name, counts in counted.items() if counts))
        fixed = ledger.system_tokens
        fixed += ledger.system_metadata_tokens if settings.count_metadata else 0
        fixed += ledger.tools_tokens if settings.count_tools else 0
        return cls(ledger, ledger.prefix_of(names), fixed, names)

    def built(self, at: int) -> int:
        """The request as built from the first `at` events."""
        return self.fixed + int(self.prefix[at])

    def request(self, view: View) -> int:
        """A request with this view."""
        return self.fixed + self.contents(view)

    def contents(self, view: View) -> int:
        """The contents alone."""
        return sum(map(self.segment, view))

    def segment(self, segment: Segment) -> int:
        """One segment of a view. Class tests and `item`: matching by shape and numpy's own index cost three times as
        much, and a replay that compacts at every step asks twenty times a step."""
        if isinstance(segment, Span):
            return self.prefix.item(segment.stop) - self.prefix.item(segment.start)
        if isinstance(segment, Synthetic):
            return segment.bytes // 4
        if isinstance(segment, Rewritten):
            columns = event_columns(segment.message)
            return sum(columns[name] for name in self.names)
        raise TypeError("a recorded compaction's messages are not part of a replayed view")


@dataclass(frozen=True, slots=True)
class Contents:
    """Random access to the contents of a view."""

    view: View
    costs: Costs

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
                found = int(np.searchsorted(prefix[segment.start : segment.stop], enough, side="right")) - 1
                end -= segment.stop - segment.start
                if found >= 0:
                    return end + found
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


def truncate(view: View, costs: Costs, budget: int) -> tuple[View, int, int]:
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
        gone = _drop(segment, costs, total - budget, count - dropped - 2)
        dropped += gone
        total -= costs.segment(Span(segment.start, segment.start + gone) if isinstance(segment, Span) else segment)
        if isinstance(segment, Span) and segment.start + gone < segment.stop:
            rest.insert(0, Span(segment.start + gone, segment.stop))
    return tuple(rest), total, dropped


def _drop(segment: Segment, costs: Costs, excess: int, most: int) -> int:
    """How many contents of the first segment must go: the fewest that hold the excess, at most `most`."""
    if not isinstance(segment, Span):
        return 1
    prefix = costs.prefix[segment.start + 1 : segment.stop + 1]
    enough = int(np.searchsorted(prefix, costs.prefix[segment.start] + excess, side="left")) + 1
    return min(enough, segment.stop - segment.start, most)
