"""What is said of a session's own rule, in one sentence each."""

from __future__ import annotations

from guard_core.plural import counted as counted_words
from guard_core.rules.agreement import Agreement, ExplainedCompaction, explaining, if_assumed, or_failed
from guard_core.rules.base import Moment, OwnRule, equation
from guard_core.rules.counters import BRIEFLY, PROMPT
from guard_core.rules.decisions import RuleDecision
from guard_core.rules.explanation import SIMULATED, Explanation
from guard_core.rules.inference import Interval
from guard_core.sessions import Provenance
from guard_core.triggers import AUTOMATIC, MANUAL

NO_THRESHOLD = "no threshold is known"
LISTED = 4  # counts of compactions that are named one by one


def headline(explanation: Explanation) -> str:
    """The rule with its numbers, and where the recording has it compact."""
    words = (_rule_words, _other_stretch, _recorded_words, _agreement)
    return " ".join(filter(None, (say(explanation) for say in words)))


def _rule_words(explanation: Explanation) -> str:
    rule = explanation.rule
    if rule is None:
        return _without_rule(explanation.unknown)
    name = " ".join(filter(None, (rule.agent, rule.version)))
    if rule.checks is Moment.NEVER:
        return f"{name} does not compact by itself: {rule.reason}."
    if rule.checks is Moment.REFUSAL:
        verb = "compacts" if _own_interval(explanation) is None else "would compact"
        return f"{name} {verb} only when the provider refuses a request: {rule.reason}, and none is assumed."
    if rule.threshold is None:
        verb = "above" if rule.relation == ">" else "at"
        return f"{name} compacts {verb} {rule.formula}; {rule.reason}."
    where = "above" if rule.relation == ">" else "at"
    if not rule.threshold:
        where = "before every call:"
    says = f"{where} {equation(rule.threshold, rule.formula, ': ')}"
    if rule.assumed_window is None and explanation.refuting is not None:
        return f"{_settings_words(rule)}, {name} would compact {says}{if_assumed(rule)}."
    passed = [item for item in explanation.missed if item.threshold == rule.threshold]
    if passed and not explanation.agrees:
        first = f"{'' if len(passed) == 1 else 'first '}before step {passed[0].step + 1:,} at {passed[0].count:,}"
        return (
            f"{_settings_words(rule)}, {name} would compact {says}{if_assumed(rule)}. It did not at "
            f"{counted_words(len(passed), 'check')} that reached it, {first}{or_failed(rule)}."
        )
    return f"{name} compacts {says}{_condition(explanation, rule)}."


def _other_stretch(explanation: Explanation) -> str:
    """The rule of the first compaction that comes before a call of another model or version, if its threshold is
    another than the main one."""
    rule, stretches = explanation.rule, explanation.stretches
    if rule is None:
        return ""
    for item in explanation.compactions:
        place = next((number for number, stretch in enumerate(stretches) if item.step < stretch.stop), -1)
        place -= int(item.before_change)
        own, stretch = explanation.rules[place], stretches[place]
        if item.trigger != MANUAL and own.threshold is not None and own.threshold == item.threshold != rule.threshold:
            where = "above" if own.relation == ">" else "at"
            name = " ".join(filter(None, (stretch.model, own.version)))
            threshold = f"{equation(own.threshold, own.formula, ': ')}{if_assumed(own)}"
            return f"With {name}, from step {stretch.start + 1:,} on, {where} {threshold}."
    return ""


def _settings_words(rule: OwnRule) -> str:
    """What a threshold that the recording excludes follows from."""
    sources = {item.source for item in rule.settings if item.value is not None and item.name != "window"}
    if Provenance.USER in sources:
        return "With the settings given here"
    return "With its default settings" if Provenance.ASSUMED in sources else "By the rule known here"


def _without_rule(unknown: str) -> str:
    """Why no rule is compared. `unknown`: what wrote the session."""
    if unknown in SIMULATED:
        return "This session is simulated: no agent wrote it, so no agent's rule applies."
    return f"The rule by which {unknown} compacts is not known here."


def _condition(explanation: Explanation, rule: OwnRule) -> str:
    """What the sentence rests on: an assumed window; and where the recording does not agree, assumed settings."""
    if condition := if_assumed(rule):
        return condition
    defaults = any(item.source is Provenance.ASSUMED and item.value is not None for item in rule.settings)
    return ", if its settings are the defaults" if defaults and explanation.agrees < explanation.comparable else ""


