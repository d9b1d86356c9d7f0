"""Results of long replays, in files of the data folder: what took minutes once is read in seconds, after a restart too.

A file is named after everything that its content depends on: the stored session, the window in use, the settings and
the engine. It begins with the digest of the rest; one that is damaged counts as none, and the replay runs again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import numpy as np
import zstandard
from django.conf import settings

from guard_core.errors import GuardError
from guard_core.findings import Finding
from guard_core.packing import decode, encode
from guard_core.trace import COMMON_COLUMNS, Column, CompactionRecord, Head, Trace
from inspector.models import Session, SessionData
from inspector.models.sessions import ENGINE
from inspector.replays.choice import Choice
from inspector.storage import chunks, explanations, loading

log = logging.getLogger(__name__)
T = TypeVar("T", bound=msgspec.Struct)

FOLDER = "replays"  # in the data folder; in it one folder a session
MOST_BYTES = 200_000_000  # of all files; 40,000 compactions take about 2 MB
MOST_SEGMENTS = 500_000  # of the views of a replay, which are written as a whole: about 25 MB before compression
DIGEST_BYTES = hashlib.sha256().digest_size
ZSTD_LEVEL = 3
_SUFFIX, _UNFINISHED = ".replay", ".part"


class ReplayResult(msgspec.Struct, frozen=True):
    """A replay and what was found in it and in the recording."""

    policy: str
    settings: dict[str, Any]
    engine: str
    window: int
    columns: dict[str, bytes]  # little-endian int64, or float64 for the real ones
    declared: tuple[Column, ...]
    heads: tuple[Head, ...]
    compactions: tuple[CompactionRecord, ...]
    notes: tuple[str, ...]
    recorded: tuple[Finding, ...]
    replayed: tuple[Finding, ...]

    @property
    def trace(self) -> Trace:
        """The replay; what the policy would remember for a next step is not stored."""
        kinds = {item.name: _dtype(item) for item in (*COMMON_COLUMNS, *self.declared)}
        columns = {name: np.frombuffer(data, dtype=kinds[name]) for name, data in self.columns.items()}
        return Trace(
            self.policy,
            self.settings,
            self.engine,
            self.window,
            columns,
            self.compactions,
            self.notes,
            declared=self.declared,
            heads=self.heads,
        )


def result_of(trace: Trace, recorded: tuple[Finding, ...], replayed: tuple[Finding, ...]) -> ReplayResult:
    """What is stored of a replay: its columns in their least types, its views as heads, its findings."""
    columns = {
        item.name: np.ascontiguousarray(trace.columns[item.name], _dtype(item)).tobytes() for item in trace.all_columns
    }
    about = (trace.policy, trace.settings, trace.engine_version, trace.window)
    return ReplayResult(
        *about, columns, trace.declared, trace.heads, trace.compactions, trace.notes, recorded, replayed
    )


def is_storable(trace: Trace, most: int = MOST_SEGMENTS) -> bool:
    """Have the views of a replay no more than `most` segments together. Those of a policy that changes its list at
    every step share what they have in common in memory, and not in a file."""
    segments = sum(len(head.view) for head in trace.heads)
    segments += sum(len(view) for item in trace.compactions for view in (item.before, item.after, item.carried))
    return segments <= most


def place_of(row: Session, choice: Choice, what: Sequence[str] = ()) -> Path:
    """The file of the result of a session under a choice, whether it is there or not. `what` is computed beside or in
    place of a replay."""
    stored = SessionData.objects.in_session(row).values_list("ledger", "head").get()
    parts = (*stored, row.requests or b"", *chunks.digests(row.pk))
    session = [hashlib.sha256(bytes(part)).hexdigest() for part in parts]
    window = msgspec.structs.asdict(loading.window_in_use(row))
    basis = explanations.basis_of(row)
    name = hashlib.sha256(msgspec.json.encode([ENGINE, session, window, basis, choice, what], order="deterministic"))
    return _folder() / str(row.pk) / f"{name.hexdigest()}{_SUFFIX}"


def has_any(row: Session) -> bool:
    """Has anything been stored that was computed of a session."""
    return (_folder() / str(row.pk)).is_dir()


def load(place: Path, kind: type[T]) -> T | None:
    """The result that is stored here; None where there is none that can be read."""
    try:
        data = place.read_bytes()
        os.utime(place)  # used just now: the others go first
    except OSError:
        return None
    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        log.warning("the stored replay %s is damaged; it is replayed again", place.name)
        return None
    try:
        result = decode(zstandard.decompress(body), kind, "replay")
    except (GuardError, zstandard.ZstdError):
        log.warning("the stored replay %s has another form; it is replayed again", place.name)
        return None
    return result


def store(place: Path, result: msgspec.Struct) -> None:
    """Store a result, and drop those that were not used for longest. A disk that is full costs the next look its speed,
    and nothing else."""
    body = zstandard.compress(encode(result), ZSTD_LEVEL)
    unfinished = place.with_suffix(f".{os.getpid()}{_UNFINISHED}")
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.write_bytes(hashlib.sha256(body).digest() + body)
        os.replace(unfinished, place)
        _limit(MOST_BYTES)
    except OSError as error:
        log.warning("the result of a long replay could not be stored: %s", error)
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def drop(session_id: UUID) -> None:
    """Remove all results of a session."""
    shutil.rmtree(_folder() / str(session_id), ignore_errors=True)


def sweep() -> None:
    """Remove the results of sessions that are gone."""
    folders = {path.name: path for path in _folder().glob("*") if path.is_dir()}
    present = {str(key) for key in Session.unscoped.values_list("pk", flat=True)} if folders else set()
    for name in folders.keys() - present:
        shutil.rmtree(folders[name], ignore_errors=True)
    with suppress(OSError):
        _limit(MOST_BYTES)


def _limit(most: int) -> None:
    """Remove the files unused for longest, until the others have at most this many bytes."""
    files = [(path.stat().st_mtime, path.stat().st_size, path) for path in _folder().glob("*/*")]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size


def _folder() -> Path:
    return Path(settings.DATA_DIR) / FOLDER


def _dtype(column: Column) -> str:
    return "<f8" if column.real else "<i8"
