"""A full disk, a locked database, a dead worker: said in words, nothing left behind, and over when they are over."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from tests.big_sessions import big_session
from tests.inspector.streamed import lines_of
from tests.services.server import Answer, Running, running, transcript
from tests.waiting import until

pytestmark = pytest.mark.once

DISK = 48 * 2**20  # bytes of the small disk
LARGE = 60 * 2**20  # bytes of a file that it cannot hold


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path_factory.mktemp("disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def small(disk: Path) -> Iterator[Running]:
    """A server whose data folder is on the small disk."""
    with running(disk / "data", MIN_FREE_BYTES=str(2**20), DATABASE_URL="") as started:
        started.send("first.json", transcript())
        yield started


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """The disk without a free byte."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


def left(server: Running) -> list[str]:
    return os.listdir(server.data_dir / "incoming")


def test_an_upload_that_the_disk_cannot_hold_is_answered_in_words(small: Running) -> None:
    answer = small.send("large.jsonl", os.urandom(LARGE))
    assert answer.status == 507
    assert "no space left" in answer.text
    assert "mistake" not in answer.text
    assert not left(small)


def test_an_upload_that_the_folder_for_temporary_files_cannot_hold_is_answered_in_words(
    disk: Path, tmp_path: Path
) -> None:
    with running(tmp_path, TMPDIR=str(disk), DATABASE_URL="") as server:
        answer = server.send("large.jsonl", os.urandom(LARGE))
        assert answer.status == 507
        assert "The disk is full" in answer.text
        assert server.get("/").status == 200


def test_a_small_upload_to_a_full_disk_is_answered_in_words_and_works_when_there_is_space(
    small: Running, disk: Path
) -> None:
    content = transcript(400)
    with filled(disk):
        page = small.upload("small.json", content)
        assert page.status == 507
        assert "The disk is full" in page.text
        answer = small.send("small.json", content)
        assert answer.status == 507
        assert "no space left" in json.loads(answer.body)["error"]
    assert small.send("small.json", content).status == 201
    assert not left(small)


def streamed(server: Running, name: str) -> tuple[Answer, Answer]:
    """A batch of a running agent and the span of another one, of texts that no page of the database has room for."""
    header, event = lines_of(big_session(1, 1))[:2]
    text = random.Random(name).randbytes(2**18).hex()
    event["events"]["parts"] = [{"type": "text", "text": text}]
    batch = {"first": 0, "lines": [header, event]}
    call = {"key": "gen_ai.input.messages", "value": {"stringValue": text}}
    span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": name, "attributes": [call]}
    spans = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]}
    headers = {"Content-Type": "application/json"}
    return (
        server.request("POST", f"/api/v1/sessions/{name}/events", json.dumps(batch), headers),
        server.request("POST", "/v1/traces", json.dumps(spans), headers),
    )


def test_agents_are_answered_in_words_by_a_full_disk_and_lose_nothing(small: Running, disk: Path) -> None:
    with filled(disk):
        batch, spans = streamed(small, "on-a-full-disk")
    assert (batch.status, spans.status, spans.headers["retry-after"]) == (
        507,
        503,
        "5",
    )  # exporters try again after 503
    assert all("disk is full" in json.loads(answer.body)["error"] for answer in (batch, spans))
    batch, spans = streamed(small, "on-a-full-disk")
    assert (spans.status, json.loads(batch.body)["stored"], json.loads(batch.body)["repeated"]) == (200, 2, 0)


def test_a_health_check_names_a_full_disk(small: Running, disk: Path) -> None:
    with filled(disk):
        answer = small.get("/healthz")
        assert answer.status == 503
        reason = next(reason for reason in json.loads(answer.body)["reasons"] if reason["about"] == "disk")
        assert "MIN_FREE_BYTES" in reason["reason"]
    until(lambda: small.get("/healthz").status == 200)


def test_pages_are_shown_while_the_disk_is_full(small: Running, disk: Path) -> None:
    with filled(disk):
        assert small.get("/").status == 200


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server on SQLite that waits for a lock for a second only."""
    with running(tmp_path_factory.mktemp("impatient"), LOCK_SECONDS="1", DATABASE_URL="") as started:
        started.send("first.json", transcript())
        yield started


@contextmanager
def locked(server: Running) -> Iterator[None]:
    """Another program holds the database."""
    path = server.data_dir / "inspector.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def session_of(server: Running) -> str:
    with closing(sqlite3.connect(server.data_dir / "inspector.sqlite3")) as database:
        (answer,) = until(lambda: database.execute("SELECT id FROM inspector_session WHERE deleted IS NULL").fetchone())
    return f"/s/{UUID(answer)}/"


@pytest.mark.parametrize("path", ["rename", "delete", "window"])
def test_a_change_while_the_database_is_locked_is_answered_in_words(impatient: Running, path: str) -> None:
    session = session_of(impatient)
    with locked(impatient):
        answer = impatient.post(f"{session}{path}", b"title=Another&window=64000")
    assert answer.status == 503
    assert answer.headers["retry-after"]
    assert "Another program holds the database" in answer.text
    assert impatient.get(session).status == 200


def test_tags_while_the_database_is_locked_are_answered_in_words(impatient: Running) -> None:
    session = session_of(impatient)
    with locked(impatient):
        answer = impatient.post("/sessions/bulk", f"action=tag&tags=slow&id={session[3:-1]}".encode())
    assert answer.status == 503
    assert "mistake" not in answer.text


def test_an_upload_while_the_database_is_locked_is_answered_in_words_and_leaves_nothing(impatient: Running) -> None:
    content = transcript()
    with locked(impatient):
        answer = impatient.send("locked.json", content)
        assert answer.status == 503
        assert "Nothing was changed" in json.loads(answer.body)["error"]
        assert not left(impatient)
    until(lambda: impatient.send("locked.json", content).status == 201)  # the worker may be the first to write


def test_agents_are_answered_in_words_while_the_database_is_locked_and_lose_nothing(impatient: Running) -> None:
    with locked(impatient):
        batch, spans = streamed(impatient, "while-it-is-locked")
    assert (batch.status, spans.status, spans.headers["retry-after"]) == (503, 503, "5")
    assert all("Another program holds the database" in json.loads(answer.body)["error"] for answer in (batch, spans))
    batch, spans = streamed(impatient, "while-it-is-locked")
    assert (spans.status, json.loads(batch.body)["stored"], json.loads(batch.body)["repeated"]) == (200, 2, 0)


def test_a_health_check_names_a_locked_database(impatient: Running) -> None:
    with locked(impatient):
        answer = until(lambda: (health := impatient.get("/healthz")).status == 503 and health)
    assert json.loads(answer.body)["reasons"][0] == {"about": "database", "reason": "The database is busy."}
    until(lambda: impatient.get("/healthz").status == 200)
