"""Which settings, typed in, give a threshold that the formula of an agent's rule could have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from guard_core.errors import GuardError
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.settings import AUTO, WINDOW, Typed
from guard_core.sessions import Provenance, Sourced

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?: %)?")


def settings_giving(agent: Agent, stretch: Stretch, hypothesis: Hypothesis, typed: Typed) -> dict[str, str]:
    """The fewest settings beside those typed under which the rule of a stretch has the formula and the threshold of a
    hypothesis, by their names; empty where the rule has them already, or no settings give them.

    Settings are looked for among the numbers of the formula, and kept where the rule itself gives that very formula.
    """
    if _gives(_ruled(agent, stretch, typed), hypothesis):
        return {}
    numbers = _NUMBER.findall(hypothesis.formula)
    values = list(
        dict.fromkeys(number.replace(",", "").replace(" ", "") for number in numbers)
    )  # as a person types them
    others = [name for name in agent.names if name not in (AUTO, WINDOW)]
    for change in _changes(others, values):
        if _gives(_ruled(agent, stretch, {**typed, **change}), hypothesis):
            return change
    return {}


def _changes(names: Iterable[str], values: list[str]) -> Iterator[dict[str, str]]:
    """Each single setting, then the window with one beside it."""
    alone = [{name: value} for name in (*names, WINDOW) for value in values]
    yield from alone
    windows = [value for value in values if not value.endswith("%")]
    yield from ({WINDOW: window, **change} for window in windows for change in alone if WINDOW not in change)


def _gives(rule: OwnRule | None, hypothesis: Hypothesis) -> bool:
    return rule is not None and (rule.formula, rule.threshold) == (hypothesis.formula, hypothesis.threshold)


def _ruled(agent: Agent, stretch: Stretch, typed: Typed) -> OwnRule | None:
    """The rule under settings; None where they are not allowed."""
    try:
        named, window = agent.named(typed)
        own = stretch if window is None else stretch._replace(window=Sourced(window.value, Provenance.USER, "typed in"))
        return agent.ruled(own, named)
    except GuardError:
        return None
