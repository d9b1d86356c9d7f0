"""An assertion for tests: what may happen when a session is replayed under a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guard_core import cli
from guard_core.errors import SettingError
from guard_core.gate.judging import KINDS, Under, judge
from guard_core.policies import DEFAULT_POLICY
from guard_core.sessions import Session
from guard_core.trace import Trace


def assert_compaction(
    session: Session | str | Path,
    policy: str = DEFAULT_POLICY,
    *,
    window: int | None = None,
    summary: str = "recorded",
    settings: dict[str, Any] | None = None,
    **limits: int,
) -> Trace:
    """Replay a session, or the one of a recording's file with most calls, and fail where something happens more often
    than its limit: `overflows=0`, `compactions=4`, … (the names of `LIMITS`). Without a limit: no overflow and
    no loop. The trace of the replay, for further assertions. Raises AssertionError, and GuardError for wrong settings.
    """
    unknown = [name for name in limits if name not in LIMITS]
    if unknown:
        raise SettingError(f"there is no limit {unknown[0][:40]!r}; there are {', '.join(LIMITS)}")
    if not isinstance(session, Session):
        session = cli.load(str(session))
    judged = judge(session, Under(policy, settings or {}, window, summary))
    counts = {**judged.counts, "compaction": len(judged.trace.compactions)}
    limits = limits or {"overflows": 0, "loops": 0}
    over = {name: counts[LIMITS[name]] for name, most in limits.items() if counts[LIMITS[name]] > most}
    if over:
        sentences = [
            item.sentence for item in judged.findings if any(item.kind in KINDS.get(LIMITS[name], ()) for name in over)
        ]
        words = ", ".join(
            f"{count:,} {name.replace('_', ' ')}, at most {limits[name]:,} allowed" for name, count in over.items()
        )
        within = f"{'an assumed' if judged.window.is_unsure else 'a'} window of {judged.trace.window:,} tokens"
        raise AssertionError("\n  ".join([f"{policy} in {within}: {words}", *sentences]))
    return judged.trace


LIMITS = {
    "compactions": "compaction",
    "overflows": "overflow",
    "near_misses": "near-miss",
    "loops": "loop",
    "thrashing": "thrash",
    "late": "late",
    "never_fits": "never-fits",
    "not_kept": "not-kept",
    "requests_lost": "request-lost",
    "rules_lost": "rule-lost",
}
