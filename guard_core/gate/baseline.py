"""A baseline: what went wrong before, by session, so that a gate fails only on what got worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from guard_core.errors import GuardError
from guard_core.gate.corpus import CaseResult

VERSION = 1


class Baseline(msgspec.Struct, frozen=True):
    """Counts by session and kind, as a file has them."""

    counts: dict[str, dict[str, int]]
    version: int = VERSION
    format: str = "compaction-inspector/gate"


def baseline_of(results: Iterable[CaseResult]) -> Baseline:
    """What these results have; a session without a result has none."""
    counts = {
        item.name: {kind: count for kind, count in item.counts.items() if count} for item in results if not item.problem
    }
    return Baseline(dict(sorted(counts.items())))


def read_baseline(path: Path) -> Baseline:
    """A baseline from its file. Raises GuardError."""
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise GuardError(f"{path}: {error.strerror or 'cannot be read'}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GuardError(f"{path} is not a baseline: {error}") from error
    if baseline.version != VERSION:
        raise GuardError(f"{path} is a baseline of version {baseline.version}; this program reads version {VERSION}")
    return baseline


def worse(result: CaseResult, kinds: Sequence[str], baseline: Baseline | None) -> dict[str, tuple[int, int]]:
    """The kinds on which a result fails: how often each occurs, and how often it did before (0 without a baseline)."""
    before = {} if baseline is None else baseline.counts.get(result.name, {})
    pairs = {kind: (result.counts.get(kind, 0), before.get(kind, 0)) for kind in kinds}
    return {kind: pair for kind, pair in pairs.items() if pair[0] > pair[1]}
