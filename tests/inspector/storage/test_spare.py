"""A thread that needs a connection takes one that another has given back, as if it were new."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.project.settings import database
from inspector.storage.sqlite3.base import DatabaseWrapper
from inspector.storage.sqlite3.spare import SPARES
from tests.inspector.storage.test_sqlite3 import DEFAULTS

Connect = Callable[[], DatabaseWrapper]


@pytest.fixture
def connect(tmp_path: Path, django_db_blocker: Any) -> Iterator[Connect]:
    """Connects to a database of its own, as a new thread does, while one connection may be spare."""
    made: list[DatabaseWrapper] = []

    def connect() -> DatabaseWrapper:
        made.append(DatabaseWrapper({**DEFAULTS, **database(""), "NAME": tmp_path / "ours.sqlite3"}))
        return made[-1]

    with django_db_blocker.unblock():
        SPARES.hold(1)
        yield connect
        SPARES.close()
        for wrapper in made:  # CPython 3.13 warns of connections that nobody closed
            wrapper.close()


def connected(connect: Connect) -> DatabaseWrapper:
    wrapper = connect()
    wrapper.ensure_connection()
    return wrapper


def rows(wrapper: DatabaseWrapper, sql: str) -> list[Any]:
    with wrapper.cursor() as cursor:
        return list(cursor.execute(sql).fetchall())


def given_back(connect: Connect) -> Any:
    """A connection that was used and given back, to a database with three rows."""
    wrapper = connected(connect)
    connection = wrapper.connection
    rows(wrapper, "CREATE TABLE t AS SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3")
    wrapper.close()
    return connection


def test_the_next_thread_takes_a_connection_that_was_given_back(connect):
    first = given_back(connect)
    second = connected(connect)
    assert second.connection is first
    assert rows(second, "SELECT count(*) FROM t") == [(3,)]
    third = connected(connect)
    assert third.connection is not first
    second.close()
    third.close()  # one is enough
    assert connected(connect).connection is first


def test_rows_that_were_not_read_do_not_hide_what_was_written_since(connect):
    first = given_back(connect)
    reader, writer = connected(connect), connected(connect)
    unread = reader.cursor()
    assert unread.execute("SELECT n FROM t").fetchone() == (1,)
    rows(writer, "INSERT INTO t VALUES (4)")
    reader.close()
    again = connected(connect)
    assert again.connection is first
    assert rows(again, "SELECT max(n) FROM t") == [(4,)]
    rows(again, "INSERT INTO t VALUES (5)")


def test_a_transaction_that_is_not_over_ends_with_its_connection(connect):
    first = given_back(connect)
    wrapper = connected(connect)
    rows(wrapper, "BEGIN IMMEDIATE")
    rows(wrapper, "INSERT INTO t VALUES (4)")
    wrapper.close()
    again = connected(connect)
    assert again.connection is not first
    assert rows(again, "SELECT max(n) FROM t") == [(3,)]


def test_a_connection_to_a_file_that_was_replaced_is_not_taken(connect, tmp_path):
    first = given_back(connect)
    os.replace(tmp_path / "ours.sqlite3", tmp_path / "old.sqlite3")
    wrapper = connected(connect)
    assert wrapper.connection is not first
    assert rows(wrapper, "SELECT name FROM sqlite_master") == []


def test_at_the_end_no_file_stays_beside_the_database(connect, tmp_path):
    given_back(connect)
    assert (tmp_path / "ours.sqlite3-wal").exists()
    SPARES.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ours.sqlite3"]
    given = connected(connect)
    given.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ours.sqlite3"]


def test_a_copy_of_the_process_leaves_the_connections_of_its_parent_alone(connect):
    given_back(connect)
    child = os.fork()
    if not child:
        os._exit(int(SPARES.take(str(connect().settings_dict["NAME"])) is not None))
    assert os.waitpid(child, 0)[1] == 0
