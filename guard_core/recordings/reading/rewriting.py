"""A view with some of its log events changed or taken out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from msgspec.structs import replace

from guard_core.events import Event
from guard_core.views import Rewritten, Segment, Span, View


def rewritten(view: View, changed: Mapping[int, Event | None], reason: str) -> View:
    """The view with the messages of `changed`, by their place in the log, as they are there; None takes one out."""
    places, segments = sorted(changed), list[Segment]()
    for segment in view:
        if isinstance(segment, Rewritten) and segment.event in changed:
            message = changed[segment.event]
            segments += [] if message is None else [replace(segment, message=message)]
            continue
        if not isinstance(segment, Span):
            segments.append(segment)
            continue
        start = segment.start
        for place in places[bisect_left(places, start) : bisect_left(places, segment.stop)]:
            segments += [Span(start, place)] if start < place else []
            message = changed[place]
            segments += [] if message is None else [Rewritten(place, message, reason)]
            start = place + 1
        segments += [Span(start, segment.stop)] if start < segment.stop else []
    return tuple(segments)
