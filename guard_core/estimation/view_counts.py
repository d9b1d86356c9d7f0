"""The prompt tokens of many requests that each have a view of their own: in columns where views are short, and where
each of a row of long ones begins as the one before, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guard_core.estimation.usage import GrowingRequests, Usage, counts_of, growing_counts
from guard_core.ledger import Ints
from guard_core.trace import Head, head_of
from guard_core.view_columns import ViewColumns
from guard_core.views import Segment, Span, View, common_length

LEAST_AT_ONCE = 4  # requests of a row; ours: fewer cost as much one by one


def tokens_of_views(usage: Usage, steps: Ints, views: Sequence[View], at: Ints, heuristics: Ints) -> list[int]:
    """The prompt tokens of requests at some steps, as `Usage.one` gives them; each was built over `at` events."""
    columns = ViewColumns.of(views)
    if columns is not None:
        counted: list[int] = counts_of(usage, steps, columns, heuristics).tokens.tolist()
        return counted
    tokens: list[int] = []
    row = _GrowingRow(0)
    for place, head in enumerate(map(head_of, views, at.tolist())):
        if not row.takes(head):
            tokens += _tokens_of_row(usage, row, steps, views, at, heuristics)
            row = _GrowingRow(place)
            row.takes(head)
    return tokens + _tokens_of_row(usage, row, steps, views, at, heuristics)


def _tokens_of_row(
    usage: Usage, row: _GrowingRow, steps: Ints, views: Sequence[View], at: Ints, heuristics: Ints
) -> list[int]:
    """Those of the requests of one row; the arguments are those of all requests."""
    chosen = slice(row.place, row.place + len(row.filled))
    if len(row.filled) >= LEAST_AT_ONCE:
        filled, kept_from = np.array(row.filled), np.array(row.kept_from)
        requests = GrowingRequests(steps[chosen], row.begin, row.segments, filled, kept_from, at[chosen])
        counted = growing_counts(usage, requests, heuristics[chosen])
        if counted is not None:
            tokens: list[int] = counted.tokens.tolist()
            return tokens
    rows = zip(steps[chosen].tolist(), views[chosen], heuristics[chosen].tolist(), strict=True)
    return [usage.one(*request).tokens for request in rows]


class _GrowingRow:
    """Neighbouring requests from a `place` on, of which each begins with the head of the one before: all begin with the
    same, and with the first `filled` of the `segments`, and then have the log from `kept_from` on."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.begin: View = ()
        self.segments: list[Segment] = []
        self.filled: list[int] = []
        self.kept_from: list[int] = []
        self._last: View = ()
        self._is_alone = False

    def takes(self, head: Head) -> bool:
        """Add the next request, which begins with a head; False where it is none of the row, which may be a new one."""
        if self.filled:
            size = len(self._last)
            if self._is_alone or head.form or common_length(self._last, head.view) < size:
                return False
            added = head.view[size:]
            if any(isinstance(item, Span) and item.form for item in added):
                return False
            self.segments += added
        else:
            self.begin = head.view
            self._is_alone = bool(head.form) or not head.view  # in a form, or perhaps the recorded request
        self.filled.append(len(self.segments))
        self.kept_from.append(head.kept_from)
        self._last = head.view
        return True
