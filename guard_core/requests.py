"""Requests: a view as the messages that are sent. The only place that builds them; everything else prices views."""

from __future__ import annotations

import msgspec

from guard_core.events import Event, TextPart
from guard_core.forms import get_form
from guard_core.sessions import Session
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View


def materialise(view: View, session: Session, epoch: int = -1) -> tuple[Event, ...]:
    """The messages of a view. `epoch` says whose inserted messages the view means.

    A synthetic message of which only the size is known becomes a note of exactly that many bytes. What was sent in one
    message with what a compaction inserted is one message with it.
    """
    sent: list[Event] = []
    before: Segment | None = None
    for segment in view:
        messages = _messages(segment, session, epoch)
        if isinstance(before, Inserted) and isinstance(segment, Span) and messages and messages[0].joined:
            sent[-1:], messages = [_with(sent[-1], messages[0])], messages[1:]
        sent.extend(messages)
        before = segment
    return tuple(sent)


def _messages(segment: Segment, session: Session, epoch: int) -> tuple[Event, ...]:
    match segment:
        case Span(start, stop, form):
            events = session.events[start:stop]
            return _joined(tuple(map(get_form(form).message, events)) if form else events)
        case Inserted(index):
            return (session.compactions[epoch].messages[index],)
        case Rewritten(message=message):
            return (message,)
        case Synthetic():
            return (Event(role=segment.role, parts=(TextPart(synthetic_text(segment)),), meta=True),)


def _joined(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Events that were sent in one message with the one before, as that message."""
    if not any(event.joined for event in events[1:]):
        return events
    messages: list[Event] = []
    for event in events:
        messages.append(_with(messages.pop(), event) if event.joined and messages else event)
    return tuple(messages)


def _with(before: Event, event: Event) -> Event:
    """Two events as one message."""
    return msgspec.structs.replace(event, parts=(*before.parts, *event.parts), line=before.line)


def synthetic_text(message: Synthetic) -> str:
    """The text of a synthetic message, or a note that only its size is modelled."""
    if message.text is not None:
        return message.text
    note = f"[{message.kind} of {message.bytes} bytes: only its size is modelled]"
    return note[: message.bytes].ljust(message.bytes)
