"""SWE-agent and mini-swe-agent: no compaction by a count.

SWE-agent's history processors edit each request; of `last_n_observations` the file may have the settings. Source:
specification of new policies, section 2 (`history_processors.py`). mini-swe-agent sends the whole conversation each
time; source: its documentation, https://mini-swe-agent.com.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, PROMPT
from guard_core.rules.settings import RuleNumber, Typed, stated

OBSERVATIONS = "observations"
NOT_IN_FILE = "only its history processors edit requests, and which it had is not in the file"
WHOLE = "each request is the whole conversation"


def _never(policy: str, settings: tuple[RuleNumber, ...], reason: str) -> OwnRule:
    return OwnRule(
        policy=policy,
        settings=settings,
        counter=PROMPT,
        threshold=None,
        formula="",
        checks=Moment.NEVER,
        reason=reason,
    )


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """What the history processors of a stretch do; `n` is 0 where none of them replaces observations."""
    settings = tuple(
        item
        for name in NAMES  # of which only `n` may be 0
        if (item := stated(typed, name, OBSERVATIONS, stretch.setting(name), 0 if name == "n" else 1)) is not None
    )
    values = {item.name: int(item.value or 0) for item in settings}
    reason = NOT_IN_FILE
    if "n" in values:
        reason = "none of its history processors replaces observations, as far as the file says"
    if newest := values.get("n"):
        reason = f"in each request its processor replaces all observations but the first and the newest {newest:,}"
        if (polling := values.get("polling", 1)) > 1:
            reason += f", {polling:,} at a time"
    return _never("sweagent-last-n", settings, reason)


def mini_rule(_: Stretch, __: Typed) -> OwnRule:
    """None: mini-swe-agent sends the whole conversation each time."""
    return _never("none", (), WHOLE)


def variants(_: Stretch, __: Typed) -> Iterable[Hypothesis]:
    """Without a threshold there is no other one."""
    return ()


NAMES = {
    "n": "of last_n_observations: the newest observations that stay, 0 without that history processor",
    "polling": "of last_n_observations: observations that are replaced together",
}
AGENT = Agent(
    format="swe-agent",
    label="SWE-agent",
    rule=rule,
    plays={"sweagent-last-n": {}},
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    names=NAMES,
)
MINI_AGENT = Agent(
    format="mini-swe-agent",
    label="mini-swe-agent",
    rule=mini_rule,
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    names={},
)
