"""A database for every data folder: SQLite inside of it, or one in the PostgreSQL that the suite was given."""

from __future__ import annotations

import atexit
import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest

from tests.plugins.neighbours import find_postgres, redis_of

ROOT = Path(__file__).parents[2]
DATABASE = "inspector.sqlite3"  # in a data folder
THIS_PROCESS = uuid4().hex[:12]  # in the names of its databases: its number may be that of one that left some behind
_made: set[str] = set()


def neighbours_of(data_dir: Path) -> dict[str, str]:
    """Environment of a server with this data folder: nothing on SQLite, else its PostgreSQL database and Redis.

    A second start with the same folder meets the same database.
    """
    base = os.environ.get("TEST_DATABASE_URL", "").rpartition("/")[0]
    if not base:
        return {}
    name = f"inspector_{THIS_PROCESS}_{hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]}"
    if name not in _made:
        _create(base, name, _migrated(base))
    return {"DATABASE_URL": f"{base}/{name}", "REDIS_URL": redis_of(os.environ.get("PYTEST_XDIST_WORKER", ""))}


@cache
def _migrated(base: str) -> str:
    """The name of a database with all tables, made once for all tests of this process: others are copies of it."""
    atexit.register(_drop_all, base)
    name = f"inspector_{THIS_PROCESS}_migrated"
    _create(base, name)
    with TemporaryDirectory(prefix="inspector-migrated-") as folder:
        environment = {**os.environ, "DATABASE_URL": f"{base}/{name}", "DATA_DIR": folder}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    return name


@contextmanager
def fresh_postgres() -> Iterator[str]:
    """The address of an empty PostgreSQL database, whatever the suite runs on; gone after the block."""
    import psycopg

    server = find_postgres()
    if not server:
        pytest.skip("no PostgreSQL answers on this machine")
    base, name = server.rpartition("/")[0], f"inspector_fresh_{uuid4().hex[:12]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{base}/{name}"
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def query(data_dir: Path, statement: str) -> list[tuple[Any, ...]]:
    """What is in the database of a running server, read beside it."""
    if url := neighbours_of(data_dir).get("DATABASE_URL"):
        import psycopg

        with psycopg.connect(url) as connection:
            return connection.execute(statement).fetchall()
    address = f"file:{data_dir / DATABASE}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=20)) as connection:
        return connection.execute(statement).fetchall()


def is_free(data_dir: Path) -> bool:
    """Can a running server write to its database. On PostgreSQL no one who writes keeps others from it."""
    if neighbours_of(data_dir).get("DATABASE_URL"):
        return True
    if not (data_dir / DATABASE).exists():
        return True
    with closing(sqlite3.connect(data_dir / DATABASE, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def _create(base: str, name: str, template: str = "template1") -> None:
    _administer(base, f"CREATE DATABASE {name} TEMPLATE {template}")
    _made.add(name)


def _administer(base: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(statement)


def _drop_all(base: str) -> None:
    for name in _made:
        with suppress(Exception):  # the end of the process is not a place to fail at
            _administer(base, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