def _recorded_words(explanation: Explanation) -> str:
    """The counts at which it compacted. Those of compactions that a person asked for, or that a refused request forced,
    are not evidence of the rule."""
    compactions = [item for item in explanation.compactions if not item.slides]
    moves = len(explanation.compactions) - len(compactions)
    if moves and not compactions:
        return f"{_moves_words(moves)}."
    slides = f" {_moves_words(moves)}." if moves else ""
    counted = [item for item in compactions if item.decision_tokens is not None]
    unknown = [item for item in compactions if item.recorded and item.decision_tokens is None]
    impossible = [item.recorded or 0 for item in unknown if item.computed is not None]
    doubt = f" No request can have had what the file also says: {_listed(impossible)}." if impossible else ""
    if not counted:
        with_count = " with a count" if compactions else ""
        return f"No compaction{with_count} is recorded.{doubt.replace(' also', '')}{slides}"
    manual = [item.decision_tokens or 0 for item in counted if item.trigger == MANUAL]
    others = [item for item in counted if item.trigger != MANUAL]
    own, forced = (
        [item.decision_tokens or 0 for item in others if item.after_refusal is side] for side in (False, True)
    )
    named = (("", own), ("after a refused request ", forced), ("manually ", manual))
    unit = "" if explanation.rule is None or explanation.rule.unit == "tokens" else f" {explanation.rule.unit}"
    places = "; ".join(f"{words}{_places(counts)}{unit}" for words, counts in named if counts)
    return f"Recorded {places}{_of_what(explanation, counted)}.{doubt}{slides}"


def _moves_words(moves: int) -> str:
    """How many compactions have no threshold to find."""
    return f"{counted_words(moves, 'compaction')} {'is a move' if moves == 1 else 'are moves'} of a sliding window"


def _of_what(explanation: Explanation, counted: list[ExplainedCompaction]) -> str:
    """What the counts of compactions are, in brackets: sizes that the agent wrote down, or its last counts."""
    if all(item.recorded is not None for item in counted):
        one, several = "the size before it, as the agent wrote it", "the sizes before, as the agent wrote them"
        return f" ({one if len(counted) == 1 else several})"
    briefly = BRIEFLY.get(PROMPT if explanation.rule is None else explanation.rule.counter, "")
    return f" ({briefly})" if briefly else ""


def _places(counts: list[int]) -> str:
    """Some counts: one by one, or where they are many or all the same how many, and the range."""
    low, high = min(counts), max(counts)
    if len(counts) > LISTED or (low == high and len(counts) > 1):
        return f"{len(counts):,} times, at {low:,}" + (f" to {high:,}" if low < high else "")
    return f"at {_listed(counts)}"


def _listed(counts: list[int]) -> str:
    """The first counts, one by one."""
    *others, last = [f"{count:,}" for count in counts[:LISTED]]
    return f"{', '.join(others)} and {last}" if others else last


def _agreement(explanation: Explanation) -> str:
    rule, refuting = explanation.rule, explanation.refuting
    if rule is None or not explanation.auto or explanation.agrees == explanation.auto:
        return ""
    automatic = [item for item in explanation.compactions if item.trigger != MANUAL]
    condition = "" if all(item.trigger == AUTOMATIC for item in automatic) else ", if it compacted by itself,"
    refuting = refuting or _own_interval(explanation)
    if rule.assumed_window is None and refuting is not None:
        return f"So{condition} its threshold is {refuting.words}{explaining(refuting)}."
    interval = _bounded(explanation, rule)
    if not explanation.comparable and interval is not None:
        assumed = (
            "" if rule.assumed_window is None else "The window is not known, and the assumed one is contradicted: by"
        )
        return f"{assumed or 'By'} its recording{condition} the threshold is {interval.words}{explaining(interval)}."
    disagree = explanation.agrees < explanation.comparable
    others = (item for item in explanation.compactions if item.trigger != MANUAL)
    wanted = (item for item in others if item.verdict is not Agreement.AGREES)
    first = next(item for item in wanted if not disagree or item.verdict is not Agreement.NOT_MODELLED)
    words = agreement_words(explanation)
    where = "after the last step" if explanation.is_behind(first.step) else f"before step {first.step + 1:,}"
    return f"{words[:1].upper()}{words[1:]}; {where}: {reason_words(first)}."


def _own_interval(explanation: Explanation) -> Interval | None:
    """What the recording proves of a threshold where by the rule of its agent there is none: None where no compaction
    speaks against that rule, or no threshold explains them."""
    rule = explanation.rule
    if rule is None or rule.checks is not Moment.REFUSAL:
        return None
    if all(item.verdict is not Agreement.OTHER_THRESHOLD for item in explanation.compactions):
        return None
    return _bounded(explanation, rule)


def _bounded(explanation: Explanation, rule: OwnRule) -> Interval | None:
    """What the recording proves of the threshold by the count of the rule, where that has an upper bound."""
    return next(
        (
            item
            for item in explanation.inference
            if item.counter == rule.counter and item.at_most is not None and not item.contradiction
        ),
        None,
    )


