"""What the session list shows of a session, counted once at import."""

from __future__ import annotations

from typing import Any

import numpy as np

from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.sessions import Session

NEAR_MISS_SHARE = 0.9  # of the window; guard_core.findings uses the same


def session_counts(session: Session, ledger: Ledger, window: int) -> dict[str, Any]:
    """The count columns of a session's row."""
    recorded = ledger.steps["prompt_tokens"]
    parts = [part for event in session.events for part in event.parts]
    return {
        "events": ledger.event_count,
        "calls": ledger.step_count,
        "reported_calls": int((recorded > 0).sum()),
        "turns": sum(event.starts_turn() for event in session.events),
        "tool_calls": sum(isinstance(part, ToolCallPart) for part in parts),
        "tool_results": sum(isinstance(part, ToolResultPart) for part in parts),
        "compactions": len(session.compactions),
        "prompt_tokens_max": int(recorded.max(initial=0)),
        "prompt_tokens_sum": int(recorded[recorded > 0].sum()),
        "overflows": int((recorded > window).sum()),
        "near_misses": int(np.logical_and(recorded > NEAR_MISS_SHARE * window, recorded <= window).sum()),
    }
