"""Taking back what dead workers left, and queueing what is left to do: asked by every worker, again and again.

A worker can die at any instruction. What it held is found again by the lease that ran out, or, when it died between
taking a job from the queue and beginning it, by a row that waits while no entry of the queue names it.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from inspector.ingest import live, spans
from inspector.ingest.submitting import IMPORTS, resume_removing
from inspector.jobs import queue
from inspector.jobs.heartbeats import silent
from inspector.jobs.kinds import LEASED, SLICED
from inspector.storage import deleting
from inspector.webhooks import deliveries

GONE_AFTER = timedelta(minutes=10)  # an entry of the queue that runs for so long without a job is a dead worker's


def recover() -> int:
    """Take back jobs whose lease ran out, or that no entry of the queue names; how many."""
    return sum(job.recover() for job in LEASED)


def resume_slices() -> None:
    """Queue verdicts, texts, counts, lines of streams, messages and files to remove again where they are left and no
    worker has them; end dead entries, and make those due that a clock set back holds."""
    queue.bring_forward()
    for job in SLICED:
        job.resume()
    live.resume()
    spans.resume()
    deliveries.resume()
    resume_removing()
    deleting.ensure_purged()
    _close_dead_entries()


def beat(about: str) -> None:
    """Say that the worker of the job with this key is alive; nothing for a job without a lease."""
    for job in LEASED if _is_key(about) else ():
        job.beat(about)


def hand_back(about: str) -> None:
    """Queue the job with this key again: its worker was asked to end. Nothing for a job without a lease."""
    for job in LEASED if _is_key(about) else ():
        job.hand_back(about)


def take_up() -> None:
    """Queue the imports that wait for a worker with this data folder: asked by one that is free."""
    IMPORTS.take_up()


def _is_key(about: str) -> bool:
    """May a row with a lease have this key. A job about a stream, spans or a growing session is named otherwise."""
    try:
        UUID(about)
    except ValueError:
        return False
    return True


def _close_dead_entries() -> None:
    """Entries of the queue whose worker died say so in the end, instead of running for ever."""
    old = list(DBTaskResult.objects.filter(silent("started_at", GONE_AFTER), status="RUNNING"))
    if not old:
        return
    running = (job.model.unscoped.filter(state=job.model.State.RUNNING) for job in LEASED)
    working = {str(key) for rows in running for key in rows.values_list("pk", flat=True)}
    dead = [entry.pk for entry in old if queue.about(entry) not in working]
    still = DBTaskResult.objects.filter(silent("started_at", GONE_AFTER), status="RUNNING", pk__in=dead)
    still.update(status="FAILED", finished_at=timezone.now())
