"""LangChain: the trigger of its `SummarizationMiddleware`, compared with the tokens of the last answer.

From langchain 1.4.7 and deepagents 0.7.32. The middleware counts its messages by characters, too, and takes whichever
count reaches the trigger first; that of the last answer is the one that a recording has. There is no default trigger;
deepagents sets 170,000 tokens, or 85 % of the window of a model that it has a profile of, and then acts above 95 % of
that window less the answer's most tokens, too. Triggers by numbers of messages are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import NO_WINDOW, Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.rules.settings import RuleNumber, Typed, percentage, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance

DEEPAGENTS, DEEPAGENTS_SHARE = 170_000, 0.85  # tokens, and a share of the window: the factory of deepagents
BUDGET_SHARE = 0.95  # of a known window, which deepagents fills with request and answer
ANSWERS = (32_000, 64_000, 128_000)  # most tokens of an answer, as ChatAnthropic sets them (langchain-anthropic 1.7.7)
NOT_IN_FILE = "the middleware's trigger is not in the file: set trigger_tokens or trigger_fraction"


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The trigger that was typed, in tokens or as a share of the window: no file has it."""
    tokens, percent, window = whole(typed, "trigger_tokens"), percentage(typed, "trigger_fraction"), stretch.window
    settings = [RuleNumber("trigger", None, "tokens", Provenance.ASSUMED, "not in the file")]
    formula, threshold, reason = "trigger", None, NOT_IN_FILE
    if tokens is not None:
        settings = [RuleNumber("trigger_tokens", tokens, "tokens", Provenance.USER, "typed in")]
        formula, threshold, reason = f"{tokens:,} (trigger)", tokens, ""
    elif percent is not None:
        settings = [window_setting(window), RuleNumber("trigger_fraction", percent, "%", Provenance.USER, "typed in")]
        formula, threshold, reason = f"{percent:g} % of the window", None, NO_WINDOW
        if window is not None:
            formula, threshold, reason = *share_of(percent / 100, window.value), ""
    return OwnRule(
        policy="langchain-summarization",
        settings=tuple(settings),
        counter=TOTAL,
        threshold=threshold,
        formula=formula,
        reason=reason,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """The triggers of deepagents, shares of windows, and triggers typed by hand."""
    yield Hypothesis(f"{DEEPAGENTS:,} (deepagents)", DEEPAGENTS, 1)
    for window, other in windows_of(stretch):
        formula, threshold = share_of(DEEPAGENTS_SHARE, window)
        yield Hypothesis(f"{formula} (deepagents)", threshold, other + 1)
        formula, budget = share_of(BUDGET_SHARE, window)
        for answer in ANSWERS:
            yield Hypothesis(f"above {formula} − {answer:,} (deepagents, answer)", budget - answer + 1, other + 1)
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + 2)
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"trigger {limit:,}", limit, 1)


AGENT = Agent(
    format="langchain",
    label="LangChain",
    rule=rule,
    plays={"langchain-summarization": {}},
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    fitted=lambda _, limit: f"trigger {limit:,}",
    names={
        "trigger_tokens": "of SummarizationMiddleware, in tokens",
        "trigger_fraction": "the same in per cent of the window, from 1 to 100",
    },
)
