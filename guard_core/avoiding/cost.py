"""What a replay costs in words that are no longer sent, beside what the recording's own compactions cost."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from guard_core.findings.facts import Case, Facts
from guard_core.findings.words import counted
from guard_core.outcomes.losses import StatedRule, losses_of
from guard_core.outcomes.outcome import rewrites
from guard_core.outcomes.sent import SentRequests

# Ours: with less than this share of the recording's prompt tokens in all, a replay gives its model far less to read.
FAR_LESS = 0.5


class Cost(msgspec.Struct, frozen=True):
    """What the requests of a side lack. `dropped` of `requests` messages that began a turn are missing from some later
    request as they were, `gone` of `rules` sentences that state a rule from the last one (-1: not looked for);
    `tokens_sent` are the prompt tokens of all calls. `is_least`: the file does not hold all that the recording's
    compactions removed, so that more may be missing."""

    requests: int
    dropped: int
    rules: int
    gone: int
    tokens_sent: int
    is_least: bool = False


def cost_of(case: Case, rules: Sequence[StatedRule] | None) -> Cost:
    """What a side costs; `rules` None: they were not looked for."""
    losses = losses_of(SentRequests(case), rules)
    return Cost(
        losses.requests,
        losses.requests_dropped,
        losses.rules,
        losses.rules_gone,
        int(case.tokens.sum()),
        losses.is_least,
    )


def recorded_case(facts: Facts) -> Case:
    """What replays are compared with: the recording, or the simulation of a session that was only simulated."""
    return facts.recording if facts.ledger.usage_ratio is None else facts.replay(facts.simulation)


def loses_more(cost: Cost, recorded: Cost) -> bool:
    """Does a replay surely lose more than the recording, or give its model far less to read. Where the file does
    not hold all that the recording lost, that is sure of none."""
    if cost.tokens_sent < FAR_LESS * recorded.tokens_sent:
        return True
    return _drops_more(cost, recorded)


def _drops_more(cost: Cost, recorded: Cost) -> bool:
    return not recorded.is_least and (cost.dropped > recorded.dropped or cost.gone > recorded.gone)


def cost_words(case: Case, cost: Cost, recorded: Cost) -> str:
    """What a replay costs, as sentences; "" where it sends everything."""
    if not case.fired and not rewrites(SentRequests(case)):
        return ""
    side = "simulated" if case.facts.ledger.usage_ratio is not None else "recorded"
    least = "at least " if recorded.is_least else ""
    dropped = f"{cost.dropped:,} of {counted(cost.requests, 'user request')} ({side}: {least}{recorded.dropped:,})"
    rules = f" and {cost.gone:,} of {counted(cost.rules, 'rule')} ({side}: {least}{recorded.gone:,})"
    sent = f"sends {cost.tokens_sent:,} tokens in all ({side}: {recorded.tokens_sent:,})"
    more = ""
    if loses_more(cost, recorded):
        drops = _drops_more(cost, recorded)
        more = " This loses more than the recording did." if drops else " The model has far less to read than it had."
    return f"It drops {dropped}{rules if cost.rules > 0 else ''}, and {sent}.{more}"
