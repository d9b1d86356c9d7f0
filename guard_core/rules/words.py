"""What is said of a session's own rule, in one sentence each."""

from __future__ import annotations

from guard_core.rules.agreement import Agreement
from guard_core.rules.base import Moment, OwnRule
from guard_core.rules.explanation import Explanation
from guard_core.sessions import Provenance

LISTED = 4  # counts of compactions that are named one by one


def headline(explanation: Explanation) -> str:
    """The rule with its numbers, and where the recording has it compact."""
    return " ".join(filter(None, (_rule_words(explanation), _recorded_words(explanation), _agreement(explanation))))


def _rule_words(explanation: Explanation) -> str:
    rule = explanation.rule
    if rule is None:
        return f"The rule by which {explanation.unknown} compacts is not known here."
    name = " ".join(filter(None, (rule.agent, rule.version)))
    if rule.checks is Moment.REFUSAL:
        return f"{name} compacts only when the provider refuses a request: {rule.reason}, and none is assumed."
    if rule.threshold is None:
        verb = "above" if rule.relation == ">" else "at"
        return f"{name} compacts {verb} {rule.formula}; {rule.reason}."
    verb = "compacts above" if rule.relation == ">" else "compacts at"
    condition = _condition(rule)
    return f"{name} {verb} {rule.threshold:,}: {rule.formula}{condition}."


def _condition(rule: OwnRule) -> str:
    """What the sentence rests on where the window is assumed."""
    window = next((item for item in rule.settings if item.name == "window"), None)
    if window is None or window.source is not Provenance.ASSUMED or window.value is None:
        return ""
    return f", if the window is {int(window.value):,}"


def _recorded_words(explanation: Explanation) -> str:
    counts = [item.decision_tokens for item in explanation.compactions if item.decision_tokens is not None]
    if not counts:
        return "The recording has no compaction with a count." if explanation.compactions else "It has no compaction."
    if len(counts) <= LISTED:
        *others, last = [f"{count:,}" for count in counts]
        return f"Recorded at {', '.join(others)} and {last}." if others else f"Recorded at {last}."
    return f"Recorded {len(counts):,} times, at {min(counts):,} to {max(counts):,}."


def _agreement(explanation: Explanation) -> str:
    if explanation.rule is None or not explanation.auto or explanation.agrees == explanation.auto:
        return ""
    first = next(item for item in explanation.compactions if item.verdict is not Agreement.AGREES)
    count = f"{explanation.agrees:,} of {explanation.auto:,} compactions agree"
    return f"{count}; before step {first.step + 1:,}: {first.reason}."
