"""Transactions that write, of many threads of one process at once.

SQLite has one writer. A thread that finds it taken looks again and again (`storage/sqlite3`), in no order, so that one
of many may wait while others come and go. Threads of one process therefore queue up here first, and each begins its
transaction as soon as the one before has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import cast

from django.conf import settings
from django.db import OperationalError, connection, transaction

from inspector.storage.sqlite3.base import DatabaseWrapper

_turn = Lock()


@contextmanager
def in_turn() -> Iterator[None]:
    """A transaction that begins when no other thread of this process is in one of these; within another transaction, or
    on PostgreSQL, it does not wait. Raises OperationalError after LOCK_SECONDS, as SQLite itself would: however many
    threads are before it, and whether one of this process or another has the lock."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    give_up = monotonic() + settings.LOCK_SECONDS
    if not _turn.acquire(timeout=settings.LOCK_SECONDS):
        raise OperationalError("database is locked")
    try:
        with waiting_at_most(max(0.0, give_up - monotonic())), transaction.atomic():
            yield
    finally:
        _turn.release()


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Statements of this thread wait for SQLite's lock so long at most."""
    database = cast(DatabaseWrapper, connection)
    patience, database.patience = database.patience, seconds
    try:
        yield
    finally:
        database.patience = patience
