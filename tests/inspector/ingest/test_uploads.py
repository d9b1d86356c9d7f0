"""Receiving files: limits, names, the same bytes twice."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from guard_core.errors import LimitExceeded, RecordingError
from inspector.ingest.companions import add
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import Received, receive, safe_name, take
from inspector.models import Recording, default_project
from tests.waiting import PATIENCE

MEANWHILE = 1.0  # seconds that the second upload is given; on a slow machine less is tried


def test_bytes_are_hashed_while_they_are_copied(folders):
    received = receive([b"ab", b"c"], "x.jsonl")
    assert received.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert received.path.read_bytes() == b"abc"
    assert received.size == 3


def test_nothing_at_all_is_refused(folders):
    with pytest.raises(RecordingError, match="empty"):
        receive([], "x.jsonl")
    assert not list(folders.rglob("*.*"))


def test_too_much_is_refused_with_the_limit_and_its_setting(folders, settings):
    settings.MAX_UPLOAD_BYTES = 10
    with pytest.raises(LimitExceeded, match=r"10 bytes.*MAX_UPLOAD_BYTES"):
        receive([b"12345", b"678901"], "x.jsonl")
    assert not [path for path in folders.rglob("*") if path.is_file()]


def test_an_upload_that_breaks_off_leaves_no_file(folders):
    def broken():
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        receive(broken(), "x.jsonl")
    assert not [path for path in folders.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("session.jsonl", "session.jsonl"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\log.json", "log.json"),
        ("a\x00b\r\nc.json", "a_b_c.json"),
        ("\u202egnp.jsonl", "_gnp.jsonl"),
        ('<img src="x">.json', "_img src=_x_.json"),
        ("...", "recording"),
        ("", "recording"),
    ],
)
def test_a_name_is_made_safe_to_show_and_to_offer(given, shown):
    assert safe_name(given) == shown


def test_a_long_name_keeps_its_ending():
    name = safe_name("n" * 500 + ".jsonl")
    assert len(name) <= 120
    assert name.endswith(".jsonl")


@pytest.fixture
def synced(monkeypatch) -> list[int]:
    """Numbers of the files and folders that were put on the disk, as they were."""
    numbers: list[int] = []
    real = os.fsync

    def fsync(file):
        numbers.append(os.fstat(file if isinstance(file, int) else file.fileno()).st_ino)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return numbers


def of_a_form(content: bytes) -> Received:
    file = TemporaryUploadedFile("a.jsonl", "text/plain", len(content), None)
    file.write(content)
    file.sha256 = hashlib.sha256(content).hexdigest()
    with file:
        return take(file, "a.jsonl")


@pytest.mark.parametrize("taken", [lambda content: receive([content], "a.jsonl"), of_a_form], ids=["bytes", "form"])
def test_bytes_and_their_names_are_on_the_disk_before_an_import_is_acknowledged(
    taken, db, folders, recording, synced, settings
):
    job = add(default_project(), taken(recording))
    path = job.recording.path
    needed = [path, path.parent, settings.RECORDINGS_DIR]
    assert [place for place in needed if place.stat().st_ino not in synced] == []


@pytest.mark.django_db(transaction=True)
def test_the_row_of_an_upload_is_on_the_disk_before_it_is_acknowledged(folders, recording):
    with CaptureQueriesContext(connection) as queries:
        add(default_project(), receive([recording], "a.jsonl"))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("on",)
        return
    statements = [query["sql"] for query in queries]
    first, last = statements.index("PRAGMA synchronous=FULL"), statements.index("PRAGMA synchronous=NORMAL")
    written = [number for number, statement in enumerate(statements) if statement.startswith("INSERT")]
    assert first < min(written) <= max(written) < last


def test_a_file_of_a_form_has_one_name_when_it_is_taken(folders, settings):
    settings.FILE_UPLOAD_TEMP_DIR = str(settings.INCOMING_DIR)
    received = of_a_form(b"content")
    assert received.path.stat().st_nlink == 1
    assert list(settings.INCOMING_DIR.iterdir()) == [received.path]


@pytest.mark.django_db(transaction=True)
def test_two_uploads_at_once_do_not_both_take_the_last_room_of_a_quota(folders):
    project = default_project()
    project.quota_bytes = 150
    project.save()

    def bring(content: bytes) -> None:
        try:
            submit(project, receive([content], "b.jsonl"))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            submit(project, receive([b"a" * 100], "a.jsonl"))
            second = threads.submit(bring, b"b" * 100)
            wait([second], MEANWHILE)
        with pytest.raises(LimitExceeded, match="exceed its quota of 150"):
            second.result(PATIENCE)
    assert Recording.unscoped.get().name == "a.jsonl"
