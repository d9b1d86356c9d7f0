"""Assessing sessions again after the window or the engine has changed: a job in slices."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from guard_core.errors import GuardError
from inspector.jobs.slices import SlicedJob
from inspector.models import Session
from inspector.models.sessions import ENGINE
from inspector.storage.assessment import assess

log = logging.getLogger(__name__)


def pending() -> QuerySet[Session]:
    """Sessions on any list that were assessed under another window or by another engine, the newest first."""
    rows = Session.unscoped.filter(deleted=None).annotate(in_use=Coalesce("window_override", "model_window", "window"))
    outdated = ~Q(assessed_by=ENGINE) | Q(assessed_window=None) | ~Q(assessed_window=F("in_use"))
    return rows.filter(outdated).order_by("-created", "ordinal")


def _tried(session: Session) -> bool:
    """One session that cannot be read must not keep all others waiting."""
    try:
        assess(session)
    except GuardError:
        log.exception("session %s cannot be assessed", session.pk)
        stamp = {"assessed_by": ENGINE, "assessed_window": session.effective_window}
        Session.objects.row(session).update(**stamp)
    return True


ASSESSMENTS = SlicedJob(
    kind="assess_sessions",
    pending=pending,
    work_on=_tried,
    priority=-40,  # above the text index
    dead_after=timedelta(minutes=2),
)
