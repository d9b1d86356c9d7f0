"""List policies: libraries that keep a list of messages and, before a model call, compare a count with a limit.

A policy of this kind says what it adds up over messages (`costs`), which number it compares with what (`counted`,
`limit`), and what it makes of its list when the number is over it (`compact`). This module does the rest: steps in
which nothing is due are looked over at once by prefix sums, views are priced, records and evidence are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import CountedRun, RequestCount, normal
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Check, Decision, Point, Quiet, ReplayRun
from guard_core.policies.pieces.compared import COMPARED, MESSAGES, TOKENS, UNIT_COLUMNS
from guard_core.policies.pieces.counters import ProviderCounts, counts_in, last_counts
from guard_core.policies.pieces.looks import ends_before, turn_ends
from guard_core.policies.pieces.message_columns import in_form
from guard_core.policies.pieces.messages import ListMessage, MessageCosts, messages_of
from guard_core.policies.pieces.request_numbers import REFUSED, only_grow, sent_columns, sent_numbers
from guard_core.sessions import Provenance
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.trace import (
    HELD_REASONS,
    RAISED,
    SWITCH,
    WHOLE_LOG,
    Column,
    CompactionRecord,
    Head,
    Pass,
    Term,
    Trace,
    head_of,
)
from guard_core.view_sums import messages_in
from guard_core.views import Segment, Span, View, shared

COLUMNS = (
    Column("last_prompt", "prompt tokens of the last call that the provider counted since the last compaction", none=0),
    Column("last_step", "the step of that call", "step", none=-1),
    Column("edited", "the request differs from the list that the library keeps", SWITCH),
)


class ListMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a list policy remembers: its list (`head`, then the log from `kept_from` on), the provider's last count
    since the last compaction and its step, and how often the summariser was asked.

    A policy that edits each request anew has the whole log as its list; `head` is then what was sent last. One that
    keeps its list and edits requests, too, has in `sent` and `sent_from` what it sent last where that was another one.
    """

    head: tuple[Segment, ...] = ()
    kept_from: int = 0
    tokens: int = 0
    as_of: int = -1
    calls: int = 0
    watermark: int = 0
    summary_bytes: int = 0
    previous: int = 0  # UTF-8 bytes of the newest summary, without what the library writes around it
    summary_text: str | None = None
    sent: tuple[Segment, ...] = ()
    sent_from: int = 0


class Sizes(NamedTuple):
    """What a library may compare at some steps, an array each; at one step, a plain number each. That is the `whole`
    list and what is `new` since the provider's `last` count (0: none since the last compaction), in the unit of its
    costs, and how many `messages` there are, and how many of them are new (`new_messages`). `fixed` is the heuristic
    estimate of system prompt and tools.

    The steps are `rows` of the `ledger`, over `at` events of its log; the last counts are those `as_of` a step (-1:
    none), and requests begin with `head`. `state` is what is remembered before the first of them, `window` the context
    window in tokens. `request` are the provider's counts of the requests themselves with the list as it is, for
    policies that compare those (`counts_request`): recorded where that was sent, else modelled, and where neither is
    known the heuristic estimate.
    """

    whole: Ints
    messages: Ints
    last: Ints
    new: Ints
    new_messages: Ints
    fixed: int
    ledger: Ledger
    rows: Ints
    at: Ints
    as_of: Ints
    head: Head
    state: Any
    window: int
    request: Any = None  # a `CountedRun`, at one step a `RequestCount`


class ListOutcome(NamedTuple):
    """What a library made of its list at a step, as a view (`view_of`). `error`: it raised this, and its list is as it
    was. `counted` is the number that it compared last where that is another than at first. `sent` is the request where
    that is not the list, `reason` why it acted where the policy's own reason does not say it."""

    view: View
    state: Any
    passes: tuple[Pass, ...] = ()
    error: str = ""
    held: int = 0
    counted: int = -1
    notes: tuple[str, ...] = ()
    sent: View | None = None
    reason: str = ""


