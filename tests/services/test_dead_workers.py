"""PostgreSQL takes back what a killed process had locked as soon as SQLite does, which releases it with the process.

That what it was at is taken back, `tests/inspector/jobs/test_recovery.py` tries without processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from inspector.apps import NOTICE_THE_DEAD
from tests.services.databases import fresh_postgres
from tests.services.server import ROOT, clean_environment
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.once, pytest.mark.long]

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
