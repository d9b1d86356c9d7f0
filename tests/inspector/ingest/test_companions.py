"""Files that come together: a database with its write-ahead log, and what lies beside transcripts."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from inspector.data_folder import backup
from inspector.ingest.companions import ImportUnit, add, arranged
from inspector.ingest.importing import run_import
from inspector.ingest.uploads import receive
from inspector.models import Import, Recording, Session, default_project

JSON = {"Accept": "application/json"}


@pytest.fixture
def client(working_client):
    return working_client


class Agent:
    """A database of messages that is still being written: its newest rows are in the log beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA wal_autocheckpoint=0",
            "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TEXT, updated_at TEXT)",
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TEXT)",
            "INSERT INTO agent_sessions VALUES ('one', '2026-01-01', '2026-01-01')",
        ):
            self.connection.execute(statement)
        self.say("user", "which branch is on staging?")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def say(self, role: str, text: str) -> None:
        message = json.dumps({"role": role, "content": text})
        statement = "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES ('one', ?, '2026-01-01')"
        self.connection.execute(statement, [message])

    @property
    def files(self) -> tuple[bytes, bytes]:
        return self.path.read_bytes(), Path(f"{self.path}-wal").read_bytes()


@pytest.fixture
def agent(tmp_path):
    writer = Agent(tmp_path / "state.db")
    writer.say("assistant", "release/2.4")
    yield writer
    writer.connection.close()


def send(client, *files: tuple[str, bytes], folder: str = ""):
    """An upload as the page sends it."""
    data = {"file": [SimpleUploadedFile(name.rpartition("/")[2], content) for name, content in files]}
    if folder:
        data["path"] = [f"{folder}/{name}" for name, _ in files]
    return client.post("/recordings/", data, headers=JSON)


@pytest.mark.parametrize("order", [1, -1])
def test_a_database_comes_with_its_log_in_any_order(order):
    files = [("", "state.db"), ("", "state.db-wal")][::order]
    (unit,) = arranged(files)
    assert (files[unit.file][1], files[unit.wal][1], unit.aside) == ("state.db", "state.db-wal", "")


def test_logs_of_other_folders_are_not_taken():
    units = arranged([("a", "state.db"), ("b", "state.db-wal"), ("b", "state.db")])
    assert units == [ImportUnit(0), ImportUnit(2, wal=1)]


@pytest.mark.parametrize(
    ("folder", "name", "word"),
    [
        ("p/0ccf/tool-results", "b7x.txt", "Claude Code"),
        ("p/0ccf/subagents", "agent-a1.meta.json", "sub-agent"),
        ("p", "state.db-shm", "memory"),
        ("", "state.db-wal", "together with state.db"),
        ("opencode/storage/part/msg_1", "prt_1.json", "as a whole"),
    ],
)
def test_what_is_no_session_is_left_aside_with_a_reason(folder, name, word):
    (unit,) = arranged([(folder, name)])
    assert word in unit.aside


def test_a_session_put_together_of_a_storage_folder_is_a_session():
    assert arranged([("", "ses_1.json")]) == [ImportUnit(0)]


def test_a_transcript_of_a_sub_agent_is_a_session():
    assert arranged([("p/0ccf/subagents", "agent-a1.jsonl")]) == [ImportUnit(0)]


@pytest.mark.django_db
def test_rows_in_the_log_are_read_and_both_files_are_kept(client, folders, agent):
    database, log = agent.files
    answer = send(client, ("state.db", database), ("state.db-wal", log)).json()
    assert [item["state"] for item in answer["imports"]] == ["done"]
    assert Session.unscoped.get().events == 2
    raw = answer["imports"][0]["raw"]
    assert b"".join(client.get(raw).streaming_content) == database
    response = client.get(f"{raw}?wal")
    assert b"".join(response.streaming_content) == log
    assert response["Content-Disposition"] == 'attachment; filename="state.db-wal"'
    assert "write-ahead log (-wal)" in client.get(answer["imports"][0]["report"]).content.decode().lower()


@pytest.mark.django_db
def test_a_database_whose_log_is_missing_says_so(client, folders, agent):
    answer = send(client, ("state.db", agent.files[0])).json()
    assert Session.unscoped.get().events == 1
    text = client.get(answer["imports"][0]["report"]).content.decode()
    assert "was not uploaded" in text
    assert client.get(answer["imports"][0]["raw"] + "?wal").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_log_that_comes_later_extends_the_session(client, folders, agent):
    database, log = agent.files
    send(client, ("state.db", database))
    first = Session.unscoped.get().pk
    send(client, ("state.db", database), ("state.db-wal", log))
    assert (Session.unscoped.get().pk, Session.unscoped.get().events) == (first, 2)
    agent.say("user", "and production?")
    send(client, ("state.db", database), ("state.db-wal", agent.files[1]))
    assert (Session.unscoped.get().pk, Session.unscoped.get().events) == (first, 3)
    names = sorted(path.name for path in folders.rglob("*") if path.is_file() and len(path.name) >= 64)
    assert names == sorted([Recording.unscoped.get().path.name, Recording.unscoped.get().wal_path.name])


