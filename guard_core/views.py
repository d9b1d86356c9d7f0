"""Views: what is sent at a step, as a short list of segments over the log. A view is priced, not built."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from guard_core.events import Event


class Span(msgspec.Struct, frozen=True, tag="span"):
    """Log events `start` to `stop` (exclusive), kept as they are."""

    start: int
    stop: int


class Inserted(msgspec.Struct, frozen=True, tag="inserted"):
    """Message `index` of the recorded compaction that this view belongs to."""

    index: int


class Rewritten(msgspec.Struct, frozen=True, tag="rewritten"):
    """Log event `event` with its content changed: pruned, truncated, deduplicated, a placeholder."""

    event: int
    message: Event
    reason: str


class Synthetic(msgspec.Struct, frozen=True, omit_defaults=True, tag="synthetic"):
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
    return sum(segment.stop - segment.start if isinstance(segment, Span) else 1 for segment in view)


def kept_events(view: View) -> Iterator[range]:
    """The ranges of log events that the view still holds verbatim, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop:
            yield range(segment.start, segment.stop)