class ListRequest(NamedTuple):
    """What a library has before it when its count is over its limit: its list as a view, with its `contents` messages
    and their heuristic estimate, `tokens`."""

    check: Check
    view: View
    counted: int
    limit: int
    costs: Heuristic
    contents: int
    tokens: int

    @property
    def ledger(self) -> Ledger:
        return self.check.ledger

    def with_list(self, view: View) -> ListRequest:
        """The same with another list."""
        if view is self.view:
            return self
        return self._replace(view=view, contents=messages_in(self.ledger, view), tokens=self.costs.contents(view))

    @property
    def messages(self) -> list[ListMessage]:
        """What the list of the framework holds now."""
        return messages_of(self.view)

    def passed(self, given: View, after: View, **facts: Any) -> Pass:
        """The record of one pass: what a summariser was given, and the list afterwards."""
        return Pass(
            contents_in=self.contents,
            tokens_in=self.tokens,
            summariser_contents=messages_in(self.ledger, given),
            summariser_tokens=self.costs.contents(given),
            summary_bytes=facts.pop("summary_bytes", 0),
            contents_after=messages_in(self.ledger, after),
            tokens_after=self.costs.request(after),
            summariser_view=shared(self.view, given),
            **facts,
        )

    def summarise(self, state: ListMemory, given: View, output_tokens: int) -> tuple[Summary, ListMemory]:
        """Ask for a summary of some messages, at most `output_tokens` tokens long as far as the library says so; and
        the state afterwards. Raises SummaryFailed."""
        return summarised(self.check, self.check.step, given, self.costs.contents(given), state, output_tokens)


def summarised(
    asked: Check | ReplayRun, step: int, given: View, tokens: int, state: Any, output_tokens: int
) -> tuple[Summary, Any]:
    """A summary of some messages of so many `tokens` by the heuristic estimate, and the state afterwards. Raises
    SummaryFailed."""
    request = SummaryRequest(
        view=given,
        tokens=tokens,
        previous=Summary(state.previous, state.summary_text),
        output_tokens=output_tokens,
        words=output_tokens * 3 // 4,
        call=state.calls,
        step=step,
        session=asked.session,
        todos=asked.todos,
    )
    summary = asked.summarizer.summarise(request)
    after = msgspec.structs.replace(state, calls=state.calls + 1, previous=summary.bytes, summary_text=summary.text)
    return summary, after


