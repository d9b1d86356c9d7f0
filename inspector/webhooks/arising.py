"""Asking a worker to look whether something has arisen in a session that has grown: for whoever stores it."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from inspector.jobs import queue
from inspector.models import Session, Webhook

FIND = "find_alerts"
PRIORITY = -10  # below imports
LATER = timedelta(seconds=1)  # in which further batches of a stream come, to be looked at together


def ask(session: Session, known: int = 0) -> None:
    """Queue a look at the alerts after the first `known` steps, where the project has a webhook and no look waits."""
    if not Webhook.objects.of(session.project_id).filter(stopped="").exists():
        return
    about = f"{session.pk} {known}"
    if not queue.entries(FIND).filter(args_kwargs__args__0=about, status="READY").exists():
        queue.enqueue(FIND, about, priority=PRIORITY, run_after=timezone.now() + LATER)
