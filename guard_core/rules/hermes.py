"""Hermes: 75 % of the window below 512,000 tokens, else half of it, of the prompt tokens of the last answer.

Measured by running 0.19.0; up to 0.18 it is half of every window (0.13.0 and 0.16.0, run: 70,000 of 140,000). Its
recordings have no tokens per call; a session that a compaction ended after a single call has the count of that one. A
limit of a model's output (`model.max_tokens`) is taken off the window first, from 0.18 on (context_compressor.py,
`_compute_threshold_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from guard_core.agent_versions import numbers
from guard_core.policies.hermes.settings import FULL_WINDOW_SHARE, SMALL_WINDOW
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, PROMPT
from guard_core.rules.settings import (
    AUTO,
    SWITCH_WORDS,
    WINDOW,
    RuleNumber,
    Typed,
    chosen,
    percentage,
    whole,
    window_setting,
)
from guard_core.rules.thresholds import FRACTIONS, windows_of
from guard_core.sessions import ANSWER_LIMIT, Provenance

SHARE, SMALL_SHARE = 50.0, 75.0  # per cent; of a window below SMALL_WINDOW at least the second: context_compressor.py
_BELOW = f"at least {SMALL_SHARE:g} % where the window is below {SMALL_WINDOW:,} tokens"
LEAST = 64_000  # tokens: MINIMUM_CONTEXT_LENGTH of model_metadata.py; the threshold is at least these


ROOM_FROM = (0, 18)  # takes the output off, and never has the whole window as threshold
SMALL_FROM = (0, 19)  # has SMALL_SHARE


class Shares(NamedTuple):
    """What a group of versions makes of a configured percentage: `small` is the least of a window below SMALL_WINDOW in
    per cent, `has_room` whether the model's output is taken off first and a part of the window always left."""

    small: float
    has_room: bool

    def percent(self, window: int | None, percent: float) -> float:
        """The share of a window in per cent."""
        return max(percent, self.small) if window is None or window < SMALL_WINDOW else percent

    def threshold(self, window: int, percent: float, output: int = 0) -> int:
        """The threshold in tokens; `output` is what the model may write."""
        room = window - output if output < window else window
        threshold = max(int(room * self.percent(window, percent) / 100), LEAST)
        if threshold < room or not self.has_room:
            return threshold
        return max(1, min(int(room * FULL_WINDOW_SHARE), room - 1))

    def formula(self, window: int, percent: float, output: int = 0) -> str:
        """What the threshold is: a share of the window, or the least that there is."""
        room, share = window - output if output < window else window, self.percent(window, percent)
        threshold = self.threshold(window, percent, output)
        words = f"{window:,}" if room == window else f"({window:,} − {output:,})"
        if threshold == int(room * share / 100):
            return f"{share:g} % of {words}"
        return f"{LEAST:,} (the least)" if threshold == LEAST else f"{FULL_WINDOW_SHARE * 100:g} % of {words}"


NEWEST = Shares(SMALL_SHARE, has_room=True)
EARLIER = Shares(0, has_room=True), Shares(0, has_room=False)  # 0.18, and before


def shares_of(version: str) -> Shares:
    """Those of a version; of one that is not known the newest."""
    known = numbers(version.removeprefix("before "))
    if not known or known >= SMALL_FROM:
        return NEWEST
    return EARLIER[known < ROOM_FROM or version.startswith("before ")]


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The version's share of the window; where it knows an answer's limit, that is taken off the window first."""
    window, shares = stretch.window, shares_of(stretch.version)
    share = chosen("threshold", percentage(typed, "threshold"), SHARE, "%", "default")
    if shares.small:
        share = replace(share, note=f"{share.note}; {_BELOW}")
    percent, most = share.value or SHARE, whole(typed, "threshold_tokens")
    settings, output = [window_setting(window), share], 0
    if shares.has_room and (ANSWER_LIMIT in typed or stretch.setting(ANSWER_LIMIT)):
        taken = chosen(ANSWER_LIMIT, whole(typed, ANSWER_LIMIT), 0, "tokens", "", stretch.setting(ANSWER_LIMIT))
        settings, output = [*settings, taken], int(taken.value or 0)
    threshold = shares.threshold(window.value, percent, output) if window else None
    formula = shares.formula(window.value, percent, output) if window else _of_unknown(shares, percent)
    if most is not None:
        settings.append(RuleNumber("threshold_tokens", most, "tokens", Provenance.USER, "typed in"))
        threshold, formula = min(most, threshold or most), f"min({most:,}, {formula})"
    return OwnRule(
        policy="hermes",
        settings=tuple(settings),
        counter=PROMPT,
        threshold=threshold,
        formula=formula,
    )


def _of_unknown(shares: Shares, percent: float) -> str:
    """What the threshold is of a window that is not known."""
    below = shares.percent(None, percent)
    from_there = "" if below == percent else f", {percent:g} % from {SMALL_WINDOW:,} on"
    return f"{below:g} % of the window{from_there}"


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and shares, and the rules of other versions."""
    own = shares_of(stretch.version)
    for shares in dict.fromkeys((own, NEWEST, *EARLIER)):
        for window, other in windows_of(stretch):
            for percent in dict.fromkeys((SHARE, *(share * 100 for share in FRACTIONS), *range(1, 101))):
                changes = other + (percent != SHARE) + (shares != own)
                yield Hypothesis(shares.formula(window, percent), shares.threshold(window, percent), changes)


AGENT = Agent(
    format="hermes",
    label="Hermes",
    rule=rule,
    plays={
        "hermes": {
            "max_output_tokens": "reserved_output",
            "threshold": "threshold_percent",
            "threshold_tokens": "threshold_cap",
        }
    },
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    records_count=True,
    names={
        "threshold": "compression.threshold: in per cent of the window, or a fraction below 1",
        "threshold_tokens": "compression.threshold_tokens: at most so many tokens",
        ANSWER_LIMIT: "model.max_tokens: what the model may write, taken off the window first (from 0.18)",
        AUTO: SWITCH_WORDS,
    },
    aliases={"compression.enabled": AUTO, "context_length": WINDOW},
)
