"""Aider: finished exchanges over a 16th of the window, at least 1,024 and at most 8,192 tokens, are summarised.

Source: aider 0.86.2, `models.py` and `history.py`. Its markdown file has neither the summaries nor the tokens of the
finished exchanges, so that nothing in it can be compared with the rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.ledger import Ints, Ledger
from guard_core.policies.aider import LEAST_TOKENS, MOST_TOKENS, SHARE, AiderSettings
from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.counters import UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Provenance, Session

ESTIMATE = "estimate"
COUNTER = RuleCounter(ESTIMATE, "tokens of the finished exchanges, which are not in the file")
SETTING = "max_chat_history_tokens"


def _limit(window: int) -> tuple[str, int]:
    """The most tokens that pass, as an expression and as a number."""
    formula = f"min(max({window:,} / {SHARE}, {LEAST_TOKENS:,}), {MOST_TOKENS:,})"
    return formula, int(AiderSettings().most(window))


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """A 16th of the window within bounds, unless `max_chat_history_tokens` was typed."""
    own, window = whole(typed, SETTING), stretch.window
    settings = [window_setting(window)]
    formula, threshold = f"min(max(window / {SHARE}, {LEAST_TOKENS:,}), {MOST_TOKENS:,})", None
    if own is not None:
        settings = [RuleNumber(SETTING, own, "tokens", Provenance.USER, "typed in")]
        formula, threshold = f"{own:,} ({SETTING})", own
    elif window is not None:
        formula, threshold = _limit(window.value)
    return OwnRule(
        policy="aider-chat-summary",
        settings=tuple(settings),
        counter=ESTIMATE,
        relation=">",
        threshold=threshold,
        formula=formula,
        checks=Moment.TURN_END,
    )


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*_limit(window), other)


def series(_: Session, __: Ledger, checks: Checks, ___: Stretch) -> Ints:
    """What Aider counted is not in its file."""
    return checks.step * 0 + UNKNOWN


AGENT = Agent(
    format="aider",
    label="Aider",
    rule=rule,
    plays={"aider-chat-summary": {SETTING: "max_tokens"}},
    variants=variants,
    counter=lambda _: COUNTER,
    names={SETTING: "tokens of finished exchanges over which they are summarised"},
    series=series,
)
