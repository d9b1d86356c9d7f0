"""What dead workers leave behind is taken back, wherever they died, and within the time that is promised."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from inspector.data_folder import sweeping
from inspector.ingest import submitting
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.jobs import queue, recovery, slices
from inspector.models import GalleryRun, Import, Session, default_project
from inspector.pages.gallery import runs
from inspector.pages.gallery.runs import start_run
from inspector.pages.sweep import runs as sweeps
from inspector.project import serving, worker
from inspector.project.worker import Heartbeat
from inspector.sharing import making
from inspector.storage import search

PROMISE = 30.0  # seconds from the death of a worker until its import is queued again or has failed
START = 10.0  # seconds for a new worker process on a busy machine; a quiet one needs one or two


def queued(job: Import) -> int:
    entries = DBTaskResult.objects.filter(status="READY", queue_name="import_recording")
    return sum(entry.args_kwargs["args"][0] == str(job.pk) for entry in entries)


def long_ago(model=Import, **values) -> None:
    moment = timezone.now() - timedelta(minutes=1)
    model.unscoped.update(created=moment, **values)


@pytest.mark.parametrize("lease", [submitting.LEASE, runs.LEASE, sweeps.LEASE, making.LEASE])
def test_the_times_add_up_to_less_than_the_promise(lease):
    noticed = lease.total_seconds() + worker.HEARTBEAT_EVERY + worker.LOOK_EVERY_PIPED
    assert noticed > serving.RESTART_AFTER + START + worker.HEARTBEAT_EVERY  # the new worker is there before
    assert noticed <= PROMISE
    assert worker.HEARTBEAT_EVERY * worker.RESUME_EVERY + slices.SLICE_LEASE.total_seconds() <= PROMISE


@pytest.mark.parametrize("lease", [submitting.LEASE, runs.LEASE, sweeps.LEASE, making.LEASE])
def test_a_worker_may_miss_three_beats(lease):
    assert lease.total_seconds() > worker.HEARTBEAT_EVERY * 4


def test_an_import_whose_worker_died_before_it_began_is_queued_again(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    DBTaskResult.objects.update(status="RUNNING")  # taken from the queue; then the worker died
    long_ago()
    assert recovery.recover() == 1
    assert queued(job) == 1
    run_import(str(job.pk))
    assert Session.unscoped.count() == 1


def test_a_gallery_run_whose_worker_died_before_it_began_is_queued_again(db):
    start_run(default_project(), ())
    DBTaskResult.objects.update(status="RUNNING")
    long_ago(GalleryRun)
    assert recovery.recover() == 1
    assert recovery.recover() == 0


def test_an_import_that_waits_in_the_queue_is_left_there(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    long_ago()
    assert recovery.recover() == 0
    assert queued(job) == 1


def test_an_import_that_was_taken_a_moment_ago_is_left_alone(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    DBTaskResult.objects.update(status="RUNNING")
    assert recovery.recover() == 0
    assert queued(job) == 0


def test_a_worker_held_up_for_longer_than_its_lease_does_not_take_its_own_job_back(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    Import.unscoped.update(state="running", lease="mine", heartbeat=timezone.now() - timedelta(minutes=5))
    Heartbeat(str(job.pk)).beat()
    assert Import.unscoped.get().lease == "mine"


@pytest.mark.parametrize("about", [queue.NO_ROW, "1", f"{queue.NO_ROW} 12"], ids=["slice", "stream", "growing session"])
def test_a_busy_worker_takes_back_what_another_one_left(db, folders, recording, about):
    dead = submit(default_project(), receive([recording], "a.jsonl"))
    Import.unscoped.update(state="running", lease="dead", heartbeat=timezone.now() - timedelta(minutes=5), attempts=1)
    DBTaskResult.objects.update(status="RUNNING")
    rung = []
    Heartbeat(about, wake=lambda: rung.append(True)).beat()
    assert Import.unscoped.get().state == "received"
    assert queued(dead) == 1
    assert rung


@pytest.mark.parametrize("about", ["1", f"{queue.NO_ROW} 12"], ids=["stream", "growing session"])
def test_a_worker_that_ends_in_a_job_without_a_lease_hands_nothing_back(db, about):
    recovery.hand_back(about)
    assert not DBTaskResult.objects.exists()


def test_a_text_index_that_stopped_with_its_worker_goes_on(bring, recording):
    bring(recording)
    search.forget(Session.unscoped.get())
    DBTaskResult.objects.all().delete()
    recovery.resume_slices()
    kinds = set(DBTaskResult.objects.values_list("queue_name", flat=True))
    assert kinds == {"index_texts", "count_tokens"}
    recovery.resume_slices()
    assert DBTaskResult.objects.count() == 2
    DBTaskResult.objects.update(status="RUNNING", started_at=timezone.now() - slices.SLICE_LEASE)
    recovery.resume_slices()
    assert DBTaskResult.objects.filter(status="READY").count() == 2


def test_an_entry_of_a_dead_worker_does_not_run_for_ever(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    old = timezone.now() - recovery.GONE_AFTER - timedelta(minutes=1)
    DBTaskResult.objects.update(status="RUNNING", started_at=old)
    Import.unscoped.update(state="running", heartbeat=timezone.now())
    recovery.resume_slices()
    assert DBTaskResult.objects.get().status == "RUNNING"  # a long file
    Import.unscoped.filter(pk=job.pk).update(state="done")
    recovery.resume_slices()
    assert not DBTaskResult.objects.filter(status="RUNNING").exists()


@pytest.mark.parametrize("hours", [-1, 1], ids=["long ago", "in the future"])
def test_a_dead_workers_import_is_taken_back_wherever_its_clock_was(hours, db, folders, recording):
    """In the future: the clock was set back while the worker was dead."""
    job = submit(default_project(), receive([recording], "a.jsonl"))
    moment = timezone.now() + timedelta(hours=hours)
    Import.unscoped.update(state="running", lease="dead", attempts=1, heartbeat=moment, created=moment)
    DBTaskResult.objects.update(status="RUNNING", started_at=moment)
    assert recovery.recover() == 1
    assert queued(job) == 1


def test_a_gallery_run_does_not_wait_for_a_clock_that_was_set_back(db):
    start_run(default_project(), ())
    moment = timezone.now() + timedelta(hours=1)
    GalleryRun.unscoped.update(state="running", lease="dead", attempts=1, heartbeat=moment)
    assert recovery.recover() == 1


def test_a_job_without_an_entry_does_not_wait_for_a_clock_that_was_set_back(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    DBTaskResult.objects.update(status="RUNNING")
    Import.unscoped.update(created=timezone.now() + timedelta(hours=1))
    assert recovery.recover() == 1
    assert queued(job) == 1


def test_slices_do_not_wait_for_a_clock_that_was_set_back(bring, recording):
    bring(recording)
    search.forget(Session.unscoped.get())
    DBTaskResult.objects.all().delete()
    recovery.resume_slices()
    before = DBTaskResult.objects.count()
    DBTaskResult.objects.update(status="RUNNING", started_at=timezone.now() + timedelta(hours=1))
    recovery.resume_slices()
    assert DBTaskResult.objects.filter(status="READY").count() == before


def test_a_clock_set_back_takes_no_import_from_a_worker_that_lives(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    Import.unscoped.update(state="running", lease="mine", heartbeat=timezone.now() + timedelta(hours=1))
    Heartbeat(str(job.pk)).beat()
    assert Import.unscoped.get().lease == "mine"


def test_an_import_that_was_begun_before_is_the_next_in_the_queue(db, folders, recording):
    dead = submit(default_project(), receive([recording], "a.jsonl"))
    DBTaskResult.objects.update(status="RUNNING")
    Import.unscoped.update(state="running", lease="dead", attempts=1, heartbeat=timezone.now() - timedelta(minutes=5))
    submit(default_project(), receive([recording + b"\n"], "b.jsonl"))
    recovery.recover()
    assert DBTaskResult.objects.ready().first().args_kwargs["args"][0] == str(dead.pk)


def test_a_worker_sweeps_what_killed_processes_left_when_it_starts_and_daily(db, folders, settings):
    assert worker.SWEEP_EVERY * worker.HEARTBEAT_EVERY == sweeping.DAY
    left = settings.INCOMING_DIR / "left"
    left.write_bytes(b"half a file")
    os.utime(left, times=(time.time() - sweeping.DAY,) * 2)
    Heartbeat().beat(sweep=True)
    assert not left.exists()
