"""Views: what is sent at a step, as a short list of segments over the log. A view is priced, not built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from guard_core.events import Event, Role, TextPart

if TYPE_CHECKING:
    from guard_core.sessions import Session


# `gc=False`: values hold no cycles, and a replay that compacts at every step makes hundreds of thousands of them.


class Span(msgspec.Struct, frozen=True, gc=False, tag="span"):
    """Log events `start` to `stop` (exclusive), kept as they are."""

    start: int
    stop: int


class Inserted(msgspec.Struct, frozen=True, gc=False, tag="inserted"):
    """Message `index` of the recorded compaction that this view belongs to."""

    index: int


class Rewritten(msgspec.Struct, frozen=True, tag="rewritten"):
    """Log event `event` with its content changed: pruned, truncated, deduplicated, a placeholder."""

    event: int
    message: Event
    reason: str


class Synthetic(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="synthetic"):
    """A message that no event holds: summary, continuation, note. One text part.

    `bytes` is its UTF-8 length; `text` is None where only the size is modelled.
    """

    kind: str
    bytes: int
    text: str | None = None


Segment = Span | Inserted | Rewritten | Synthetic
View = tuple[Segment, ...]


def content_count(view: View) -> int:
    """How many messages the view has."""
    count = 0
    for segment in view:
        count += segment.stop - segment.start if isinstance(segment, Span) else 1
    return count


def kept_events(view: View) -> Iterator[range]:
    """The ranges of log events that the view still holds verbatim, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop:
            yield range(segment.start, segment.stop)


def materialise(view: View, session: Session, epoch: int = -1) -> tuple[Event, ...]:
    """The messages of a view. `epoch` says whose inserted messages the view means.

    A synthetic message of which only the size is known becomes a note of exactly that many bytes.
    """
    return tuple(event for segment in view for event in _messages(segment, session, epoch))


def _messages(segment: Segment, session: Session, epoch: int) -> tuple[Event, ...]:
    match segment:
        case Span(start, stop):
            return session.events[start:stop]
        case Inserted(index):
            return (session.compactions[epoch].messages[index],)
        case Rewritten(message=message):
            return (message,)
        case Synthetic():
            return (Event(role=Role.USER, parts=(TextPart(synthetic_text(segment)),), meta=True),)


def synthetic_text(message: Synthetic) -> str:
    """The text of a synthetic message, or a note that only its size is modelled."""
    if message.text is not None:
        return message.text
    note = f"[{message.kind} of {message.bytes} bytes: only its size is modelled]"
    return note[: message.bytes].ljust(message.bytes)
