"""Hermes: 75 % of the window below 512,000 tokens, else half of it, of the prompt tokens of the last answer.

Measured by running 0.19.0. Its recordings have no tokens per call, so that nothing of them can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import (
    FRACTIONS,
    NO_WINDOW,
    Agent,
    Hypothesis,
    Moment,
    OwnRule,
    Stretch,
    Typed,
    chosen,
    part_of,
    percentage,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import LAST_PROMPT, PROMPT

SMALL_WINDOW = 512_000  # tokens below which at least SMALL_SHARE counts: context_compressor.py
SHARE, SMALL_SHARE = 50.0, 75.0  # per cent
LEAST = 64_000  # tokens: the threshold is at least these, or 85 % of a window that is not larger


def threshold_of(window: int, percent: float) -> int:
    """The threshold in tokens of a window and a configured percentage."""
    share = max(percent, SMALL_SHARE) if window < SMALL_WINDOW else percent
    threshold = max(int(window * share / 100), LEAST)
    return threshold if threshold < window else max(1, min(int(window * 0.85), window - 1))


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    share = chosen("threshold", percentage(typed, "threshold"), SHARE, "%", "default")
    percent = share.value or SHARE
    shown = max(percent, SMALL_SHARE) if window and window.value < SMALL_WINDOW else percent
    return OwnRule(
        agent="Hermes",
        version=stretch.version,
        policy="hermes",
        profile="current",
        settings=(window_setting(window), share),
        counter=PROMPT,
        relation=">=",
        threshold=threshold_of(window.value, percent) if window else None,
        formula=f"{shown:g} % of {window.value:,}" if window else "75 % of the window, 50 % from 512,000 on",
        checks=Moment.BEFORE_CALL,
        reason="" if window else NO_WINDOW,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and shares."""
    default = rule(stretch, typed)
    if default.threshold is not None:
        yield Hypothesis(default.formula, default.threshold, 0)
    for window, other in windows_of(stretch):
        own = SMALL_SHARE / 100 if window < SMALL_WINDOW else SHARE / 100
        for share in dict.fromkeys((own, *FRACTIONS)):
            yield Hypothesis(f"{share * 100:g} % of {window:,}", part_of(share, window), other + (share != own))


AGENT = Agent(
    format="hermes",
    label="Hermes",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    names={"threshold": "in per cent of the window, from 1 to 100"},
)
