"""What pages show beside a session that grows: its alerts, the calls left until the threshold of its own rule, and the
last count of a prompt.

All are computed from all columns of the session, which takes longer than storing an event. A session that grows many
times a second is therefore looked at once in OUTLOOK_SECONDS, by one thread, for all pages of this process; meanwhile
they get what was computed last. What a person changes (window, threshold) is looked at at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from django.conf import settings

from guard_core.calls_left import CallsLeft
from guard_core.findings.arising import Alert
from inspector.models import Session
from inspector.storage import loading
from inspector.storage.alerts import alerts_of
from inspector.storage.forecasts import calls_left_of

FORGOTTEN_AFTER = 60.0  # seconds in which no page has asked


class Outlook(NamedTuple):
    """The latest alerts first; `left` is None where it is not known. `prompt_tokens`: of the last call whose provider
    reported them, None where none did, or an older version stored the session."""

    alerts: tuple[Alert, ...]
    left: CallsLeft | None
    prompt_tokens: int | None = None


@dataclass
class _KnownOutlook:
    """What was computed last of a session: of which revision and settings, and when it was begun and asked for."""

    outlook: Outlook
    revision: int
    chosen: tuple[object, ...]
    begun: float
    asked: float


_known: dict[str, _KnownOutlook] = {}
_computing: set[str] = set()
_lock = Lock()


def outlook_of(row: Session) -> Outlook:
    """As of a revision that the session had less than OUTLOOK_SECONDS ago, or has while another thread computes."""
    key, now = str(row.pk), time.monotonic()
    chosen = (row.effective_window, row.threshold, row.threshold_source)
    with _lock:
        known = _known.get(key)
        if known is not None and known.chosen == chosen:
            known.asked = now
            is_recent = now - known.begun < settings.OUTLOOK_SECONDS or key in _computing
            if known.revision == row.revision or is_recent:
                return known.outlook
        _computing.add(key)
    try:
        outlook = Outlook(alerts_of(row), calls_left_of(row), _last_prompt(row))
        with _lock:
            _known[key] = _KnownOutlook(outlook, row.revision, chosen, now, now)
            for other in [name for name, one in _known.items() if now - one.asked > FORGOTTEN_AFTER]:
                del _known[other]
    finally:
        with _lock:
            _computing.discard(key)
    return outlook


def _last_prompt(row: Session) -> int | None:
    """Prompt tokens of the last call that reports them; None, too, while the columns are made again."""
    try:
        calls = loading.load_head(row).calls
    except loading.Outdated:
        return None
    return next((call.prompt_tokens for call in reversed(calls) if call.prompt_tokens is not None), None)
