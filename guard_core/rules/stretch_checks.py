"""The checks of a part of a session beside the rule of its agent: which are evidence, and what each compaction says.

A part is all stretches of one model and one version of the agent: an agent that changes between two models has two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from guard_core.agent_versions import numbers
from guard_core.estimation.recorder_figures import Unfit, unfit_figures
from guard_core.ledger import Ints
from guard_core.rules import agreement
from guard_core.rules.agreement import Agreement, ExplainedCompaction, MissedCheck
from guard_core.rules.base import Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.check_counts import CheckCounts
from guard_core.rules.counters import (
    LAST_PROMPT,
    LAST_TOTAL,
    UNKNOWN,
    Checks,
    RuleCounter,
)
from guard_core.rules.evidence import Cause, CompactionCheck, StretchEvidence
from guard_core.rules.inference import CheckEvidence, Interval, general_variants, interval_of, with_hypotheses
from guard_core.rules.settings import Typed
from guard_core.rules.turn_ends import TurnEnds
from guard_core.sessions import Session
from guard_core.triggers import (
    AUTOMATIC,
    BY_PLUGIN,
    CUT_OFF,
    MANUAL,
    OVERFLOW,
    POST_TURN,
    PREFLIGHT,
    REQUESTED,
    trigger_of,
)

# The recorders' own words for compactions that no count caused: after a refused request (OpenCode, Qwen Code),
# because of an answer that was cut off (ours, of pi), many pictures (Qwen Code), scarce memory or another model
# (Copilot CLI); of OpenHands, whose agent requests a condensation after a refused request; and of Kilo, by an
# estimate that no file has; and of a plugin of OpenCode.
PICTURES = "image_overflow"
MEMORY, MODEL_SWITCH = "memory_pressure", "model_switch"
NO_COUNT = {
    OVERFLOW: "the provider had refused the request, whatever the threshold",
    REQUESTED: "it was requested, by a person or after a refused request, whatever the threshold",
    CUT_OFF: "the answer before it was cut off at its limit of tokens and left out, whatever the threshold",
    PICTURES: "many pictures of tools had come together, whatever the threshold",
    MEMORY: "the agent's memory was scarce, whatever the threshold",
    PREFLIGHT: "the request was estimated with system prompt and tools, which are not in the file",
    MODEL_SWITCH: "the session went on with another model, whatever its threshold",
    BY_PLUGIN: "an extension of the agent made it, when the model asked for it, whatever the threshold",
}
AT_END = "it was made at the end of a turn, by a threshold of its own, which the file does not say"
SLIDES = "it is a move of a window that slides by design, whatever the count"
AT_CHANGE = "it was made between calls of two models, versions or windows, and it is not known whose threshold applied"


class StretchChecks:
    """The checks of a part of a session under its rule (None: not known).

    `stretch` reaches from the first to the last of its stretches; its `rows` among the checks may have gaps.
    """

    def __init__(self, counted: CheckCounts, stretch: Stretch, rows: Ints, rule: OwnRule | None, typed: Typed) -> None:
        agent, checks = counted.agent, counted.checks
        self.session, self.checks, self.agent = counted.session, checks, agent
        self.stretch, self.typed, self.counted = stretch, typed, counted
        self.rule, self.rows = rule, rows
        self.counts, self.pending = counted.of(stretch), counted.pending(stretch)
        if agent is not None and agent.settled is not None and rule is not None:
            settled = agent.settled(counted.session, counted.ledger, checks, rule)
            self.counts = np.where(checks.place >= 0, settled, self.counts)
        self.held = counted.held
        self.before_change: set[int] = set()  # the rows of compactions before calls of another part
        self.at_change: set[int] = set()  # the rows of compactions that may as well belong to another part

    def take_over(self, row: int, other: StretchChecks) -> None:
        """Count a compaction of another part, which the next call is of, among these checks."""
        other.rows = other.rows[other.rows != row]
        self.rows = np.union1d(self.rows, [row])
        self.before_change.add(row)

    @property
    def threshold(self) -> int | None:
        """The threshold of the rule, None where it is not known."""
        return None if self.rule is None else self.rule.threshold

    def can(self, rows: Ints) -> NDArray[np.bool_]:
        """At which of these checks the agent may compact."""
        free = ~self.held[rows]
        return free & (self.checks.between[rows] > 0) if at_turn_end(self.rule) else free

    @cached_property
    def quiet(self) -> Ints:
        """The rows at which the agent may compact and did not; not those where it may have, without a record, as where
        its rule fires and the next request is smaller (`-p` of Claude Code 1.0.80, run), or where the request had fewer
        tokens than what is estimated of its end alone: that was not sent as the file has it."""
        steps = self.checks.step[self.rows]
        passed = (self.checks.place[self.rows] < 0) & ~np.isin(steps, self.counted.cut)
        sent = np.append(self.counted.ledger.steps["prompt_tokens"], -1)[steps]
        passed &= (sent <= 0) | (self.pending[self.rows] <= sent)
        if self.threshold is not None:
            passed &= (self.counts[self.rows] < self.threshold) | ~np.isin(steps, self.counted.fallen)
        return self.rows[self.can(self.rows) & passed]

    @cached_property
    def points(self) -> list[tuple[CheckEvidence, int]]:
        """The compactions that are evidence, with their rows."""
        points = [(self.point(row, self.count_of(row)), row) for row in self.compacted_rows()]
        return [(point, row) for point, row in points if point is not None]

    @cached_property
    def ends(self) -> TurnEnds:
        """The ends of turns among these checks."""
        rows = [row for row in self.compacted_rows() if self._is_at_end(row)]
        return TurnEnds(self.counted, self.stretch, self.rule, self.typed, self.counts, self.quiet, rows)

    def _is_at_end(self, row: int) -> bool:
        """Was a compaction made at the end of a turn that has a threshold."""
        return self._has_ends and self.trigger(row) == POST_TURN

    @cached_property
    def _has_ends(self) -> bool:
        """Has the agent a threshold of its own at ends of turns. Kept, as every compaction asks."""
        ends = None if self.agent is None else self.agent.turn_ends
        return ends is not None and any(True for _ in ends(self.stretch, self.typed))

    def compacted_rows(self) -> list[int]:
        """The rows at which a compaction was made."""
        return [int(row) for row in self.rows[self.checks.place[self.rows] >= 0]]

    def recorded(self, row: int) -> int | None:
        """The count that the agent wrote down at a compaction."""
        if self.agent is None or not self.agent.records_count:
            return None
        if () < numbers(self.stretch.version) < self.agent.records_from:
            return None
        return self.session.compactions[int(self.checks.place[row])].tokens_before or None

    def unfit(self, row: int) -> Unfit | None:
        """The count that the agent wrote down at a compaction, where no request can have had it."""
        unfit = unfit_figures(self.counted.ledger).get(int(self.checks.place[row]))
        return unfit if self.recorded(row) else None

    def count_of(self, row: int) -> int | None:
        """The count that was compared at a compaction, None where neither is known or the recorded one is none."""
        if self.unfit(row) is not None:
            return None
        count, recorded = int(self.counts[row]), self.recorded(row)
        written = None if self.agent is None or not recorded else self.agent.recorded_by(self.stretch)
        if written is not None and recorded:
            differs = int(self.pending[row]) - int(self.counted.pending_by(written)[row])
            return None if count == UNKNOWN else recorded + differs
        return recorded or (None if count == UNKNOWN else count)

    def point(self, row: int, count: int | None) -> CheckEvidence | None:
        """A compaction as evidence of the threshold; None for one that proves nothing of it."""
        if self.agent is not None and self.agent.settled is not None:
            return None  # its count is a bound, which says whether the rule fires and no more
        if row in self.at_change or self._is_at_end(row):
            return None
        if count is None or self.excuse(row) or self.refusal(row, count) is not None:
            return None
        return CheckEvidence(int(self.checks.step[row]), count, _is_sure(self.session, int(self.checks.place[row])))

    def _why_elsewhere(self, row: int) -> str:
        """Why a compaction at which the rule does not fire says nothing of it, "" where it does."""
        if self._is_at_end(row):
            return AT_END
        if row in self.at_change:
            return AT_CHANGE
        return self.counted.why_held(row) if self.held[row] else ""

    def excuse(self, row: int) -> str:
        """Why a compaction says nothing of the rule, "" where it does."""
        item = self.session.compactions[int(self.checks.place[row])]
        by_person = "a person asked for it"
        if (unfit := self.unfit(row)) is not None:
            return (
                f"the file says {unfit.figure:,}, but no request so soon after one of {unfit.prompt:,} can be so large"
            ) + (f"; {by_person}" if trigger_of(item) == MANUAL else "")
        if trigger_of(item) == MANUAL:
            return by_person
        if self._slides(row):
            return SLIDES
        if (word := self.trigger(row)) in NO_COUNT:
            return NO_COUNT[word]
        if (why := self._why_elsewhere(row)) and (self.threshold is None or not self.fires(row)):
            return why
        if at_turn_end(self.rule) and not self.checks.between[row]:
            others = "" if self.agent is None else f": {self.agent.within_turns}"
            return f"within a turn, where the rule is not checked{others}"
        return ""

    def trigger(self, row: int) -> str:
        """The recorder's own word for why it compacted; OVERFLOW where a request was refused before, and no person
        asked."""
        item = self.session.compactions[int(self.checks.place[row])]
        word, by_person = item.trigger.lower(), trigger_of(item) == MANUAL
        return OVERFLOW if self.counted.refused[row] and not by_person and word not in NO_COUNT else word

    def _slides(self, row: int) -> bool:
        return int(self.checks.place[row]) in self.counted.sliding

    def fires(self, row: int) -> bool:
        """Does the rule fire at a compaction, as far as its threshold is known."""
        count = self.count_of(row)
        if self.rule is None or count is None:
            return False
        return self.rule.threshold is None or self.rule.fires(count)

    def refusal(self, row: int, count: int) -> tuple[Agreement, str, int, int] | None:
        """The verdict of a compaction after a refused request, None for any other."""
        window = None if self.rule is None else next((s.value for s in self.rule.settings if s.name == "window"), None)
        if self.rule is None or window is None:
            return None
        if self.rule.checks is Moment.REFUSAL and (words := self._shown(row)):
            return Agreement.AGREES, words, 0, 0
        return agreement.after_refusal(self.rule, int(window), count, int(self.pending[row]))

    def _shown(self, row: int) -> str:
        """By what a compaction shows that a refused request forced it: by itself, or as another one of these calls
        shows that nothing else makes the agent compact."""
        own = self._refusals.get(row, "")
        if own or not self._refusals:
            return own
        other = f"{self.checks.step[next(iter(self._refusals))] + 1:,}"
        return f"the provider refused the request: the compaction before step {other} shows that no threshold is set"

    @cached_property
    def _refusals(self) -> dict[int, str]:
        """The rows of compactions that show by themselves that a refused request forced them, and by what: none where a
        larger prompt was answered."""
        if self.agent is None:
            return {}
        items = ((row, self.session.compactions[int(self.checks.place[row])]) for row in self.compacted_rows())
        own = {row: item for row, item in items if trigger_of(item) != MANUAL and self._may_be_refused(row)}
        shown = {row: self.agent.shows_refusal(self.stretch, self.counted.ledger, item) for row, item in own.items()}
        return {row: words for row, words in shown.items() if words}

    def _may_be_refused(self, row: int) -> bool:
        """Was no larger prompt answered than the request before a compaction, of which a part is an estimate that may
        be half of what it is."""
        count = self.count_of(row)
        return count is None or count + int(self.pending[row]) >= self.stretch.largest

    # -- evidence

    def passed(self, counts: Ints) -> list[CheckEvidence]:
        """The check with the largest count at which the agent did not compact."""
        known = self.quiet[counts[self.quiet] > 0]
        if not len(known):
            return []
        row = int(known[np.argmax(counts[known])])
        return [CheckEvidence(int(self.checks.step[row]), int(counts[row]))]

    def intervals(self) -> Iterator[Interval]:
        """The interval of the rule's own counter; where that contradicts itself, those of other counters that do not.
        Without a rule, of the prompt and of the total."""
        if self.rule is None:
            for counter in (LAST_PROMPT, LAST_TOTAL):
                yield with_hypotheses(self._by(counter), general_variants(self.stretch))
            return
        own = self.own_interval
        yield own
        if (at_ends := self.ends.interval()) is not None:
            yield at_ends
        if own.contradiction:
            for counter in (LAST_PROMPT, LAST_TOTAL):
                other = self._by(counter)
                if counter.name != self.rule.counter and not other.contradiction:
                    yield with_hypotheses(other, self._variants())

    @cached_property
    def own_interval(self) -> Interval:
        """The interval of the rule's own counter, with the hypotheses inside."""
        assert self.rule is not None
        fired = [point for point, _ in self.points]
        interval = self._interval(self.rule.counter, self.rule.relation, self.counts, fired)
        fitted = None if self.agent is None else self.agent.fitted
        own = None if fitted is None else partial(fitted, self.stretch)
        return with_hypotheses(interval, self._variants(), own)

    def _by(self, counter: RuleCounter) -> Interval:
        counts = self.counted.by(counter)
        rows = self.compacted_rows() if self.rule is None else [row for _, row in self.points]
        fired = [point for row in rows if (point := self.point(row, int(counts[row]))) and point.tokens > 0]
        relation = ">=" if self.rule is None else self.rule.relation
        return self._interval(counter.name, relation, counts, fired)

    def _interval(self, counter: str, relation: str, counts: Ints, fired: Iterable[CheckEvidence]) -> Interval:
        """What these checks leave by some counts."""
        calls = len(self.session.calls)
        return interval_of(self.stretch, counter, relation, self.passed(counts), fired, calls=calls)

    def _variants(self) -> Iterable[Hypothesis]:
        return () if self.agent is None else self.agent.hypotheses(self.stretch, self.typed)

    def evidence(
        self, agent: str, explained: Sequence[ExplainedCompaction], missed: Sequence[MissedCheck]
    ) -> StretchEvidence:
        """What these checks prove. `explained` and `missed` are their own, as below."""
        own = [item for item in explained if item.trigger != MANUAL and not item.slides]
        return StretchEvidence(
            agent=agent,
            stretch=self.stretch,
            rule=self.rule,
            counter=LAST_PROMPT.name if self.rule is None else self.rule.counter,
            relation=">=" if self.rule is None else self.rule.relation,
            passed=next(iter(self.passed(self.counts)), None),
            compactions=tuple(self._checked()),
            auto=len(own),
            comparable=sum(item.verdict is not Agreement.NOT_MODELLED for item in own),
            agrees=sum(item.verdict is Agreement.AGREES for item in own),
            missed=len(missed),
        )

    def _checked(self) -> Iterator[CompactionCheck]:
        """The compactions, each with the largest count of these checks that passed since the compaction before it."""
        epoch = np.searchsorted(self.counted.compacted, self.quiet)  # the compaction that comes next
        largest = np.zeros(len(self.counted.compacted) + 1, dtype=np.int64)
        np.maximum.at(largest, epoch, self.counts[self.quiet])
        passed = dict(zip(self.counted.compacted.tolist(), largest.tolist(), strict=False))
        for row in self.compacted_rows():
            count = self.count_of(row)
            cause = self._cause(row, count)
            step = int(self.checks.step[row])
            yield CompactionCheck(step, count, passed[row], cause, self._time(step, int(self.checks.place[row])))

    def _cause(self, row: int, count: int | None) -> Cause:
        item = self.session.compactions[int(self.checks.place[row])]
        if trigger_of(item) == MANUAL:
            return Cause.MANUAL
        if self._slides(row):
            return Cause.SLIDING
        if self.trigger(row) == OVERFLOW or (count is not None and self.refusal(row, count) is not None):
            return Cause.REFUSED
        is_sure = _is_sure(self.session, int(self.checks.place[row]))
        if self.point(row, count) is None:
            return Cause.UNPROVEN if is_sure else Cause.UNKNOWN
        return Cause.AUTOMATIC if is_sure else Cause.UNSTATED

    def _time(self, step: int, place: int) -> float | None:
        """When a compaction was made: as recorded, else when the next call was, else when the session began."""
        calls = self.session.calls
        recorded = self.session.compactions[place].timestamp
        if recorded is None and step < len(calls):
            recorded = calls[step].timestamp
        return self.session.started_at if recorded is None else recorded

    # -- agreement

    def compactions(self) -> Iterator[ExplainedCompaction]:
        """Each compaction of the stretch beside the rule."""
        interval = None if self.rule is None else self.own_interval
        for row in self.compacted_rows():
            place, count = int(self.checks.place[row]), self.count_of(row)
            computed = int(self.counts[row])
            verdict, reason, calls, tokens = self.verdict(row, count, interval)
            yield ExplainedCompaction(
                step=int(self.checks.step[row]),
                place=place,
                trigger=trigger_of(self.session.compactions[place]),
                decision_tokens=count,
                recorded=self.recorded(row),
                computed=None if computed == UNKNOWN else computed,
                threshold=None if (rule := self.ends.rule_at(row)) is None else rule.threshold,
                verdict=verdict,
                reason=reason,
                calls=calls,
                tokens=tokens,
                after_refusal=self._cause(row, count) is Cause.REFUSED,
                before_change=row in self.before_change,
                slides=self._slides(row),
            )

    def verdict(self, row: int, count: int | None, interval: Interval | None) -> tuple[Agreement, str, int, int]:
        """Verdict, reason, calls and tokens of one compaction."""
        step = int(self.checks.step[row])
        if self.rule is None or interval is None:
            reason = SLIDES if self._slides(row) else "the rule of this agent is not known"
            return Agreement.NOT_MODELLED, reason, 0, 0
        if (at_end := self.ends.verdict(row, count)) is not None:
            return at_end
        if excuse := self.excuse(row):
            verdict = Agreement.AGREES if self.trigger(row) == OVERFLOW else Agreement.NOT_MODELLED
            return verdict, excuse, 0, 0
        if count is None:
            own = "" if self.agent is None else self.agent.uncounted
            counter = LAST_PROMPT if self.agent is None else self.agent.compared(self.stretch, self.typed)
            return Agreement.NOT_MODELLED, own or self.counted.why_uncounted(row, counter), 0, 0
        if (refused := self.refusal(row, count)) is not None:
            return refused
        if step in interval.left_out and not self._is_sure_or_due(row, count, interval):
            return Agreement.NOT_MODELLED, _doubt(interval, count), 0, 0
        is_bound = self.agent is not None and self.agent.bounds_counts
        return agreement.judged(self.rule, interval, count, self.earlier(row), is_bound=is_bound)

    def _is_sure_or_due(self, row: int, count: int, interval: Interval) -> bool:
        """Does the file say that a compaction was automatic, or the rule, borne out by the other checks, that the agent
        compacts at this count whether or not a person asks for it."""
        rule = self.rule
        is_borne_out = rule is not None and rule.threshold is not None and interval.contains(rule.threshold)
        is_due = is_borne_out and rule is not None and rule.fires(count)
        return is_due or _is_sure(self.session, int(self.checks.place[row]))

    def earlier(self, row: int) -> list[int]:
        """The counts at the checks between the last compaction and this one at which the agent could have compacted by
        this rule: those before calls of another model or version have another one."""
        number = int(np.searchsorted(self.counted.compacted, row))
        first = int(self.counted.compacted[number - 1]) + 1 if number else 0
        counts = self.counts[self.quiet[(self.quiet >= first) & (self.quiet < row)]]
        return [int(count) for count in counts[counts > 0]]

    def missed(self) -> Iterator[MissedCheck]:
        """The checks at which the rule fires and the agent did not compact."""
        if self.rule is None or self.rule.threshold is None:
            return
        for row in self.quiet[self.counts[self.quiet] >= max(self.rule.threshold, UNKNOWN + 1)]:
            if self.rule.fires(int(self.counts[row])):
                yield MissedCheck(int(self.checks.step[row]), int(self.counts[row]), self.rule.threshold)
        yield from self.ends.missed()


