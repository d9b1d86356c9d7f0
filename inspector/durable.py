"""On the disk before it is acknowledged: files by fsync, and what SQLite commits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


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
