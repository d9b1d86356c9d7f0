"""The context window in use: of one session, or of all sessions of a model, as a person states it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from inspector.jobs.assessing import ASSESSMENTS
from inspector.models import ModelWindow, Session
from inspector.models.windows import LOOKED_UP, SIMULATED
from inspector.storage.assessment import assess


def set_for_session(row: Session, tokens: int | None) -> None:
    """Set the window of one session; None gives it back to its model or its recording."""
    Session.objects.row(row).update(window_override=tokens)
    row.refresh_from_db()
    assess(row)


def set_for_model(row: Session, tokens: int | None) -> None:
    """Set the window of a session's model for all its sessions in the project, later ones as well; None forgets it."""
    windows = ModelWindow.objects.of(row.project_id)
    with transaction.atomic():
        if tokens is None:
            windows.filter(model=row.model).delete()
        else:
            windows.update_or_create(model=row.model, defaults={"window": tokens})
        of_model(row).update(model_window=tokens)
    row.refresh_from_db()
    assess(row)  # the others follow in a job
    ASSESSMENTS.prepare(str(row.pk))


def is_of_model(row: Session) -> bool:
    """May the window of its model be a session's: does it have a model, and no window of its own."""
    return bool(row.model) and row.format != SIMULATED and row.window_source in LOOKED_UP


def of_model(row: Session) -> QuerySet[Session]:
    """The sessions of the project that share the window of a session's model."""
    sessions = Session.objects.of(row.project_id)
    return sessions.filter(model=row.model, window_source__in=LOOKED_UP).exclude(format=SIMULATED)
