"""Every kind of job, and what it does. A worker imports this module; nothing that asks for a job does."""

from __future__ import annotations

from typing import Any

from inspector.ingest import live, spans
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import IMPORTS, REMOVE_CANCELLED, remove_cancelled
from inspector.jobs import recounting
from inspector.jobs.assessing import ASSESSMENTS
from inspector.jobs.estimating import TOKEN_COUNTS
from inspector.jobs.indexing import TEXT_INDEX
from inspector.jobs.leased import LeasedJob
from inspector.jobs.queue import does
from inspector.jobs.slices import SlicedJob
from inspector.pages.gallery.runs import GALLERY_RUNS, run_gallery
from inspector.pages.sweep.runs import SWEEP_SLICES, run_slice
from inspector.sharing.making import REPORTS, make_report
from inspector.storage import deleting
from inspector.webhooks import arising, deliveries

LEASED: tuple[LeasedJob[Any], ...] = (IMPORTS, GALLERY_RUNS, SWEEP_SLICES, REPORTS)
SLICED: tuple[SlicedJob, ...] = (ASSESSMENTS, TEXT_INDEX, TOKEN_COUNTS)

for job in SLICED:
    does(job.kind)(job.run)
does(GALLERY_RUNS.kind)(run_gallery)
does(SWEEP_SLICES.kind)(run_slice)
does(REPORTS.kind)(make_report)
does(REMOVE_CANCELLED)(remove_cancelled)
does(recounting.KIND)(recounting.run)
does(live.KIND)(live.run)
does(spans.KIND)(spans.run)
does(arising.FIND)(deliveries.find)


@does(IMPORTS.kind)
def import_recording(job_id: str) -> None:
    """What a new session is not seen without, then what comes later."""
    run_import(job_id)
    TEXT_INDEX.prepare(job_id)
    TOKEN_COUNTS.prepare(job_id)


@does(deliveries.SEND)
def send_webhook(hook_id: str) -> None:
    """Messages that are due, for a slice of time."""
    deliveries.send(hook_id)


@does("purge_deleted")
def purge_deleted(session_id: str) -> None:
    """Runs when the time for an undo is over; it is named after one of the sessions, and takes all that are due."""
    deleting.purge_slice()