def agreement_words(explanation: Explanation) -> str:
    """How many of the automatic compactions the rule explains, and how many cannot be compared with it."""
    compared, others = explanation.comparable, explanation.auto - explanation.comparable
    if not compared:
        return "no compaction can be compared"
    noun = "compaction agrees" if compared == 1 else "compactions agree"
    rest = f", {others:,} cannot be compared" if others else ""
    return f"{explanation.agrees:,} of {compared:,} {noun}{rest}"


NOTHING = "nothing to compare"  # in the place of a comparison, where one side is not known
SIGNS = {">=": ("<", "≥"), ">": ("≤", ">")}  # of a rule's relation: where it does not hold, and where it does


def reason_words(item: ExplainedCompaction) -> str:
    """The reason of a verdict for people, with the signs of `inequality`."""
    return item.reason.replace(">=", "≥")


def inequality(decision: RuleDecision) -> str:
    """The comparison at one check with its numbers: "155,277 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000"."""
    rule, count = decision.rule, decision.count
    if count is None:
        return NOTHING
    if rule is None:
        return f"{count:,} prompt tokens"
    if rule.threshold is None and rule.checks is Moment.REFUSAL and rule.window is not None:
        window = rule.window.value
        return f"{count:,} {SIGNS['>'][count > window]} {window:,} (window); {threshold_words(rule)}"
    if rule.threshold is None:
        return f"{count:,}, {threshold_words(rule)}"
    sign = SIGNS[rule.relation][rule.fires(count)]
    if not rule.threshold:
        return f"{count:,} {sign} 0: {equation(rule.threshold, rule.formula)}"
    return f"{count:,} {sign} {equation(rule.threshold, rule.formula)}"


def comparison(decision: RuleDecision) -> str:
    """The comparison at one check without the sum: "155,277 ≥ 155,000"; the threshold in words where there is none."""
    rule, count = decision.rule, decision.count
    if rule is None or rule.threshold is None or count is None:
        return inequality(decision) if rule is None or count is None else threshold_words(rule)
    return f"{count:,} {SIGNS[rule.relation][rule.fires(count)]} {rule.threshold:,}"


def threshold_words(rule: OwnRule) -> str:
    """The threshold of a rule, or why there is no number."""
    if rule.threshold is not None:
        return f"threshold {rule.threshold:,}"
    return "no threshold" if rule.checks in (Moment.REFUSAL, Moment.NEVER) else "threshold not known"


def decision_words(decision: RuleDecision) -> str:
    """What the agent did at one check, and what its rule says of it."""
    if decision.compaction is not None:
        return _compacted(decision)
    if decision.rule is None:
        return f"The agent did not compact here{_inferred(decision)}."
    if decision.reason:
        return f"No compaction: {decision.reason}."
    if decision.count is None or decision.rule.threshold is None:
        unknown = _unknown_threshold(decision.rule)
        return f"No compaction; {unknown}." if unknown else f"No compaction: {decision.rule.reason or NO_THRESHOLD}."
    left = decision.rule.threshold - decision.count
    if decision.fires:
        over = f"{counted_words(-left, 'token')} above its threshold" if left else "at its threshold"
        return f"The rule fires here, {over}, and {decision.rule.agent} did not compact{or_failed(decision.rule)}."
    if not left:
        return "No compaction: the count must exceed the threshold."
    return f"No compaction: {counted_words(left, 'token')} {'remains' if left == 1 else 'remain'} to the threshold."


def _unknown_threshold(rule: OwnRule) -> str:
    """That a rule's threshold is not known, which is no reason of the agent; "" where it is, or where there is none."""
    if rule.threshold is not None or not rule.reason or rule.checks in (Moment.REFUSAL, Moment.NEVER):
        return ""
    return f"the threshold is not known, because {rule.reason}"


def _compacted(decision: RuleDecision) -> str:
    item, rule = decision.compaction, decision.rule
    assert item is not None
    if rule is None:
        return f"The agent compacted here{_inferred(decision)}."
    if item.verdict is Agreement.AGREES and rule.threshold is not None:
        return f"{rule.agent} compacted here: the count reached the threshold."
    if (unknown := _unknown_threshold(rule)) and item.reason.startswith(rule.reason):
        return f"{rule.agent} compacted here; {unknown}{reason_words(item).removeprefix(rule.reason)}."
    verdict = "" if item.verdict in (Agreement.NOT_MODELLED, Agreement.AGREES) else f", {item.verdict}"
    return f"{rule.agent} compacted here{verdict}: {reason_words(item)}."


def _inferred(decision: RuleDecision) -> str:
    interval = decision.interval
    return "" if interval is None else f"; by its recording, {interval.sentence}"
