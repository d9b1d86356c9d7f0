"""PostgreSQL takes back what a killed process had locked as soon as SQLite does, which releases it with the process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.services.databases import fresh_postgres
from tests.services.folders import manage
from tests.services.server import PATIENCE, ROOT, clean_environment

pytestmark = pytest.mark.once

PROMISE = 15.0  # seconds; with those until the lease has run out and an idle worker looks, fewer than 30
# A worker as it is when it is killed: its row locked, PostgreSQL in the middle of a long statement.
BUSY = """
import django; django.setup()
from django.db import connection, transaction
from inspector.models import Tag
with transaction.atomic(), connection.cursor() as cursor:
    Tag.unscoped.update(name="locked")
    print("locked", flush=True)
    cursor.execute("SELECT pg_sleep(600)")
"""


@pytest.fixture
def url(tmp_path) -> Iterator[str]:
    """A PostgreSQL database with our tables and one tag."""
    import psycopg

    with fresh_postgres() as address:
        done = manage(tmp_path, "migrate", "-v0", DATABASE_URL=address)
        assert done.returncode == 0, done.stderr
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("INSERT INTO inspector_tag (name, project_id) SELECT 'free', id FROM inspector_project")
        yield address


def test_what_a_killed_worker_had_locked_is_free_within_seconds(url, tmp_path):
    import psycopg

    settings = {"DATA_DIR": str(tmp_path), "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "inspector.project.settings"}
    environment = {**clean_environment(), **settings}
    with subprocess.Popen([sys.executable, "-c", BUSY], cwd=ROOT, env=environment, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"locked\n"
        os.kill(worker.pid, 9)
    killed = time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
        connection.execute("UPDATE inspector_tag SET name = 'taken back'")
    assert time.monotonic() - killed < PROMISE
