"""Near misses, overflows and loops of a stored session as it is now: from its columns, without reading a text."""

from __future__ import annotations

from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts
from guard_core.findings.arising import Alert, occurrences
from guard_core.windows.window_evidence import judge_session
from inspector.models import Session
from inspector.storage import loading, storing


def occurrences_of(row: Session, known: int) -> tuple[Alert, ...]:
    """Every one that did not end before step `known` (from 0), the first one first; columns that an older version has
    stored are made again."""
    try:
        facts = facts_of(row)
    except loading.Outdated:
        storing.recount(row)
        facts = facts_of(row)
    return occurrences(facts, known)


def facts_of(row: Session) -> Facts:
    """What a session says of itself without its texts, under the window in use. Raises Outdated."""
    head, ledger = loading.load_head(row), loading.load_ledger(row)
    attribution = loading.load_attribution(row) or attribute(ledger)
    return Facts(head, ledger, attribution, judge_session(head, loading.window_in_use(row)), ())