@dataclass(frozen=True)
class ListPolicy(ABC):
    """The base of list policies. `keeps` says whether what it makes of the list is its list from then on, or each
    request is edited anew; `forgets`, whether a compaction makes it forget the provider's last count; `most_attempts`
    how often it sends the request of a step that the provider refuses, and `gives_up`, whether it raises an error then;
    `relation` (> or >=) how it compares; `counts_request`, whether it needs the provider's count of the request itself;
    `least_count` the least count of the provider, in tokens, that it does not take for none.
    See the functions below `what a library says`.
    """

    settings: Any
    name: ClassVar[str] = ""
    keeps: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    most_attempts: ClassVar[int] = 4
    gives_up: ClassVar[bool] = True
    relation: ClassVar[str] = ">"
    counts_request: ClassVar[bool] = False
    least_count: ClassVar[int] = 1
    own_columns: ClassVar[tuple[Column, ...]] = ()
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL,)
    state_type: ClassVar[type] = ListMemory

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*COLUMNS, *UNIT_COLUMNS[self.compares], *self.own_columns)

    @property
    def moments(self) -> tuple[Point, ...]:
        return self.points

    # ---- what a library says

    @property
    def compares(self) -> str:
        """The unit of the number that it compares: TOKENS, MESSAGES, TURNS, GROUPS (of messages) or ITEMS."""
        return TOKENS

    @abstractmethod
    def costs(self) -> MessageCosts:
        """What it adds up over its messages."""

    @abstractmethod
    def limit(self, window: int) -> int:
        """The number over which it acts, in the unit that it compares."""

    def counted(self, sizes: Sizes) -> Ints:
        """The number that it compares, at some steps."""
        return sizes.messages if self.compares == MESSAGES else sizes.whole

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Where the number is over the limit."""
        return counted >= limit if self.relation == ">=" else counted > limit

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Where it acts before a call; the same as `over` unless other things than the count matter."""
        return self.over(counted, limit)

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        """Where it acts at the end of a turn (only with the point END_OF_TURN): `sizes` are of the log at its end."""
        return np.asarray(sizes.at < 0)

    def fails(self, sizes: Sizes, limit: int) -> NDArray[np.bool_]:
        """Where it is certain to raise an error if it acts before a call, which leaves its list as it is; of such a run
        of steps, what is remembered after the last one must not depend on the others."""
        return np.zeros(len(sizes.at), dtype=np.bool_)

    def noted(self, sizes: Sizes) -> dict[str, Ints]:
        """Its own columns (`own_columns`) at some steps."""
        return {}

    @property
    def sent_form(self) -> str:
        """The form in which messages are sent, of which its list knows nothing."""
        return ""

    @abstractmethod
    def compact(self, request: ListRequest, state: Any) -> ListOutcome | None:
        """What it makes of its list when its count is over its limit; None: on a closer look it does not act."""

    def next_returning(self, ledger: Ledger, state: Any) -> int:
        """The first event behind its list that brings back what it had left out; the log's length where none does."""
        return ledger.event_count

    def with_returned(self, ledger: Ledger, state: Any, at: int) -> Any:
        """What it remembers over `at` events, with all in its list that such events bring back."""
        return state

    def left_out(self, ledger: Ledger) -> NDArray[np.bool_] | None:
        """Which events of the log are never sent, though its list has them; None: none."""
        return None

    def reason(self, request: ListRequest) -> str:
        """Why it compacted, as the record of a compaction says it."""
        if request.check.point is Point.ON_OVERFLOW:
            return REFUSED
        return self.reason_of(request.counted, request.limit)

    def reason_of(self, counted: int, limit: int) -> str:
        """The same of the number that it compared with its limit."""
        if self.is_over(counted, limit):
            return f"{counted:,} {self.compares} {self.relation} limit {limit:,}"
        return self.acts_below

    @property
    def acts_below(self) -> str:
        """What makes it act where the number is not over the limit, in words; "": nothing does."""
        return ""

    def is_over(self, counted: int, limit: int) -> bool:
        """The same as `over` of one number."""
        number: Any = counted  # as at one step
        return bool(self.over(number, limit))

    # ---- what follows from it

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> Any:
        return self.state_type()

    def observe(self, state: Any, prompt_tokens: int | None, step: int) -> Any:
        if prompt_tokens is None or prompt_tokens < self.least_count:
            return state
        return msgspec.structs.replace(state, tokens=prompt_tokens, as_of=step)

    def _list(self, state: ListMemory) -> Head:
        """The list as the head of requests."""
        return Head(state.head, state.kept_from, self.sent_form) if self.keeps else Head((), 0, self.sent_form)

    def sizes(
        self, ledger: Ledger, head: Head, rows: Ints, at: Ints, last: ProviderCounts, state: Any, window: int
    ) -> Sizes:
        """What can be compared at steps `rows`, over `at` events, that begin with a head."""
        tokens, as_of = last
        costs, steps = self.costs(), ledger.steps["at"]
        prefix = costs.prefix(ledger)
        counted_at = np.where(as_of >= 0, steps[as_of] if len(steps) else 0, at)
        return Sizes(
            whole=costs.view(ledger, head.view) + prefix[at] - prefix[head.kept_from],
            messages=messages_in(ledger, head.view) + at - head.kept_from,
            last=np.where(as_of >= 0, tokens, 0),
            new=prefix[at] - prefix[counted_at],
            new_messages=at - counted_at,
            fixed=self.estimator(ledger).fixed,
            ledger=ledger,
            rows=rows,
            at=at,
            as_of=as_of,
            head=head,
            state=state,
            window=window,
        )

    def _sizes_of(self, check: Check, head: Head, state: Any, costs: Heuristic) -> Sizes:
        """The same at one step, as plain numbers: a library that acts at every step asks for them at every step, and
        arithmetic on arrays of one entry takes ten times as long."""
        ledger, own, at, as_of = check.ledger, self.costs(), check.at, state.as_of
        prefix = own.prefix(ledger)
        counted_at = ledger.steps["at"].item(as_of) if as_of >= 0 else at
        end = prefix.item(at)
        sizes: Any = (
            own.view(ledger, head.view) + end - prefix.item(head.kept_from),
            messages_in(ledger, head.view) + at - head.kept_from,
            state.tokens if as_of >= 0 else 0,
            end - prefix.item(counted_at),
            at - counted_at,
        )
        place: Any = (check.step, at, as_of)
        return Sizes._make((*sizes, costs.fixed, ledger, *place, head, state, check.window, None))

    def decide(self, check: Check, state: Any) -> Decision:
        ledger, costs, head = check.ledger, self.estimator(check.ledger), self._list(state)
        if check.point is Point.END_OF_TURN:
            check = check._replace(at=max(turn_ends(ledger).item(check.at), head.kept_from))
        if self._next_left_out(ledger, head.kept_from) < check.at:
            # The events that are not sent are taken out of the list, up to the last of them.
            left_out = self.left_out(ledger)
            assert left_out is not None
            last = head.kept_from + int(np.flatnonzero(left_out[head.kept_from : check.at])[-1])
            spans = without((Span(head.kept_from, last + 1),), left_out)
            head = Head(normal((*head.view, *spans)), last + 1, head.form)
            state = msgspec.structs.replace(state, head=head.view, kept_from=head.kept_from)
        if self.next_returning(ledger, state) < check.at:
            state = self.with_returned(ledger, state, check.at)
            head = self._list(state)
        sizes, view = self._sizes_of(check, head, state, costs), head.at(ledger, check.at)
        after_turn = check.point is Point.END_OF_TURN
        if after_turn and not self.acts_after_turn(sizes):
            return Decision(view, state, {})
        evidence = sent_numbers(costs, head, check.at)
        if self.counts_request:
            sizes = sizes._replace(request=_request_count(check, view, evidence["heuristic_sent"]))
        own_count, limit = self.counted(sizes), self.limit(check.window)
        counted = int(own_count)
        evidence.update({name: int(value) for name, value in self.noted(sizes).items()})
        evidence.update(self._compared(counted, limit))
        evidence.update(self._remembered(state))
        acts = after_turn or check.point is Point.ON_OVERFLOW or bool(self.acts(sizes, own_count, limit))
        if not acts:
            return Decision(view, state, evidence)
        sizes_in = evidence["contents_decided"], evidence["heuristic_decided"] - costs.fixed
        request = ListRequest(check, view, counted, limit, costs, *sizes_in)
        outcome = self.compact(request, state)
        return Decision(view, state, evidence) if outcome is None else self._acted(request, state, outcome, evidence)

    def _acted(self, request: ListRequest, state: Any, outcome: ListOutcome, evidence: dict[str, int]) -> Decision:
        """The decision of a step at which the library was asked."""
        check, costs, before = request.check, request.costs, request.view
        if outcome.counted >= 0:
            evidence |= self._compared(outcome.counted, request.limit)
        if outcome.error or outcome.held:
            return Decision(before, outcome.state, {**evidence, "held": RAISED if outcome.error else outcome.held})
        view = in_form(check.ledger, outcome.view, self.sent_form) if self.sent_form else outcome.view
        view = shared(before, view)
        head, request_head = self._head(view, check.at), WHOLE_LOG
        is_new = self.keeps or view != _last_sent(state).at(check.ledger, check.at)
        sent_view = view
        if outcome.sent is not None:
            sent_view, request_head = outcome.sent, self._head(outcome.sent, check.at)
            changed = bool(outcome.passes) or view != before
            is_new = changed or outcome.sent != _last_sent(state).at(check.ledger, check.at)
        edited = not self.keeps or outcome.sent is not None
        sent = costs.request(sent_view)
        contents = messages_in(check.ledger, sent_view)
        evidence |= {"contents_sent": contents, "heuristic_sent": sent, "edited": int(edited)}
        after = msgspec.structs.replace(
            outcome.state,
            head=head.view,
            kept_from=head.kept_from,
            sent=request_head.view,
            sent_from=request_head.kept_from,
            **(_FORGOTTEN if self.keeps and self.forgets else {}),
        )
        if not is_new or (view == before and not self.keeps):
            return Decision(sent_view, after, {**evidence, "edited": int(sent_view != before)})
        record = CompactionRecord(
            step=check.step,
            reason=outcome.reason or self.reason(request),
            passes=outcome.passes or (request.passed((), sent_view),),
            before=before,
            after=sent_view,
            tokens_before=evidence["heuristic_decided"],
            tokens_after=sent,
            previous_summary_bytes=state.summary_bytes,
            carried=head.view if self.keeps else (),
            kept_from=head.kept_from if self.keeps else 0,
            point="" if check.point is Point.BEFORE_CALL else check.point.value,
            notes=outcome.notes,
        )
        return Decision(sent_view, after, {**evidence, **self._remembered(after), "fired": 1}, record)

    def _head(self, view: View, at: int) -> Head:
        """A view over `at` events as the head of requests; later events are sent in no other form than `sent_form`."""
        head = head_of(view, at)
        return head if head.form == self.sent_form else Head(view, at, self.sent_form)

    def scan(self, run: ReplayRun, start: int, stop: int, state: Any) -> Quiet | Acted | None:
        ledger, head = run.ledger, self._list(state)
        at = ledger.steps["at"][start:stop]
        if not only_grow(ledger, head, start, stop):
            return None
        columns = sent_columns(self.estimator(ledger), head, at)
        before = state.tokens, state.as_of
        counts = last_counts(run, start, stop, head, columns["heuristic_sent"], *before, least=self.least_count)
        rows = np.arange(start, stop)
        last = ProviderCounts(counts.tokens[:-1], counts.as_of[:-1])
        sizes = self.sizes(ledger, head, rows, at, last, state, run.window)
        if self.counts_request:
            sizes = sizes._replace(request=or_estimated(counts.counted, columns["heuristic_sent"]))
        counted = self.counted(sizes)
        limit = self.limit(run.window)
        over = self.acts(sizes, counted, limit)
        fails = over & self.fails(sizes, limit)
        over = over & ~fails
        if Point.END_OF_TURN in self.points:
            over = over | self._acts_between(sizes)
        over = over | (at > self._next_left_out(ledger, head.kept_from)) | (at > self.next_returning(ledger, state))
        if Point.ON_OVERFLOW in self.points:
            over = over | (counts.counted.tokens > run.largest_answered)
        size = int(np.argmax(over)) if over.any() else stop - start
        if fails[:size].any():  # the last of them is decided by itself, and gives the state
            size = int(np.flatnonzero(fails[:size])[-1])
            columns["held"] = np.where(fails, RAISED, 0)
        columns |= self.noted(sizes)
        columns |= self._compared(counted, np.full(stop - start, limit))
        columns |= {name: np.full(stop - start, value) for name, value in self._remembered(state).items()}
        columns |= {"last_prompt": np.maximum(counts.tokens[:-1], 0), "last_step": counts.as_of[:-1]}
        if size:
            state = msgspec.structs.replace(state, tokens=int(counts.tokens[size]), as_of=int(counts.as_of[size]))
        cut = {name: values[:size] for name, values in columns.items()}
        return Quiet(size, cut, counts.first(size), state, ended=size < stop - start, head=head)

    def _next_left_out(self, ledger: Ledger, start: int) -> int:
        """The first event from `start` on that is not sent; the largest number where there is none."""
        left_out = self.left_out(ledger)
        if left_out is None or not left_out[start:].any():
            return ledger.event_count
        return start + int(np.argmax(left_out[start:]))

    def _acts_between(self, sizes: Sizes) -> NDArray[np.bool_]:
        """Before which of some steps a turn ended after which it acts; the times at which a replay asks (`points`)."""
        rows, stops = sizes.rows, ends_before(sizes.ledger, sizes.rows, sizes.at)
        ends = np.where(stops >= 0, np.maximum(stops, sizes.head.kept_from), sizes.at)
        last = ProviderCounts(sizes.last, sizes.as_of)
        before = self.sizes(sizes.ledger, sizes.head, rows, ends, last, sizes.state, sizes.window)
        return np.asarray((stops >= 0) & self.acts_after_turn(before))

    def _compared(self, counted: Any, limit: Any) -> dict[str, Any]:
        """The columns of the comparison."""
        return dict(zip(self.compared_names, (counted, limit), strict=True))

    @property
    def compared_names(self) -> tuple[str, str]:
        """The columns of the comparison: the number, and its limit."""
        return COMPARED[self.compares]

    def _remembered(self, state: ListMemory) -> dict[str, int]:
        """The columns that the state gives."""
        return {
            "watermark": state.watermark,
            "summary_bytes": state.summary_bytes,
            "last_prompt": max(state.tokens, 0),
            "last_step": state.as_of,
        }

    def counted_over_log(self, ledger: Ledger) -> Ints | None:
        """The number that it compares before each step where that follows from the log alone, in another unit than
        tokens and messages; None: it follows from the policy's own list, which a recording does not have."""
        return None

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The comparison over recorded requests, of tokens by the heuristic estimate, bytes // 4; -1 where the number
        is not known."""
        last, as_of = counts_in(run.ledger)
        column = {TOKENS: "heuristic_decided", MESSAGES: "contents_decided"}.get(self.compares)
        over_log = np.asarray(trace[column]) if column else self.counted_over_log(run.ledger)
        counted = np.full(run.ledger.step_count, -1) if over_log is None else over_log
        limit = self.limit(run.window)
        return {
            **self._compared(counted, np.full(len(counted), limit)),
            "fired": np.asarray((counted >= 0) & self.over(counted, limit), dtype=np.int64),
            "last_prompt": last,
            "last_step": as_of,
        }

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        compared, limit = self.compared_names
        counted, most = int(trace.columns[compared][step]), int(trace.columns[limit][step])
        fired, held = int(trace.columns["fired"][step]), HELD_REASONS[int(trace.columns["held"][step])]
        verdict = "it acts" if fired else f"it does not act: {held}" if held else "it does not act"
        over, opposite = self.is_over(counted, most), {">": "<=", ">=": "<"}
        if fired and not over and Point.END_OF_TURN in self.points:
            verdict = "it acted when the turn before had ended"
        elif fired and not over and self.acts_below:
            verdict = f"it acts: {self.acts_below}"
        rule = {"source": Provenance.RECOMPUTED, "as_of": step}
        if counted < 0:
            words = f"it counts the {self.compares} of its own list, which a recording does not have"
            return (Term("verdict", 0.0, "", Provenance.RECOMPUTED, step, words),)
        terms = [Term("compared", counted, self.compares, **rule)]  # type: ignore[arg-type]
        if most >= 0:  # else the limit is off
            sign = self.relation if over else opposite[self.relation]
            verdict = f"{counted:,} {sign} {most:,}: {verdict}"
            terms.append(Term("limit", most, self.compares, **rule))  # type: ignore[arg-type]
        return (*terms, Term("verdict", float(fired), "", Provenance.RECOMPUTED, step, verdict))


_FORGOTTEN = {"tokens": 0, "as_of": -1}  # the provider's last count


def _last_sent(state: ListMemory) -> Head:
    """The head of what was sent last."""
    return Head(state.sent, state.sent_from) if state.sent else Head(state.head, state.kept_from)


def _request_count(check: Check, view: View, heuristic: int) -> RequestCount:
    """The provider's count of one request, else the estimate."""
    counted = RequestCount(-1, False, 0) if check.usage is None else check.usage.one(check.step, view, heuristic)
    return counted if counted.tokens >= 0 else RequestCount(heuristic, counted.reported, 0)


def or_estimated(counted: CountedRun, heuristics: Ints) -> CountedRun:
    """Counts of requests, by estimate where they are not known."""
    known = counted.tokens >= 0
    source = np.where(known, counted.source, 0)
    return CountedRun(np.where(known, counted.tokens, heuristics), counted.reported, source)


def without(view: View, left_out: NDArray[np.bool_]) -> View:
    """A view without some events of the log."""
    if not left_out.any():
        return view
    segments: list[Segment] = []
    for segment in view:
        if isinstance(segment, Span):
            omitted = [*(np.flatnonzero(left_out[segment.start : segment.stop]) + segment.start).tolist(), segment.stop]
            begins = [segment.start, *(event + 1 for event in omitted[:-1])]
            segments += [
                Span(first, last, segment.form) for first, last in zip(begins, omitted, strict=True) if first < last
            ]
        else:
            segments.append(segment)
    return tuple(segments)


def failed(request: ListRequest, state: Any, given: View, error: SummaryFailed) -> ListOutcome:
    """A summariser's error that leaves the library."""
    return ListOutcome(request.view, msgspec.structs.replace(state, calls=state.calls + 1), error=str(error))
