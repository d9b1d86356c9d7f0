"""Tool calls and results of a session, counted event by event."""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.events import Event, ToolCallPart, ToolResultPart


class ToolCount:
    """Counts tool calls and results, event by event."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.counts = {"tool_calls": 0, "tool_results": 0}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        for part in event.parts:
            if isinstance(part, ToolCallPart):
                self.counts["tool_calls"] += 1
            elif isinstance(part, ToolResultPart):
                self.counts["tool_results"] += 1
