"""Metrics in the text format of Prometheus: requests of this process, and what the database and the queue hold.

Written here instead of with django-prometheus: what an operator asks of this server (imports, queue, worker) is in no
library, and the format is a line per number. No value or label holds a name or a word of a session.
Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db.models import Count, Sum
from django_tasks_db.models import DBTaskResult

from guard_core import __version__
from inspector.models import Import, Project, Recording, Session
from inspector.project import health

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
OTHER = "none"  # the view of a request for an address that does not exist


class AnsweredRequests:
    """What was answered since the process began: how often and how fast."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()

    def count(self, view: str, status: int, seconds: float) -> None:
        """Note an answer. `view` is the name of an address, of which there are few."""
        with self._lock:
            self._answers[view or OTHER, status] += 1
            self._seconds[view or OTHER] += seconds  # type: ignore[assignment]  # a Counter adds floats as well
            for bucket in BUCKETS:
                if seconds <= bucket:
                    self._buckets[view or OTHER, bucket] += 1

    def lines(self) -> Iterator[str]:
        """The numbers, as Prometheus reads them."""
        with self._lock:
            answers, seconds, buckets = dict(self._answers), dict(self._seconds), dict(self._buckets)
        yield from _head("inspector_requests_total", "counter", "Answers since the process began.")
        for (view, status), number in sorted(answers.items()):
            yield f'inspector_requests_total{{view="{view}",status="{status}"}} {number}'
        name = "inspector_request_seconds"
        yield from _head(name, "histogram", "Seconds until an answer was ready.")
        for view, sum_ in sorted(seconds.items()):
            total = sum(number for (of, _), number in answers.items() if of == view)
            for bucket in BUCKETS:
                yield f'{name}_bucket{{view="{view}",le="{bucket:g}"}} {buckets.get((view, bucket), 0)}'
            yield f'{name}_bucket{{view="{view}",le="+Inf"}} {total}'
            yield f'{name}_sum{{view="{view}"}} {sum_:.6f}'
            yield f'{name}_count{{view="{view}"}} {total}'


REQUESTS = AnsweredRequests()


def page() -> str:
    """All metrics."""
    return "\n".join([*REQUESTS.lines(), *_stored(), *_at_work(), ""])


def _stored() -> Iterator[str]:
    yield from _gauge("inspector_info", "The version of the program.", 1, f'version="{__version__}"')
    yield from _gauge("inspector_projects", "Projects.", Project.objects.count())
    sessions = Session.unscoped.filter(deleted=None).count()
    yield from _gauge("inspector_sessions", "Sessions on the lists of all projects.", sessions)
    size = Recording.unscoped.aggregate(sum=Sum("size"))["sum"] or 0
    yield from _gauge("inspector_recording_bytes", "Bytes of all recordings.", size)


def _at_work() -> Iterator[str]:
    imports = dict(Import.unscoped.order_by().values_list("state").annotate(number=Count("pk")))
    yield from _head("inspector_imports", "gauge", "Imports by state.")
    for state in Import.State.values:
        yield f'inspector_imports{{state="{state}"}} {imports.get(state, 0)}'
    queue = dict(DBTaskResult.objects.order_by().values_list("status").annotate(number=Count("pk")))
    yield from _head("inspector_queue", "gauge", "Entries of the job queue by status.")
    for status in ("READY", "RUNNING", "FAILED"):
        yield f'inspector_queue{{status="{status.lower()}"}} {queue.get(status, 0)}'
    reasons = {problem["about"] for problem in health.problems()}
    yield from _head("inspector_problem", "gauge", "1 where the health check finds a problem.")
    for about in ("disk", "database", "worker"):
        yield f'inspector_problem{{about="{about}"}} {int(about in reasons)}'
    beat = Path(settings.DATA_DIR) / "worker.beat"
    if beat.exists():
        age = max(0.0, time.time() - beat.stat().st_mtime)
        help_ = "Seconds since a worker said that it is alive."
        yield from _gauge("inspector_worker_silent_seconds", help_, round(age, 1))


def _gauge(name: str, help_: str, value: float, labels: str = "") -> Iterator[str]:
    yield from _head(name, "gauge", help_)
    yield f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def _head(name: str, kind: str, help_: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"
