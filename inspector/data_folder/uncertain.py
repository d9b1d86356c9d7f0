"""Bytes of a recording whose row may never be committed: noted before they are moved, settled when it is known.

A process that is killed in between leaves the note in the incoming folder, and the next sweep settles it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import Error, connection, transaction

from inspector.data_folder.durable import sync_folder
from inspector.models import Recording
from inspector.models.recordings import WAL

NOTE = "uncertain-"  # and the name of the bytes, and one of its own


def hold(*names: str) -> None:
    """Until the end of the transaction under way no other one brings or removes the bytes of these names: a project may
    be given a file at the moment at which another one lets go of it. To be called before a row is locked. One statement
    locks them all, in an order of its own, so that processes that hold the same ones wait for each other. SQLite has
    one writer anyway."""
    if connection.vendor == "postgresql":
        keys = sorted(int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True) for name in {*names})
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", [keys])


@contextmanager
def uncertain(*names: str) -> Iterator[None]:
    """Bytes of these names (Recording.path) that no row names after the block are removed, however it is left."""
    folder = Path(settings.INCOMING_DIR)
    notes = [folder / f"{NOTE}{name}-{uuid4().hex}" for name in names]
    for note in notes:
        note.touch(mode=0o600)
    sync_folder(folder)
    try:
        yield
    finally:
        with suppress(Error, OSError):  # a database or a disk that does not answer: then the next sweep settles it
            for note in notes:
                settle(note)


def settle(note: Path) -> None:
    """Remove the bytes that a note is about where no row names them, and the note. The database,
    which may be locked, is asked only where bytes were moved."""
    name = note.name.removeprefix(NOTE).rpartition("-")[0]
    path = Path(settings.RECORDINGS_DIR) / name[:2] / name
    log = path.with_name(name + WAL)
    if (path.exists() or log.exists()) and not is_named(name):
        with transaction.atomic():
            _wait_for_uploads()
            if not is_named(name):
                path.unlink(missing_ok=True)
                log.unlink(missing_ok=True)
    note.unlink(missing_ok=True)


def _wait_for_uploads() -> None:
    """Until the end of the transaction no other one is between its bytes and its row; SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {connection.ops.quote_name(Recording._meta.db_table)} IN SHARE MODE")


def is_named(name: str) -> bool:
    """Does a recording of any project have the bytes of this name."""
    return name in named_of({name})


def named_of(names: Collection[str]) -> set[str]:
    """Those of some names whose bytes a recording of any project has."""
    plain = Recording.unscoped.filter(sha256__in=names, wal_sha256="").values_list("sha256", flat=True)
    with_logs = Recording.unscoped.exclude(wal_sha256="").iterator()
    return {*plain, *(recording.path.name for recording in with_logs)} & set(names)
