"""Bytes that recorded compactions left: a replayed one that left as many in the same place kept the same messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from guard_core.costs import SAID
from guard_core.ledger import Ints, Ledger
from guard_core.view_columns import ViewColumns
from guard_core.views import JOINT, Inserted, Rewritten, Segment, Span, View

FEWER = "fewer bytes"  # what a ledger finds `fewer_bytes` again by


def fewer_bytes(ledger: Ledger, form: str) -> Ints:
    """How many bytes fewer each event of a ledger has in a form."""
    return np.asarray(ledger.events["bytes"] - ledger.in_form("bytes", form))


@dataclass(frozen=True)
class CompactionSizes:
    """Bytes of the recorded compactions of a ledger, and of views of a replay."""

    ledger: Ledger

    @cached_property
    def log(self) -> Ints:
        """Prefix sums over the log's events."""
        return self.ledger.prefix("bytes")

    @cached_property
    def left(self) -> dict[int, list[int]]:
        """Recorded compactions that wrote a message, by how many bytes more than the log the requests behind them have,
        without what was attached to messages of the log that were kept, or written between those that were joined."""
        left: dict[int, list[int]] = {}
        for place, base in enumerate(self.ledger.bases):
            if not any(isinstance(item, Inserted) for item in base.view):
                continue
            size, stop = -self.log.item(base.at), base.at
            for item in reversed(base.view):
                size += self._kept(item, place, stop)
                stop = item.start if isinstance(item, Span) else getattr(item, "event", stop)
            left.setdefault(size, []).append(place)
        return left

    def _kept(self, item: Segment, place: int, stop: int) -> int:
        """A segment of the recorded compaction `place`; of a message that holds more there than in the log, the message
        of the log, with the reminders right behind it, before event `stop`, which were written into it."""
        size = self.ledger.price((item,), "bytes", epoch=place)
        if not isinstance(item, Rewritten):
            return size
        if item.joins:
            return size - len(JOINT) * len(item.joins)
        behind = item.event + 1
        said = np.flatnonzero(self.ledger.events["flags"][behind:stop] & SAID)
        end = behind + int(said[0]) if len(said) else max(stop, behind)
        sizes = (self.log.item(last) - self.log.item(item.event) for last in (end, behind))
        return next((own for own in sizes if size > own), size)

    def alike(self, sizes: Ints) -> Ints:
        """Which requests may be those behind a recorded compaction, by how many bytes more than the log they have."""
        return np.flatnonzero(np.isin(sizes, list(self.left)))

    def of(self, segment: Segment) -> int:
        """A segment of a replay's view."""
        if not isinstance(segment, Span):
            return self.ledger.price((segment,), "bytes")
        size = self.log.item(segment.stop) - self.log.item(segment.start)
        return size - self._fewer(segment) if segment.form else size

    def of_views(self, views: ViewColumns) -> Ints:
        """Views without messages of the recording."""
        starts, stops = (np.maximum(rows, 0) for rows in views[:2])
        sizes = np.where(views.is_span, self.log[stops] - self.log[starts], 0) + views.by_message(attrgetter("bytes"))
        return np.asarray(sizes.sum(axis=0) - views.of_forms(self._fewer_in, self._fewer_of_each))

    def _fewer(self, span: Span) -> int:
        """How many bytes fewer a span has in its form."""
        alone = self.ledger.of_one(span.start, span.stop, span.form, FEWER, fewer_bytes)
        if alone is not None:
            return alone
        formed = self.ledger.prefix("bytes", span.form)
        whole = self.log.item(span.stop) - self.log.item(span.start)
        return whole - (formed.item(span.stop) - formed.item(span.start))

    def _fewer_of_each(self, spans: Sequence[Span]) -> list[int]:
        """The same of several, in bytes; what they are made of is looked up for all of them at once."""
        self.ledger.look_up(spans, FEWER, fewer_bytes)
        return [self._fewer(span) for span in spans]

    def _fewer_in(self, form: str) -> Ints:
        """Prefix sums of the same over the log."""
        return self.log - self.ledger.prefix("bytes", form)


def whole_from(view: View, stop: int) -> int:
    """The event from which on a view has all of the log up to `stop` as it is."""
    for item in reversed(view):
        if not isinstance(item, Span) or item.form or item.stop != stop:
            break
        stop = item.start
    return stop
