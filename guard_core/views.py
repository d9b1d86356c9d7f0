"""Views: what is sent at a step, as a short list of segments over the log. A view is priced, not built."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from guard_core.events import Event, Role

JOINED = "joined with the messages before it"  # of a `Rewritten` that holds all of its event

# `gc=False`: values hold no cycles, and a replay that compacts at every step makes hundreds of thousands of them.


class Span(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="span"):
    """Log events `start` to `stop` (exclusive), as they are or in a form that changes some (guard_core.forms)."""

    start: int
    stop: int
    form: str = ""


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
    role: Role = Role.USER


Segment = Span | Inserted | Rewritten | Synthetic
View = tuple[Segment, ...]


def content_count(view: View) -> int:
    """How many messages the view has."""
    count = 0
    for segment in view:
        count += segment.stop - segment.start if isinstance(segment, Span) else 1
    return count


def held_events(view: View) -> Iterator[Span]:
    """The ranges of log events that the view still holds, as they are or in a form, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop:
            yield segment


def kept_events(view: View) -> Iterator[range]:
    """The ranges of log events that the view still holds as they are, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop and not segment.form:
            yield range(segment.start, segment.stop)
