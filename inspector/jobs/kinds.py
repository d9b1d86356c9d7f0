"""What each kind of job does. A worker imports this module; nothing that asks for a job does."""

from __future__ import annotations

from inspector.ingest import importing
from inspector.jobs import assessing, estimating, recounting
from inspector.jobs.queue import does
from inspector.pages.gallery import runs
from inspector.storage import deleting, search


@does("import_recording")
def import_recording(job_id: str) -> None:
    importing.run_import(job_id)
    search.prepare(job_id)
    estimating.prepare(job_id)


@does("play_gallery")
def play_gallery(run_id: str) -> None:
    runs.run_gallery(run_id)


@does("index_texts")
def index_texts(name: str) -> None:
    """A slice of the text index; named after the import that asked."""
    search.run_slice(name)


@does("count_tokens")
def count_tokens(name: str) -> None:
    """A slice of the tokenizer counts and of the errors of estimators; named after the import that asked."""
    estimating.run_slice(name)


@does("purge_deleted")
def purge_deleted(session_id: str) -> None:
    """Runs when the time for an undo is over; it is named after one of the sessions, and takes all that are due."""
    deleting.purge_slice()


@does("assess_sessions")
def assess_sessions(name: str) -> None:
    """A slice of the verdicts that a changed window or engine has made outdated; named after who asked."""
    assessing.run_slice(name)


@does("recount_columns")
def recount_columns(session_id: str) -> None:
    recounting.run(session_id)
