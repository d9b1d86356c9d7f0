"""One worker at a time holds a job, and only as long as nobody took it for dead."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from inspector.ingest.submitting import IMPORTS, submit
from inspector.ingest.uploads import receive
from inspector.jobs import queue
from inspector.jobs.leased import MAX_ATTEMPTS
from inspector.models import Import, default_project
from inspector.pages.gallery.runs import GALLERY_RUNS, start_run


@pytest.fixture
def row(db, folders, recording) -> Import:
    return submit(default_project(), receive([recording], "a.jsonl"))


def silent_since(row: Import, seconds: float, **values: object) -> None:
    moment = timezone.now() - timedelta(seconds=seconds)
    Import.unscoped.filter(pk=row.pk).update(heartbeat=moment, **values)


def test_of_two_workers_one_gets_the_job(row):
    assert IMPORTS.take(str(row.pk))
    assert not IMPORTS.take(str(row.pk))
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("running", 1)


def test_a_worker_that_was_taken_for_dead_holds_nothing_any_more(row):
    lease = IMPORTS.take(str(row.pk))
    silent_since(row, 60)
    assert IMPORTS.recover() == 1
    assert not IMPORTS.held(row.pk, lease).exists()
    assert IMPORTS.take(str(row.pk)) != lease


def test_a_job_handed_back_does_not_count_as_an_attempt(row):
    IMPORTS.take(str(row.pk))
    IMPORTS.hand_back(str(row.pk))
    row.refresh_from_db()
    assert (row.state, row.attempts, row.lease) == ("received", 0, "")
    assert queue.entries("import_recording").order_by("-priority").first().priority == IMPORTS.priority_again


def test_a_job_is_given_up_after_its_last_attempt_and_says_so(row):
    IMPORTS.take(str(row.pk))
    silent_since(row, 60, attempts=MAX_ATTEMPTS)
    IMPORTS.recover()
    row.refresh_from_db()
    assert row.state == "failed"
    assert f"died {MAX_ATTEMPTS} times" in row.message


def test_a_beat_for_a_job_of_another_kind_changes_nothing(row):
    IMPORTS.take(str(row.pk))
    silent_since(row, 60)
    GALLERY_RUNS.beat(str(row.pk))
    assert IMPORTS.recover() == 1


def test_a_gallery_run_is_leased_in_the_same_way(db):
    run = start_run(default_project(), ())
    lease = GALLERY_RUNS.take(str(run.pk))
    assert GALLERY_RUNS.held(run.pk, lease).exists()
    GALLERY_RUNS.hand_back(str(run.pk))
    assert not GALLERY_RUNS.held(run.pk, lease).exists()
