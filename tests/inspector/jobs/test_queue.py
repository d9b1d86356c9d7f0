"""Jobs are queued by the name of their kind, and those that an earlier version has queued are still done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.jobs import kinds, queue, recovery
from inspector.models import Import, Session, default_project

KINDS = ["assess_sessions", "count_tokens", "import_recording", "index_texts", "play_gallery", "purge_deleted"]


def queued_by_an_earlier_version(kind: str, about: str) -> DBTaskResult:
    DBTaskResult.objects.all().delete()
    named = {"task_path": f"inspector.tasks.{kind}", "queue_name": "default", "backend_name": "default"}
    return DBTaskResult.objects.create(**named, args_kwargs={"args": [about], "kwargs": {}}, run_after=timezone.now())


def do(entry: DBTaskResult) -> None:
    """What a worker does with an entry."""
    entry.task.call(*entry.args_kwargs["args"])


def test_a_queued_job_is_done_by_the_function_of_its_kind(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    do(queue.entries("import_recording").get())
    assert Import.unscoped.get(pk=job.pk).state == "done"


def test_an_import_that_an_earlier_version_has_queued_is_read(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    do(queued_by_an_earlier_version("import_recording", str(job.pk)))
    assert Import.unscoped.get(pk=job.pk).state == "done"
    assert Session.unscoped.count() == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_an_earlier_version_is_known(kind, db):
    entry = queued_by_an_earlier_version(kind, queue.NO_ROW)
    assert queue.entries(kind).get() == entry
    do(entry)


def test_an_import_that_an_earlier_version_has_queued_is_not_queued_twice(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    queued_by_an_earlier_version("import_recording", str(job.pk))
    Import.unscoped.update(created=timezone.now() - timedelta(minutes=1))
    assert recovery.recover() == 0
    assert DBTaskResult.objects.count() == 1


def test_a_kind_that_nobody_does_is_named(db):
    with pytest.raises(queue.UnknownKind, match="dance"):
        queue.run("dance", "")


def test_two_functions_for_one_kind_are_refused():
    with pytest.raises(ValueError, match="purge_deleted"):
        queue.does("purge_deleted")(kinds.purge_deleted)


def test_a_clock_that_is_set_back_holds_no_job(db):
    hour, second = timedelta(hours=1), timedelta(seconds=1)
    for kind, wait in (("assess_sessions", second), ("purge_deleted", 24 * hour)):
        queue.enqueue(kind, "it", run_after=timezone.now() + hour + wait)  # by the clock as it was
    DBTaskResult.objects.update(enqueued_at=timezone.now() + hour)
    queue.enqueue("count_tokens", "it", run_after=timezone.now() + hour)
    recovery.resume_slices()
    assert [entry.queue_name for entry in DBTaskResult.objects.ready()] == ["assess_sessions"]
