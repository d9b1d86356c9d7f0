"""Asking a worker to look whether something has arisen in a session that has grown: for whoever stores it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from inspector.jobs import queue
from inspector.jobs.heartbeats import silent
from inspector.models import Session, Webhook
from inspector.models.prepared import Select, Slot

FIND = "find_alerts"
PRIORITY = -10  # below imports
CLAIM = timedelta(seconds=60)  # a look takes seconds; one that is done twice writes the same messages
AGAIN = (5, 60, 600, 3_600, 21_600)  # seconds after each try that failed
LATER = timedelta(seconds=1)  # in which further batches of a stream come, to be looked at together
_LISTENING = Select(Webhook.objects.of(Slot(Webhook, "project")).filter(stopped="").values_list("pk")[:1])


def ask(session: Session, known: int) -> None:
    """Queue a look at what has arisen after the first `known` steps, where the project has a webhook and no look that
    covers them waits: in the transaction that stores the new steps, so that neither is there without the other."""
    if _LISTENING.first(project=session.project_id) is None:
        return
    waiting = queue.entries(FIND).filter(args_kwargs__args__0__startswith=f"{session.pk} ", status="READY")
    # Locked: a worker that takes one of these in the meantime would look at the session as it was before.
    if not any(known_in(entry) <= known for entry in waiting.select_for_update()):
        queue.enqueue(FIND, f"{session.pk} {known}", priority=PRIORITY, run_after=timezone.now() + LATER)


def known_in(entry: DBTaskResult[Any, Any]) -> int:
    """After how many steps an entry of the queue looks."""
    return int(queue.about(entry).partition(" ")[2] or 0)


def resume() -> None:
    """Queue again the looks whose worker died or met an error: each time later, a few times in all."""
    left = Q(silent("started_at", CLAIM), status="RUNNING") | Q(status="FAILED")
    for entry in queue.entries(FIND).filter(left)[:100]:
        tries = len(entry.worker_ids)
        if tries <= len(AGAIN):
            later = timezone.now() + timedelta(seconds=AGAIN[max(0, tries - 1)])
            mine = queue.entries(FIND).filter(left, pk=entry.pk)
            mine.update(status="READY", started_at=None, finished_at=None, run_after=later)
