"""Near misses, overflows and loops of a stored session as it is now: from its columns, without reading a text."""

from __future__ import annotations

from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts
from guard_core.findings.arising import Alert, alerts
from guard_core.windows.window_evidence import judge_session
from inspector.models import Session
from inspector.storage import convert
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 1_000_000  # of alerts in a process
ENTRY_BYTES = 1_500  # of one as Python holds it: a sentence, and at most 20 steps


def alerts_of(row: Session) -> tuple[Alert, ...]:
    """The latest first, under the window in use; none where an older version stored the session."""
    key = (str(row.pk), row.revision, row.effective_window)
    try:
        return _cache.get(key, lambda: _computed(row))
    except convert.Outdated:
        return ()


def _computed(row: Session) -> tuple[Alert, ...]:
    head, ledger = convert.load_head(row), convert.load_ledger(row)
    attribution = convert.load_attribution(row) or attribute(ledger)
    return alerts(Facts(head, ledger, attribution, judge_session(head, convert.window_in_use(row)), ()))


_cache: ByteCache[tuple[Alert, ...]] = ByteCache(CACHE_BYTES, lambda found: ENTRY_BYTES * (1 + len(found)))
