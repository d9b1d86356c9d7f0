"""What is said of a session's own rule, in one sentence each."""

from __future__ import annotations

from guard_core.rules.agreement import Agreement
from guard_core.rules.base import Moment, OwnRule
from guard_core.rules.decisions import Decision
from guard_core.rules.explanation import Explanation
from guard_core.sessions import Provenance
from guard_core.triggers import MANUAL

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
    """The counts at which it compacted. Those of compactions that a person asked for are no evidence of the rule."""
    counted = [item for item in explanation.compactions if item.decision_tokens is not None]
    if not counted:
        with_count = " with a count" if explanation.compactions else ""
        return f"The recording has no compaction{with_count}."
    automatic = [item.decision_tokens or 0 for item in counted if item.trigger != MANUAL]
    manual = [item.decision_tokens or 0 for item in counted if item.trigger == MANUAL]
    places = [_places(automatic)] if automatic else []
    return f"Recorded {'; '.join(places + ([f'manually {_places(manual)}'] if manual else []))}."


def _places(counts: list[int]) -> str:
    if len(counts) > LISTED:
        low, high = min(counts), max(counts)
        return f"{len(counts):,} times, at {low:,}" + (f" to {high:,}" if low < high else "")
    *others, last = [f"{count:,}" for count in counts]
    return f"at {', '.join(others)} and {last}" if others else f"at {last}"


def _agreement(explanation: Explanation) -> str:
    if explanation.rule is None or not explanation.auto or explanation.agrees == explanation.auto:
        return ""
    first = next(item for item in explanation.compactions if item.verdict is not Agreement.AGREES)
    return f"{agreement_words(explanation)}; before step {first.step + 1:,}: {first.reason}."


def agreement_words(explanation: Explanation) -> str:
    """How many of the compactions that nobody asked for the rule explains."""
    noun = "compaction agrees" if explanation.auto == 1 else "compactions agree"
    return f"{explanation.agrees:,} of {explanation.auto:,} {noun}"


SIGNS = {">=": ("<", "≥"), ">": ("≤", ">")}  # of a rule's relation: where it does not hold, and where it does


def inequality(decision: Decision) -> str:
    """The comparison at one check with its numbers: "155,277 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000"."""
    rule, count = decision.rule, decision.count
    if count is None:
        return "nothing to compare"
    if rule is None:
        return f"{count:,} prompt tokens"
    if rule.threshold is None:
        return f"{count:,}, {threshold_words(rule)}"
    sign = SIGNS[rule.relation][rule.fires(count)]
    return f"{count:,} {sign} {rule.threshold:,} = {rule.formula}"


def threshold_words(rule: OwnRule) -> str:
    """The threshold of a rule, or why there is no number."""
    if rule.threshold is not None:
        return f"threshold {rule.threshold:,}"
    return "no threshold" if rule.checks is Moment.REFUSAL else "threshold not known"


def decision_words(decision: Decision) -> str:
    """What the agent did at one check, and what its rule says of it."""
    if decision.compaction is not None:
        return _compacted(decision)
    if decision.rule is None:
        return f"The agent did not compact here{_inferred(decision)}."
    if decision.reason:
        return f"No compaction: {decision.reason}."
    if decision.count is None or decision.rule.threshold is None:
        return f"No compaction: {decision.rule.reason or 'no threshold is known'}."
    left = decision.rule.threshold - decision.count
    if decision.fires:
        over = f"{-left:,} tokens above its threshold" if left else "at its threshold"
        return f"The rule fires here, {over}, and {decision.rule.agent} did not compact."
    return f"No compaction: {left:,} tokens remain to the threshold."


def _compacted(decision: Decision) -> str:
    item, rule = decision.compaction, decision.rule
    assert item is not None
    if rule is None:
        return f"The agent compacted here{_inferred(decision)}."
    if item.verdict is Agreement.AGREES and rule.threshold is not None:
        return f"{rule.agent} compacted here: the count reached the threshold."
    verdict = "" if item.verdict in (Agreement.NOT_MODELLED, Agreement.AGREES) else f", {item.verdict}"
    return f"{rule.agent} compacted here{verdict}: {item.reason}."


def _inferred(decision: Decision) -> str:
    interval = decision.interval
    return "" if interval is None else f"; by its recording, {interval.sentence}"
