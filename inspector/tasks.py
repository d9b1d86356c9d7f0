"""The jobs under the names that earlier versions have put into the queue, so that what waits there is still done."""

from __future__ import annotations

from django_tasks import task

from inspector.jobs.queue import run


@task()
def import_recording(job_id: str) -> None:
    run("import_recording", job_id)


@task()
def play_gallery(run_id: str) -> None:
    run("play_gallery", run_id)


@task()
def index_texts(name: str) -> None:
    run("index_texts", name)


@task()
def count_tokens(name: str) -> None:
    run("count_tokens", name)


@task()
def purge_deleted(session_id: str) -> None:
    run("purge_deleted", session_id)


@task()
def assess_sessions(name: str) -> None:
    run("assess_sessions", name)
