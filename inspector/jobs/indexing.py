"""Adding to the text index what sessions have grown by: a job in slices."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import F, QuerySet

from guard_core.errors import GuardError
from inspector.jobs.slices import SlicedJob
from inspector.models import Session
from inspector.storage.search import index_some

log = logging.getLogger(__name__)


def pending() -> QuerySet[Session]:
    """Sessions on any list whose texts are not all in the index, the newest first."""
    return Session.unscoped.filter(deleted=None, indexed__lt=F("events")).order_by("-created", "ordinal")


def index_everything() -> None:
    """Index whatever is pending, now and here: for commands."""
    while (session := pending().first()) and _tried(session):
        pass


def _tried(session: Session) -> bool:
    """One session that cannot be read must not keep all others out of the index."""
    try:
        return index_some(session)
    except GuardError:
        log.exception("session %s cannot be indexed and is left out of the text search", session.pk)
        return Session.objects.row(session).update(indexed=F("events")) > 0


TEXT_INDEX = SlicedJob(
    kind="index_texts",
    pending=pending,
    work_on=_tried,
    priority=-50,
    dead_after=timedelta(minutes=2),
)
