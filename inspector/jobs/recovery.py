"""Taking back what dead workers left: imports and gallery runs, jobs that nobody can take any more, unfinished slices.

A worker can die at any instruction. What it held is found again by the lease that ran out, or, when it died between
taking a job from the queue and beginning it, by an import that waits while no entry of the queue names it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from inspector.ingest.importing import LEASE, recover_imports
from inspector.jobs import assessing, estimating, queue
from inspector.jobs.heartbeats import silent
from inspector.models import GalleryRun, Import
from inspector.pages.gallery import runs
from inspector.storage import deleting, search
from inspector.storage.search import NOBODY

SLICE_LEASE = timedelta(seconds=20)  # a slice takes seconds; one that is done twice stores the same
GONE_AFTER = timedelta(minutes=10)  # an entry of the queue that runs for so long without a job is a dead worker's


def recover() -> int:
    """Take back imports and runs whose lease ran out, or that no entry of the queue names; how many."""
    return recover_imports() + runs.recover_runs() + _requeue_stranded()


def resume_slices() -> None:
    """Queue verdicts, texts and counts again where slices are left and nobody works on them; end dead entries."""
    for service, kind in ((assessing, "assess_sessions"), (search, "index_texts"), (estimating, "count_tokens")):
        if not queue.is_under_way(kind, SLICE_LEASE):
            service.prepare(NOBODY)
    deleting.ensure_purged()
    _close_dead_entries()


def beat(job_id: str) -> None:
    """Say that the import or gallery run with this key is alive."""
    for model in (Import, GalleryRun):
        model.objects.filter(pk=job_id, state=model.State.RUNNING).update(heartbeat=Now())


def _requeue_stranded() -> int:
    """Queue again what waits without an entry in the queue. A second entry does no harm: one of them finds the job
    taken."""
    count = 0
    for model, kind in ((Import, "import_recording"), (GalleryRun, "play_gallery")):
        waiting = model.objects.filter(silent("created", LEASE), state=model.State.RECEIVED)
        keys = [str(key) for key in waiting.values_list("pk", flat=True)]
        if not keys:
            continue
        ready = queue.entries(kind).filter(status="READY").values_list("args_kwargs", flat=True)
        named = {_key(entry) for entry in ready}
        for key in keys:
            if key not in named:
                queue.enqueue(kind, key)
                count += 1
    return count


def _close_dead_entries() -> None:
    """Entries of the queue whose worker died say so in the end, instead of running for ever."""
    old = DBTaskResult.objects.filter(silent("started_at", GONE_AFTER), status="RUNNING")
    found = {pk: _key(given) for pk, given in old.values_list("pk", "args_kwargs")}
    if not found:
        return
    running = (model.objects.filter(state=model.State.RUNNING) for model in (Import, GalleryRun))
    working = {str(key) for rows in running for key in rows.values_list("pk", flat=True)}
    dead = [pk for pk, key in found.items() if key not in working]
    old.filter(pk__in=dead).update(status="FAILED", finished_at=timezone.now())


def _key(args_kwargs: dict[str, Any]) -> str:
    return str(next(iter(args_kwargs["args"]), ""))
