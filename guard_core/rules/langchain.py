"""LangChain: the trigger of its `SummarizationMiddleware`, compared with the tokens of the last answer.

From langchain 1.4.7 and deepagents 0.7.32. The middleware counts its messages by characters, too, and takes whichever
count reaches the trigger first; that of the last answer is the one that a recording has. There is no default trigger;
deepagents sets 170,000 tokens, or 85 % of the window of a model that it has a profile of. Triggers by numbers of
messages are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import (
    FRACTIONS,
    LARGEST_LIMIT,
    NO_WINDOW,
    Agent,
    Hypothesis,
    Moment,
    OwnRule,
    RuleSetting,
    Stretch,
    Typed,
    part_of,
    percentage,
    round_limits,
    whole,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.sessions import Provenance

DEEPAGENTS, DEEPAGENTS_SHARE = 170_000, 0.85  # tokens, and a share of the window: the factory of deepagents
NOT_IN_FILE = "the middleware's trigger is not in the file: set trigger_tokens or trigger_fraction"


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    tokens, percent, window = whole(typed, "trigger_tokens"), percentage(typed, "trigger_fraction"), stretch.window
    settings, threshold, reason = (
        [RuleSetting("trigger", None, "tokens", Provenance.ASSUMED, "not in the file")],
        None,
        "",
    )
    formula = "trigger"
    if tokens is not None:
        settings = [RuleSetting("trigger_tokens", tokens, "tokens", Provenance.USER, "typed in")]
        threshold, formula = tokens, f"{tokens:,} (trigger)"
    elif percent is not None:
        settings = [window_setting(window), RuleSetting("trigger_fraction", percent, "%", Provenance.USER, "typed in")]
        threshold = part_of(percent / 100, window.value) if window else None
        formula = f"{percent:g} % of {window.value:,}" if window else f"{percent:g} % of the window"
        reason = "" if window else NO_WINDOW
    else:
        reason = NOT_IN_FILE
    return OwnRule(
        agent="LangChain",
        version=stretch.version,
        policy="langchain-summarization",
        profile="current",
        settings=tuple(settings),
        counter=TOTAL,
        relation=">=",
        threshold=threshold,
        formula=formula,
        checks=Moment.BEFORE_CALL,
        reason=reason,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """The triggers of deepagents, shares of windows, and triggers typed by hand."""
    default = rule(stretch, typed)
    if default.threshold is not None:
        yield Hypothesis(default.formula, default.threshold, 0)
    yield Hypothesis(f"{DEEPAGENTS:,} (deepagents)", DEEPAGENTS, 1)
    for window, other in windows_of(stretch):
        name = f"{DEEPAGENTS_SHARE * 100:g} % of {window:,} (deepagents)"
        yield Hypothesis(name, part_of(DEEPAGENTS_SHARE, window), other + 1)
        for share in FRACTIONS:
            yield Hypothesis(f"{share * 100:g} % of {window:,}", part_of(share, window), other + 2)
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"trigger {limit:,}", limit, 1)


AGENT = Agent(
    format="langchain",
    label="LangChain",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    fitted=lambda _, limit: f"trigger {limit:,}",
    names={
        "trigger_tokens": "of SummarizationMiddleware, in tokens",
        "trigger_fraction": "the same in per cent of the window, from 1 to 100",
    },
)
