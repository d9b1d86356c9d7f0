"""What a killed worker was at is done by the next one; what it had locked is free within seconds.

PostgreSQL takes that back as soon as SQLite does, which releases it with the process. What is taken back when,
`tests/inspector/jobs/test_recovery.py` tries without processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guard_core.recordings.formats import native
from inspector.apps import NOTICE_THE_DEAD
from tests.big_sessions import big_session
from tests.guard_core.recordings.reading.test_zip_entries import archive
from tests.services.databases import fresh_postgres, query
from tests.services.server import ROOT, clean_environment, held_worker, running, stepped
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.long

PROMISE = 15_000  # milliseconds; with those until the lease has run out and an idle worker looks, fewer than 30 s
LOOK = "client_connection_check_interval"
# A worker as it is when it is killed: a row locked, PostgreSQL in the middle of a statement longer than the patience.
BUSY = """
import django; django.setup()
from django.db import connection, transaction
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("UPDATE locks SET name = 'locked'")
    cursor.execute("SELECT setting FROM pg_settings WHERE name = 'client_connection_check_interval'")
    print(cursor.fetchone()[0], flush=True)
    cursor.execute("SELECT pg_sleep(600)")
"""


@pytest.fixture
def url() -> Iterator[str]:
    """A PostgreSQL database with one row."""
    import psycopg

    with fresh_postgres() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE locks AS SELECT 'free' AS name")
        yield address


@pytest.mark.once
def test_what_a_killed_worker_had_locked_is_free_within_seconds(url, tmp_path):
    import psycopg

    settings = {"DATA_DIR": str(tmp_path), "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "inspector.project.settings"}
    environment = {**clean_environment(), **settings}
    with subprocess.Popen([sys.executable, "-c", BUSY], cwd=ROOT, env=environment, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        looked = int(worker.stdout.readline())
        os.kill(worker.pid, 9)
    assert looked == NOTICE_THE_DEAD[LOOK] < PROMISE  # milliseconds until PostgreSQL looks
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
        connection.execute("UPDATE locks SET name = 'taken back'")


def test_an_import_whose_worker_is_killed_is_read_by_the_next_one(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        worker = held_worker(server)
        server.send("long.jsonl", native.write(big_session(1_000, 20)))
        stepped(worker, lambda: query(tmp_path, "SELECT 1 FROM inspector_event LIMIT 1"))
        os.kill(worker, signal.SIGKILL)
        state = "SELECT state, attempts FROM inspector_import WHERE state <> 'received' AND attempts > 1"
        assert until(lambda: [row for row in query(tmp_path, state) if row[0] != "running"]) == [("done", 2)]
        whole = "SELECT count(*), sum(events), (SELECT count(*) FROM inspector_event) FROM inspector_session"
        ((sessions, events, rows),) = until(lambda: query(tmp_path, f"{whole} HAVING count(*) = 1"))
        assert (sessions, rows) == (1, events)
        assert worker not in server.workers()


def test_an_archive_whose_worker_is_killed_while_it_is_taken_apart_is_finished_by_the_next_one(tmp_path: Path) -> None:
    names = [f"a/{number}.jsonl" for number in range(12)]
    content = archive({name: native.write(big_session(20 + number, 1)) for number, name in enumerate(names)})
    members = "SELECT state, count(*) FROM inspector_import WHERE archive_id IS NOT NULL GROUP BY state"
    with running(tmp_path) as server:
        worker = held_worker(server)
        server.send("projects.zip", content)
        stepped(worker, lambda: query(tmp_path, members))
        ((_, added),) = query(tmp_path, members)
        os.kill(worker, signal.SIGKILL)
        whole = "SELECT state, attempts FROM inspector_import WHERE unpacks"
        assert until(lambda: [row for row in query(tmp_path, whole) if row[0] == "done"]) == [("done", 2)]
        until(lambda: query(tmp_path, members) == [("done", len(names))])
        assert added < len(names)
        sessions = "SELECT count(*), count(DISTINCT events), min(ordinal) FROM inspector_session WHERE deleted IS NULL"
        assert query(tmp_path, sessions) == [(len(names), len(names), 0)]
        assert query(tmp_path, "SELECT count(*) FROM inspector_recording") == [(len(names),)]
        assert not list((tmp_path / "incoming").glob("unpacked-*"))  # the next sweep settles notes of uploads
