"""What the list says of each session under the window in use: at import, and again in a job in slices after the window
or the engine has changed."""

from __future__ import annotations

import logging
import time
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

import guard_core
from guard_core.attribution import Attribution, attribute
from guard_core.errors import GuardError
from guard_core.findings import LOOP_LENGTH, NEAR_MISS_SHARE, Facts, recorded_findings
from guard_core.ledger import Ledger
from guard_core.sessions import Session as CoreSession
from guard_core.sessions import Source, Sourced
from guard_core.window_evidence import judge_session
from inspector import convert
from inspector.models import Session
from inspector.models.windows import LOOKED_UP, stated_window
from inspector.services.heartbeats import alive

log = logging.getLogger(__name__)

REVISION = 1  # of what is stored here; raise it when that changes while the engine does not
ENGINE = f"{guard_core.__version__}/{REVISION}"
SLICE_SECONDS = 1.0  # then other jobs go first
PRIORITY = -40  # below every import, above the text index
DEAD_AFTER = timedelta(minutes=2)  # a slice takes seconds
NOBODY = str(UUID(int=0))  # where no import asked


def assessment(session: CoreSession, ledger: Ledger, attribution: Attribution | None, window: int) -> dict[str, Any]:
    """The columns of a session's row that depend on the window in use, in tokens."""
    recorded = ledger.steps["prompt_tokens"]
    near = np.logical_and(recorded >= NEAR_MISS_SHARE * window, recorded <= window)
    return {
        "overflows": int((recorded > window).sum()),
        "near_misses": int(near.sum()),
        "assessed_window": window,
        "assessed_by": ENGINE,
        **_patterns(session, ledger, attribution, window),
    }


def _patterns(session: CoreSession, ledger: Ledger, attribution: Attribution | None, window: int) -> dict[str, int]:
    """Loops and mechanical summaries, as the findings of the overview have them."""
    judged = judge_session(session, Sourced(window, Source.USER))
    facts = Facts(session, ledger, attribution or attribute(ledger), judged)
    counts: Counter[str] = Counter()
    for finding in recorded_findings(facts):
        counts[finding.kind] += 1 if finding.kind == "loop" else finding.count
    loops = counts["loop"] or int(counts["summary_not_kept"] >= LOOP_LENGTH)
    return {"loops": loops, "fallbacks": counts["fallback_summary"]}


def assess(row: Session) -> None:
    """Assess a stored session again, with the window that the engine of today finds and people state by now."""
    columns: dict[str, Any] = {}
    if row.window_source in LOOKED_UP:
        window = judge_session(convert.load_head(row)).sourced
        stated = stated_window(row.model, row.format, window.source.value)
        columns = {**convert.window_columns(window), "model_window": stated}
        row.window, row.model_window = window.value, stated
    ledger, attribution = convert.load_ledger(row), convert.load_attribution(row)
    columns |= assessment(convert.load_head(row), ledger, attribution, row.effective_window)
    Session.objects.filter(pk=row.pk).update(**columns)
    row.refresh_from_db()


def pending() -> QuerySet[Session]:
    """Sessions on the list that were assessed under another window or by another engine, the newest first."""
    rows = Session.objects.filter(deleted=None).annotate(in_use=Coalesce("window_override", "model_window", "window"))
    outdated = ~Q(assessed_by=ENGINE) | Q(assessed_window=None) | ~Q(assessed_window=F("in_use"))
    return rows.filter(outdated).order_by("-created", "ordinal")


def prepare(name: str) -> None:
    """Put whatever is outdated into the queue; `name` tells apart who asked."""
    from inspector.tasks import assess_sessions

    if pending().exists():
        assess_sessions.using(priority=PRIORITY).enqueue(name)


def ensure_prepared() -> None:
    """The same where nobody has asked yet, or the worker that took it is gone."""
    from django_tasks_db.models import DBTaskResult

    from inspector.tasks import assess_sessions

    if not DBTaskResult.objects.filter(alive(DEAD_AFTER), task_path=assess_sessions.module_path).exists():
        prepare(NOBODY)


def run_slice(name: str) -> None:
    """Work for about a second, then queue up again behind whatever came meanwhile."""
    end = time.monotonic() + SLICE_SECONDS
    while time.monotonic() < end and (session := pending().first()) is not None:
        _tried(session)
    prepare(name)


def _tried(session: Session) -> None:
    """One session that cannot be read must not keep all others waiting."""
    try:
        assess(session)
    except GuardError:
        log.exception("session %s cannot be assessed", session.pk)
        stamp = {"assessed_by": ENGINE, "assessed_window": session.effective_window}
        Session.objects.filter(pk=session.pk).update(**stamp)
