"""What killed processes leave in the data folder goes; what is needed, or still coming in, stays."""

from __future__ import annotations

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import Error

from inspector.data_folder.durable import CHECKS
from inspector.data_folder.sweeping import sweep_alone, sweep_daily
from inspector.data_folder.uncertain import NOTE
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import Import, Recording, Session, default_project


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def alone(folders, settings) -> Path:
    settings.DATA_DIR = folders
    return folders


def test_a_folder_that_nobody_uses_keeps_nothing_that_was_coming_in(db, alone, settings):
    (settings.INCOMING_DIR / uuid4().hex).write_bytes(b"half a file")
    (settings.INCOMING_DIR / "reader-x").mkdir()
    (settings.INCOMING_DIR / "reader-x" / "unpacked").write_bytes(b"and its inside")
    (alone / f"{CHECKS}x").mkdir()
    (alone / f"{CHECKS}x" / "inspector.sqlite3").write_bytes(b"another name of the database")
    sweep_alone()
    assert not files(alone)
    assert not list(alone.glob(f"{CHECKS}*"))


def test_a_folder_in_use_keeps_what_is_coming_in(db, folders, settings):
    (settings.INCOMING_DIR / "now").write_bytes(b"half a file")
    old = settings.INCOMING_DIR / "old"
    old.write_bytes(b"of a process that was killed")
    os.utime(old, times=(time.time() - 90_000,) * 2)
    sweep_daily()
    assert [path.name for path in settings.INCOMING_DIR.iterdir()] == ["now"]


def test_bytes_of_an_upload_that_was_killed_before_its_commit_are_removed(alone, bring, recording, settings):
    stored_path = bring(recording).recording.path
    left = settings.RECORDINGS_DIR / "00" / ("0" * 64)
    left.parent.mkdir(exist_ok=True)
    for path in (left, left.with_name(left.name + "-wal")):
        path.write_bytes(b"of a commit that never came")
    for path in (left, stored_path):
        (settings.INCOMING_DIR / f"{NOTE}{path.name}-{uuid4().hex}").touch()
    sweep_alone()
    assert files(alone) == [stored_path]


def test_bytes_of_another_database_stay_where_it_was_taken_away(alone, db, settings):
    foreign = settings.RECORDINGS_DIR / "00" / ("0" * 64)
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_bytes(b"of a database that somebody moved")
    sweep_alone()
    assert files(alone) == [foreign]


def test_an_upload_whose_rows_cannot_be_stored_leaves_no_bytes(db, folders, recording):
    with pytest.raises((OverflowError, Error)):
        submit(default_project(), receive([recording], "a.jsonl"), window=2**70)  # no database takes such a number
    assert not files(folders)


def test_bytes_of_a_database_and_its_log_stay(db, folders, settings):
    received = receive([b"database"], "state.db")._replace(wal=receive([b"log"], "state.db-wal"))
    submit(default_project(), received)
    sweep_daily()
    assert len(files(settings.RECORDINGS_DIR)) == 2


def test_a_recording_whose_deletion_was_killed_half_way_goes_with_its_bytes(bring, recording, settings):
    bring(recording)
    Session.unscoped.all().delete()  # and then the process died
    sweep_daily()
    assert not Recording.unscoped.exists()
    assert not files(settings.RECORDINGS_DIR)


def test_a_recording_that_waits_to_be_read_stays(db, folders, recording, settings):
    submit(default_project(), receive([recording], "a.jsonl"))
    sweep_daily()
    assert Import.unscoped.get().recording.path.read_bytes() == recording
