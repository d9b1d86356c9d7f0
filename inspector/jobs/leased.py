"""Jobs with a row of their own: one worker at a time holds it, and what dead workers held is taken back.

A worker takes a job by writing a lease into its row, a random word that no other worker knows, and renews its heartbeat
every two seconds. Without one for longer than `silence`, the job is queued again, or given up after MAX_ATTEMPTS.
Whatever the worker writes later names the lease, so one that was only slow cannot store anything any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar
from uuid import uuid4

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from inspector.jobs import queue
from inspector.jobs.heartbeats import silent
from inspector.models import GalleryRun, Import, Share, SweepSlice

MAX_ATTEMPTS = 3
LEASE = timedelta(seconds=15)  # a worker that says nothing for so long is taken to be dead

Row = TypeVar("Row", Import, GalleryRun, SweepSlice, Share)


class LeasedJob(ABC, Generic[Row]):
    """One kind of job whose rows have `state`, `lease`, `heartbeat`, `attempts`, `created`."""

    kind: ClassVar[str]  # in the queue
    model: type[Row]
    silence: ClassVar[timedelta]  # after which a worker is taken to be dead
    fresh: ClassVar[Mapping[str, Any]]  # columns of a row that no worker has begun
    begun: ClassVar[Mapping[str, Any]]  # columns of a row that a worker has just taken
    priority: ClassVar[int] = 0  # in the queue
    priority_again: ClassVar[int] = 0  # of a job that was begun before

    @abstractmethod
    def give_up(self, row: Row, mine: QuerySet[Row]) -> bool:
        """End a job whose workers have died MAX_ATTEMPTS times; False where another process was first."""

    def enqueue(self, row: Row) -> None:
        """Put a new row's job into the queue: in the transaction that creates the row."""
        queue.enqueue(self.kind, str(row.pk), priority=self.priority)

    def take(self, key: str) -> str:
        """The lease of the job with this key, from now on; empty where it does not wait any more."""
        lease = uuid4().hex
        waiting = self.model.unscoped.filter(pk=key, state=self.model.State.RECEIVED)
        taken = {"state": self.model.State.RUNNING, "lease": lease, "heartbeat": Now(), "attempts": F("attempts") + 1}
        return lease if waiting.update(**taken, **self.begun) else ""

    def held(self, key: Any, lease: str) -> QuerySet[Row]:
        """The row, as long as its worker holds this lease."""
        return self.model.unscoped.filter(pk=key, state=self.model.State.RUNNING, lease=lease)

    def beat(self, key: str) -> None:
        """Say that the worker of the job with this key, if it is one of these, is alive."""
        self.model.unscoped.filter(pk=key, state=self.model.State.RUNNING).update(heartbeat=Now())

    def recover(self) -> int:
        """Take back what dead workers held, and queue what waits while no entry of the queue names it; how many."""
        dead = self.model.unscoped.filter(silent("heartbeat", self.silence), state=self.model.State.RUNNING)
        return sum(self._take_back(row) for row in dead) + self._requeue_stranded()

    def hand_back(self, key: str, run_after: datetime | None = None, **more: Any) -> None:
        """Queue a job again that was broken off, without counting it as an attempt; `run_after` as for the queue,
        `more` columns of its row."""
        running = self.model.unscoped.filter(pk=key, state=self.model.State.RUNNING)
        self._queue_again(running, key, run_after, attempts=F("attempts") - 1, **more)

    def _take_back(self, row: Row) -> bool:
        """Queue again what a dead worker held, or end it after `MAX_ATTEMPTS` deaths; False where another process was
        first."""
        mine = self.held(row.pk, row.lease)
        if row.attempts >= MAX_ATTEMPTS:
            return self.give_up(row, mine)
        return self._queue_again(mine, str(row.pk))

    def _queue_again(self, mine: QuerySet[Row], key: str, run_after: datetime | None = None, **more: Any) -> bool:
        with transaction.atomic():
            if not mine.update(state=self.model.State.RECEIVED, lease="", **{**self.fresh, **more}):
                return False
            queue.enqueue(self.kind, key, priority=self.priority_again, run_after=run_after)
        return True

    def _requeue_stranded(self) -> int:
        """A worker died between taking the entry and beginning the job. A second entry does no harm: whoever comes
        later finds the job taken."""
        waiting = self.model.unscoped.filter(silent("created", self.silence), state=self.model.State.RECEIVED)
        keys = [str(key) for key in waiting.values_list("pk", flat=True)]
        if not keys:
            return 0
        named = {queue.about(entry) for entry in queue.entries(self.kind).filter(status="READY")}
        stranded = [key for key in keys if key not in named]
        for key in stranded:
            queue.enqueue(self.kind, key, priority=self.priority)
        return len(stranded)
