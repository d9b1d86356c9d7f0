"""A backup in one file, taken while the server runs: the database as it was at one moment, and its recordings."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, connection, transaction

from guard_core import __version__
from inspector.data_folder.owner import CommandRefused
from inspector.models import Recording
from inspector.models.recordings import STREAM, stored_at
from inspector.project.trouble import DISK_FULL, trouble_of

Digests = tuple[str, str]  # of a recording, and of its write-ahead log or empty
CONTENTS, SQLITE, DUMP = "backup.json", "inspector.sqlite3", "inspector.dump"  # in the archive; the first comes last
ATTEMPTS = 3  # a recording that is deleted while the backup runs restarts it
NO_PG_DUMP = "pg_dump is not installed here; it comes with PostgreSQL's client programs (Debian: postgresql-client)."


class BackupFailed(CommandRefused):
    """Nothing was left at the target."""


def backup(target: Path) -> dict[str, Any]:
    """Write the backup; what is in it. It appears under its name only when it is complete. Raises BackupFailed."""
    if target.exists():
        raise BackupFailed(f"{target} already exists; choose another name.")
    unfinished = target.with_name(target.name + ".part")
    try:
        for attempt in range(ATTEMPTS):
            try:
                contents = _write(unfinished)
                break
            except FileNotFoundError:
                unfinished.unlink(missing_ok=True)
                if attempt == ATTEMPTS - 1:
                    raise
        os.replace(unfinished, target)
    except OSError as error:
        raise BackupFailed(f"The backup cannot be written: {error.strerror}: {error.filename or target}.") from error
    except (Error, sqlite3.Error) as error:
        if trouble_of(error) is DISK_FULL:  # a snapshot only reads the data folder
            raise BackupFailed(f"The backup cannot be written: the disk of {target.parent} is full.") from error
        raise BackupFailed(f"The database cannot be read ({' '.join(str(error).split())}).") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return contents


def _write(path: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as name:
        folder = Path(name)
        with _snapshot(folder) as (dump, recordings), path.open("xb") as file:
            os.chmod(path, 0o600)
            with dump.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            with tarfile.open(fileobj=file, mode="w") as archive:
                archive.add(dump, dump.name)
                sizes = [_add_recording(archive, digests) for digests in recordings]
                contents = {
                    "version": __version__,
                    "recordings": len(sizes),
                    "bytes": sum(sizes),
                    "database": dump.name,
                    "sha256": digest,
                }
                inventory = folder / CONTENTS
                inventory.write_text(json.dumps(contents, indent=1))
                archive.add(inventory, inventory.name)
            file.flush()
            os.fsync(file.fileno())
    return contents


def _add_recording(archive: tarfile.TarFile, digests: Digests) -> int:
    place, size = stored_at(*digests), 0
    for name in (place, f"{place}-wal") if digests[1] else (place,):
        stored = Path(settings.RECORDINGS_DIR) / name
        archive.add(stored, f"recordings/{name}")
        size += stored.stat().st_size
    return size


@contextmanager
def _snapshot(folder: Path) -> Iterator[tuple[Path, list[Digests]]]:
    """The database as one file, and the recordings that it names."""
    if connection.vendor == "postgresql":
        with _postgres(folder) as snapshot:
            yield snapshot
    else:
        yield _sqlite(folder)


def _sqlite(folder: Path) -> tuple[Path, list[Digests]]:
    """SQLite's own backup, over a connection of its own: it neither waits for a writer nor makes one wait."""
    path = folder / SQLITE
    source = sqlite3.connect(f"file:{connection.settings_dict['NAME']}?mode=ro", uri=True)
    copy = sqlite3.connect(path)
    try:
        source.backup(copy)
        if copy.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise BackupFailed(
                "The copy of the database is damaged, so the database itself may be, too: run PRAGMA integrity_check."
            )
        table = Recording._meta.db_table
        with_files = f"SELECT DISTINCT sha256, wal_sha256 FROM {table} WHERE sha256 NOT LIKE '{STREAM}%' ORDER BY 1, 2"
        rows = copy.execute(with_files).fetchall()
    finally:
        source.close()
        copy.close()
    return path, rows


@contextmanager
def _postgres(folder: Path) -> Iterator[tuple[Path, list[Digests]]]:
    """pg_dump and the list of recordings, in the same snapshot."""
    program = shutil.which("pg_dump")
    if program is None:
        raise BackupFailed(NO_PG_DUMP)
    path = folder / DUMP
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            snapshot = cursor.fetchone()[0]
        with_files = Recording.unscoped.exclude(sha256__startswith=STREAM)
        digests = with_files.order_by("sha256", "wal_sha256").values_list("sha256", "wal_sha256")
        recordings = list(digests.distinct())
        command = [program, "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={path}"]
        done = subprocess.run(command, env=_access(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupFailed(f"pg_dump failed: {' '.join(done.stderr.split())[:500]}")
    yield path, recordings


def load_dump(dump: Path) -> None:
    """Bring a dump into the PostgreSQL database, which is empty: all of it or nothing. Raises CommandRefused."""
    program = shutil.which("pg_restore")
    if program is None:
        raise CommandRefused(NO_PG_DUMP.replace("pg_dump", "pg_restore"))
    if connection.introspection.table_names():
        raise CommandRefused(
            "The database that DATABASE_URL names is not empty. Nothing was changed. Name an empty one."
        )
    database = str(connection.settings_dict["NAME"])
    command = [program, "--no-owner", "--exit-on-error", "--single-transaction", f"--dbname={database}", str(dump)]
    done = subprocess.run(command, env=_access(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandRefused(f"pg_restore failed: {' '.join(done.stderr.split())[:500]}. Nothing was changed.")


def _access() -> dict[str, str]:
    """How pg_dump finds the database; the password is not on a command line."""
    names = {"NAME": "PGDATABASE", "USER": "PGUSER", "PASSWORD": "PGPASSWORD", "HOST": "PGHOST", "PORT": "PGPORT"}
    given = {names[key]: str(value) for key, value in connection.settings_dict.items() if key in names and value}
    return {**os.environ, **given}
