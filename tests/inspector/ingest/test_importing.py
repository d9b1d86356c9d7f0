"""Imports: all of a file or nothing, told in words, never twice, never for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from django.db import connection
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from guard_core.ledger import Ledger
from guard_core.recordings.formats.native.format import write
from inspector.ingest.importing import BYTES_MISSING, NO_WORKER, ImportWatch, run_import
from inspector.ingest.submitting import IMPORTS, ImportReport, cancel_import, start_import, submit
from inspector.ingest.uploads import receive
from inspector.jobs import recovery
from inspector.jobs.leased import MAX_ATTEMPTS
from inspector.models import Event, Import, Payload, Recording, Session, default_project
from inspector.storage.loading import load_ledger, load_session
from tests.guard_core.outcomes.cast import counted

pytestmark = pytest.mark.django_db

BROKEN = b'{"not": "closed"\n'


def damaged(recording: bytes) -> bytes:
    """The recording with its third line broken."""
    lines = recording.splitlines(keepends=True)
    return b"".join([*lines[:2], BROKEN, *lines[3:]])


def stored_files(folders: Path) -> list[Path]:
    return [path for path in folders.rglob("*") if path.is_file()]


def test_what_was_imported_is_what_was_recorded(bring, recording, agent_session):
    job = bring(recording)
    row = Session.unscoped.get()
    assert job.state == "done"
    assert load_session(row).events == agent_session.events
    assert (row.title, row.agent, row.model, row.window) == ("Staging", "helper", "gpt-4o", 200_000)
    assert (row.events, row.calls, row.tool_calls, row.tool_results, row.turns) == (4, 2, 1, 1, 1)


def test_what_is_counted_while_it_is_imported_is_what_the_recording_has_times_included(bring):
    session = counted((20_000, 21_000, 22_000))
    bring(write(session))
    ledger = load_ledger(Session.unscoped.get())
    assert ledger.to_bytes() == Ledger.of(session).to_bytes()
    assert (ledger.events["time_ms"] > 0).all()


def test_text_of_a_model_that_is_known_only_at_the_end_is_counted_by_its_tokenizer_times_included(bring):
    session = counted((20_000, 21_000, 22_000))
    session = msgspec.structs.replace(
        session, calls=tuple(msgspec.structs.replace(call, model="gpt-5.4") for call in session.calls)
    )
    bring(write(session))
    ledger = load_ledger(Session.unscoped.get())
    assert ledger.to_bytes() == Ledger.of(session).to_bytes()
    assert (ledger.events["tokenizer_tokens"] > 0).all()


def test_the_bytes_are_kept_as_they_came(bring, recording):
    job = bring(recording)
    assert job.recording.path.read_bytes() == recording
    assert job.recording.size == len(recording)


def test_the_report_counts_what_was_read(bring, recording):
    report = msgspec.json.decode(bring(recording).report, type=ImportReport)
    assert report.facts["messages"] == 4
    assert (report.steps, report.reported) == (2, 2)
    assert report.problem_count == 0
    assert report.window.value == 200_000


def test_a_strict_import_of_a_damaged_file_keeps_nothing(bring, recording, folders):
    job = bring(damaged(recording))
    assert (job.state, job.line) == ("failed", 3)
    assert "JSON" in job.message
    assert not Session.unscoped.exists()
    assert not Recording.unscoped.exists()
    assert not stored_files(folders)


def test_a_lenient_import_keeps_the_rest_and_names_the_line(bring, recording):
    job = bring(damaged(recording), strict=False)
    report = msgspec.json.decode(job.report, type=ImportReport)
    assert job.state == "done"
    assert report.problem_count >= 1
    assert report.problems[0].line == 3
    assert Session.unscoped.get().events >= 3


def test_a_failed_file_can_be_imported_leniently_later(bring, recording):
    assert bring(damaged(recording)).state == "failed"
    assert bring(damaged(recording), strict=False).state == "done"


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    "content",
    [
        b"hello, this is not a session",
        b"\xff\xfe{\x00}\x00",
        b"[1, 2, 3]",
        b'{"a": ',
        b"\x00" * 100,
        b"PK\x03\x04junk",
        b"{}",
    ],
    ids=["words", "UTF-16", "numbers", "truncated", "zeros", "archive", "empty object"],
)
@pytest.mark.parametrize("strict", [True, False])
def test_what_is_no_session_is_refused_in_a_sentence(content, strict, bring, folders):
    job = bring(content, strict=strict)
    assert job.state == "failed"
    assert job.message
    assert "Traceback" not in job.message
    assert not stored_files(folders)


def test_the_same_file_again_is_the_same_import(bring, recording, folders):
    first = bring(recording)
    again = submit(default_project(), receive([recording], "other name.jsonl"))
    assert again == first
    assert Session.unscoped.count() == 1
    assert len(stored_files(folders)) == 1


def test_the_same_file_again_brings_back_a_deleted_session(bring, recording):
    bring(recording)
    Session.unscoped.update(deleted=timezone.now())
    submit(default_project(), receive([recording], "recording.jsonl"))
    assert Session.unscoped.filter(deleted=None).count() == 1


def test_while_it_is_read_the_same_file_joins_the_import(db, folders, recording):
    first = submit(default_project(), receive([recording], "a.jsonl"))
    assert submit(default_project(), receive([recording], "b.jsonl")) == first
    assert DBTaskResult.objects.count() == 1


def test_another_window_reads_the_file_again(bring, recording):
    bring(recording)
    bring(recording, window=8_000)
    row = Session.unscoped.get()
    assert (row.window, row.window_source) == (8_000, "user")


def test_reading_a_file_again_replaces_its_sessions(bring, recording):
    job = bring(recording)
    run_import(str(start_import(job.recording).pk))
    assert Session.unscoped.count() == 1
    assert Event.unscoped.count() == 4


def test_a_text_that_is_said_twice_is_stored_once(bring, recording):
    bring(recording)
    before = Payload.objects.count()
    bring(b"\n" + recording, "the same with one more byte.jsonl")
    assert Payload.objects.count() == before
    assert Session.unscoped.count() == 2


def test_a_cancelled_import_ends_at_once_and_keeps_nothing(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    cancel_import(job)
    run_import(str(job.pk))
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Session.unscoped.exists()
    assert not stored_files(folders)


class Interrupted(ImportWatch):
    """Something happens in the transaction that stores the sessions, when they are stored and not yet there."""

    happens: Callable[[Import], object]

    def close(self, report: ImportReport) -> None:
        assert Session.unscoped.filter(deleted=None).exists()
        type(self).happens(self.job)
        super().close(report)


def test_cancel_while_storing_leaves_nothing(bring, recording):
    class Cancelled(Interrupted):
        happens = cancel_import

    assert bring(recording, watching=Cancelled).state == "cancelled"
    assert not Session.unscoped.exists()


def test_an_import_is_run_by_one_worker_only(bring, recording):
    job = bring(recording)
    run_import(str(job.pk))
    assert Session.unscoped.count() == 1
    assert Import.unscoped.get().attempts == 1


def test_an_import_whose_worker_died_is_queued_again(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    died(job, attempts=1)
    assert IMPORTS.recover() == 1
    run_import(str(job.pk))
    assert Session.unscoped.count() == 1
    assert DBTaskResult.objects.count() == 2


def test_an_import_that_kills_its_worker_fails_in_the_end(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    died(job, attempts=MAX_ATTEMPTS)
    IMPORTS.recover()
    job.refresh_from_db()
    assert job.state == "failed"
    assert "worker died" in job.message
    assert not stored_files(folders)


def test_a_worker_that_still_reports_is_left_alone(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    Import.unscoped.update(state="running", heartbeat=timezone.now(), lease="alive")
    assert IMPORTS.recover() == 0
    job.refresh_from_db()
    assert job.lease == "alive"


def test_a_worker_that_lost_its_lease_stores_nothing(bring, recording):
    class TakenOver(Interrupted):
        @staticmethod
        def happens(job: Import) -> None:
            Import.unscoped.update(lease="another worker")

    bring(recording, watching=TakenOver)
    assert not Session.unscoped.exists()


def test_a_broken_off_import_is_handed_back(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    died(job, attempts=1)
    recovery.hand_back(str(job.pk))
    run_import(str(job.pk))
    assert Import.unscoped.get().attempts == 1
    assert Session.unscoped.count() == 1


def test_a_mistake_of_ours_ends_the_import_and_is_logged(bring, folders, recording, caplog):
    class Mistaken(Interrupted):
        @staticmethod
        def happens(job: Import) -> None:
            job.total / 0

    job = bring(recording, watching=Mistaken)
    assert job.state == "failed"
    assert "ZeroDivisionError" in caplog.text
    assert "ZeroDivisionError" not in job.message
    assert not stored_files(folders)


def test_a_file_in_another_data_folder_waits_for_a_worker_that_has_it(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    DBTaskResult.objects.all().delete()  # a worker takes it
    Import.objects.row(job).update(created=timezone.now() - timedelta(days=1))  # that worker was busy, or down
    place = job.recording.path
    hidden = place.rename(place.with_suffix(".elsewhere"))
    run_import(str(job.pk))
    job.refresh_from_db()
    if connection.vendor == "sqlite":  # whose servers and workers share one folder: it is gone
        assert (job.state, job.message) == ("failed", BYTES_MISSING)
        return
    IMPORTS.take_up()
    job.refresh_from_db()
    assert (job.state, job.phase, job.attempts, ready()) == ("received", "elsewhere", 0, 0)
    hidden.rename(place)
    IMPORTS.take_up()
    assert ready() == 1
    run_import(str(job.pk))
    assert Session.unscoped.count() == 1


def test_a_file_that_no_worker_has_for_a_week_fails_and_says_why(db, folders, recording):
    job = submit(default_project(), receive([recording], "a.jsonl"))
    job.recording.path.unlink()
    Import.objects.row(job).update(created=timezone.now() - timedelta(days=8))
    run_import(str(job.pk))
    job.refresh_from_db()
    assert job.state == "failed"
    assert job.message == (BYTES_MISSING if connection.vendor == "sqlite" else NO_WORKER)
    assert not Recording.unscoped.exists()


def ready() -> int:
    """Imports that a worker would take now."""
    return DBTaskResult.objects.ready().filter(queue_name="import_recording").count()


def died(job: Import, attempts: int) -> None:
    """A worker took the import and has said nothing since."""
    long_ago = timezone.now() - timedelta(minutes=5)
    Import.unscoped.filter(pk=job.pk).update(state="running", lease="gone", heartbeat=long_ago, attempts=attempts)
