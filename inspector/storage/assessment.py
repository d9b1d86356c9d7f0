"""What the list says of a session under the window in use: at import, and again where window or engine has changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from guard_core.defaults import LOOP_LENGTH
from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts, conclusions, request_words
from guard_core.findings.peak import peak_of, peak_window
from guard_core.windows.models import main_model
from guard_core.windows.window_evidence import judge_session
from inspector.models import Session
from inspector.models.sessions import ENGINE
from inspector.models.windows import LOOKED_UP, stated_window
from inspector.storage import explanations, loading, storing

SEVERITY = {"error": Session.Severity.ERROR, "warning": Session.Severity.WARNING, "info": Session.Severity.FINE}
VERDICT_CHARS = 400  # of its column; 25 words are shorter
NOTHING = {  # of a session without model calls
    **dict.fromkeys(("verdict", "verdict_kind", "kinds", "peak_source"), ""),
    "peak_window": None,
    **dict.fromkeys(("peak_tokens", "overflows", "near_misses", "loops", "fallbacks"), 0),
    "severity": Session.Severity.UNJUDGED,
}


def assessment(facts: Facts) -> dict[str, Any]:
    """The columns of a session's row that say what was found in it under the window in use."""
    stamp = {"compactions": facts.counts.total, "assessed_window": facts.window.value, "assessed_by": ENGINE}
    stamp |= _threshold(facts)
    if not facts.ledger.step_count:
        return {**stamp, **NOTHING}
    findings, verdict = conclusions(facts)
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.kind] += 1 if finding.kind == "loop" else finding.count
    simulated = facts.ledger.usage_ratio is not None
    side = facts.replay(facts.simulation) if simulated else facts.recording
    peak = peak_of(side)
    return {
        **stamp,
        "verdict": verdict.sentence[:VERDICT_CHARS],
        "verdict_kind": verdict.kind,
        "severity": SEVERITY[verdict.severity],
        "kinds": " ".join(["", *sorted(counts), ""]),
        "peak_tokens": peak.tokens,
        "peak_window": peak_window(side),
        "peak_source": peak.source,
        "overflows": counts["overflow"] + counts["refused"],
        "near_misses": counts["near_miss"],
        "loops": counts["loop"] or int(counts["summary_not_kept"] >= LOOP_LENGTH),
        "fallbacks": counts["fallback_summary"],
    }


def _threshold(facts: Facts) -> dict[str, Any]:
    """The threshold of the own rule at the last call, in tokens, if the recording does not exclude it, else the
    smallest count at which the recording proves that it was reached; none where the rule counts other things."""
    rule, refuting = facts.explanation.latest, facts.explanation.latest_refuting
    if rule is not None and rule.unit != "tokens":
        return {"threshold": 0, "threshold_source": ""}
    if refuting is not None:
        return {"threshold": refuting.at_most, "threshold_source": "inferred"}
    if rule is not None and rule.threshold is not None:
        return {"threshold": rule.threshold, "threshold_source": "rule"}
    bound = facts.explanation.latest_bound
    return {"threshold": bound.at_most if bound else 0, "threshold_source": "inferred" if bound else ""}


def assess(row: Session) -> None:
    """Assess a stored session again, with the window that the engine of today finds and people state by now."""
    storing.ensure_current(row)
    head, ledger = loading.load_head(row), loading.load_ledger(row)
    columns: dict[str, Any] = {}
    if row.window_source in LOOKED_UP:
        window, model = judge_session(head).sourced, main_model(head)[:200]
        stated = stated_window(row.project_id, model, row.format, window.source.value)
        columns = {**storing.window_columns(window), "model": model, "model_window": stated}
        for name, value in columns.items():
            setattr(row, name, value)
    judged = judge_session(head, loading.window_in_use(row))
    words = loading.request_words_of(row) if row.assessed_by == ENGINE else None
    if words is None:  # looked up by an older version, which may have found fewer quotations
        words = request_words(head, ledger, lambda: loading.stored_events(row))
        columns |= storing.request_columns(words)
        storing.store_summaries(row, head)
    settings = explanations.settings_of(head, row.project_id)
    facts = Facts(head, ledger, loading.load_attribution(row) or attribute(ledger), judged, words, settings)
    Session.objects.row(row).update(**columns, **assessment(facts))
    row.refresh_from_db()
    explanations.store(row, head, facts.explanation)
