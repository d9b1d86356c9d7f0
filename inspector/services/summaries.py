"""What the session list shows of a session, counted once at import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from guard_core.attribution import Attribution
from guard_core.costs import STARTS_TURN
from guard_core.events import Event, ToolCallPart, ToolResultPart
from guard_core.findings import LOOP_LENGTH, NEAR_MISS_SHARE, findings
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.sessions import Session
from inspector import convert
from inspector.models import Session as Row

POLICY = "contextguard"  # whose arithmetic the overview shows beside a recording


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


def session_counts(
    session: Session,
    ledger: Ledger,
    window: int,
    attribution: Attribution | None = None,
    tools: dict[str, int] | None = None,
) -> dict[str, Any]:
    """The count columns of a session's row. `tools`: those of ToolCount, where the events were counted already."""
    recorded = ledger.steps["prompt_tokens"]
    return {
        "events": ledger.event_count,
        "calls": ledger.step_count,
        "reported_calls": int((recorded > 0).sum()),
        "turns": int(((ledger.events["flags"] & STARTS_TURN) > 0).sum()),
        **(tools or ToolCount(session.events).counts),
        "compactions": sum(not base.is_edit for base in ledger.bases),
        "prompt_tokens_max": int(recorded.max(initial=0)),
        "prompt_tokens_sum": int(recorded[recorded > 0].sum()),
        **_against(ledger, attribution, window),
    }


def recount(row: Row) -> None:
    """Count again what depends on the window in use, after that was changed."""
    counts = _against(convert.load_ledger(row), convert.load_attribution(row), row.effective_window)
    Row.objects.filter(pk=row.pk).update(**counts)


def _against(ledger: Ledger, attribution: Attribution | None, window: int) -> dict[str, int]:
    recorded = ledger.steps["prompt_tokens"]
    near = np.logical_and(recorded >= NEAR_MISS_SHARE * window, recorded <= window)
    return {
        "overflows": int((recorded > window).sum()),
        "near_misses": int(near.sum()),
        **_patterns(ledger, attribution, window),
    }


def _patterns(ledger: Ledger, attribution: Attribution | None, window: int) -> dict[str, int]:
    """Loops and mechanical summaries, as the findings of the overview tell them."""
    if not ledger.step_count:
        return {"loops": 0, "fallbacks": 0}
    observed = observe_recorded(ledger, get_policy(POLICY), window=window)
    found = findings(ledger, observed, attribution, recorded=True)
    told: Counter[str] = Counter()
    for finding in found:
        told[finding.kind] += finding.count
    loops = sum(finding.kind == "loop" for finding in found) or int(told["summary_not_kept"] >= LOOP_LENGTH)
    return {"loops": loops, "fallbacks": told["fallback_summary"]}
