"""ADK sessions as JSON: `Session.model_dump_json()` in either spelling, and the export of `adk web`."""

from __future__ import annotations

from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.recordings import adk_events
from guard_core.recordings.adk_events import pick
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter
from guard_core.recordings.source import Shape, Source


class AdkJson:
    """Reads one ADK session object, or an array of them."""

    name = adk_events.NAME
    label = "Google ADK session"

    def matches(self, source: Source) -> bool:
        return source.shape is Shape.JSON and bool(_sessions(source.json(allow_nan=True)))

    def read(self, source: Source) -> Recording:
        counter = FactCounter(self.name)
        sessions = []
        for header in _sessions(source.json()):
            events = header["events"]
            if not isinstance(events, list):
                raise DamagedRecording('"events" of the session is no array')
            sessions.append(adk_events.read_session(header, events, source, counter))
        if not any(session.events for session in sessions):
            raise DamagedRecording("an ADK session without any message")
        return Recording(self.name, tuple(sessions), counter.facts(), source.notes)


FORMAT = AdkJson()


def _sessions(value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) and "events" in item and pick(item, "appName") is not None for item in found):
        return []
    return found
