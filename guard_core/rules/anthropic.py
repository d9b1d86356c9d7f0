"""Anthropic's context management, as the requests of a log ask for it.

`compact_20260112` summarises a request with more input tokens than its trigger before it is answered;
`clear_tool_uses_20250919` clears the oldest tool results of such a request and is not a compaction. Not measured;
source: https://docs.anthropic.com/en/docs/build-with-claude/, `compaction` and `context-editing`. At a compaction the
count is that of the summarising call, which has the instructions, too.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.recordings.formats.anthropic_messages import AT_LEAST, CLEAR, CLEAR_USES, COMPACT, EXCLUDED, KEEP
from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.counters import REQUEST, UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, stated
from guard_core.rules.thresholds import LARGEST_LIMIT, round_limits
from guard_core.sessions import Session

_UNITS = {CLEAR_USES: "tool uses", KEEP: "tool uses", EXCLUDED: "tools"}
NAMES = {
    COMPACT: "of compact_20260112: the input tokens above which a request is summarised",
    CLEAR: "of clear_tool_uses_20250919: the input tokens above which tool results are cleared",
    CLEAR_USES: "of clear_tool_uses_20250919: the tool uses above which tool results are cleared",
    KEEP: "of clear_tool_uses_20250919: the newest tool uses whose results stay",
    AT_LEAST: "of clear_tool_uses_20250919: the tokens that clearing must free",
    EXCLUDED: "of clear_tool_uses_20250919: how many tools it leaves alone (exclude_tools)",
}


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The trigger that was typed or that the requests have; without one nothing is compacted by a count."""
    settings = {
        name: item
        for name in NAMES
        if (item := stated(typed, name, _UNITS.get(name, "tokens"), stretch.setting(name))) is not None
    }
    limit = settings.get(COMPACT)
    if limit is None:
        return OwnRule(
            policy="none",
            settings=tuple(settings.values()),
            counter=REQUEST,
            threshold=None,
            formula="",
            checks=Moment.NEVER,
            reason=_clearing(settings),
        )
    threshold = int(limit.value or 0)
    return OwnRule(
        policy="none",
        settings=tuple(settings.values()),
        counter=REQUEST,
        relation=">",
        threshold=threshold,
        formula=f"{threshold:,} (trigger)",
    )


def _clearing(settings: dict[str, RuleNumber]) -> str:
    """What the provider clears, by the settings of the requests."""
    trigger = settings.get(CLEAR) or settings.get(CLEAR_USES)
    if trigger is None:
        return "its requests ask for no compaction"
    newest = settings.get(KEEP)
    spared = f", all but the newest {int(newest.value or 0):,}" if newest is not None else ""
    return f"above {int(trigger.value or 0):,} {trigger.unit} the provider clears tool results{spared}"


def variants(_: Stretch, __: Typed) -> Iterable[Hypothesis]:
    """Other triggers."""
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"{limit:,} (trigger)", limit, 1)


def series(_: Session, ledger: Ledger, checks: Checks, __: Stretch) -> Ints:
    """The input tokens of each request that was answered as it was sent."""
    prompts = np.append(ledger.steps["prompt_tokens"], 0)[checks.step]
    return np.asarray(np.where((checks.place < 0) & (prompts > 0), prompts, UNKNOWN))


AGENT = Agent(
    format="anthropic-messages",
    label="Anthropic context management",
    rule=rule,
    variants=variants,
    counter=lambda _: RuleCounter(REQUEST, "input tokens of the request"),
    series=series,
    records_count=True,
    wrote=lambda session: any(item.name in NAMES for item in session.settings),
    fitted=lambda _, limit: f"{limit:,} (trigger)",
    names=NAMES,
)
