"""What the rule of the agent itself says of a recording: compactions and checks that do not fit it."""

from __future__ import annotations

from typing import Any, NamedTuple

from guard_core.findings.claims import INFO, LISTED, RULE_DEFAULTS, WARNING, Finding
from guard_core.findings.facts import Case
from guard_core.findings.words import at_step, counted, window_assumptions
from guard_core.rules import Agreement, Interval, OwnRule, RuleNumber, Stretch
from guard_core.rules.agreement import count_below, or_failed
from guard_core.rules.inference import bound_words
from guard_core.rules.registry import agent_of
from guard_core.sessions import Provenance
from guard_core.triggers import AUTOMATIC, MANUAL

SIGNS = {">=": "≥", ">": ">"}


class _Ruled(NamedTuple):
    """A stretch whose rule has a threshold, and what its checks prove of it."""

    stretch: Stretch
    rule: OwnRule
    interval: Interval | None


def own_rule_gaps(case: Case) -> list[Finding]:
    """Where a recording and the rule of its agent part: one finding of each kind, of the first stretch that has it."""
    if case.facts.is_contextguards or not case.window_counts or case.facts.is_miscounted:
        return []
    explanation = case.facts.explanation
    findings: dict[str, Finding] = {}
    for stretch, rule in zip(explanation.stretches, explanation.rules, strict=False):
        # A small window less a large reserve is not a threshold; the findings are of tokens.
        if rule.threshold is None or rule.threshold <= 0 or rule.unit != "tokens":
            continue
        ruled = _Ruled(stretch, rule, explanation.interval_of(stretch, rule.counter))
        of_stretch = (
            [_other_threshold(case, ruled)]
            if _is_elsewhere(case, ruled)
            else [_early(case, ruled), _missed(case, ruled)]
        )
        for finding in filter(None, of_stretch):
            findings.setdefault(finding.kind, finding)
    return list(findings.values())


def _is_elsewhere(case: Case, ruled: _Ruled) -> bool:
    """Do the checks fit one threshold that is not the rule's."""
    interval, threshold = ruled.interval, ruled.rule.threshold
    if interval is None or interval.at_most is None or interval.contradiction or threshold is None:
        return False
    if interval.above_step in {fall.step for fall in case.facts.falls if fall.is_deep}:
        return False  # the check did not pass: the prompt fell there, without a record
    return not interval.contains(threshold)


def _other_threshold(case: Case, ruled: _Ruled) -> Finding:
    rule, interval = ruled.rule, ruled.interval
    assert interval is not None
    assert interval.at_most is not None
    assert interval.at_most_step is not None
    bounding = _bounding(case, interval)
    numbers: dict[str, Any] = {"high": interval.at_most, "high_step": _step(case, interval.at_most_step)}
    numbers |= {"high_compaction": bounding.compaction, "by_itself": bounding.is_automatic}
    above, below = bound_words(interval.relation)
    low = ""
    if interval.above is not None and interval.above_step is not None:
        numbers |= {"low": interval.above, "low_step": _step(case, interval.above_step)}
        low = f"{above} {interval.above:,} ({at_step(numbers['low_step'])}) and "
    stated = (item for item in rule.settings if item.source is Provenance.USER and item.unit)
    typed = next((item for item in stated if item.name != "window"), None)
    if typed is not None and typed.value is not None:
        return _never_acts(case, ruled, typed, numbers)
    high = f"{below} {interval.at_most:,} (compaction {bounding.compaction + 1:,})"
    condition = "" if bounding.is_automatic else f"if compaction {bounding.compaction + 1:,} was automatic, "
    bounds = f"{low}{high}"
    of = "of " if bounds.startswith("at ") else ""  # of at least, of at most; above, below
    fits = f"{condition}every known count{_but_left_out(interval)} fits a threshold {of}{bounds}"
    if interval.left_out:
        numbers["left_out"] = len(interval.left_out)
    # Of the compactions that nobody is known to have asked for, how many have no known count?
    possible = [item for item in case.facts.explanation.compactions if item.trigger != MANUAL]
    unknown, automatic = sum(item.decision_tokens is None for item in possible), len(possible)
    more = f" {unknown:,} of {counted(automatic, 'compaction')} {'has' if unknown == 1 else 'have'} no known count."
    if unknown:
        numbers |= {"uncounted_compactions": unknown, "automatic_compactions": automatic}
    if rule.assumed_window is None:
        sentence = f"{fits[0].upper()}{fits[1:]}, not the {rule.threshold:,} of {rule.agent}{_conditions(case, rule)}."
        sentence += more if unknown else ""
    else:
        numbers["assumed_window"] = rule.assumed_window
        sentence = (
            f"The window of {rule.agent} is not known: {fits}; the assumed {rule.assumed_window:,} would give "
            f"{rule.threshold:,}.{more if unknown else ''}"
        )
    return _finding("other_threshold", INFO, case, rule, sentence, numbers, [numbers["high_step"]])


class _Bounding(NamedTuple):
    """The compaction, by its index, whose count bounds a threshold from above, and does the file say that it was
    automatic."""

    compaction: int
    is_automatic: bool


def _bounding(case: Case, interval: Interval) -> _Bounding:
    """The compaction whose count bounds the threshold from above; of several, the first that nobody asked for."""
    index_of = {item.place: index for index, item in enumerate(case.facts.counts.compactions)}
    bound = (interval.at_most_step, interval.at_most)
    own = [item for item in case.facts.explanation.compactions if (item.step, item.decision_tokens) == bound]
    first = next((item for item in own if item.trigger != MANUAL and not item.after_refusal), own[0])
    return _Bounding(index_of[first.place], first.trigger == AUTOMATIC)


