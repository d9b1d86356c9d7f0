"""ADK sessions as JSON: `Session.model_dump_json()` in either spelling, and the export of `adk web`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.adk import events as adk_events
from guard_core.recordings.formats.adk.known_names import NAMES
from guard_core.recordings.formats.adk.parts import pick
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import Session


class AdkSessionFormat:
    """Reads one ADK session object, several in an array or on lines, or the events of one."""

    name = adk_events.NAME
    label = "Google ADK session"
    place = "sessions as JSON or SQLite"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            heads = [line.obj for line in source.head_lines()]
            return len(heads) > 1 and bool(_sessions(heads))
        if source.shape is not SourceShape.JSON or not _sessions(source.json_head(allow_nan=True)):
            return False
        is_listed = _is_session if _lists_sessions(source) else _is_event
        return all(isinstance(item, dict) and is_listed(item) for item in source.elements(allow_nan=True))

    def read(self, source: ByteSource) -> Recording:
        counter = FactCounter(self.name)
        sessions: list[Session] = []
        if source.shape is SourceShape.LINES:
            headers: Iterable[dict[str, Any]] = _sessions([line.obj for line in source.lines()])
        else:
            headers = source.elements() if _lists_sessions(source) else _sessions(source.json())
        for header in headers:
            events = header["events"]
            if not isinstance(events, list):
                raise DamagedRecording('"events" of the session is not an array')
            sessions.extend(adk_events.read_sessions(header, events, source, counter))
        with_events = tuple(session for session in sessions if session.events)
        if not with_events:
            raise source.nothing_left("an ADK session without any message")
        return Recording(self.name, with_events, counter.facts(), source.notes)


FORMAT = AdkSessionFormat()


def _lists_sessions(source: ByteSource) -> bool:
    """Is a JSON value that holds sessions one of them, or an array of them, and not the events of one."""
    value = source.json_head(allow_nan=True)
    return not isinstance(value, list) or all(map(_is_session, value))


def _sessions(value: Any) -> list[dict[str, Any]]:
    """The sessions in a JSON value: one, several in an array, or the one whose events the array is. Else none."""
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in items):
        return []
    if all(map(_is_session, items)):
        return items
    return [{"events": items}] if isinstance(value, list) and all(map(_is_event, items)) else []


def _is_session(value: dict[str, Any]) -> bool:
    return "events" in value and pick(value, "appName") is not None


def _is_event(value: dict[str, Any]) -> bool:
    return pick(value, "invocationId") is not None and "author" in value and "actions" in value
