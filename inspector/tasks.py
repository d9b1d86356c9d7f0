"""Background jobs on the Django Tasks API: thin, each calls one service."""

from __future__ import annotations

from django_tasks import task

from inspector.services import assessing, deleting, estimating, gallery, importing, search


@task()
def import_recording(job_id: str) -> None:
    importing.run_import(job_id)
    search.prepare(job_id)
    estimating.prepare(job_id)


@task()
def play_gallery(run_id: str) -> None:
    gallery.run_gallery(run_id)


@task()
def index_texts(name: str) -> None:
    """A slice of the text index; named after the import that asked."""
    search.run_slice(name)


@task()
def count_tokens(name: str) -> None:
    """A slice of the tokenizer counts and of the errors of estimators; named after the import that asked."""
    estimating.run_slice(name)


@task()
def purge_deleted(session_id: str) -> None:
    """Runs when the time for an undo is over; it is named after one of the sessions, and takes all that are due."""
    deleting.purge_slice()


@task()
def assess_sessions(name: str) -> None:
    """A slice of the verdicts that a changed window or engine has made outdated; named after who asked."""
    assessing.run_slice(name)
