"""Each automatic compaction of a recording beside the rule of its agent: does the rule fire there, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from guard_core.rules.base import Moment, OwnRule, equation
from guard_core.rules.inference import Interval
from guard_core.windows.models import if_window_is


class Agreement(StrEnum):
    """What the rule says of a compaction."""

    AGREES = (
        "agrees"  # it fires at this check, and at none since the last compaction; or the provider refused a request
    )
    LATE = "late"  # it fired at an earlier check
    EARLY = "early"  # it does not fire here
    OTHER_THRESHOLD = "other threshold"  # every check of the stretch fits one threshold, and not the rule's
    NOT_MODELLED = "not modelled"


class ExplainedCompaction(msgspec.Struct, frozen=True):
    """A compaction beside the rule. Counts are tokens of the rule's counter; steps count from 0.

    `decision_tokens` is the count that was compared: `recorded` where the agent wrote it down, else `computed`.
    `calls` (late) are the earlier checks at which the rule fired, `tokens` the distance of the count to the threshold.
    `after_refusal`: the provider had refused the request before, so that its count says nothing of a threshold.
    `before_change`: it belongs to the calls before `step`, which are of another model, version or window. `slides`: it
    is a move of a window that slides by design, whatever its count.
    """

    step: int
    place: int
    trigger: str
    decision_tokens: int | None
    recorded: int | None
    computed: int | None
    threshold: int | None
    verdict: Agreement
    reason: str
    calls: int = 0
    tokens: int = 0
    after_refusal: bool = False
    before_change: bool = False
    slides: bool = False


class MissedCheck(msgspec.Struct, frozen=True):
    """A check at which the rule fires and the agent did not compact."""

    step: int
    count: int
    threshold: int


def judged(
    rule: OwnRule, interval: Interval | None, count: int, earlier: Sequence[int], *, is_bound: bool = False
) -> tuple[Agreement, str, int, int]:
    """Verdict, reason, calls and tokens of an automatic compaction at a count. `earlier`: the counts of the checks
    before it, since the last compaction. `is_bound`: of a count below the threshold it is known that it was at most
    that."""
    threshold = rule.threshold
    if threshold is None or (interval is not None and _is_elsewhere(rule, interval)):
        return _without(rule, interval, count)
    fired = [value for value in earlier if rule.fires(value)]
    if not rule.fires(count):
        gap = threshold - count
        below = f"{count_below(count, gap, rule.unit, is_bound=is_bound)} {threshold:,}"
        reason = below if gap else f"{count:,} is not above {threshold:,}"
        return Agreement.EARLY, f"{reason}{if_assumed(rule)}", 0, gap
    over = count - threshold
    if fired:
        places = f"{len(fired):,} earlier check{'' if len(fired) == 1 else 's'}"
        reason = f"the rule fired at {places}, first at {fired[0]:,} {rule.relation} {threshold:,}"
        return Agreement.LATE, f"{reason}{if_assumed(rule)}", len(fired), over
    return Agreement.AGREES, f"{count:,} {rule.relation} {equation(threshold, rule.formula)}", 0, over


def count_below(count: int, gap: int, unit: str, *, is_bound: bool) -> str:
    """A count, and by how much it is below what follows; `is_bound`: it was at most that."""
    return f"at most {count:,} is at least {gap:,} {unit} below" if is_bound else f"{count:,} is {gap:,} {unit} below"


def _is_elsewhere(rule: OwnRule, interval: Interval) -> bool:
    """Do all checks fit one threshold that is not the rule's."""
    assert rule.threshold is not None
    return interval.at_most is not None and not interval.contradiction and not interval.contains(rule.threshold)


def _without(rule: OwnRule, interval: Interval | None, count: int) -> tuple[Agreement, str, int, int]:
    """Of a compaction whose rule has no threshold, or another one than the checks show. What contradicts an assumed
    window alone is not a disagreement."""
    own = rule.reason if rule.threshold is None else f"{_with_sum(rule.threshold, rule.formula)} does not explain it"
    if rule.assumed_window is not None:
        own = f"the window is not known: with the assumed {rule.assumed_window:,}, {own}"
    if interval is None or interval.at_most is None or interval.contradiction:
        return Agreement.NOT_MODELLED, own, 0, 0
    likely = explaining(interval)
    gap = 0 if rule.threshold is None else abs(count - rule.threshold)
    verdict = Agreement.OTHER_THRESHOLD if rule.is_known else Agreement.NOT_MODELLED
    passed = interval.above is not None and rule.fires(interval.above)
    return verdict, f"{own}; the threshold is {interval.words}{likely}{or_failed(rule) if passed else ''}", 0, gap


def _with_sum(threshold: int, formula: str) -> str:
    """A threshold with its sum first."""
    words = equation(threshold, formula)
    return f"{formula} = {threshold:,}" if " = " in words else words


def if_assumed(rule: OwnRule) -> str:
    """The window that a threshold rests on where that is an assumption or in doubt, as the end of a clause."""
    unsure = rule.threshold is not None and (rule.is_window_assumed or rule.is_window_doubted)
    return if_window_is(rule.window.value) if unsure and rule.window is not None else ""


def or_failed(rule: OwnRule) -> str:
    """That a compaction may have failed where none was made, in brackets."""
    return f" ({rule.failing})" if rule.failing else ""


def explaining(interval: Interval) -> str:
    """Which of the known formulas give a threshold inside, as the end of a sentence."""
    count = len(interval.hypotheses) + interval.more
    if count == 1:
        return f"; {interval.hypotheses[0].formula} would explain it"
    if count:
        return f"; {count:,} known formulas would explain it"
    return "; no known formula explains it" if interval.is_bounded else ""  # of one bound formulas are not looked for


def after_refusal(rule: OwnRule, window: int, count: int, pending: int) -> tuple[Agreement, str, int, int] | None:
    """Of an agent that compacts only when a request was refused: None where the request was too small for that.

    The count holds an estimate of what was appended, which may be half of what it is; so a count that exceeds the
    window with twice the estimate counts as refused, too.
    """
    if rule.checks is not Moment.REFUSAL or count + pending <= window:
        return None
    if count > window:
        reason = f"{count:,} exceeds the window of {window:,}: the provider refused the request"
    else:
        estimate = f"{count:,}, of which {pending:,} are estimated,"
        reason = f"{estimate} may exceed the window of {window:,}: the provider refused"
    return Agreement.AGREES, f"{reason}{if_window_is(window) if rule.is_window_assumed else ''}", 0, 0
