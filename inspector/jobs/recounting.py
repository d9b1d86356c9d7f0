"""Making the columns of a session again that an earlier version stored: a job, while its pages say that it runs."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from django.utils import timezone

from inspector.jobs import queue
from inspector.jobs.heartbeats import alive
from inspector.models import Session
from inspector.storage import storing

KIND = "recount_columns"
PRIORITY = 20  # above every other job: a person waits for the page
DEAD_AFTER = timedelta(minutes=2)  # counting 200 MB takes half a minute; two workers that count store the same
RETRY_AFTER = timedelta(minutes=10)  # after a failure: another version may be running by then


class RecountingState(StrEnum):
    """What became of the job that makes the columns of a session again."""

    UNDER_WAY = "under way"
    FAILED = "failed"


def ensure_recounted(row: Session) -> RecountingState:
    """Queue the job for a session where none waits or runs. One that failed is tried again after RETRY_AFTER only."""
    mine = queue.entries(KIND).filter(args_kwargs__args__0=str(row.pk))
    if mine.filter(alive(DEAD_AFTER)).exists():
        return RecountingState.UNDER_WAY
    if mine.filter(status="FAILED", enqueued_at__gt=timezone.now() - RETRY_AFTER).exists():
        return RecountingState.FAILED
    queue.enqueue(KIND, str(row.pk), priority=PRIORITY)
    return RecountingState.UNDER_WAY


def run(session_id: str) -> None:
    """Make the columns again where that is still needed and the session is still there."""
    row = Session.unscoped.filter(pk=session_id, deleted=None).first()
    if row is not None:
        storing.ensure_current(row)