def _but_left_out(interval: Interval) -> str:
    """The compactions that bound nothing, as part of a clause; "" where there are none."""
    count = len(interval.left_out)
    if not count:
        return ""
    which = "that of 1 compaction, which" if count == 1 else f"those of {count:,} compactions, which"
    return f" but {which} a person may have asked for,"


def _never_acts(case: Case, ruled: _Ruled, typed: RuleNumber, numbers: dict[str, Any]) -> Finding:
    """A value that a person stated, and that the recording contradicts."""
    rule, value = ruled.rule, typed.value or 0.0
    numbers = {**numbers, "setting": typed.name, "value": int(value) if float(value).is_integer() else value}
    fired = numbers["high"] <= (rule.threshold or 0)
    what, failed = ("compacted", "") if fired else ("did not compact", or_failed(rule))
    count, step = (numbers[f"{'high' if fired else 'low'}{name}"] for name in ("", "_step"))
    sentence = (
        f"The typed {typed.name} of {numbers['value']:,} never acts: with it the threshold is {rule.threshold:,}, but "
        f"{rule.agent} {what} at {count:,} ({at_step(step)}){_conditions(case, rule)}{failed}."
    )
    return _finding("setting_never_acts", WARNING, case, rule, sentence, numbers, [step])


def _early(case: Case, ruled: _Ruled) -> Finding | None:
    """Compactions at a count below the threshold."""
    rule, explanation = ruled.rule, case.facts.explanation
    index_of = {item.place: index for index, item in enumerate(case.facts.counts.compactions)}
    early = [
        item
        for item in explanation.compactions
        if item.verdict is Agreement.EARLY and item.threshold == rule.threshold and item.decision_tokens is not None
    ]
    if not any(ruled.stretch.start <= item.step <= ruled.stretch.stop for item in early):
        return None
    first, indices = early[0], [index_of[item.place] for item in early]
    assert first.decision_tokens is not None
    more = "" if len(early) == 1 else f" So did {counted(len(early) - 1, 'more compaction')}."
    step, agent = _step(case, first.step), agent_of(case.facts.session, case.facts.settings)
    is_bound = agent is not None and agent.bounds_counts
    sentence = (
        f"Compaction {indices[0] + 1:,} ({at_step(step)}) came early by the rule of {rule.agent}: "
        f"{count_below(first.decision_tokens, first.tokens, 'tokens', is_bound=is_bound)} its threshold of "
        f"{rule.threshold:,}{_conditions(case, rule)}.{more}"
    )
    numbers = {"count": first.decision_tokens, "is_bound": is_bound, "tokens": first.tokens, "compactions": indices}
    steps = [_step(case, item.step) for item in early]
    return _finding("own_early", INFO, case, rule, sentence, numbers, steps)


def _missed(case: Case, ruled: _Ruled) -> Finding | None:
    """Checks at which the rule fires and the agent did not compact, in all stretches of the same threshold."""
    rule, stretch = ruled.rule, ruled.stretch
    missed = [item for item in case.facts.explanation.missed if item.threshold == rule.threshold]
    if not any(stretch.start <= item.step < stretch.stop for item in missed):
        return None
    first = missed[0]
    checks = counted(len(missed), "check")
    where = "first at" if len(missed) > 1 else "at"
    sentence = (
        f"The rule of {rule.agent} fires at {checks} at which it did not compact, {where} {at_step(first.step)}: "
        f"{first.count:,} {SIGNS[rule.relation]} {rule.threshold:,}{_conditions(case, rule)}{or_failed(rule)}."
    )
    numbers = {"count": first.count, "checks": len(missed)}
    return _finding("own_missed", INFO, case, rule, sentence, numbers, [item.step for item in missed])


def _step(case: Case, step: int) -> int:
    """The step to look at for a check: the last one for a check behind it."""
    return min(step, case.facts.ledger.step_count - 1)


def _conditions(case: Case, rule: OwnRule) -> str:
    """What a threshold rests on, as the end of a clause."""
    conditions = ["its settings are the defaults"] if _rests_on_defaults(rule) else []
    if (window := _window(rule)) and (rule.is_window_assumed or case.window.is_unsure):
        conditions.append(f"the window is {window:,}")
    return f", if {' and '.join(conditions)}" if conditions else ""


def _rests_on_defaults(rule: OwnRule) -> bool:
    return any(item.source is Provenance.ASSUMED and item.name != "window" for item in rule.settings)


def _window(rule: OwnRule) -> int:
    """The window in tokens that the threshold is made of; 0 where it is not."""
    values = [int(item.value) for item in rule.settings if item.name == "window" and item.value is not None]
    return values[0] if values and f"{values[0]:,}" in rule.formula else 0


def _finding(
    kind: str, severity: str, case: Case, rule: OwnRule, sentence: str, numbers: dict[str, Any], steps: list[int]
) -> Finding:
    about = {"agent": rule.agent, "formula": rule.formula, "relation": rule.relation, "counter": rule.counter}
    window = {"window": _window(rule)} if _window(rule) else {}
    assumptions = (*window_assumptions(case.window), *((RULE_DEFAULTS,) if _rests_on_defaults(rule) else ()))
    data = {**about, "threshold": rule.threshold, **window, **numbers}
    return Finding(kind, severity, steps[0], sentence, data, assumptions, tuple(steps[:LISTED]), len(steps))
