"""The base of policies that compare a count with a threshold and then replace messages by a summary.

A policy of this kind is a subclass of CountedPolicy with

    name, agent    its name in the list; the recording format of its own agent
    threshold      the tokens at which it fires, from the window; None: never
    window_used    the window that it computes with, from what it remembers
    relation       ">=" or ">"
    looks          the points at which it compares; of several that apply to a step, the last counts
    counter        what it compares (pieces.counters); `uncounted` is the estimate (pieces.estimates) that takes its
                   place before the first count and after a compaction, None: then it does not fire
    form           the form in which events enter the log (a cap of tool results)
    gate           reasons not to compact although it fires, from what it remembers
    plan           what a compaction leaves of the messages (pieces.plans, pieces.message_columns, pieces.cuts)
    tidied, tidy   what it clears at the end of a turn without a summary
    clears, clear  what it clears before a call without a summary
    fitted         what it takes away where the summary, once it is there, leaves too much
    refuses        why it takes a compaction back once the summary is there
    instead        what it does where there is no summary, or it was taken back
    most_refusals  compactions per turn after the provider refused a request as too large
    stall_share    a compaction that leaves this share of the request (by estimate) is the last one of its turn
    rule           the threshold as an expression, for the decision card

and of settings of its own. Everything else is here: counts as they are remembered, the same numbers for one step and
for many, the record of a compaction, the explanation of a decision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.agents_view import compared_counts
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import Usage
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, ReplayRun
from guard_core.policies.pieces.counters import (
    ProviderCounts,
    UsageCounter,
    as_compared,
    counts_before_turns,
    counts_in,
    largest_of,
    last_counts,
    left_out,
    outputs_of,
    since_answer,
    sum_of,
)
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.explaining import explain
from guard_core.policies.pieces.looks import POINTS, PolicyLooks, looks_in, looks_of
from guard_core.policies.pieces.message_columns import Bools
from guard_core.policies.pieces.plans import (
    NO_ANSWER,
    AskedSummary,
    CompactableHistory,
    Plan,
    SummariserCall,
    SummaryMessage,
    joined,
    pass_of,
    summarised,
    view_left,
)
from guard_core.policies.pieces.request_numbers import REFUSED, only_grow, sent_columns
from guard_core.summaries.base import Summary
from guard_core.trace import (
    INDEX,
    NOTHING_TO_COMPACT,
    RAISED,
    STALLED,
    STILL_OVER,
    SUMMARISER_FAILED,
    Column,
    CompactionRecord,
    Head,
    Term,
    Trace,
)
from guard_core.view_sums import messages_in
from guard_core.views import Span, Synthetic, View

NO_COUNT, PROVIDER_COUNT, ESTIMATE = range(3)  # in the words of the column counted_by
NONE = -1  # in a column: no value
CLEARED = "old tool results are cleared at the end of a turn"
CLEARED_BEFORE_CALL = "old tool results are cleared before a call"


class CountedMemory(msgspec.Struct, frozen=True):
    """What a policy remembers: how requests begin since the last compaction (`head`, then the log from `kept_from`),
    its summary, and the provider's last count (`tokens` at step `as_of`, -1: none).

    `compacted_at` is how many events the log had at the last compaction. `turn_tokens` and `turn_as_of` are the count
    before the current turn began. `calls` counts those of the summariser, `attempts` the compactions after refusals in
    turn `turn`, `stalled` is the turn of a compaction that left as much.
    """

    head: View = ()
    kept_from: int = 0
    summary_bytes: int = 0
    summary_text: str | None = None
    tokens: int = 0
    as_of: int = -1
    turn_tokens: int = 0
    turn_as_of: int = -1
    calls: int = 0
    turn: int = -1
    attempts: int = 0
    compacted_at: int = 0
    stalled: int = -1


COLUMNS = (
    Column("last_prompt", "prompt tokens of the last call that the provider counted", none=0),
    Column("last_output", "output tokens of that call", none=0),
    Column("last_step", "the step of that call", "step", none=-1),
    Column("pending", "estimate of what was added to the log since that call was answered"),
    Column("counted_by", "what the decision was made on", INDEX, words=("none", "provider's count", "estimate")),
)
LOOK = Column(
    "looks", "where the policy compared its count", INDEX, words=("not here", *(item.value for item in POINTS))
)


@dataclass(frozen=True)
class CountedPolicy(ABC):
    """The base; see the module."""

    settings: Any

    name: ClassVar[str]
    agent: ClassVar[str] = ""
    own_columns: ClassVar[tuple[Column, ...]] = ()
    state_type: ClassVar[type] = CountedMemory
    raises: ClassVar[bool] = False  # an error of the summariser ends the run

    # ---- what a policy gives

    @abstractmethod
    def threshold(self, window: int) -> int | None:
        """Tokens at which it fires; None: never."""

    @abstractmethod
    def plan(self, history: CompactableHistory) -> Plan | int:
        """What a compaction leaves; an index into HELD_REASONS where nothing can be done."""

    @abstractmethod
    def rule(self, window: int) -> str:
        """The threshold as an expression with its numbers."""

    def window_used(self, state: Any, window: int) -> int:
        """The context window in tokens that it computes with where its model has `window`."""
        return window

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.BEFORE_CALL,)

    @property
    def relation(self) -> str:
        return ">="

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter()

    @property
    def counts_by(self) -> tuple[UsageCounter, str]:
        """What its count depends on beside the log: the counter, and the form of the messages that it counts."""
        return self._counts, self.form

    @cached_property
    def _counts(self) -> UsageCounter:
        return self.counter  # kept, as a replay asks for it several times a step

    @property
    def uncounted(self) -> TokenEstimate | None:
        return None

    @property
    def form(self) -> str:
        return ""

    @property
    def most_refusals(self) -> int:
        return 0

    @property
    def stall_share(self) -> float:
        return math.inf

    def gate(self, ledger: Ledger, rows: Ints, stop: Ints, state: Any) -> Ints:
        """For each of some steps why it does not compact although it fires (an index into HELD_REASONS, 0: it does, or
        `plan` says why not), from a state that does not change between them but for counts. `stop` are the events it
        then knows of. What is known here of many steps at once, `plan` is not asked at each of them."""
        return np.zeros(len(rows), dtype=np.int64)

    def tidied(self, ledger: Ledger, looks: PolicyLooks, state: Any) -> Bools:
        """At which of some steps it clears messages without a summary; only where one begins a turn."""
        return np.zeros(len(looks.stop), dtype=np.bool_)

    def tidy(self, history: CompactableHistory) -> Plan:
        """What clearing leaves. Called only where `tidied` is true."""
        raise NotImplementedError

    @property
    def tidies(self) -> bool:
        """Does it clear messages at the end of turns at all."""
        return False

    def clears(self, ledger: Ledger, rows: Ints, stop: Ints, state: Any, window: int) -> Bools:
        """At which of some steps it clears messages before the call without a summary; `stop` are the events it then
        knows of."""
        return np.zeros(len(rows), dtype=np.bool_)

    def clear(self, history: CompactableHistory) -> Plan:
        """What that clearing leaves. Called only where `clears` is true."""
        raise NotImplementedError

    def unplanned(self, history: CompactableHistory) -> CountedMemory:
        """What is remembered of a look at which there was nothing to compact."""
        state: CountedMemory = history.state
        return state

    def fitted(
        self, history: CompactableHistory, plan: Plan, summaries: list[AskedSummary]
    ) -> tuple[Plan, list[AskedSummary]]:
        """A plan and its summaries, which are there, without what is too much of them."""
        return plan, summaries

    def refuses(self, history: CompactableHistory, after: View) -> tuple[int, Mapping[str, Any]]:
        """Why a compaction that leaves `after` is taken back (an index into HELD_REASONS, 0: it is not), and what is
        remembered of that."""
        return 0, {}

    def instead(self, history: CompactableHistory) -> Plan | None:
        """What it does where the summariser failed or the compaction was taken back; None: nothing."""
        return None

    # ---- the policy as a replay knows it

    @property
    def columns(self) -> tuple[Column, ...]:
        everywhere = Point.BEFORE_CALL in self.looks or {Point.AFTER_RESULTS, Point.BEFORE_TURN} <= {*self.looks}
        return (*COLUMNS, *(() if everywhere else (LOOK,)), *self.own_columns)

    @property
    def points(self) -> tuple[Point, ...]:
        early = (Point.END_OF_TURN,) if self.tidies else ()
        late = (Point.ON_OVERFLOW,) if self.most_refusals else ()
        return (*early, Point.BEFORE_CALL, *late)

    @property
    def moments(self) -> tuple[Point, ...]:
        return tuple(dict.fromkeys((*self.looks, *(point for point in self.points if point is not Point.BEFORE_CALL))))

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> Any:
        return self.state_type()

    def observe(self, state: Any, prompt_tokens: int | None, step: int) -> Any:
        if not prompt_tokens or prompt_tokens <= 0:
            return state
        return msgspec.structs.replace(state, tokens=prompt_tokens, as_of=step)

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain(trace, step, self.counter, self.uncounted, self.relation, self.rule(trace.window))

    # ---- one step

    def decide(self, check: Check, state: Any) -> Decision:
        ledger, rows = check.ledger, np.array([check.step])
        looks = looks_of(self.looks, ledger, check.step)
        head = Head(state.head, state.kept_from, self.form)
        if check.point is Point.END_OF_TURN:
            return self._tidied(check, state, head, looks)
        evidence = self._evidence(check, state, head, looks) if check.known is None else {**check.known}
        threshold = evidence["threshold"]
        if self._counts.at_turn_start and looks.begins[0]:
            state = msgspec.structs.replace(state, turn_tokens=state.tokens, turn_as_of=state.as_of)
        view = head.at(ledger, check.at)
        if check.point is Point.ON_OVERFLOW:
            return self._recovered(check, state, head, evidence)
        if not (looks.looks[0] and self._fires(np.array([evidence["decision_tokens"]]), threshold)[0]):
            if self.clears(ledger, rows, looks.stop, state, check.window)[0]:
                history = CompactableHistory(
                    check, state, head.at(ledger, int(looks.stop[0])), int(looks.stop[0]), check.point
                )
                return self._finished(history, self.clear(history), [], evidence, CLEARED_BEFORE_CALL)
            return Decision(view, state, evidence)
        stop, point = int(looks.stop[0]), POINTS[int(looks.point[0])]
        held = int(self._gates(ledger, rows, looks.stop, state)[0])
        if held or not stop:
            return Decision(view, state, {**evidence, "held": held or NOTHING_TO_COMPACT})
        reason = f"{evidence['decision_tokens']:,} tokens {self.relation} threshold {threshold:,}"
        return self._compacted(CompactableHistory(check, state, head.at(ledger, stop), stop, point), evidence, reason)

    def _evidence(self, check: Check, state: Any, head: Head, looks: PolicyLooks) -> dict[str, int]:
        """The numbers of one step, on which it is decided."""
        ledger, at, own = check.ledger, np.array([check.at]), slice(check.step, check.step + 1)
        counts = ProviderCounts(np.array([state.tokens]), np.array([state.as_of]))
        if self._counts.at_turn_start:
            counts = ProviderCounts(np.array([state.turn_tokens]), np.array([state.turn_as_of]))
        numbers = self._numbers(ledger, looks, counts, self._uncounted(ledger, head, at, state), head)
        numbers = self._as_compared(numbers, ledger, check.usage, own, counts)
        numbers |= sent_columns(self.estimator(ledger), head, at)
        entries = {name: int(values[0]) for name, values in numbers.items()}
        return entries | {"threshold": self._threshold(self.window_used(state, check.window)), **_remembered(state)}

    def _recovered(self, check: Check, state: Any, head: Head, evidence: dict[str, int]) -> Decision:
        """The provider refused the request."""
        turn = int(check.ledger.steps["turn"][check.step])
        attempts = state.attempts if state.turn == turn else 0
        view = head.at(check.ledger, check.at)
        if attempts >= self.most_refusals or not check.at:
            return Decision(view, state, evidence)
        state = msgspec.structs.replace(state, turn=turn, attempts=attempts + 1)
        return self._compacted(CompactableHistory(check, state, view, check.at, check.point), evidence, REFUSED)

    def _tidied(self, check: Check, state: Any, head: Head, looks: PolicyLooks) -> Decision:
        """The end of a turn, at which old messages may be cleared."""
        view = head.at(check.ledger, check.at)
        costs = self.estimator(check.ledger)
        evidence = {"heuristic_decided": costs.request(view), "heuristic_sent": costs.request(view)}
        if not self.tidied(check.ledger, looks, state)[0]:
            return Decision(view, state, evidence)
        history = CompactableHistory(check, state, view, check.at, check.point)
        return self._finished(history, self.tidy(history), [], evidence, CLEARED)

    def _compacted(self, history: CompactableHistory, evidence: dict[str, int], reason: str) -> Decision:
        """The decision of a step at which it compacts."""
        plan = self.plan(history)
        if isinstance(plan, int):
            view = Head(history.state.head, history.state.kept_from, self.form).at(history.ledger, history.check.at)
            return Decision(view, self.unplanned(history), {**evidence, "held": plan})
        summaries: list[AskedSummary] = []
        for item in plan.items:
            if isinstance(item, SummaryMessage):
                summaries.append(self._summary(history, plan, item, sum(len(other.answers) for other in summaries)))
        if any(item.message is None for item in summaries):
            fallback = self.instead(history)
            if fallback is not None:
                return self._finished(history, fallback, [], evidence, reason)
            view = Head(history.state.head, history.state.kept_from, self.form).at(history.ledger, history.check.at)
            calls = history.state.calls + sum(len(item.answers) for item in summaries)
            state = msgspec.structs.replace(history.state, calls=calls)
            return Decision(view, state, {**evidence, "held": RAISED if self.raises else SUMMARISER_FAILED})
        if summaries:
            plan, summaries = self.fitted(history, plan, summaries)
            held, remembers = self.refuses(history, view_left(plan, summaries))
            fallback = self.instead(history) if held else None
            if fallback is not None:
                return self._finished(history, fallback, [], evidence, reason)
            if held:
                view = Head(history.state.head, history.state.kept_from, self.form).at(history.ledger, history.check.at)
                calls = history.state.calls + sum(len(item.answers) for item in summaries)
                state = msgspec.structs.replace(history.state, calls=calls, **remembers)
                return Decision(view, state, {**evidence, "held": held})
        return self._finished(history, plan, summaries, evidence, reason)

    def _summary(self, history: CompactableHistory, plan: Plan, item: SummaryMessage, calls: int) -> AskedSummary:
        """The message that a summary becomes."""
        check, state, costs = history.check, history.state, self.estimator(history.ledger)
        previous = Summary(state.summary_bytes, state.summary_text)
        recorded = check.summarizer.name == "recorded"
        asks = (joined(item.asks),) if recorded else item.asks  # a recorded summary is the message as a whole
        answers = []
        for number, ask in enumerate(asks):
            tokens = costs.contents(ask.given)
            answer, failed = summarised(check, ask, tokens, previous, state.calls + calls + number)
            answers.append(SummariserCall(ask.given, tokens, answer, failed))
        size = sum(answer.summary.bytes for answer in answers)
        failed = any(answer.failed for answer in answers)
        if not size and item.if_none is None and (failed or not item.takes_empty):
            return AskedSummary(None, tuple(answers))
        texts = [answer.summary.text for answer in answers]
        size = size or item.if_none or 0
        if recorded and history.ledger.agent == self.agent:  # then its size is that of all that was inserted
            size -= min(sum(other.bytes for other in plan.items if isinstance(other, Synthetic)), size)
        else:
            size += item.frame
        return AskedSummary(
            Synthetic("summary", size, texts[0] if len(texts) == 1 else None, item.role), tuple(answers)
        )

    def _finished(
        self,
        history: CompactableHistory,
        plan: Plan,
        summaries: list[AskedSummary],
        evidence: Mapping[str, int],
        reason: str,
    ) -> Decision:
        """The decision with its record, once the summaries are there."""
        check, ledger, state = history.check, history.ledger, history.state
        costs = self.estimator(ledger)
        head = self._head(ledger, view_left(plan, summaries), history.stop)
        after = head.at(ledger, check.at)
        sent = costs.request(after)
        summary = next((item.message for item in summaries if item.message is not None), None)
        answers = [answer for item in summaries for answer in item.answers]
        turn = int(ledger.steps["turn"][check.step])
        memory = msgspec.structs.replace(
            state,
            head=head.view,
            kept_from=head.kept_from,
            compacted_at=history.stop,
            summary_bytes=summary.bytes if summary else state.summary_bytes,
            summary_text=summary.text if summary else state.summary_text,
            calls=state.calls + len(answers),
            **({"tokens": 0, "as_of": -1, "turn_tokens": 0, "turn_as_of": -1} if answers else {}),
            stalled=turn if answers and sent >= self.stall_share * evidence["heuristic_decided"] else -1,
            **plan.remembers,
        )
        threshold = evidence.get("threshold", NONE)
        usage = check.usage
        over = usage is not None and bool(
            self._fires(np.array([usage.one(check.step, after, sent).tokens]), threshold)[0]
        )
        before = Head(state.head, state.kept_from, self.form).at(ledger, check.at)
        record = CompactionRecord(
            step=check.step,
            reason=reason,
            passes=tuple(pass_of(history, answer, after, sent, plan.dropped) for answer in answers or [NO_ANSWER]),
            before=before,
            after=after,
            tokens_before=evidence["heuristic_decided"],
            tokens_after=sent,
            previous_summary_bytes=state.summary_bytes,
            carried=head.view,
            kept_from=head.kept_from,
            point="" if history.point in UNNAMED else history.point.value,
            cut=plan.cut,
            notes=plan.notes,
        )
        entries = {
            **evidence,
            "contents_sent": messages_in(history.ledger, after),
            "heuristic_sent": sent,
            "fired": 1,
            "held": STILL_OVER if over else 0,
            **_remembered(memory),
        }
        return Decision(after, memory, entries, record)

    def _head(self, ledger: Ledger, carried: View, stop: int) -> Head:
        """How requests begin after a compaction of the events before `stop`: where it keeps the last of them, the
        events that follow are part of the same span."""
        last = carried[-1] if carried else None
        if isinstance(last, Span) and last.stop == stop and last == ledger.span(last.start, stop, self.form):
            return Head(carried[:-1], last.start, self.form)
        return Head(carried, stop, self.form)

    # ---- many steps at once

    def scan(self, run: ReplayRun, start: int, stop: int, state: Any) -> Quiet | None:
        ledger, head, own = run.ledger, Head(state.head, state.kept_from, self.form), slice(start, stop)
        at, rows = ledger.steps["at"][own], np.arange(start, stop)
        if not only_grow(ledger, head, start, stop):
            return None
        looks = looks_in(self.looks, ledger).within(own)
        columns = sent_columns(self.estimator(ledger), head, at)
        run_counts = last_counts(run, start, stop, head, columns["heuristic_sent"], state.tokens, state.as_of)
        last = ProviderCounts(run_counts.tokens, run_counts.as_of)
        counts, turn_counts = ProviderCounts(last.tokens[:-1], last.as_of[:-1]), None
        if self._counts.at_turn_start:
            counts, turn_counts = counts_before_turns(
                last, looks.begins, ProviderCounts(np.array([state.turn_tokens]), np.array([state.turn_as_of]))
            )
        numbers = self._numbers(ledger, looks, counts, self._uncounted(ledger, head, at, state), head)
        columns |= self._as_compared(numbers, ledger, run.usage, own, counts)
        threshold = self._threshold(self.window_used(state, run.window))
        fires = looks.looks & self._fires(columns["decision_tokens"], threshold)
        held = np.where(fires, self._gates(ledger, rows, looks.stop, state), 0)
        ends = fires & (held == 0)
        if self.tidies:
            ends |= self.tidied(ledger, looks, state) & looks.begins
        ends |= ~fires & self.clears(ledger, rows, looks.stop, state, run.window)
        if self.most_refusals:
            may_try = (ledger.steps["turn"][rows] != state.turn) | (state.attempts < self.most_refusals)
            ends |= may_try & (run_counts.counted.tokens > run.largest_answered)
        ended = bool(ends.any())
        size = int(np.argmax(ends)) if ended else stop - start
        constants: dict[str, Any] = {"threshold": threshold, **_remembered(state)}
        columns["held"] = held
        if size:
            state = msgspec.structs.replace(state, tokens=int(last.tokens[size]), as_of=int(last.as_of[size]))
        if size and turn_counts is not None:
            tokens, as_of = (int(values[size - 1]) for values in turn_counts)
            state = msgspec.structs.replace(state, turn_tokens=tokens, turn_as_of=as_of)
        cut = {name: values[:size] for name, values in columns.items()}
        entries = {name: values.item(size) for name, values in columns.items() if name != "held"} if ended else {}
        ahead = entries | constants if ended else None
        return Quiet(size, cut | constants, run_counts.first(size), state, ended, head, ahead)

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        looks = looks_in(self.looks, run.ledger)
        last = ProviderCounts(*counts_in(run.ledger))
        if self._counts.at_turn_start:
            after_last = ProviderCounts(*(np.append(values, values[-1:]) for values in last))
            last, _ = counts_before_turns(after_last, looks.begins, ProviderCounts(np.array([0]), np.array([-1])))
        uncounted = trace["heuristic_decided"] if self.uncounted else np.full(len(last.tokens), NONE)
        numbers = self._numbers(run.ledger, looks, last, uncounted)
        numbers = self._as_compared(numbers, run.ledger, run.usage, slice(None), last)
        threshold = self._threshold(run.window)
        fired = looks.looks & self._fires(numbers["decision_tokens"], threshold)
        return {**numbers, "threshold": np.full(len(fired), threshold), "fired": fired.astype(np.int64)}

    # ---- numbers

    def _gates(self, ledger: Ledger, rows: Ints, stop: Ints, state: Any) -> Ints:
        """For each of some steps why it does not compact although it fires, 0: it does."""
        reasons = self.gate(ledger, rows, stop, state)
        if state.stalled < 0:
            return reasons
        return np.where(ledger.steps["turn"][rows] == state.stalled, STALLED, reasons)

    def _numbers(
        self, ledger: Ledger, looks: PolicyLooks, counts: ProviderCounts, uncounted: Ints, head: Head | None = None
    ) -> dict[str, Ints]:
        """The columns of the decision at some steps, whose requests begin with a head; None: they are the recorded
        ones, of which `uncounted` is the estimate."""
        counter, (tokens, as_of) = self._counts, counts
        known = as_of >= 0
        output, pending = np.zeros(len(as_of), dtype=np.int64), np.zeros(len(as_of), dtype=np.int64)
        if counter.output:
            outputs = outputs_of(ledger)[as_of] if counter.output_as is None else counter.output_as
            output = np.where(known, outputs, 0)
        if counter.pending is not None:
            column, form = counter.pending, self.form
            prefix = ledger.prefix_by(f"{self.name} pending {form}", lambda ledger: column(ledger, form))
            added = largest_of if counter.largest else sum_of
            waiting = added(prefix, *since_answer(ledger, as_of, looks.stop)) // counter.pending_units
            pending = np.where(known, waiting, 0)
        if counter.leaves_out:
            tokens = tokens - left_out(ledger, counter.leaves_out, tokens, as_of)
        columns = {
            "last_prompt": np.where(known, tokens, 0),
            "last_output": output,
            "last_step": as_of,
            "pending": pending,
            "counted_by": np.where(known, PROVIDER_COUNT, np.where(uncounted >= 0, ESTIMATE, NO_COUNT)),
            "decision_tokens": np.where(known, tokens + output + pending, uncounted),
        }
        return columns | ({"looks": looks.point + 1} if LOOK in self.columns else {})

    def _as_compared(
        self, numbers: dict[str, Ints], ledger: Ledger, usage: Usage | None, rows: slice, counts: ProviderCounts
    ) -> dict[str, Ints]:
        compared = compared_counts(usage, self.name, getattr(self.settings, "profile", ""), self.counts_by)
        return numbers if compared is None else as_compared(numbers, ledger, compared, rows, counts)

    def _uncounted(self, ledger: Ledger, head: Head, at: Ints, state: Any) -> Ints:
        """What is compared at requests that begin with a head where there is no count; NONE: nothing."""
        if self.uncounted is None:
            return np.full(len(at), NONE)
        prefix, first = self.uncounted.prefix(ledger, head.form), head.kept_from
        begins = self.estimator(ledger).fixed + self.uncounted.view(ledger, head.view)
        return np.asarray(begins + np.maximum(prefix[at] - prefix[first], 0))

    def _threshold(self, window: int) -> int:
        tokens = self.threshold(window)
        return NONE if tokens is None else max(tokens, 0)

    def _fires(self, decision: Ints, threshold: int) -> Bools:
        """A count or a threshold below 0 is none."""
        if threshold < 0:
            return np.zeros(len(decision), dtype=np.bool_)
        return np.asarray(decision > threshold if self.relation == ">" else decision >= threshold)


UNNAMED = (Point.BEFORE_CALL, Point.AFTER_RESULTS, Point.BEFORE_TURN)  # points that a record need not name


def _remembered(state: Any) -> dict[str, int]:
    """The columns that the state gives."""
    return {"watermark": state.kept_from, "summary_bytes": state.summary_bytes}
