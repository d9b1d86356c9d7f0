"""A backup taken in use restores to a state that was true, recordings included."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import tarfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from guard_core.recordings.formats import native
from inspector.data_folder import backup as backups
from inspector.models import Payload, Project, Recording
from tests.builders import model, session, user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stored(bring) -> list[Recording]:
    """Two imported recordings."""
    for number in range(2):
        bring(native.write(session(user(f"question {number}"), model("answer"))))
    return list(Recording.unscoped.order_by("sha256"))


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_every_recording_comes_back_byte_for_byte(stored, tmp_path):
    call_command("backup", str(tmp_path / "b.tar"), stdout=StringIO())
    folder = unpacked(tmp_path / "b.tar", tmp_path / "restored")
    for recording in stored:
        content = (folder / "recordings" / recording.sha256[:2] / recording.sha256).read_bytes()
        assert hashlib.sha256(content).hexdigest() == recording.sha256


def test_bytes_that_two_projects_share_are_in_it_once(stored, tmp_path):
    other = Project.objects.create(slug="other", name="Other")
    Recording.objects.of(other).create(sha256=stored[0].sha256, name="the same", size=stored[0].size)
    assert backups.backup(tmp_path / "b.tar")["recordings"] == 2
    with tarfile.open(tmp_path / "b.tar") as archive:
        names = archive.getnames()
    assert len(names) == len(set(names))


def test_the_database_is_whole_while_someone_writes(stored, tmp_path):
    if connection.vendor != "sqlite":
        dumped = backups.backup(tmp_path / "b.tar")
        assert dumped["recordings"] == 2
        return
    writer = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE inspector_recording SET name = 'half done'")
    backups.backup(tmp_path / "b.tar")
    writer.execute("ROLLBACK")
    writer.close()
    restored = sqlite3.connect(unpacked(tmp_path / "b.tar", tmp_path / "restored") / "inspector.sqlite3")
    assert restored.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert restored.execute("SELECT DISTINCT name FROM inspector_recording").fetchall() == [("recording.jsonl",)]
    assert restored.execute("SELECT count(*) FROM inspector_payload").fetchone()[0] == Payload.objects.count()
    restored.close()


def test_a_file_that_is_there_is_never_overwritten(stored, tmp_path):
    (tmp_path / "b.tar").write_text("mine")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(tmp_path / "b.tar"))
    assert (tmp_path / "b.tar").read_text() == "mine"


def test_a_failed_backup_leaves_nothing_and_says_why(stored, tmp_path):
    stored[0].path.unlink()
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "b.tar"))
    assert not list(tmp_path.glob("b.tar*"))


@pytest.mark.once
def test_a_backup_that_its_disk_cannot_hold_says_so(stored, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=True)
    try:
        with pytest.raises(CommandError, match=f"cannot be written: the disk of {tmp_path} is full"):
            call_command("backup", str(tmp_path / "b.tar"))
        assert not list(tmp_path.iterdir())
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_missing_pg_dump_is_told_in_words(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # where no program is
    with pytest.raises(backups.BackupFailed, match="postgresql-client"), backups._postgres(tmp_path):
        pass
