"""Taking a data folder into use: who has it, whether its database is whole and of a known version, and its upgrade.

What is wrong is found before anything is changed. An upgrade of an SQLite database begins with a copy of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from inspector.data_folder.durable import copy_sqlite, reading, sync_folder
from inspector.data_folder.owner import CommandRefused, FolderLocks, in_use
from inspector.data_folder.restoring import finish_restoring
from inspector.data_folder.sweeping import sweep_alone
from inspector.data_folder.versions import is_outdated, refuse_newer

CHECKED_BYTES = 2**30  # of a database, checked page by page in 2 s; a larger one would keep the start waiting
COPIES = "backups"  # folder of the copies before upgrades
KEPT_COPIES = 3
COPY, UPGRADING = ".sqlite3", ".upgrading.sqlite3"  # how they end; the second until the upgrade is done
UNFINISHED = "unfinished"
UPGRADE_LOCK = 0x757067726164  # "upgrad": of the locks that programs agree upon in one PostgreSQL database
Applied = set[tuple[str, str]]  # migrations: app, name


def open_folder() -> FolderLocks:
    """Check the data folder, bring its database up to date and sweep it; its locks, shared. Raises CommandRefused."""
    locks = FolderLocks(Path(settings.DATA_DIR))
    try:
        if locks.take_alone():
            finish_restoring(locks.folder)
            check()
            upgrade()
            sweep_alone()
            locks.share()
        else:  # the process that uses the folder has checked it; nothing may change under it
            locks.share()
            refuse_newer(_folder(), MigrationRecorder(connection).applied_migrations())
            _upgrade_beside(locks.folder)
    except BaseException:
        connection.close()  # else SQLite's files beside the database stay: no search for garbage ends the connection
        locks.close()
        raise
    return locks


def check() -> None:
    """Raise CommandRefused where the database is damaged or of a newer version. Nothing in the folder changes."""
    if connection.vendor != "sqlite":
        refuse_newer(_folder(), MigrationRecorder(connection).applied_migrations())
        return
    path = database_path()
    if not path.exists() or not path.stat().st_size:
        _refuse_lost(path)
        return
    try:
        refuse_newer(_folder(), read_database(path))
    except sqlite3.DatabaseError as error:
        raise CommandRefused(f"The database {path} is damaged ({error}). Nothing was changed. {_remedy()}") from None


def _refuse_lost(database: Path) -> None:
    """Raise CommandRefused where recordings are there whose database is gone: a new one would be an empty list."""
    if any(Path(settings.RECORDINGS_DIR).glob("??/*")):
        raise CommandRefused(
            f"The data folder {settings.DATA_DIR} holds recordings, but its {database.name} is missing or empty. "
            f"Nothing was changed. {_remedy()} If it is in PostgreSQL, set DATABASE_URL; to start empty, choose "
            "another folder with DATA_DIR."
        )


def _folder() -> str:
    return f"The data folder {settings.DATA_DIR}"


def database_path() -> Path:
    """The SQLite database."""
    return Path(connection.settings_dict["NAME"])


def read_database(path: Path) -> Applied:
    """The migrations that an SQLite database has seen, after a look at its pages. Raises sqlite3.DatabaseError."""
    with reading(path) as database:
        if path.stat().st_size <= CHECKED_BYTES:
            (finding,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if finding != "ok":
                raise sqlite3.DatabaseError(" ".join(finding.split()))
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return set()
        return set(database.execute("SELECT app, name FROM django_migrations"))


def _upgrade_beside(folder: Path) -> None:
    """PostgreSQL is upgraded while workers of a team run, which may be of the version before until they are replaced.
    Raises CommandRefused on SQLite."""
    if connection.vendor == "sqlite" and is_outdated():
        raise CommandRefused(f"The database must be upgraded, while no other process uses it. {in_use(folder)}")
    upgrade()


def upgrade() -> None:
    """Apply what the database has not seen yet, with a copy before. Raises CommandRefused where that fails."""
    if is_outdated():
        with _one_at_a_time():
            _upgrade()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait until no other process upgrades this PostgreSQL database: servers with folders of their own may share it. Of
    an SQLite database the folder's lock sees to that."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [UPGRADE_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [UPGRADE_LOCK])


def _upgrade() -> None:
    if not is_outdated():  # another process has done it
        return
    copy = _copy_database()
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Exception as error:
        reason = " ".join(str(error).split())
        way_back = f"A copy of the database from before is {copy}. {restore_words(copy)}" if copy else ""
        raise CommandRefused(f"The database could not be upgraded ({reason}). {way_back}".strip()) from error
    if copy is not None:
        os.rename(copy, copy.with_name(copy.name.replace(UPGRADING, COPY)))
        for old in copies()[KEPT_COPIES:]:
            old.unlink()


def _copy_database() -> Path | None:
    """A copy of the SQLite database under the time and the last migration that it has seen; None of a new one.

    Where an upgrade is killed or fails half way, however often, the copy from before it stays the one.
    """
    applied = sorted(name for app, name in MigrationRecorder(connection).applied_migrations() if app == "inspector")
    if connection.vendor != "sqlite" or not applied:
        return None
    folder = Path(settings.DATA_DIR) / COPIES
    folder.mkdir(mode=0o700, exist_ok=True)
    begun = list(folder.glob(f"*{UPGRADING}"))
    for copy in begun:
        if not copy.name.endswith(f"-{applied[-1]}{UPGRADING}"):
            return copy
    path = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{applied[-1]}{UPGRADING}"
    unfinished = folder / UNFINISHED
    try:
        copy_sqlite(database_path(), unfinished)
        os.replace(unfinished, path)
        sync_folder(folder)
    except (OSError, sqlite3.Error) as error:
        unfinished.unlink(missing_ok=True)
        raise CommandRefused(
            f"The copy of the database that precedes an upgrade cannot be written to {folder} ({error}). Nothing was "
            "changed. Make room there."
        ) from error
    for copy in begun:
        if copy != path:
            copy.unlink()
    return path


def copies() -> list[Path]:
    """The copies from before upgrades, the newest first."""
    return sorted((Path(settings.DATA_DIR) / COPIES).glob(f"*{COPY}"), reverse=True)


def restore_words(file: object) -> str:
    """How a backup comes back."""
    return f"To restore it: {settings.COMMAND} restore {file} --replace"


def _remedy() -> str:
    newest = next(iter(copies()), None)
    if newest is None:
        return f"To restore a backup: {settings.COMMAND} restore FILE --replace"
    return f"The newest copy in the data folder is from before an upgrade. {restore_words(newest)}"