@pytest.mark.django_db
def test_the_same_two_files_or_the_database_alone_open_what_is_there(client, folders, agent):
    database, log = agent.files
    send(client, ("state.db", database), ("state.db-wal", log))
    send(client, ("state.db", database), ("state.db-wal", log))
    send(client, ("state.db", database))
    assert Recording.unscoped.count() == 1
    assert Session.unscoped.get().events == 2


@pytest.mark.django_db
def test_another_log_of_the_same_database_is_another_recording(client, folders, agent, tmp_path):
    database, log = agent.files
    shutil.copy(agent.path, tmp_path / "twin.db")
    twin = sqlite3.connect(tmp_path / "twin.db", isolation_level=None)
    twin.execute("UPDATE agent_sessions SET updated_at = 'later'")
    other = Path(tmp_path / "twin.db-wal").read_bytes()
    twin.close()
    send(client, ("state.db", database), ("state.db-wal", log))
    send(client, ("state.db", database), ("state.db-wal", other))
    assert {hashlib.sha256(item.wal_path.read_bytes()).hexdigest() for item in Recording.unscoped.all()} == {
        hashlib.sha256(content).hexdigest() for content in (log, other)
    }


@pytest.mark.django_db
def test_deleting_takes_both_files(folders, agent):
    database, log = agent.files
    job = add(default_project(), receive([database], "state.db")._replace(wal=receive([log], "state.db-wal")))
    run_import(str(job.pk))
    recording = Recording.unscoped.get()
    Session.unscoped.all().delete()
    uploads_left = [path for path in folders.rglob("*") if path.is_file() and path.name.startswith(recording.path.name)]
    assert len(uploads_left) == 2
    from inspector.ingest.uploads import drop_unused

    assert drop_unused(recording.pk)
    assert not recording.path.exists()
    assert not recording.wal_path.exists()


@pytest.mark.django_db(transaction=True)
def test_a_backup_holds_both_files(folders, agent, tmp_path):
    database, log = agent.files
    job = add(default_project(), receive([database], "state.db")._replace(wal=receive([log], "state.db-wal")))
    run_import(str(job.pk))
    backup.backup(tmp_path / "b.tar")
    recording = Recording.unscoped.get()
    with tarfile.open(tmp_path / "b.tar") as tar:
        place = f"recordings/{recording.path.parent.name}/{recording.path.name}"
        assert tar.extractfile(place).read() == database
        assert tar.extractfile(f"{place}-wal").read() == log


@pytest.mark.django_db
def test_what_a_folder_holds_beside_sessions_is_no_error(client, folders, recording):
    answer = send(
        client,
        ("run.jsonl", recording),
        ("tool-results/a.txt", b"total 3\n"),
        ("notes.md", b"buy milk"),
        ("empty.json", b""),
        folder="project",
    )
    assert answer.status_code == 201
    document = answer.json()
    assert [(item["name"], item["state"], item["aside"]) for item in document["imports"]] == [
        ("run.jsonl", "done", False),
        ("notes.md", "failed", True),
    ]
    assert [item["name"] for item in document["aside"]] == ["a.txt"]
    page = client.get("/").content.decode()
    assert "skipped: notes.md" in page
    assert "badge-error" not in page
    assert set(Import.unscoped.values_list("folder", flat=True)) == {"project"}


@pytest.mark.django_db
def test_the_same_file_named_by_itself_is_refused(client, folders):
    assert send(client, ("notes.md", b"buy milk")).status_code == 422
    answer = send(client, ("state.db-wal", b"7\x7f\x06\x82"))
    assert answer.status_code == 400
    assert "together with state.db" in answer.json()["error"]


@pytest.mark.django_db
def test_one_file_that_is_too_large_does_not_stop_the_others(client, folders, settings, recording):
    settings.MAX_UPLOAD_BYTES = len(recording)
    document = send(client, ("big.jsonl", recording * 2), ("run.jsonl", recording), folder="project").json()
    assert [item["state"] for item in document["imports"]] == ["done"]
    assert "MAX_UPLOAD_BYTES" in document["aside"][0]["reason"]


@pytest.mark.django_db
def test_a_log_whose_earlier_part_is_in_another_data_folder_is_read_as_another_recording(client, folders, agent):
    database, log = agent.files
    send(client, ("state.db", database), ("state.db-wal", log))
    Recording.unscoped.get().wal_path.unlink()
    agent.say("user", "and production?")
    assert send(client, ("state.db", database), ("state.db-wal", agent.files[1])).status_code == 201
    assert (Recording.unscoped.count(), Session.unscoped.get(deleted=None).events) == (2, 3)
