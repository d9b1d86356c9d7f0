"""Edits of the context in pi's sessions: a message is taken out of every later request, or its content replaced.

Extensions write them, and pi itself where the last request was too long or its answer was cut off at its limit of
tokens: it takes that answer and its results out, compacts and asks again.
Source: docs/session-format.md of pi 1.6.0 (`context_edit`), and that version, run with such answers and an extension.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.events import Event, TextPart, ToolResultPart
from guard_core.recordings.reading import rewriting
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Span, View

TRIGGER = "context_edit"
CHANGED = "edited in place"
NOTE = "Messages were taken out of the context or changed."


class ContextEdits:
    """The messages of a log that are sent changed, or no longer (None), by their place in it."""

    def __init__(self, log: SessionBuilder) -> None:
        self.log = log
        self.changed: dict[int, Event | None] = {}

    def edit(self, place: int, message: Event | None, **fields: Any) -> None:
        """From here on a message is sent as `message`, or not at all (`fields` of RecordedCompaction)."""
        self.changed[place] = message
        at, last = len(self.log.events), self.log.compactions[-1:]
        before = next((item for item in reversed(self.log.compactions) if item.trigger != TRIGGER), None)
        view: View = (*before.base, *_span(before.at, at)) if before else _span(0, at)
        edited = RecordedCompaction(
            at=at,
            evidence=Evidence.DECLARED,
            kind="edit",
            base=self.applied(view),
            messages=before.messages if before else (),
            trigger=TRIGGER,
            note=NOTE,
            **fields,
        )
        if last and last[0].at == at and last[0].trigger == TRIGGER:
            self.log.compactions[-1] = edited
        else:
            self.log.compaction(edited)

    def applied(self, view: View) -> View:
        """A view with all edits until now."""
        return rewriting.rewritten(view, self.changed, CHANGED) if self.changed else view


def with_content(event: Event, content: tuple[Any, ...]) -> Event:
    """A message with other content: of a tool result, with another text."""
    result = next((part for part in event.parts if isinstance(part, ToolResultPart)), None)
    if result is None:
        return replace(event, parts=content)
    text = "".join(part.text for part in content if isinstance(part, TextPart))
    media = (part for part in content if not isinstance(part, TextPart))
    return replace(event, parts=(replace(result, content=text), *media))


def _span(start: int, stop: int) -> View:
    return (Span(start, stop),) if start < stop else ()
