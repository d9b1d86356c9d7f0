"""Imports of long files: something to see while they are read, and nothing left of one that did not end well."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from django.db import connection
from django_tasks_db.models import DBTaskResult

from guard_core import recordings
from guard_core.simulator.big_files import write_claude_code
from inspector.figures.first_look import picture
from inspector.ingest.growth import LEAST_STORED
from inspector.ingest.importing import PACE, ImportWatch
from inspector.ingest.reading import reader
from inspector.ingest.reading.messages import EventBatch
from inspector.ingest.submitting import ImportReport, cancel_import
from inspector.models import Import, Payload, Recording, Session, default_project
from inspector.storage import deleting, loading, search, texts
from inspector.storage.query_words import parse
from tests.recordings.seeds import SEEDS

pytestmark = pytest.mark.django_db


@pytest.fixture
def transcript() -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=300, size=1_200_000)
    return out.getvalue()


LOOKING = PACE._replace(look_first_from=0)


class Seen(ImportWatch):
    """What a page would show of the import when its file is read, and when more of it is stored."""

    when_read: list[str]
    when_stored: list[str]

    def read(self, events: int) -> None:
        self.when_read.append(Import.unscoped.get().first_look)
        super().read(events)

    def stored(self, count: int) -> None:
        self.when_stored.append(Import.unscoped.get().first_look)
        super().stored(count)


@pytest.fixture
def seen() -> type[Seen]:
    return type("SeenHere", (Seen,), {"when_read": [], "when_stored": []})


def test_a_chart_is_there_before_counting_begins(bring, transcript, seen):
    job = bring(transcript, pace=LOOKING, watching=seen)
    shown = picture(seen.when_read[0])
    assert (shown.look.calls, shown.look.compactions) == (300, Session.unscoped.get().compactions)
    assert len(shown.drawn.line.split()) == 300
    assert (job.state, job.first_look) == ("done", "")


def test_a_chart_is_there_of_what_is_no_json_lines_too(bring, seen):
    """It comes when the file is read, before its messages are counted and stored."""
    job = bring(SEEDS["opencode"], pace=LOOKING, watching=seen)
    shown = picture(seen.when_stored[0])
    assert (shown.look.calls, shown.look.peak, shown.look.whole) == (1, 100, True)
    assert (job.state, job.first_look) == ("done", "")


def test_a_small_file_is_not_looked_at_first(bring, transcript, seen):
    assert bring(transcript, watching=seen).state == "done"
    assert seen.when_read == [""]


class CancelledOnTheWay(ImportWatch):
    """Somebody cancels when 150 events are stored."""

    def stored(self, count: int) -> None:
        if self.counted == 150:
            assert Payload.objects.exists()
            cancel_import(self.job)
        super().stored(count)


def test_a_cancel_while_texts_are_stored_leaves_none(bring, transcript):
    pace = PACE._replace(batch=10, report_every=0.0)
    assert bring(transcript, pace=pace, watching=CancelledOnTheWay).state == "cancelled"
    assert not any(
        kind.unscoped.exists() if hasattr(kind, "unscoped") else kind.objects.exists()
        for kind in (Payload, Session, Recording)
    )
    assert indexed_entries() == 0


class CancelledWhenStored(ImportWatch):
    """Somebody cancels when the first events are stored."""

    def stored(self, count: int) -> None:
        super().stored(count)
        cancel_import(self.job)


def test_much_that_was_stored_is_taken_away_behind_other_jobs(bring, transcript):
    pace = PACE._replace(batch=50, report_every=0.0, purged_at_once=10)
    assert bring(transcript, pace=pace, watching=CancelledWhenStored).state == "cancelled"
    assert indexed_entries() > 0
    purges = DBTaskResult.objects.filter(queue_name="purge_deleted")
    assert purges.get().priority < 0
    slices = 0
    while Session.unscoped.exists():
        slices += 1
        purges.update(status="SUCCESSFUL")
        deleting.purge_slice(0.001)
    assert slices >= 1
    assert not purges.ready().exists()  # the last slice asks for no other
    assert not any(
        kind.unscoped.exists() if hasattr(kind, "unscoped") else kind.objects.exists()
        for kind in (Payload, Session, Recording)
    )
    assert indexed_entries() == 0


def indexed_entries() -> int:
    """Events that any word of the transcript is found in."""
    with connection.cursor() as cursor:
        words = "words MATCH 'step OR task'" if connection.vendor == "sqlite" else "true"
        cursor.execute(f"SELECT count(*) FROM inspector_text WHERE {words}")
        return int(cursor.fetchone()[0])


def test_what_a_dead_worker_left_is_taken_away(bring, transcript, folders):
    """It died while it stored; the import was cancelled before another worker took it."""
    job = bring(transcript[:200_000])
    before = indexed_entries()
    killed = Import.objects.of(default_project()).create(
        recording=job.recording, name="a.jsonl", state="running", lease="dead"
    )
    path = folders / "b.jsonl"
    path.write_bytes(transcript)
    with ThreadPoolExecutor(1) as pool:
        writer = texts.TextWriter(job.recording, pool)
        reader.read_here(
            reader.ReadingOptions(str(path), True), lambda told: isinstance(told, EventBatch) and writer.add(told)
        )
        writer.settle()
    assert Session.unscoped.filter(deleted=None).count() == 1
    assert indexed_entries() > before
    deleting.purge_unfinished()
    assert Session.unscoped.count() == 2  # it may still be at work
    cancel_import(killed)
    deleting.purge_unfinished()
    assert (Session.unscoped.count(), indexed_entries()) == (1, before)


def test_the_words_are_found_as_soon_as_the_session_is_there(bring, transcript):
    bring(transcript)
    session = Session.unscoped.get()
    assert session.indexed == session.events > 0
    assert len(search.hits(parse("task"), session, 0, 1_000)) == search.count(parse("task"), session) > 0


class OutOfMemory(ImportWatch):
    """There is no memory left when the sessions are stored."""

    def close(self, report: ImportReport) -> None:
        raise MemoryError


def test_a_failure_after_texts_were_stored_leaves_none(bring, transcript):
    assert bring(transcript, watching=OutOfMemory).state == "failed"
    assert not any(
        kind.unscoped.exists() if hasattr(kind, "unscoped") else kind.objects.exists()
        for kind in (Payload, Session, Recording)
    )


def test_texts_of_other_sessions_outlive_a_failure(bring, recording, transcript):
    bring(recording)
    texts = Payload.objects.count()
    assert bring(transcript, watching=OutOfMemory).state == "failed"
    assert Payload.objects.count() == texts > 0


# A file of any length is read by a process of its own.
AS_LONG = PACE._replace(own_process_from=1, batch=200)


def branched(long: int, back_to: int, words: int = 5) -> bytes:
    """Questions and answers of so many words; then the user went back."""
    lines, parent = [], None
    for number in [*range(long), *range(long, long + 50)]:
        if number == long:
            parent = f"a{back_to - 1}" if back_to else None
        pad = f"word{number} " * words
        for uuid, kind, more in (
            (f"u{number}", "user", {"content": f"question {number} {pad}"}),
            (f"a{number}", "assistant", {"id": f"m{number}", "model": "m", "usage": {"input_tokens": number + 1}}),
        ):
            message = {"role": kind, "content": [{"type": "text", "text": f"answer {number} {pad}"}], **more}
            line = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}
            lines.append(json.dumps(line) + "\n")
            parent = uuid
    return "".join(lines).encode()


@pytest.mark.long
@pytest.mark.parametrize("back_to", [0, 600])
def test_what_was_stored_of_a_branch_that_was_left_is_taken_back(back_to, bring):
    """That a branch which was left takes back what was told of it, `test_early_events.py` of the readers tries."""
    stored: list[int] = []

    class Again(ImportWatch):
        def take_back(self, count: int) -> None:
            stored.append(count)
            super().take_back(count)

    content = branched(1_500, back_to, words=150)
    assert len(content) > 2**22  # so that it is stored while it is read
    job = bring(content, watching=Again)
    assert (job.state, len(stored)) == ("done", 1)
    assert stored[0] > 500
    row = Session.unscoped.get(deleted=None)
    assert loading.load_session(row).events == recordings.read(content).sessions[0].events
    assert (row.events, row.indexed) == (2 * (back_to + 50),) * 2
    counts = {number: search.count(parse(f'"word{number}"'), row) for number in (3, back_to, 1_400, 1_500, 1_549)}
    assert counts == {3: 2 * (back_to > 3), back_to: 0, 1_400: 0, 1_500: 2, 1_549: 2}
    while deleting.unfinished().exists():
        deleting.purge_slice()
    deleting.purge_slice()
    assert Session.unscoped.count() == 1
    assert Payload.objects.count() == row.events


def test_a_long_session_that_has_grown_is_extended(bring):
    content = branched(1_400, 1_399)
    half = content[: content.index(b'"u1100"')].rsplit(b"\n", 1)[0] + b"\n"
    bring(half, pace=AS_LONG)
    first = Session.unscoped.get()
    assert first.events == 2_200 > LEAST_STORED
    assert bring(content, pace=AS_LONG).state == "done"
    session = Session.unscoped.get()
    assert session.pk == first.pk
    assert loading.load_session(session).events == recordings.read(content).sessions[0].events


@pytest.mark.long
def test_a_long_damaged_file_leaves_nothing(bring):
    """Much was stored when the damaged line came; that a failure leaves nothing, shorter ones show above."""
    job = bring(branched(1_500, 0, words=150) + b'{"type": nonsense}\n')
    assert (job.state, job.line) == ("failed", 3_101)
    while Session.unscoped.exists():
        deleting.purge_slice()
    assert not any(
        kind.unscoped.exists() if hasattr(kind, "unscoped") else kind.objects.exists()
        for kind in (Payload, Session, Recording)
    )
    assert indexed_entries() == 0
