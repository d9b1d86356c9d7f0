"""The messages that a logged request sends, as a view of the log of its conversation."""

from __future__ import annotations

import sys
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from guard_core.events import Event, Role, ToolResultPart
from guard_core.own_words import typed_parts
from guard_core.recordings.reading.overlap import text_of
from guard_core.views import CHANGED, Inserted, Rewritten, Segment, Span, View


@dataclass
class RequestMessage:
    """One message of the history as it is sent now. `index` is its place in the log, None for an inserted message."""

    key: bytes
    event: Event
    index: int | None


def has_result(event: Event) -> bool:
    """Has a message a result of a tool."""
    return any(isinstance(part, ToolResultPart) for part in event.parts)


def known_by(event: Event) -> list[str]:
    """By what a message is known again when it changed: the ids of the calls whose results it has (a result without an
    id is not known again), and the user's words in it."""
    return [
        *(part.call_id for part in event.parts if isinstance(part, ToolResultPart) and part.call_id),
        *words_typed(event),
    ]


def words_typed(event: Event) -> list[str]:
    """What the user typed of a message, around which an agent may put something (the date, its instructions)."""
    typed = "" if event.role is not Role.USER or has_result(event) else text_of(typed_parts(event.parts)).strip()
    return [f"typed: {typed}"] if typed else []


def view_of(
    items: list[RequestMessage], changed: dict[str, list[int]], edited: frozenset[int] = frozenset()
) -> tuple[View, tuple[Event, ...]]:
    """What is sent of the log, and the messages that are new. Those known by a name of `changed` are its event,
    changed, as are the kept ones at the places `edited`; events stay in their order."""
    segments: list[Segment] = []
    inserted: list[Event] = []
    places = _changed_places(items, changed)
    for number, item in enumerate(items):
        previous = segments[-1] if segments else None
        if (place := places.get(number)) is not None:
            segments.append(Rewritten(place, item.event, CHANGED))
        elif item.index is None:
            segments.append(Inserted(len(inserted)))
            inserted.append(item.event)
        elif number in edited:
            segments.append(Rewritten(item.index, item.event, CHANGED))
        elif isinstance(previous, Span) and previous.stop == item.index:
            segments[-1] = Span(previous.start, item.index + 1)
        else:
            segments.append(Span(item.index, item.index + 1))
    return tuple(segments), tuple(inserted)


def _changed_places(items: list[RequestMessage], changed: dict[str, list[int]]) -> dict[int, int]:
    """The event that each changed message was, by its number: of several with the same name the newest one between the
    kept or changed messages around it."""
    places: dict[int, int] = {}
    least = list(accumulate((-1 if item.index is None else item.index for item in items), max))
    before = sys.maxsize  # the next of those messages, which the log has behind this one
    for number in range(len(items) - 1, -1, -1):
        item = items[number]
        if item.index is not None:
            before = min(before, item.index)
            continue
        known = (changed.get(name, []) for name in known_by(item.event))
        place = max((events[at - 1] for events in known if (at := bisect_left(events, before))), default=-1)
        if place > least[number]:
            places[number] = before = place
    return places
