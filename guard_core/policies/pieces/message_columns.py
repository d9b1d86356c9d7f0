"""The list of messages of a view in columns, and views of some of its messages.

Indices count messages from 0, in the view's order. No text is read: a policy chooses by roles, sizes and pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL, HAS_RESULT, HAS_TEXT, IN_PAIR, MODEL, STARTS_TURN, SYSTEM, USER
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.view_sums import FirstPlaces
from guard_core.views import Segment, Span, Synthetic, View, followed

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class MessageColumns:
    """A list of messages, one row each. `event` is the event of the log, -1 where no event holds it; `segment` counts
    the segments of the view; `flags` are those of the event (guard_core.costs)."""

    ledger: Ledger
    view: View
    event: Ints
    segment: Ints
    flags: Ints

    def __len__(self) -> int:
        return len(self.event)

    @property
    def is_written(self) -> Bools:
        """Messages that no event holds: summaries and notes of earlier compactions."""
        return np.asarray(self.event < 0)

    @property
    def is_user(self) -> Bools:
        """Messages of the person, which begin a turn."""
        return np.asarray((self.flags & STARTS_TURN) > 0)

    @property
    def is_said(self) -> Bools:
        """Messages in the user's role: of the person, of its software, and written ones."""
        return np.asarray((self.flags & USER) > 0)

    @property
    def is_model(self) -> Bools:
        return np.asarray((self.flags & MODEL) > 0)

    @property
    def is_system(self) -> Bools:
        return np.asarray((self.flags & (SYSTEM | MODEL | USER)) == SYSTEM)

    @property
    def has_calls(self) -> Bools:
        return np.asarray((self.flags & HAS_CALL) > 0)

    @property
    def has_results(self) -> Bools:
        return np.asarray((self.flags & HAS_RESULT) > 0)

    @property
    def has_words(self) -> Bools:
        return np.asarray((self.flags & HAS_TEXT) > 0)

    @cached_property
    def is_whole(self) -> Bools:
        """May the list be cut just before each message without parting a tool call from its result."""
        return np.asarray((self.flags & IN_PAIR) == 0)

    def event_at(self, index: int, end: int) -> int:
        """The event of the first message from `index` on that is one; `end` where there is none."""
        events = map(self.event.item, range(index, len(self.event)))
        return next((event for event in events if event >= 0), end)

    def between(self, start: int, stop: int) -> View:
        """The messages from `start` up to `stop`, as a view."""
        return between(self.view, start, stop)

    def take(self, chosen: Iterable[int]) -> View:
        """The chosen messages, in order, as a view."""
        return normal(tuple(map(self.segment_of, chosen)))

    def segment_of(self, index: int) -> Segment:
        """One message as a segment of its own."""
        segment = self.view[self.segment.item(index)]
        if not isinstance(segment, Span):
            return segment
        event = self.event.item(index)
        return Span(event, event + 1, segment.form)


def list_messages(ledger: Ledger, view: View) -> MessageColumns:
    """The messages of a view as columns, one entry for each message."""
    firsts, sizes = [], []
    written: list[tuple[int, int]] = []  # segments that are inserted messages, and their flags
    for place, segment in enumerate(view):
        if isinstance(segment, Span):
            firsts.append(segment.start)
            sizes.append(segment.stop - segment.start)
        else:
            assert isinstance(segment, Synthetic)
            written.append((place, HAS_TEXT | (MODEL if segment.role is Role.MODEL else USER)))
            firsts.append(-1)
            sizes.append(1)
    counts = np.array(sizes, dtype=np.int64)
    before = np.cumsum(counts) - counts
    events = np.repeat(np.array(firsts, dtype=np.int64) - before, counts)
    events += np.arange(len(events))
    flags = ledger.events["flags"].take(events) if ledger.event_count else np.zeros_like(events)
    places, own = np.array(written, dtype=np.int64).reshape(-1, 2).T
    flags[before[places]] = own
    return MessageColumns(ledger, view, events, np.repeat(np.arange(len(view)), counts), flags)


def of_the_user(ledger: Ledger, view: View) -> View:
    """The messages of a view that are the user's. An earlier compaction has left them at its beginning."""
    name = "places of others' messages"
    if name not in ledger.derived:
        messages = list_messages(ledger, (Span(0, ledger.event_count),))
        others = [0, *np.cumsum(~_is_own(messages)).tolist()]  # before each event
        ledger.derived[name] = FirstPlaces(
            lambda segment: not isinstance(segment, Span) or others[segment.start] < others[segment.stop]
        )
    places: FirstPlaces = ledger.derived[name]
    place = max(places.first(view) - 1, 0)  # the last one may go on in what follows
    rest = list_messages(ledger, view[place:])
    return followed(view, place, rest.take(np.flatnonzero(_is_own(rest)).tolist()))


def _is_own(messages: MessageColumns) -> Bools:
    return messages.is_said & ~messages.has_results & ~messages.is_written


def between(view: View, start: int, stop: int) -> View:
    """The messages of a view from `start` up to `stop`, as a view."""
    part: list[Segment] = []
    place = 0
    for segment in view:
        size = segment.stop - segment.start if isinstance(segment, Span) else 1
        first, last = max(start - place, 0), min(stop - place, size)
        if first < last:
            part.append(
                Span(segment.start + first, segment.start + last, segment.form)
                if isinstance(segment, Span)
                else segment
            )
        place += size
    return tuple(part)


def in_form(ledger: Ledger, view: View, form: str) -> View:
    """A view with its events in a form, which is named where it changes one of them; events in another form stay."""
    return normal(
        tuple(
            ledger.span(item.start, item.stop, form) if isinstance(item, Span) and not item.form else item
            for item in view
        )
    )


def events_in_form(ledger: Ledger, view: View, start: int, stop: int, form: str) -> View:
    """A view with its events from `start` up to `stop` in a form, which is named where it changes one of them; events
    in another form stay."""
    segments: list[Segment] = []
    for item in view:
        if not isinstance(item, Span) or item.form:
            segments.append(item)
            continue
        first, last = max(item.start, start), min(item.stop, stop)
        if first >= last:
            segments.append(item)
            continue
        segments += [Span(item.start, first), ledger.span(first, last, form), Span(last, item.stop)]
    return normal(tuple(segments))
