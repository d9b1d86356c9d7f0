"""Statements wait for the one writer of SQLite, and find a short gap between its transactions."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from inspector.project.settings import database
from inspector.storage.sqlite3 import base
from inspector.storage.sqlite3.base import DatabaseWrapper

DEFAULTS = {"TIME_ZONE": None, "AUTOCOMMIT": True, "CONN_HEALTH_CHECKS": False, "USER": "", "PASSWORD": "", "HOST": ""}


@pytest.fixture
def ours(tmp_path: Path, django_db_blocker: Any) -> Iterator[DatabaseWrapper]:
    """A connection to a database of its own."""
    wrapper = DatabaseWrapper({**DEFAULTS, **database(""), "NAME": tmp_path / "ours.sqlite3"})
    with django_db_blocker.unblock():
        with wrapper.cursor() as cursor:
            cursor.execute("CREATE TABLE t (n INTEGER)")
        yield wrapper
        wrapper.close()


@pytest.fixture
def other(ours: DatabaseWrapper) -> Iterator[sqlite3.Connection]:
    """Another connection, which writes."""
    connection = sqlite3.connect(ours.settings_dict["NAME"], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch, other: sqlite3.Connection) -> list[float]:
    """How long each pause was; in the third one the other connection ends its transaction."""
    seconds: list[float] = []

    def sleep(pause: float) -> None:
        seconds.append(pause)
        if len(seconds) == 3:
            other.execute("COMMIT")

    monkeypatch.setattr(base, "sleep", sleep)
    return seconds


def begin(ours: DatabaseWrapper) -> None:
    ours._start_transaction_under_autocommit()
    ours.connection.rollback()


def write(ours: DatabaseWrapper) -> None:
    with ours.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (%s)", [1])


def write_many(ours: DatabaseWrapper) -> None:
    with ours.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s)", iter([[1], [2]]))


@pytest.mark.parametrize("step", [begin, write, write_many])
def test_who_waits_looks_every_two_milliseconds_at_least(ours, pauses, step):
    step(ours)
    assert len(pauses) == 3
    assert max(pauses) <= 0.002


def test_rows_are_written_once_however_often_they_were_tried(ours, pauses):
    write_many(ours)
    with ours.cursor() as cursor:
        assert cursor.execute("SELECT n FROM t").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("step", [begin, write, write_many])
def test_without_patience_a_lock_is_an_error(ours, other, step):
    ours.patience = 0.0
    with pytest.raises((OperationalError, sqlite3.OperationalError), match="database is locked"):
        step(ours)


def test_an_old_snapshot_never_gets_the_lock_and_does_not_wait_for_it(ours, other, monkeypatch):
    monkeypatch.setattr(base, "sleep", lambda pause: pytest.fail("waits"))
    with ours.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        cursor.execute("SELECT n FROM t").fetchall()
        other.execute("INSERT INTO t VALUES (5)")
        other.execute("COMMIT")
        with pytest.raises(OperationalError):
            cursor.execute("INSERT INTO t VALUES (6)")
        cursor.execute("ROLLBACK")


def test_errors_that_no_lock_brings_are_raised_at_once(ours, monkeypatch):
    monkeypatch.setattr(base, "sleep", lambda pause: pytest.fail("waits"))
    with ours.cursor() as cursor, pytest.raises(OperationalError, match="no such table"):
        cursor.execute("SELECT n FROM nowhere")


def test_the_inspector_runs_on_it():
    connection = connections["default"]
    assert isinstance(connection, DatabaseWrapper) is (connection.vendor == "sqlite")


def test_a_connection_that_is_used_for_long_keeps_nothing_of_the_cursors_that_are_gone(ours: DatabaseWrapper) -> None:
    ours.ensure_connection()
    for _ in range(2_000):
        with ours.cursor() as cursor:
            cursor.execute("SELECT 1")
    kept = [len(value) for value in gc.get_referents(ours.connection) if isinstance(value, list)]
    assert kept
    assert max(kept) < 500
