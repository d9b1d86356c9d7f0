"""The check before each call of a recording, as its agent made it: what was counted, against which threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints, Ledger
from guard_core.rules.agreement import ExplainedCompaction
from guard_core.rules.base import Moment, OwnRule
from guard_core.rules.check_counts import CheckCounts
from guard_core.rules.counters import COMPARED, LAST_PROMPT, PROMPT, UNKNOWN, RuleCounter, output_of
from guard_core.rules.explanation import Explanation
from guard_core.rules.inference import Interval
from guard_core.rules.registry import agent_of
from guard_core.sessions import Provenance, Session
from guard_core.trace import Term

NOT_ASKED = "within a turn, where it does not check"
UNRECORDED = "none is in the file, but the next request is smaller"


class RuleDecision(msgspec.Struct, frozen=True):
    """The check before the call of `step` (from 0). Figures are tokens.

    `count` is what was compared: `recorded` where the agent wrote it down at a compaction (with the difference, where
    it wrote another estimate), else `computed` from the recording; None where it is not known. `reason` says why
    nothing was compared. `compaction` is the first one made at this check, `more` counts the others. Without a rule
    (None) `interval` is what the recording proves.
    """

    step: int
    rule: OwnRule | None
    count: int | None
    recorded: int | None
    computed: int | None
    reason: str
    terms: tuple[Term, ...]
    compaction: ExplainedCompaction | None
    more: int
    interval: Interval | None

    @property
    def fires(self) -> bool:
        """Does the rule compact here."""
        return self.rule is not None and self.count is not None and not self.reason and self.rule.fires(self.count)


@dataclass(frozen=True)
class OwnChecks:
    """All checks of a recording by the rule of its agent; where that is not known, of the prompt tokens."""

    session: Session
    ledger: Ledger
    explanation: Explanation

    @property
    def agent(self) -> str:
        """Whose rule it is; empty where that is not known."""
        return "" if self.explanation.rule is None else self.explanation.rule.agent

    @cached_property
    def counts(self) -> Ints:
        """The count in tokens that is compared before each call, UNKNOWN where it is not known."""
        counts = np.full(self.ledger.step_count, UNKNOWN, dtype=np.int64)
        for number, stretch in enumerate(self.explanation.stretches):
            inside = slice(stretch.start, stretch.stop)
            counts[inside] = self._counted.of(stretch)[self._rows[inside]]
            if number < len(self.explanation.rules) and self.explanation.rules[number].checks is Moment.TURN_END:
                between = self._counted.checks.between[self._rows[inside]] > 0
                counts[inside] = np.where(between, counts[inside], UNKNOWN)
        for step, items in self._compactions_at.items():
            if step < len(counts) and items[0].decision_tokens is not None:
                counts[step] = items[0].decision_tokens
        return np.where(self._in_tokens, counts, UNKNOWN)

    @cached_property
    def compared(self) -> Ints:
        """What the agent compared before each call, in tokens: `counts`, but UNKNOWN where these are only the least
        that it may have been, because the file lacks what the agent estimates besides, if it does."""
        is_least = np.zeros(self.ledger.step_count, dtype=np.bool_)
        agent = self._counted.agent
        if agent is None or agent.series is not None:
            return self.counts
        for stretch in self.explanation.stretches:
            counter, inside = agent.compared(stretch, self.explanation.typed), slice(stretch.start, stretch.stop)
            lacks = self.ledger.steps["pending_tokens"][inside] < 0 if counter.is_recorded else counter.pending is None
            is_least[inside] = lacks
        for step, items in self._compactions_at.items():
            if step < len(is_least):
                is_known = self.session.compactions[items[0].place].pending_tokens is not None
                is_least[step] &= items[0].recorded is None and not is_known
        return np.where(is_least, UNKNOWN, self.counts)

    @cached_property
    def thresholds(self) -> Ints:
        """The threshold in tokens before each call, UNKNOWN where there is none or it is not known."""
        limits = np.full(self.ledger.step_count, UNKNOWN, dtype=np.int64)
        for stretch, rule in zip(self.explanation.stretches, self.explanation.rules, strict=False):
            limits[stretch.start : stretch.stop] = UNKNOWN if rule.threshold is None else rule.threshold
        return np.where(self._in_tokens, limits, UNKNOWN)

    @cached_property
    def _in_tokens(self) -> NDArray[np.bool_]:
        """The calls whose rule counts tokens."""
        others = np.zeros(self.ledger.step_count, dtype=np.bool_)
        for stretch, rule in zip(self.explanation.stretches, self.explanation.rules, strict=False):
            others[stretch.start : stretch.stop] = rule.unit != "tokens"
        return ~others

    def at(self, step: int) -> RuleDecision:
        """The check before one call."""
        row, compactions = int(self._rows[step]), self._compactions_at.get(step, [])
        rule, counter = self._rule_at(step)
        computed = int(self._counted.of(self.explanation.stretches[self._ruling(step)])[row])
        compaction = compactions[0] if compactions else None
        recorded = None if compaction is None else compaction.recorded
        if rule is not None and rule.unit != "tokens":
            computed = UNKNOWN
        decided = None if compaction is None else compaction.decision_tokens
        count = recorded or (decided if computed == UNKNOWN else computed)
        if decided is not None and rule is not None:
            count = decided  # what was written down may be another estimate than the one compared
        terms = [*self._count_terms(row, counter, count, recorded), *_rule_terms(rule)]
        if rule is not None and rule.threshold is not None and count is not None:
            terms.append(Term("margin", rule.threshold - count, expression=f"{rule.threshold:,} − {count:,}"))
        return RuleDecision(
            step=step,
            rule=rule,
            count=count,
            recorded=recorded,
            computed=None if computed == UNKNOWN else computed,
            reason=self._reason(row, rule, counter, count, compacted=bool(compactions)),
            terms=tuple(terms),
            compaction=compaction,
            more=max(0, len(compactions) - 1),
            interval=None if rule is not None else self.interval_at(step),
        )

    def interval_at(self, step: int) -> Interval | None:
        """What the recording proves of the threshold of the stretch of a step, by the first count that says it."""
        return self.explanation.interval_of(self.explanation.stretches[self._ruling(step)])

    @cached_property
    def _counted(self) -> CheckCounts:
        return CheckCounts(self.session, self.ledger, agent_of(self.session), self.explanation.typed)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The first check before each call."""
        rows = np.searchsorted(self._counted.checks.step, np.arange(self.ledger.step_count), side="left")
        return np.asarray(rows, dtype=np.int64)

    @cached_property
    def _compactions_at(self) -> dict[int, list[ExplainedCompaction]]:
        by_step: dict[int, list[ExplainedCompaction]] = {}
        for item in self.explanation.compactions:
            by_step.setdefault(item.step, []).append(item)
        return by_step

    def _ruling(self, step: int) -> int:
        """The stretch by whose rule the check before a call was made: that of the call, or of the calls before it."""
        compactions = self._compactions_at.get(step, [])
        starts = [stretch.start for stretch in self.explanation.stretches]
        of_call = int(np.searchsorted(starts, step, side="right")) - 1
        return of_call - int(bool(compactions) and compactions[0].before_change)

    def _rule_at(self, step: int) -> tuple[OwnRule | None, RuleCounter]:
        """The rule by which a check was made, and what it compares; none where the agent is not known."""
        number, agent = self._ruling(step), self._counted.agent
        if agent is None:
            return None, LAST_PROMPT
        stretch = self.explanation.stretches[number]
        return self.explanation.rules[number], agent.compared(stretch, self.explanation.typed)

    def _reason(
        self, row: int, rule: OwnRule | None, counter: RuleCounter, count: int | None, *, compacted: bool
    ) -> str:
        checks = self._counted.checks
        if rule is not None and rule.unit != "tokens":
            return f"its rule counts {rule.unit}, not tokens"
        if rule is not None and rule.checks is Moment.TURN_END and not checks.between[row] and not compacted:
            return NOT_ASKED
        if self._counted.held[row] and not compacted and self._counted.agent is not None:
            return self._counted.why_held(row)
        if not compacted and rule is not None and rule.fires(count or 0) and checks.step[row] in self._counted.fallen:
            return UNRECORDED
        if count is not None:
            return ""
        agent = self._counted.agent
        return (agent.uncounted if agent is not None else "") or self._counted.why_uncounted(row, counter)

    def _count_terms(self, row: int, counter: RuleCounter, count: int | None, recorded: int | None) -> list[Term]:
        """The numbers that the count is the sum of, each with the call that it was reported by."""
        checks = self._counted.checks
        last = int(checks.last[row])
        terms = []
        if last >= 0 and self._counted.agent is not None and self._counted.agent.series is None:
            prompt, provider = int(self.ledger.steps["prompt_tokens"][last]), Provenance.PROVIDER.value
            terms.append(Term("prompt tokens of the last answer", prompt, source=provider, as_of=last))
            if counter.name != PROMPT and (output := output_of(self.session.calls[last])) != UNKNOWN:
                terms.append(Term("output tokens of it", output, source=provider, as_of=last))
            if counter.pending is not None or counter.is_recorded:
                terms.append(self._pending_term(row, counter))
            if counter.carried is not None:
                carried = -int(counter.carried(self.session, self.ledger, checks)[row])
                terms.append(Term("first prompt since the last compaction", carried, source=provider))
        if count is not None:
            is_recorded = recorded == count or counter.name == COMPARED
            source = Provenance.RECORDER if is_recorded else Provenance.RECOMPUTED
            parts = " + ".join(f"{int(term.value):,}" for term in terms).replace("+ -", "− ")
            is_sum = len(terms) > 1 and sum(int(term.value) for term in terms) == count
            terms.append(Term("count", count, source=source.value, expression=parts if is_sum else ""))
        return terms

    def _pending_term(self, row: int, counter: RuleCounter) -> Term:
        """What the agent estimated for the messages behind the last answer, which no provider has counted yet."""
        checks = self._counted.checks
        start, stop = int(checks.start[row]), int(checks.stop[row])
        added = int(self._counted.pending_by(counter)[row])
        words = f"messages {start + 1:,} to {stop:,}" if stop - start > 1 else f"message {stop:,}"
        return Term("estimate of what was added since", added, "tokens", Provenance.RECOMPUTED.value, None, words)


def setting_label(name: str) -> str:
    """What a setting of a rule is called beside the threshold, which a setting of some agents has the name of."""
    return "threshold setting" if name == "threshold" else name.replace("_", " ")


def _rule_terms(rule: OwnRule | None) -> list[Term]:
    """The settings of a rule that have a value, and its threshold."""
    if rule is None:
        return []
    terms = [
        Term(setting_label(item.name), item.value, item.unit, item.source.value)
        for item in rule.settings
        if item.value is not None
    ]
    if rule.threshold is not None:
        terms.append(Term("threshold", rule.threshold, rule.unit, expression=rule.formula))
    return terms
