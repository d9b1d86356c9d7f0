"""Jobs for which no page waits: done in slices of a second, so that a new import never waits for long."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from inspector.jobs import queue
from inspector.jobs.queue import NO_ROW
from inspector.models import Session

SLICE_SECONDS = 1.0  # then other jobs go first
AGAIN = 5.0  # seconds; ours: a session that grows twice a second would be worked on as often, for longer each time
SLICE_LEASE = timedelta(seconds=20)  # a slice takes seconds; one that is done twice stores the same


class _LastStep(NamedTuple):
    moment: float  # by the monotonic clock
    revision: int  # of the session


@dataclass(frozen=True)
class SlicedJob:
    """One kind of work on sessions, the next of which is the first of `pending`. One that has grown since this process
    worked on it waits for AGAIN seconds, and then until a worker looks for what is left (`resume`)."""

    kind: str  # in the queue
    pending: Callable[[], QuerySet[Session]]
    work_on: Callable[[Session], bool]  # takes a step of about a second at most; False ends the slice
    priority: int  # below every import
    dead_after: timedelta  # when a page asks again for work that a worker has taken
    _grown: dict[UUID, _LastStep] = field(default_factory=dict, init=False)  # the last steps on those that have grown

    def prepare(self, asked_by: str = NO_ROW) -> None:
        """Queue a slice where anything is pending. `asked_by`: a key that distinguishes entries."""
        if self._next() is not None:
            queue.enqueue(self.kind, asked_by, priority=self.priority)

    def ensure_prepared(self) -> None:
        """The same where no slice waits, or the worker that took it is gone: for pages."""
        if not queue.is_under_way(self.kind, self.dead_after):
            self.prepare()

    def resume(self) -> None:
        """The same, as the worker asks now and then."""
        if not queue.is_under_way(self.kind, SLICE_LEASE):
            self.prepare()

    def run(self, asked_by: str, seconds: float = SLICE_SECONDS) -> None:
        """Work for about this long, at least one step, then queue again behind whatever was added meanwhile."""
        end = time.monotonic() + seconds
        while (session := self._next()) is not None:
            if session.revision:
                self._grown[session.pk] = _LastStep(time.monotonic(), session.revision)
            if not self.work_on(session) or time.monotonic() >= end:
                break
        self.prepare(asked_by)

    def _next(self) -> Session | None:
        now, rows = time.monotonic(), self.pending()
        for key, last in list(self._grown.items()):
            if now >= last.moment + AGAIN:
                self._grown.pop(key, None)
        if not (recent := dict(self._grown)):
            return rows.first()
        some = rows.values_list("pk", "revision")[: len(recent) + 1]
        ready = (key for key, revision in some if key not in recent or recent[key].revision == revision)
        return rows.filter(pk__in=list(islice(ready, 1))).first()
