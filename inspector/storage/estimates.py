"""Tokenizer counts of a session and how well its calls are predicted, as a job stores them and pages read them."""

from __future__ import annotations

from typing import Any

import msgspec
import zstandard

from guard_core.columns import Packed, pack_columns, unpack_columns
from guard_core.estimation.forecast import Forecast
from guard_core.estimation.measurement import Errors
from guard_core.ledger import Ints
from guard_core.packing import decode, encode
from inspector.models import Estimate, Session
from inspector.storage.byte_cache import ByteCache
from inspector.storage.compression import LEVEL

CACHE_BYTES = 40_000_000  # of counts in a process
COLUMNS = ("o200k", "cl100k", "chars4", "bytes4")
LONG_EVENTS = 20_000  # of a session for which the tokenizers make room: it is counted with one of them at a time


class Points(msgspec.Struct, frozen=True):
    """Calls of the scatter figure: the step, the recorded prompt tokens, the policy's heuristic estimate."""

    steps: list[int]
    recorded: list[int]
    heuristic: list[int]


class EstimationResult(msgspec.Struct, frozen=True):
    """How well a session's calls are predicted: by the engine from the past, by it from one another, by estimators."""

    forecast: Forecast = {}  # by how far ahead
    interpolated: Errors | None = None
    between: float | None = None  # share of the interpolated calls that lie between two known counts
    weighed: dict[str, Errors] = {}  # interpolated with each tokenizer's counts as weights instead of lexical tokens
    by_kind: dict[str, Errors] = {}
    by_method: dict[str, Errors] = {}
    stretches: Errors | None = None
    estimators: dict[str, dict[str, Errors]] = {}  # by name, by what it is given besides the text
    heuristic: Errors | None = None
    calibrated: Errors | None = None
    points: Points = Points([], [], [])
    error: str = ""


def progress(session: Session) -> int:
    """Events whose texts are counted; all of them once the counts can be shown."""
    state = Estimate.objects.in_session(session).filter(revision=session.revision).values_list("counted", flat=True)
    return (state.first() or 0) * session.events // max(1, to_count(session))


def to_count(session: Session) -> int:
    """The events to count, those of a long session twice: once for each tokenizer."""
    return session.events * (2 if session.events > LONG_EVENTS else 1)


def load_counts(session: Session) -> dict[str, Ints] | None:
    """Tokens of every event by each of COLUMNS; None while they are being counted."""
    stored = _stored(session, "tokenizer")
    return _cache.get((str(session.pk), session.revision), lambda: counts_of(stored())) if stored else None


def load_result(session: Session) -> EstimationResult | None:
    """The measured errors; None while they are being measured."""
    stored = _stored(session, "result")
    return decode(_plain(stored()), EstimationResult, "errors of estimators") if stored else None


def _stored(session: Session, name: str) -> Any:
    """A way to read a column of the session's estimate; None where it is not there yet."""
    stored = Estimate.objects.in_session(session).filter(revision=session.revision, **{f"{name}__isnull": False})
    return (lambda: stored.values_list(name, flat=True).get()) if stored.exists() else None


_cache: ByteCache[dict[str, Ints]] = ByteCache(
    CACHE_BYTES, lambda columns: sum(column.nbytes for column in columns.values())
)


def packed_counts(columns: dict[str, Ints]) -> bytes:
    """Counts as they are stored."""
    return _compressed(encode(pack_columns(columns, COLUMNS)))


def packed_result(result: EstimationResult) -> bytes:
    """Measured errors as they are stored."""
    return _compressed(encode(result))


def counts_of(stored: bytes | memoryview) -> dict[str, Ints]:
    """Tokens of every event by each of COLUMNS, from what `packed_counts` gave."""
    return unpack_columns(decode(_plain(stored), Packed, "tokenizer counts"))


def _compressed(data: bytes) -> bytes:
    return zstandard.compress(data, LEVEL)


def _plain(data: bytes | memoryview) -> bytes:
    return zstandard.decompress(bytes(data))
