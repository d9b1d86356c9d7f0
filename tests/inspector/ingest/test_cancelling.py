"""Imports that are cancelled at the moment at which their worker stores what it has read."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
from django.db import connection

from inspector.ingest.importing import ImportWatch, run_import
from inspector.ingest.submitting import ImportReport, cancel_import, submit
from inspector.ingest.uploads import receive
from inspector.models import Import, Recording, Session, default_project
from tests.waiting import PATIENCE

MEANWHILE = 1.0  # seconds for which the worker leaves the cancel alone; on a slow machine less is tried


@pytest.mark.django_db(transaction=True)
def test_a_cancel_and_the_worker_that_stores_wait_for_each_other_in_one_order(folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    cancelled: list[Future[None]] = []

    def cancel() -> None:
        try:
            cancel_import(Import.unscoped.get(pk=job.pk))
        finally:
            connection.close()

    class Cancelled(ImportWatch):
        def close(self, report: ImportReport) -> None:
            cancelled.append(threads.submit(cancel))
            wait(cancelled, MEANWHILE)
            super().close(report)

    def watching(*args: Any) -> ImportWatch:
        return Cancelled(*args)

    with ThreadPoolExecutor(1) as threads:
        run_import(str(job.pk), watching=watching)
        assert cancelled[0].result(PATIENCE) is None
    job.refresh_from_db()
    assert (job.state, job.message) == ("done", "")
    assert (Session.unscoped.filter(deleted=None).count(), Recording.unscoped.count()) == (1, 1)
