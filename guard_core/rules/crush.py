"""Crush: a remainder of 20,000 tokens in windows above 200,000, of a fifth in smaller ones.

Source: agent.go of Crush, revision 37f36e93, as specified; not measured by running.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.crush import buffer_of
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.rules.settings import AUTO, SWITCH_WORDS, WINDOW, Typed, window_setting
from guard_core.rules.thresholds import windows_of


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    return OwnRule(
        policy="crush",
        settings=(window_setting(window),),
        counter=TOTAL,
        threshold=window.value - buffer_of(window.value) if window else None,
        formula=_formula(window.value) if window else "window − 20,000, or − 20 % of one up to 200,000",
    )


def _formula(window: int) -> str:
    return f"{window:,} − {buffer_of(window):,} (buffer)"


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(_formula(window), window - buffer_of(window), other)


KEEPS = Keeps("the summary alone", KeptShape.NOTHING)  # Source: agent.go of Crush, as above

AGENT = Agent(
    format="crush",
    label="Crush",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    names={AUTO: SWITCH_WORDS},
    aliases={"disable_auto_summarize": f"!{AUTO}", "context_window": WINDOW},
    keeps=lambda _, __: KEEPS,
)
