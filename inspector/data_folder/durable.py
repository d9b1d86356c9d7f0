"""Files and SQLite databases with care: on the disk before they are acknowledged, and read without a trace."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from django.db import connection

CHECKS = ".check-"  # how the folders begin in which a database is read


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database by SQLite's own means, to the disk, readable by its owner alone."""
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with (
        closing(sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
    with target.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """An SQLite database that no process uses, to be read; neither it nor its log changes.

    SQLite writes files next to a database that it reads, so it gets a second name of the file and a copy of its log.
    """
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=CHECKS) as folder:
        path = Path(folder, database.name)
        try:
            os.link(database, path)
        except OSError:  # a file system without links
            path = database
        log = database.with_name(database.name + "-wal")
        if log.exists() and path != database:
            shutil.copyfile(log, path.with_name(log.name))
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            yield connection


@contextmanager
def synced_commits() -> Iterator[None]:
    """Every commit in the block is on the disk when it returns, as PostgreSQL's always are.

    Elsewhere SQLite syncs at checkpoints (synchronous=NORMAL): a power cut may take back the last moments.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:  # SQLite does not change it in a transaction
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=FULL")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=NORMAL")
