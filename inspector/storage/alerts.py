"""Near misses, overflows and loops of a stored session as it is now: from its columns, without reading a text."""

from __future__ import annotations

from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts
from guard_core.findings.arising import Alert, alerts, occurrences
from guard_core.windows.window_evidence import judge_session
from inspector.models import Session
from inspector.storage import loading, storing
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 1_000_000  # of alerts in a process
ENTRY_BYTES = 1_500  # of one as Python holds it: a sentence, and at most 20 steps


def alerts_of(row: Session) -> tuple[Alert, ...]:
    """The latest first, under the window in use; none where an older version stored the session."""
    key = (str(row.pk), row.revision, row.effective_window)
    try:
        return _cache.get(key, lambda: alerts(_facts(row)))
    except loading.Outdated:
        return ()


def occurrences_of(row: Session, known: int) -> tuple[Alert, ...]:
    """Every one that did not end before step `known` (from 0), the first one first; columns that an older version has
    stored are made again."""
    try:
        facts = _facts(row)
    except loading.Outdated:
        storing.recount(row)
        facts = _facts(row)
    return occurrences(facts, known)


def _facts(row: Session) -> Facts:
    head, ledger = loading.load_head(row), loading.load_ledger(row)
    attribution = loading.load_attribution(row) or attribute(ledger)
    return Facts(head, ledger, attribution, judge_session(head, loading.window_in_use(row)), ())


_cache: ByteCache[tuple[Alert, ...]] = ByteCache(CACHE_BYTES, lambda alerts: ENTRY_BYTES * (1 + len(alerts)))
