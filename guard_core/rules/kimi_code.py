"""Kimi Code: 85 % of the window, or the window less 50,000 where that is lower and the reserve smaller than the window.

Measured by running 2.1.0; `compaction/strategy.ts` of https://github.com/MoonshotAI/kimi-code at d723cc47 has the same
numbers since 2026-05. The window is the model's limit of input where it has one, else its context. The count is that of
the last answer and Kimi Code's estimate of what was appended since: a quarter of the ASCII characters, rounded up, one
token for any other and one for the role of each message; notes of tools are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from guard_core.rules.base import (
    FRACTIONS,
    NO_WINDOW,
    RESERVES,
    Agent,
    Hypothesis,
    Keeps,
    Moment,
    OwnRule,
    Shape,
    Stretch,
    Typed,
    chosen,
    percentage,
    whole,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import TOTAL_PENDING, Counter

RATIO = 85.0  # per cent; triggerRatio, compaction_trigger_ratio in the settings
RESERVE = 50_000  # tokens; reservedContextSize, reserved_context_size in the settings
WINDOWS = (262_144, 131_072)  # tokens; of Kimi's own models
COUNTER = Counter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and Kimi Code's estimate of the messages since",
    is_recorded=True,
)


def threshold_of(window: int, percent: float, reserve: int) -> tuple[int, str]:
    """The smallest count that fires, in tokens, and what it is made of."""
    share, text = math.ceil(window * (percent / 100)), f"{percent:g} % of {window:,}"
    if 0 < reserve < window and window - reserve < share:
        return window - reserve, f"{window:,} − {reserve:,} (reserve)"
    return share, text


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    ratio = chosen("trigger_ratio", percentage(typed, "trigger_ratio"), RATIO, "%", "default")
    reserve = chosen("reserved_context_size", whole(typed, "reserved_context_size"), RESERVE, "tokens", "default")
    percent, size = ratio.value or RATIO, int(reserve.value or 0)
    threshold, formula = threshold_of(window.value, percent, size) if window else (None, "")
    return OwnRule(
        agent="Kimi Code",
        version=stretch.version,
        policy="kimi-code",
        profile="current",
        settings=(window_setting(window), ratio, reserve),
        counter=TOTAL_PENDING,
        relation=">=",
        threshold=threshold,
        formula=formula or f"the lower of {percent:g} % of the window and the window − {size:,} (reserve)",
        checks=Moment.BEFORE_CALL,
        reason="" if window else NO_WINDOW,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, reserves and ratios."""
    default = rule(stretch, typed)
    if default.threshold is not None:
        yield Hypothesis(default.formula, default.threshold, 0)
    own = 0 if stretch.window is None else stretch.window.value
    for window, other in (*windows_of(stretch), *((window, 1) for window in WINDOWS if window != own)):
        yield from _of_window(window, other)


def _of_window(window: int, changes: int) -> Iterator[Hypothesis]:
    for reserve in dict.fromkeys((RESERVE, 0, *RESERVES)):
        threshold, formula = threshold_of(window, RATIO, reserve)
        yield Hypothesis(formula, threshold, changes + (reserve != RESERVE))
    for share in FRACTIONS:
        threshold, formula = threshold_of(window, share * 100, RESERVE)
        yield Hypothesis(formula, threshold, changes + 1)


KEEPS = Keeps("the user's own messages, up to 20,000 tokens, and the summary", Shape.USERS, 20_000, is_derived=True)

AGENT = Agent(
    format="kimi-code",
    label="Kimi Code",
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    keeps=lambda _, __: KEEPS,
    names={
        "trigger_ratio": "compaction_trigger_ratio, in per cent of the window from 1 to 100",
        "reserved_context_size": "in tokens; 0 or as much as the window has no effect",
    },
)
