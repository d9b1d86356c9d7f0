"""Cline: a limit by window, on all tokens of the last request.

Source: ContextManager of Cline, revision 01cfde0d, as specified; not measured by running.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.cline import limit_of
from guard_core.rules import roo
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.rules.settings import WINDOW, Typed, window_setting
from guard_core.rules.thresholds import windows_of


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    formula, threshold = limit_of(window.value) if window else ("a limit by window", None)
    return OwnRule(
        policy="cline",
        settings=(window_setting(window),),
        counter=TOTAL,
        threshold=threshold,
        formula=formula,
    )


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*limit_of(window), other)


AGENT = Agent(
    format="cline",
    label="Cline",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    names={},
    aliases={"contextWindow": WINDOW},
    wrote=lambda session: not roo.wrote(session),
)
