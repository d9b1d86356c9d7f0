"""Imports of long files: something to see while they are read, and nothing left of one that did not end well."""

from __future__ import annotations

from io import BytesIO

import pytest
from django.db import connection
from django_tasks_db.models import DBTaskResult

from guard_core import recordings
from guard_core.simulator.big_files import write_claude_code
from inspector import convert, texts
from inspector.figures.first_look import picture
from inspector.models import Import, Payload, Recording, Session
from inspector.query_words import parse
from inspector.services import deleting, importing, search
from inspector.services.importing import cancel_import
from inspector.tasks import purge_deleted

pytestmark = pytest.mark.django_db


@pytest.fixture
def transcript() -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=300, size=1_200_000)
    return out.getvalue()


@pytest.fixture
def looks_first(monkeypatch):
    monkeypatch.setattr(importing, "LOOK_FIRST_FROM", 0)


def seen_while_counting(monkeypatch) -> list[str]:
    """What a page would show of the import while its events are counted."""
    seen: list[str] = []
    store = importing.store_texts

    def watched(*args, **options):
        seen.append(Import.objects.get().first_look)
        return store(*args, **options)

    monkeypatch.setattr(importing, "store_texts", watched)
    return seen


def test_a_chart_is_there_before_counting_begins(bring, transcript, looks_first, monkeypatch):
    seen = seen_while_counting(monkeypatch)
    job = bring(transcript)
    shown = picture(seen[0])
    assert (shown.look.calls, shown.look.compactions) == (300, Session.objects.get().compactions)
    assert len(shown.drawn.line.split()) == 300
    assert (job.state, job.first_look) == ("done", "")


def test_a_small_file_is_not_looked_at_first(bring, transcript, monkeypatch):
    seen = seen_while_counting(monkeypatch)
    assert bring(transcript).state == "done"
    assert seen == [""]


def test_a_cancel_while_texts_are_stored_leaves_none(bring, transcript, monkeypatch):
    monkeypatch.setattr(texts, "BATCH", 10)
    monkeypatch.setattr(importing, "REPORT_EVERY", 0.0)
    stored = importing.Watch.stored

    def cancelled_on_the_way(watch, count):
        if watch.counted == 150:
            assert Payload.objects.exists()
            cancel_import(watch.job)
        stored(watch, count)

    monkeypatch.setattr(importing.Watch, "stored", cancelled_on_the_way)
    assert bring(transcript).state == "cancelled"
    assert not any(kind.objects.exists() for kind in (Payload, Session, Recording))
    assert indexed_entries() == 0


def test_much_that_was_stored_is_taken_away_behind_other_jobs(bring, transcript, monkeypatch):
    monkeypatch.setattr(texts, "BATCH", 50)
    monkeypatch.setattr(importing, "REPORT_EVERY", 0.0)
    monkeypatch.setattr(importing, "PURGED_AT_ONCE", 10)
    stored = importing.Watch.stored

    def cancelled_on_the_way(watch, count):
        stored(watch, count)
        cancel_import(watch.job)

    monkeypatch.setattr(importing.Watch, "stored", cancelled_on_the_way)
    assert bring(transcript).state == "cancelled"
    assert indexed_entries() > 0
    purges = DBTaskResult.objects.filter(task_path=purge_deleted.module_path)
    assert purges.get().priority < 0
    monkeypatch.setattr(deleting, "SLICE_SECONDS", 0.001)
    slices = 0
    while Session.objects.exists():
        slices += 1
        purges.update(status="SUCCESSFUL")
        deleting.purge_slice()
    assert slices >= 1
    assert not purges.ready().exists()  # the last slice asks for no other
    assert not any(kind.objects.exists() for kind in (Payload, Session, Recording))
    assert indexed_entries() == 0


def indexed_entries() -> int:
    """Events that any word of the transcript is found in."""
    with connection.cursor() as cursor:
        words = "words MATCH 'step OR task'" if connection.vendor == "sqlite" else "true"
        cursor.execute(f"SELECT count(*) FROM inspector_text WHERE {words}")
        return int(cursor.fetchone()[0])


def test_what_a_dead_worker_left_is_taken_away(bring, transcript, monkeypatch):
    """It died while it stored; the import was cancelled before another worker took it."""
    job = bring(transcript[:200_000])
    before = indexed_entries()
    killed = Import.objects.create(recording=job.recording, name="a.jsonl", state="running", lease="dead")
    row = texts.begin(job.recording)
    texts.store_texts(recordings.read(transcript).sessions[0].events, row=row)
    assert Session.objects.filter(deleted=None).count() == 1
    assert indexed_entries() > before
    deleting.purge_unfinished()
    assert Session.objects.count() == 2  # it may still be at work
    cancel_import(killed)
    deleting.purge_unfinished()
    assert (Session.objects.count(), indexed_entries()) == (1, before)


def test_the_words_are_found_as_soon_as_the_session_is_there(bring, transcript):
    bring(transcript)
    session = Session.objects.get()
    assert session.indexed == session.events > 0
    assert len(search.hits(parse("task"), session, 0, 1_000)) == search.count(parse("task"), session) > 0


def test_a_failure_after_texts_were_stored_leaves_none(bring, transcript, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(convert, "store_session", full)
    assert bring(transcript).state == "failed"
    assert not any(kind.objects.exists() for kind in (Payload, Session, Recording))


def test_texts_of_other_sessions_outlive_a_failure(bring, recording, transcript, monkeypatch):
    bring(recording)
    texts = Payload.objects.count()
    monkeypatch.setattr(convert, "store_session", lambda *_, **__: 1 / 0)
    assert bring(transcript).state == "failed"
    assert Payload.objects.count() == texts > 0
