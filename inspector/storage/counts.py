"""What the session list shows of a session, counted once at import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.costs import STARTS_TURN
from guard_core.events import Event, ToolCallPart, ToolResultPart
from guard_core.findings import Facts
from inspector.storage import storing
from inspector.storage.assessment import assessment


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


def session_counts(facts: Facts, tools: dict[str, int] | None = None) -> dict[str, Any]:
    """The count columns of a session's row. `tools`: those of ToolCount, where the events were counted already."""
    ledger = facts.ledger
    recorded = ledger.steps["prompt_tokens"]
    return {
        "events": ledger.event_count,
        "calls": ledger.step_count,
        "reported_calls": int((recorded > 0).sum()),
        "turns": int(((ledger.events["flags"] & STARTS_TURN) > 0).sum()),
        **(tools or ToolCount(facts.session.events).counts),
        "prompt_tokens_max": int(recorded.max(initial=0)),
        "prompt_tokens_sum": int(recorded[recorded > 0].sum()),
        **(storing.request_columns(facts.words) if facts.words is not None else {}),
        **assessment(facts),
    }
