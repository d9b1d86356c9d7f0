"""Background jobs on the Django Tasks API: thin, each calls one service."""

from __future__ import annotations

from django_tasks import task

from inspector.services import importing


@task()
def import_recording(job_id: str) -> None:
    importing.run_import(job_id)
