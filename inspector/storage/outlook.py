"""What pages show beside a session that grows: its alerts, the tokens and calls left until the threshold of its own
rule, and the last count of a prompt.

All are computed from all columns of the session, which takes longer than storing an event. A session that grows many
times a second is therefore looked at once in OUTLOOK_SECONDS, by one thread, for all pages of this process; meanwhile
they get what was computed last. What a person changes (window, threshold) is looked at at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np
from django.conf import settings

from guard_core.findings import Facts
from guard_core.findings.arising import Alert, alerts
from guard_core.findings.peak import held_against
from guard_core.sessions import Provenance
from inspector.models import Session, SessionData
from inspector.storage import loading
from inspector.storage.alerts import facts_of
from inspector.storage.forecasts import Room, room_of

FORGOTTEN_AFTER = 60.0  # seconds in which no page has asked


class LastPrompt(NamedTuple):
    """Tokens of the last prompt that a provider counted, and the window of the model of its call: 0 tokens where that
    is not known. `is_own`: it is the session's window; `is_assumed`: nothing says that window."""

    tokens: int
    window: int
    is_own: bool
    is_assumed: bool = False


class Outlook(NamedTuple):
    """The latest alerts first; `left` and `last` are None where they are not known. All is empty where an older version
    stored the session, or its data is gone."""

    alerts: tuple[Alert, ...] = ()
    left: Room | None = None
    last: LastPrompt | None = None


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
        outlook = _computed(row)
        with _lock:
            _known[key] = _KnownOutlook(outlook, row.revision, chosen, now, now)
            for other in [name for name, one in _known.items() if now - one.asked > FORGOTTEN_AFTER]:
                del _known[other]
    finally:
        with _lock:
            _computing.discard(key)
    return outlook


def _computed(row: Session) -> Outlook:
    """Empty, too, while the columns are made again, and where they were deleted for good after the row was read."""
    try:
        facts = facts_of(row)
        return Outlook(alerts(facts), room_of(row), _last_prompt(facts))
    except (loading.Outdated, SessionData.DoesNotExist):
        return Outlook()


def _last_prompt(facts: Facts) -> LastPrompt | None:
    """Held against a window as the peak of a session is; None where no call is counted."""
    counts = facts.ledger.steps["prompt_tokens"]
    counted = np.flatnonzero(counts > 0)
    if not len(counted):
        return None
    step, case = int(counted[-1]), facts.recording
    is_own = case.rests_on_window(step)
    is_assumed = is_own and facts.window.source is Provenance.ASSUMED
    return LastPrompt(int(counts[step]), held_against(case, step), is_own, is_assumed)
