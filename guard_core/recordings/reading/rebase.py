"""The history that a recording says replaced the conversation, as spans of the log and inserted messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from guard_core.events import Event
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.requests import message_key
from guard_core.views import Inserted, Segment, Span, View


class LogIndex:
    """Where each message of a log is, by content, and where its turns begin; reads the log as it is when asked."""

    def __init__(self, log: SessionBuilder) -> None:
        self._log = log
        self._places: dict[bytes, list[int]] = {}
        self._keys: list[bytes] = []  # of the events that are known
        self._turns: list[int] = []
        self._looked_at = 0

    def rebase(self, history: Sequence[Event], start: int = 0) -> tuple[View, tuple[Event, ...]]:
        """The view that a replacing history is, and its messages that are not in the log (from `start` on).

        Equal messages of the log are taken from the end, each once; a history may order them anew.
        """
        self._learn()
        base: list[int | None] = []
        free: dict[bytes, list[int]] = {}
        for message in reversed(history):
            key = message_key(message)
            if key not in free:
                places = self._places.get(key, []) if message.parts else []
                free[key] = places[bisect_left(places, start) :]
            base.append(free[key].pop() if free[key] else None)
        base.reverse()
        inserted = tuple(message for message, place in zip(history, base, strict=True) if place is None)
        return view_of(base), inserted

    def knows(self, message: Event) -> bool:
        """Is an equal message in the log."""
        self._learn()
        return message_key(message) in self._places

    def turns(self) -> list[int]:
        """The events that begin a user turn."""
        outlines = self._log.outlines
        fresh = range(self._looked_at, len(outlines))
        self._turns += [index for index in fresh if outlines[index].starts_turn()]
        self._looked_at = len(outlines)
        return self._turns

    def forget(self, start: int) -> None:
        """The log was cut at `start`: what followed is another's now."""
        del self._turns[bisect_left(self._turns, start) :]
        self._looked_at = min(self._looked_at, start)
        for key in reversed(self._keys[start:]):
            self._places[key].pop()
        del self._keys[start:]

    def _learn(self) -> None:
        events = self._log.events
        for index in range(len(self._keys), len(events)):
            self._keys.append(message_key(events[index]))
            self._places.setdefault(self._keys[index], []).append(index)


def view_of(places: Sequence[int | None]) -> View:
    """Log indexes in their order (None: the next inserted message) as the fewest segments."""
    segments: list[Segment] = []
    inserted = 0
    for place in places:
        last = segments[-1] if segments else None
        if place is None:
            segments.append(Inserted(inserted))
            inserted += 1
        elif isinstance(last, Span) and last.stop == place:
            segments[-1] = Span(last.start, place + 1)
        else:
            segments.append(Span(place, place + 1))
    return tuple(segments)
