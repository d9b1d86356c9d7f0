"""Hermes: 75 % of the window below 512,000 tokens, else half of it, of the prompt tokens of the last answer.

Measured by running 0.19.0. Its recordings have no tokens per call, so that nothing of them can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from guard_core.policies.hermes.settings import FULL_WINDOW_SHARE, SMALL_WINDOW
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, PROMPT
from guard_core.rules.settings import (
    AUTO,
    SWITCH_WORDS,
    WINDOW,
    RuleSetting,
    Typed,
    chosen,
    percentage,
    whole,
    window_setting,
)
from guard_core.rules.thresholds import FRACTIONS, windows_of
from guard_core.sessions import Provenance

SHARE, SMALL_SHARE = 50.0, 75.0  # per cent; of a window below SMALL_WINDOW at least the second: context_compressor.py
_BELOW = f"at least {SMALL_SHARE:g} % where the window is below {SMALL_WINDOW:,} tokens"
LEAST = 64_000  # tokens: the threshold is at least these, or 85 % of a window that is not larger


def threshold_of(window: int, percent: float) -> int:
    """The threshold in tokens of a window and a configured percentage."""
    share = max(percent, SMALL_SHARE) if window < SMALL_WINDOW else percent
    threshold = max(int(window * share / 100), LEAST)
    return threshold if threshold < window else max(1, min(int(window * FULL_WINDOW_SHARE), window - 1))


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    share = chosen("threshold", percentage(typed, "threshold"), SHARE, "%", "default")
    share = replace(share, note=f"{share.note}; {_BELOW}")
    percent, most = share.value or SHARE, whole(typed, "threshold_tokens")
    threshold = threshold_of(window.value, percent) if window else None
    formula = _formula(window.value, percent) if window else _shares(percent)
    settings = [window_setting(window), share]
    if most is not None:
        settings.append(RuleSetting("threshold_tokens", most, "tokens", Provenance.USER, "typed in"))
        threshold, formula = min(most, threshold or most), f"min({most:,}, {formula})"
    return OwnRule(
        policy="hermes",
        settings=tuple(settings),
        counter=PROMPT,
        threshold=threshold,
        formula=formula,
    )


def _shares(percent: float) -> str:
    """What the threshold is of a window that is not known."""
    below = max(percent, SMALL_SHARE)
    from_there = "" if below == percent else f", {percent:g} % from {SMALL_WINDOW:,} on"
    return f"{below:g} % of the window{from_there}"


def _formula(window: int, percent: float) -> str:
    """What the threshold of a window is: a share of it, or the least that there is."""
    share = max(percent, SMALL_SHARE) if window < SMALL_WINDOW else percent
    threshold = threshold_of(window, percent)
    if threshold == int(window * share / 100):
        return f"{share:g} % of {window:,}"
    return f"{LEAST:,} (the least)" if threshold == LEAST else f"{FULL_WINDOW_SHARE * 100:g} % of {window:,}"


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and shares."""
    for window, other in windows_of(stretch):
        for percent in dict.fromkeys((SHARE, *(share * 100 for share in FRACTIONS), *range(1, 101))):
            yield Hypothesis(_formula(window, percent), threshold_of(window, percent), other + (percent != SHARE))


AGENT = Agent(
    format="hermes",
    label="Hermes",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    names={
        "threshold": "compression.threshold: in per cent of the window, or a fraction below 1",
        "threshold_tokens": "compression.threshold_tokens: at most so many tokens",
        AUTO: SWITCH_WORDS,
    },
    aliases={"compression.enabled": AUTO, "context_length": WINDOW},
)
