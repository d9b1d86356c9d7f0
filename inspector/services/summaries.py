"""What the session list shows of a session, counted once at import."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.findings import LOOP_LENGTH, findings
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.sessions import Session
from inspector import convert
from inspector.models import Session as Row

NEAR_MISS_SHARE = 0.9  # of the window; guard_core.findings uses the same
POLICY = "contextguard"  # whose arithmetic the overview shows beside a recording


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
        **_against(ledger, window),
    }


def recount(row: Row) -> None:
    """Count again what depends on the window in use, and what takes a look at the whole session: loops and mechanical
    summaries. Called when a session is indexed, and when its window is changed."""
    ledger = convert.load_ledger(row)
    counts = _against(ledger, row.effective_window)
    if ledger.step_count:
        observed = observe_recorded(ledger, get_policy(POLICY), window=row.effective_window)
        found = findings(ledger, observed, convert.load_attribution(row), recorded=True)
        told: Counter[str] = Counter()
        for finding in found:
            told[finding.kind] += finding.count
        counts["loops"] = sum(finding.kind == "loop" for finding in found) or int(
            told["summary_not_kept"] >= LOOP_LENGTH
        )
        counts["fallbacks"] = told["fallback_summary"]
    Row.objects.filter(pk=row.pk).update(**counts)


def _against(ledger: Ledger, window: int) -> dict[str, int]:
    recorded = ledger.steps["prompt_tokens"]
    near = np.logical_and(recorded > NEAR_MISS_SHARE * window, recorded <= window)
    return {"overflows": int((recorded > window).sum()), "near_misses": int(near.sum())}