def _is_sure(session: Session, place: int) -> bool:
    """Does the file say that a compaction was automatic."""
    return trigger_of(session.compactions[place]) == AUTOMATIC


def _doubt(interval: Interval, count: int) -> str:
    """Why a compaction whose trigger the file does not say is taken for one that a person asked for."""
    if interval.above is not None and count <= interval.above:
        others = f"it did not compact at {interval.above:,}"
    else:
        others = f"its automatic compactions were at {interval.at_most or 0:,} or more"
    return f"a person may have asked for it, the file does not say: elsewhere {others}"


def at_turn_end(rule: OwnRule | None) -> bool:
    """Does a rule look at the end of turns alone."""
    return rule is not None and rule.checks is Moment.TURN_END


def rows_of(checks: Checks, stretches: Sequence[Stretch], rules: Sequence[OwnRule | None]) -> list[Ints]:
    """The checks of each stretch: before its calls, those at the end of a turn behind them."""
    steps = checks.step
    places = []
    for stretch, rule in zip(stretches, rules, strict=True):
        behind = int(at_turn_end(rule))
        first = np.searchsorted(steps, stretch.start + behind) if stretch.start else 0
        is_last = stretch is stretches[-1]
        stop = len(steps) if is_last else np.searchsorted(steps, stretch.stop + behind)
        places.append(np.arange(first, stop))
    return places


def settle_changes(parts: Sequence[StretchChecks], belongs: Sequence[int], stretches: Sequence[Stretch]) -> None:
    """Give each compaction between two stretches to the one whose threshold counted. What is sent next is of the second
    one, but where the user wrote after the compaction, the agent had made it before, unless only the rule of the second
    one fires: pi looks again before a prompt, with the model that was chosen for it (1.6.0, run). Else it belongs to
    the one whose rule alone fires at its count; where both fire, or none, it bounds no threshold unless both have the
    same."""
    for number in range(1, len(stretches)):
        former, later = (parts[belongs[place]] for place in (number - 1, number))
        checks, user_events = later.checks, later.counted.ledger.steps["user_event"]
        for row in later.compacted_rows() if former is not later else ():
            if checks.step[row] != stretches[number].start:
                continue
            if user_events[checks.step[row]] >= checks.stop[row]:
                if former.fires(row) or not later.fires(row):
                    former.take_over(row, later)
            elif former.threshold is not None and former.threshold == later.threshold:
                continue
            elif former.fires(row) == later.fires(row):
                later.at_change.add(row)
            elif former.fires(row):
                former.take_over(row, later)
