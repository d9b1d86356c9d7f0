"""The queue of background jobs, on the Django Tasks API with its database backend.

An entry names a kind of job and what the job is about. What a kind does is registered by its name, so whoever asks for
a job imports neither the work nor the worker. Every kind is a queue of its own, which makes its entries easy to find.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now
from django_tasks import task
from django_tasks_db.models import DBTaskResult, DBTaskResultQuerySet

from inspector.jobs.heartbeats import AHEAD, alive

NO_ROW = str(UUID(int=0))  # what a job is named for where no one import or session asked for it

Work = Callable[[str], None]
SOON = timedelta(minutes=1)  # the longest wait that a clock set back must not lengthen
OLDER = "inspector.tasks"  # the module that entries of earlier versions name

_work: dict[str, Work] = {}


class UnknownKind(LookupError):
    """An entry of the queue names a kind of job that this version does not have."""


def does(kind: str) -> Callable[[Work], Work]:
    """Register the function that does the jobs of a kind. It is given what the job is about: the primary key of a row,
    or who asked for it."""

    def register(work: Work) -> Work:
        if kind in _work:
            raise ValueError(f"two functions do the jobs of the kind {kind!r}")
        _work[kind] = work
        return work

    return register


def enqueue(kind: str, about: str, *, priority: int = 0, run_after: datetime | None = None) -> None:
    """Put a job into the queue, as part of the transaction under way. `priority`: from -100 to 100, the highest first;
    `run_after`: the moment before which no worker takes it."""
    run_job.using(queue_name=kind, priority=priority, run_after=run_after).enqueue(about, kind)


def entries(kind: str) -> DBTaskResultQuerySet:
    """The entries of a kind, whatever became of them; those that an older version has queued, too."""
    return DBTaskResult.objects.filter(Q(queue_name=kind) | Q(task_path=f"{OLDER}.{kind}"))


def about(entry: DBTaskResult[Any, Any]) -> str:
    """What the job of an entry is about."""
    return str(next(iter(entry.args_kwargs["args"]), ""))


def is_under_way(kind: str, lease: timedelta) -> bool:
    """Does an entry of this kind wait, or has a worker taken one within a lease."""
    return entries(kind).filter(alive(lease)).exists()


def bring_forward() -> int:
    """Make those entries due that were to wait for a moment, by a clock that has been set back since; how many. What
    waits for long may wait longer."""
    was_soon = Q(enqueued_at__gt=Now() + AHEAD, run_after__gt=Now(), run_after__lte=F("enqueued_at") + SOON)
    waiting = DBTaskResult.objects.filter(was_soon, status="READY")
    return waiting.update(run_after=Now()) if waiting.exists() else 0  # to update nothing waits for its turn, too


def others_wait(priority: int) -> bool:
    """Is there a job for now that goes before those of this priority."""
    return bool(DBTaskResult.objects.ready().filter(priority__gt=priority).exists())


def run(kind: str, about: str) -> None:
    """Do a job here and now. Raises UnknownKind."""
    if kind not in _work:
        raise UnknownKind(f"no function does the jobs of the kind {kind!r}; is `inspector.jobs.kinds` imported?")
    _work[kind](about)


@task()
def run_job(about: str, kind: str) -> None:
    """What an entry of the queue calls."""
    run(kind, about)
