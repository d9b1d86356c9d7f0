"""Bringing a backup back: verified whole before anything is replaced, and never left half in place.

It is unpacked into a folder of its own in the data folder. Verified, that folder gets another name: from then on it is
put in place, and where that is killed, the next start of the program finishes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import connection

from guard_core.recordings.reading.file_bytes import SQLITE_MAGIC
from inspector.data_folder.backup import CONTENTS, DUMP, SQLITE, load_dump
from inspector.data_folder.durable import copy_sqlite, reading, sync_folder
from inspector.data_folder.owner import CommandRefused
from inspector.data_folder.versions import refuse_newer
from inspector.models.recordings import STREAM, WAL, stored_at

STAGING = ".restoring-"  # how the folder begins in which a backup is unpacked
VERIFIED = ".restored-"  # the same, once it only has to be put in place
ASIDE = "replaced-"  # what was there before
RECORDINGS = "recordings"
FILES = "|".join(map(re.escape, (CONTENTS, SQLITE, DUMP)))
MEMBER = re.compile(rf"{FILES}|{RECORDINGS}/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}({WAL})?")
CHUNK = 1 << 20  # bytes
NAMED = 5  # damaged things that a sentence names


@dataclass(frozen=True)
class Restored:
    """What came back. `lost`: names of recordings that the copy of a database names, and whose bytes are gone."""

    recordings: int
    size: int  # bytes of recordings
    lost: tuple[str, ...] = ()
    aside: Path | None = None


def restore(file: Path, *, replace: bool, only_check: bool = False) -> Restored:
    """Put a backup, or a copy of an SQLite database, in the place of what the data folder holds.

    The caller has the folder alone, unless it only checks. Raises CommandRefused, with nothing changed.
    """
    folder = Path(settings.DATA_DIR)
    if not (only_check or replace):
        _refuse_used(folder)
    with _unpacked(file, folder) as (staging, restored):
        if only_check:
            return restored
        for unpacked in (staging, *staging.rglob("*")):
            if unpacked.is_dir():
                sync_folder(unpacked)
        verified = folder / f"{VERIFIED}{datetime.now(UTC):%Y%m%d-%H%M%S}"
        os.rename(staging, verified)
        sync_folder(folder)
    if (dump := verified / DUMP).exists():
        try:
            load_dump(dump)
        except BaseException:
            shutil.rmtree(verified)
            raise
        dump.unlink()
    return Restored(restored.recordings, restored.size, restored.lost, put_in_place(verified))


def finish_restoring(folder: Path) -> None:
    """Finish what a process left that was killed while it put a verified backup in place."""
    for verified in folder.glob(f"{VERIFIED}*"):
        put_in_place(verified)


def put_in_place(verified: Path) -> Path | None:
    """Move what is there aside, and the verified backup to its place; where the old files are now. It can be killed at
    any moment and called again: what is still in the folder is still to be moved."""
    folder = verified.parent
    aside = folder / verified.name.replace(VERIFIED, ASIDE)
    for name in (RECORDINGS, SQLITE):
        if not (verified / name).exists():
            continue
        for old in (folder / f"{name}{ending}" for ending in ("-wal", "-shm", "")):
            if not old.exists():
                continue
            if old.is_dir() and not any(path.is_file() for path in old.rglob("*")):
                shutil.rmtree(old)
                continue
            aside.mkdir(mode=0o700, exist_ok=True)
            os.rename(old, aside / old.name)
        os.rename(verified / name, folder / name)
    shutil.rmtree(verified)
    sync_folder(folder)
    return aside if aside.exists() else None


def _refuse_used(folder: Path) -> None:
    used = any(path.is_file() for path in (folder / RECORDINGS).rglob("*"))
    database = folder / SQLITE
    if not used and database.exists():
        try:
            with reading(database) as opened:
                used = bool(_named_recordings(opened))
        except sqlite3.Error:  # damaged, or another program's
            used = True
    if used:
        raise CommandRefused(
            f"The data folder {folder} holds recordings already; nothing was changed. Choose an empty one with "
            "DATA_DIR, or move its contents aside with --replace."
        )


@contextmanager
def _unpacked(file: Path, folder: Path) -> Iterator[tuple[Path, Restored]]:
    """A verified backup in a folder of its own, which is gone after the block unless it has another name by then."""
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        with file.open("rb") as opened:
            is_copy = opened.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        (staging / RECORDINGS).mkdir(mode=0o700)
        yield staging, _take_copy(file, staging, folder) if is_copy else _take_archive(file, staging)
    except OSError as error:
        raise CommandRefused(
            f"The backup cannot be restored: {error.strerror}: {error.filename or folder}. Nothing was changed."
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


# ---- a backup


def _take_archive(file: Path, staging: Path) -> Restored:
    digests: dict[str, str] = {}
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if not (member.isreg() and MEMBER.fullmatch(member.name)) or member.name in digests:
                    raise CommandRefused(
                        f"{file} is not a backup of this program: it holds {member.name!r}. Nothing was changed."
                    )
                content = archive.extractfile(member)
                assert content is not None
                digests[member.name] = _write(content, staging / member.name)
    except tarfile.TarError as error:
        raise CommandRefused(f"{file} is not a backup, or a damaged one ({error}). Nothing was changed.") from None
    if CONTENTS not in digests:  # the last that a backup writes
        raise CommandRefused(f"{file} is cut off or damaged after {len(digests):,} files. Nothing was changed.")
    contents = _contents(file, staging / CONTENTS)
    _refuse_other_database(file, contents["database"])
    findings = [*_damaged_database(staging, contents, digests), *_damaged_recordings(digests)]
    if contents["database"] == SQLITE and not findings:
        with closing(sqlite3.connect(staging / SQLITE)) as opened:
            places = _named_recordings(opened)
        findings = [f"{name!r}: missing" for place, name in places.items() if f"{RECORDINGS}/{place}" not in digests]
    recordings = [name for name in digests if name.startswith(RECORDINGS) and not name.endswith(WAL)]
    if len(recordings) != contents["recordings"]:
        findings.append(f"{len(recordings):,} recordings in place of {contents['recordings']:,}")
    if findings:
        more = f" and {len(findings) - NAMED:,} more" if len(findings) > NAMED else ""
        raise CommandRefused(f"{file} is damaged: {'; '.join(findings[:NAMED])}{more}. Nothing was changed.")
    size = sum((staging / name).stat().st_size for name in digests if name.startswith(RECORDINGS))
    (staging / CONTENTS).unlink()
    return Restored(len(recordings), size)


def _write(content: IO[bytes], path: Path) -> str:
    """Write a file to the disk; its SHA-256."""
    digest = hashlib.sha256()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("xb") as file:
        os.chmod(path, 0o600)
        while chunk := content.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _contents(file: Path, path: Path) -> dict[str, Any]:
    try:
        contents = json.loads(path.read_text())
        if contents["database"] in (SQLITE, DUMP) and isinstance(contents["recordings"], int):
            return dict(contents)
    except (ValueError, KeyError, TypeError):
        pass
    raise CommandRefused(f"{file} is damaged: {CONTENTS} does not say what it holds. Nothing was changed.")


def _refuse_other_database(file: Path, name: str) -> None:
    if name == DUMP and connection.vendor != "postgresql":
        raise CommandRefused(
            f"{file} holds a PostgreSQL database: set DATABASE_URL to an empty one. Nothing was changed."
        )
    if name == SQLITE and connection.vendor != "sqlite":
        raise CommandRefused(
            f"{file} holds an SQLite database: restore it without DATABASE_URL, then use move_to_postgres. Nothing was "
            "changed."
        )


def _damaged_database(staging: Path, contents: dict[str, Any], digests: dict[str, str]) -> list[str]:
    name = contents["database"]
    if name not in digests:
        return [f"{name}: missing"]
    if contents.get("sha256", digests[name]) != digests[name]:  # backups of older versions do not have it
        return [f"{name}: not the bytes that were backed up"]
    return _unsound(staging / name) if name == SQLITE else []


def _unsound(database: Path) -> list[str]:
    """What is wrong with an SQLite database. Raises CommandRefused for one of a newer version."""
    try:
        with closing(sqlite3.connect(database)) as opened:
            (finding,) = opened.execute("PRAGMA integrity_check(1)").fetchone()
            if finding == "ok":
                refuse_newer("The backup", opened.execute("SELECT app, name FROM django_migrations"))
                return []
    except sqlite3.Error as error:
        finding = str(error)
    return [f"{SQLITE}: {' '.join(finding.split())}"]


def _damaged_recordings(digests: dict[str, str]) -> list[str]:
    """Recordings whose bytes are not those of their name."""
    findings = []
    for name, digest in digests.items():
        if name.startswith(RECORDINGS) and not name.endswith(WAL):
            expected = stored_at(digest, digests.get(name + WAL, ""))
            if f"{RECORDINGS}/{expected}" != name:
                findings.append(f"{name}: not the bytes that were uploaded")
    return findings


# ---- a copy of a database alone


def _take_copy(file: Path, staging: Path, folder: Path) -> Restored:
    """The copy, and those recordings of the folder that it names."""
    _refuse_other_database(file, SQLITE)
    try:
        copy_sqlite(file, staging / SQLITE)
        findings = _unsound(staging / SQLITE)
    except sqlite3.Error as error:
        findings = [str(error)]
    if findings:
        raise CommandRefused(f"{file} is damaged: {'; '.join(findings)}. Nothing was changed.")
    with closing(sqlite3.connect(staging / SQLITE)) as opened:
        places = _named_recordings(opened)
    sizes = {place: _link(folder / RECORDINGS / place, staging / RECORDINGS / place) for place in places}
    whole = [size for size in sizes.values() if size is not None]
    return Restored(len(whole), sum(whole), tuple(name for place, name in places.items() if sizes[place] is None))


def _link(stored: Path, target: Path) -> int | None:
    """Give a recording, with its log, a second name; its bytes, or None where it is lost: gone, or other bytes."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    names = [name for name in (stored.name, stored.name + WAL) if stored.with_name(name).is_file()]
    digests = []
    for name in names:
        with stored.with_name(name).open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if stored.name not in names or Path(stored_at(*digests)).name != stored.name:
        return None
    for name in names:
        os.link(stored.with_name(name), target.with_name(name))
    return sum(stored.with_name(name).stat().st_size for name in names)


def _named_recordings(database: sqlite3.Connection) -> dict[str, str]:
    """Place and name of the recordings that an SQLite database names."""
    columns = {row[1] for row in database.execute("PRAGMA table_info(inspector_recording)")}
    wal = "wal_sha256" if "wal_sha256" in columns else "''"
    rows = database.execute(
        f"SELECT sha256, {wal}, name FROM inspector_recording WHERE sha256 NOT LIKE '{STREAM}%' ORDER BY created"
    )
    return {stored_at(sha256, log): name for sha256, log, name in rows}
