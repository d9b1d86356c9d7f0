"""Cline: a limit by window, on all tokens of the last request.

Source: ContextManager of Cline, revision 01cfde0d, as specified; not measured by running.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import (
    NO_WINDOW,
    Agent,
    Hypothesis,
    Moment,
    OwnRule,
    Stretch,
    Typed,
    part_of,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import LAST_TOTAL, TOTAL

RESERVES_BY_WINDOW = {64_000: 27_000, 128_000: 30_000, 200_000: 40_000}  # tokens
LARGE_RESERVE, SHARE = 40_000, 0.8  # of other windows: the larger of what they leave


def limit_of(window: int) -> tuple[str, int]:
    """The limit of a window in tokens, as a sum and as a number."""
    if reserve := RESERVES_BY_WINDOW.get(window):
        return f"{window:,} − {reserve:,}", window - reserve
    share = part_of(SHARE, window)
    return f"max({window:,} − {LARGE_RESERVE:,}, 80 % of {window:,})", max(window - LARGE_RESERVE, share)


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    formula, threshold = limit_of(window.value) if window else ("a limit by window", None)
    return OwnRule(
        agent="Cline",
        version=stretch.version,
        policy="cline",
        profile="current",
        settings=(window_setting(window),),
        counter=TOTAL,
        relation=">=",
        threshold=threshold,
        formula=formula,
        checks=Moment.BEFORE_CALL,
        reason="" if window else NO_WINDOW,
    )


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*limit_of(window), other)


AGENT = Agent("cline", "Cline", rule, variants, lambda _: LAST_TOTAL, {})
