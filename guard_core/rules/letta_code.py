"""Letta Code, on its own machine: above the window less a reserve of 16,384 tokens, or a fifth of a smaller window.

Measured by running 0.34.12. The count is the last answer's total with ceil(characters / 4) of each message since, the
user's included, and it is compared before every call, the total alone also when an answer has come. The window is the
agent's own limit of the context (`context_window_limit`), whatever the model accepts; a compaction names it.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.letta_code import RESERVE, reserve_of
from guard_core.policies.pi import message_tokens
from guard_core.recordings.formats.pi.letta import NAME
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, RuleCounter
from guard_core.rules.settings import WINDOW, Typed, window_setting
from guard_core.rules.thresholds import windows_of

COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and ceil(characters / 4) of each message since",
    message_tokens,
)
KEEPS = Keeps("the summary and, in its mode sliding_window, the newest messages from an answer on", KeptShape.TAIL)


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    return OwnRule(
        policy="letta-code",
        profile="0.34",
        settings=(window_setting(window),),
        counter=TOTAL_PENDING,
        relation=">",
        threshold=window.value - reserve_of(window.value) if window else None,
        formula=_formula(window.value) if window else f"window − {RESERVE:,} (reserve), or − 20 % of a smaller one",
    )


def _formula(window: int) -> str:
    return f"{window:,} − {reserve_of(window):,} (reserve)"


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(_formula(window), window - reserve_of(window), other)


AGENT = Agent(
    format="pi",
    label=NAME,
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    uses_stated_window=True,
    keeps=lambda _, __: KEEPS,
    names={},
    aliases={"context_window_limit": WINDOW},
    wrote=lambda session: session.agent == NAME,
)
