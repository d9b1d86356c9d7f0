"""Replay: one session's log run again under a policy, step by step, to a trace.

Views are priced and not built, and between two compactions a policy checks many steps at once: N steps cost O(N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core import defaults
from guard_core.estimation.estimators import Estimator
from guard_core.estimation.usage import ASSUMED, PROVIDER, CountedRun, GrowingRequests, RatioUsage, RequestCount, Usage
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Check, Decision, Point, Policy, Quiet, ReplayRun, State
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.trace import COMMON_COLUMNS, RAISED, WHOLE_LOG, CompactionRecord, Head, Trace, head_of
from guard_core.version import __version__
from guard_core.view_columns import ViewColumns
from guard_core.views import View, content_count

FIRST_BLOCK, LARGEST_BLOCK = 64, 8_192  # steps looked over at once, doubling while nothing happens
CALM = 2  # steps decided one by one after a vain try, or after two compactions that are near
NEAR = 4  # steps; ours: to look ahead costs about as much as to decide so many
MOST_CALM = 32  # ours: as many after looking ahead in vain several times, twice as many each time
MOST_ATTEMPTS = 4  # requests of one step: the first, and three after a refusal, as Hermes does


@dataclass(frozen=True)
class Job:
    """One replay: the run and what the policy may ask."""

    run: ReplayRun
    policy: Policy
    summarizer: Summarizer
    session: Session | None = None
    request: str | None = None
    todos: tuple[Todo, ...] = ()

    def check(
        self,
        step: int,
        point: Point = Point.BEFORE_CALL,
        at: int | None = None,
        attempt: int = 0,
        known: Mapping[str, int] | None = None,
    ) -> Check:
        """What the policy may look at at a point before a step, over `at` events (default: those of the step)."""
        steps = self.run.ledger.steps
        user_event = steps["user_event"].item(step)
        return Check(
            ledger=self.run.ledger,
            step=step,
            at=steps["at"].item(step) if at is None else at,
            window=self.run.window,
            summarizer=self.summarizer,
            user_event=user_event,
            request_bytes=self.run.request_bytes.item(step),
            request=self._words(user_event),
            session=self.session,
            todos=self.todos,
            usage=self.run.usage,
            point=point,
            attempt=attempt,
            known=known,
        )

    def points(self, step: int) -> Iterator[tuple[Point, int]]:
        """The policy's trigger points since the last call, in order, each with the events that were in the log then."""
        wanted = self.policy.points
        if len(wanted) == 1:
            return
        steps = self.run.ledger.steps
        at, before = int(steps["at"][step]), max(step - 1, 0)
        same_turn = step > 0 and int(steps["turn"][before]) == int(steps["turn"][step])
        answered = int(steps["response"][before]) + 1 if step else 0
        user = int(steps["user_event"][step])
        if step and Point.AFTER_CALL in wanted and 0 < answered <= at:
            yield Point.AFTER_CALL, answered
        if step and same_turn and Point.AFTER_RESULTS in wanted:
            yield Point.AFTER_RESULTS, at
        if not same_turn and 0 <= user < at:
            if step and Point.END_OF_TURN in wanted:
                yield Point.END_OF_TURN, user
            if Point.BEFORE_TURN in wanted:
                yield Point.BEFORE_TURN, user

    def _words(self, user_event: int) -> str | None:
        if self.request is not None or self.session is None or user_event < 0:
            return self.request
        if self.session.usage_ratio is not None:
            return ""
        parts = self.session.events[user_event].parts
        return next((text for part in parts if (text := getattr(part, "text", ""))), "")


class Decided(NamedTuple):
    """One step that a policy decided by itself. `compactions` were made at any of its points, `refused` says that a
    request before the last one was refused as too large."""

    decision: Decision
    counted: RequestCount
    compactions: tuple[CompactionRecord, ...] = ()
    refused: bool = False


def replay(  # noqa: PLR0913 - named, and most of them optional
    ledger: Ledger,
    policy: Policy,
    *,
    window: int,
    usage: Usage | None = None,
    summarizer: Summarizer | None = None,
    session: Session | None = None,
    request: str | None = None,
    todos: tuple[Todo, ...] = (),
    each: Callable[[int], object] = lambda done: None,
    after: Trace | None = None,
) -> Trace:
    """Replay a session's log under a policy.

    `window` in tokens. `usage` says what the provider counts (default: the simulated ratio, else the heuristic times
    the default factor, assumed and never reported). `summarizer` defaults to the recorded sizes. `session` gives texts
    to the summariser and to what it writes. `request` replaces the words of every turn ("" for none). `each` is called
    with the number of steps replayed so far, often; what it raises ends the replay. `after` is a replay of the log's
    beginning whose steps are taken over: guard_core.extension says where that gives the same trace.
    """
    job = make_job(ledger, policy, window, usage, summarizer, session, request, todos)
    columns = empty_columns(ledger, policy)
    compactions = [_still_open(record, len(after), ledger) for record in after.compactions] if after else []
    heads = Heads(after.heads if after else (WHOLE_LOG,))
    state: State = after.state if after else policy.start()
    if after:
        _take_over(columns, after)
    for step, part, state_after in iter_steps(job, len(after) if after else 0, state):
        each(step)
        state = state_after
        if isinstance(part, Decided):
            _write_decided(columns, step, part, heads.of_view(part.decision.view, int(ledger.steps["at"][step])))
        else:
            _write_run(columns, step, part, heads)
        compactions += () if isinstance(part, Quiet) else part.compactions
    columns["overflow"] |= (columns["modelled_prompt_tokens"] > job.run.largest_answered).astype(np.int64)
    return Trace(
        policy=policy.name,
        settings={**settings_of(policy), "summary": job.summarizer.name},
        engine_version=__version__,
        window=window,
        columns=columns,
        compactions=tuple(compactions),
        notes=(*_notes(columns), *job.run.usage.notes(compacted=_compacts_otherwise(columns))),
        state=state,
        declared=policy.columns,
        heads=tuple(heads.heads),
    )


class Heads:
    """The heads of a trace, each once as long as neighbouring steps share it."""

    def __init__(self, heads: tuple[Head, ...] = (WHOLE_LOG,)) -> None:
        self.heads = list(heads)

    def place(self, head: Head) -> int:
        """The index of a head, which may be a new one."""
        if head == WHOLE_LOG:
            return 0
        if self.heads[-1] != head:
            self.heads.append(head)
        return len(self.heads) - 1

    def of_view(self, view: View, at: int) -> int:
        """The index of the head of one request."""
        return self.place(head_of(view, at))


def iter_steps(job: Job, step: int, state: State) -> Iterator[tuple[int, Quiet | Acted | Decided, State]]:
    """The crux: a step, what happened from it on, and the policy's state after that. It begins at `step` with `state`.

    Each step is either decided by itself or lies in a run that the policy looked ahead over. Both give the same
    numbers.
    """
    policy, run = job.policy, job.run
    steps = run.ledger.step_count
    calm, block, enough = CALM, FIRST_BLOCK, CALM
    usual, last = FIRST_BLOCK, step
    acts_in_runs = getattr(policy, "acts_in_runs", False)  # its `scan` looks over steps at which it acts, too
    while step < steps:
        known = None  # the entries of the step, where the run before it has computed them
        if calm >= enough:
            quiet = policy.scan(run, step, min(step + block, steps), state)
            block = min(block * 2, LARGEST_BLOCK)
            is_vain = quiet is None or not quiet.size
            calm, enough = (0, min(2 * enough, MOST_CALM)) if is_vain else (calm, CALM)
            if quiet is not None and quiet.size:
                state = quiet.state
                yield step, quiet, state
                step += quiet.size
                if not quiet.ended:
                    continue
            known = quiet.ahead if isinstance(quiet, Quiet) else None
        decided, state = _decide(job, step, state, known)
        yield step, decided, state
        if decided.compactions:  # the next one comes after about as many steps as this one: looked over at once
            apart, last = step - last, step
            usual = min(max(FIRST_BLOCK, 5 * apart // 4), LARGEST_BLOCK)
            calm = CALM if apart > NEAR else calm + 1 if acts_in_runs else 0
        else:
            is_held = bool(decided.decision.evidence.get("held"))
            calm = 0 if is_held and not acts_in_runs else calm + 1
        step += 1
        block = usual


def _decide(job: Job, step: int, state: State, known: Mapping[str, int] | None) -> tuple[Decided, State]:
    """One step at all of the policy's points, and again where the provider refuses the request."""
    policy, usage = job.policy, job.run.usage

    def count(asked: RequestDecision) -> RequestCount:
        return usage.one(step, asked.decision.view, int(asked.decision.evidence["heuristic_sent"]))

    asked = ask(job, step, state, known)
    counted = count(asked)
    # a provider that answers whatever it is sent says so, and one that refuses by another count than it reports
    refuses, refused_by = getattr(usage, "refuses", True), getattr(usage, "refused", None)

    def is_refused(asked: RequestDecision, counted: RequestCount) -> bool:
        return (
            counted.tokens > job.run.largest_answered if refused_by is None else bool(refused_by(asked.decision.view))
        )

    while refuses and is_refused(asked, counted) and asked.may_retry(policy):
        asked = retry(job, step, asked)
        if not asked.ended:
            counted = count(asked)
    decision = asked.decision
    tried_all = getattr(policy, "gives_up", False) and asked.attempt == most_attempts(policy) - 1
    if tried_all and is_refused(asked, counted):
        decision = decision._replace(evidence={**decision.evidence, "held": RAISED})
    compactions = asked.all_compactions
    if asked.fired and not decision.evidence.get("fired"):
        decision = decision._replace(evidence={**decision.evidence, "fired": 1})
    after = policy.observe(decision.state, counted.tokens if counted.reported else None, step)
    return Decided(decision, counted, compactions, asked.attempt > 0), after


class RequestDecision(NamedTuple):
    """What a policy decided for one request, before it is sent.

    `compactions` are those of its earlier points and of requests that were refused, `fired` says that there were any
    besides the decision's own. `attempt` counts refusals; `ended`: the policy had nothing to change after the last, or
    raised an error before it.
    """

    decision: Decision
    compactions: tuple[CompactionRecord, ...] = ()
    fired: bool = False
    attempt: int = 0
    ended: bool = False

    @property
    def all_compactions(self) -> tuple[CompactionRecord, ...]:
        """All compactions that were made for this request, in their order."""
        own = self.decision.compaction
        return self.compactions if own is None else (*self.compactions, own)

    def may_retry(self, policy: Policy) -> bool:
        """Does the policy look again where the provider refuses this request as too large."""
        again = Point.ON_OVERFLOW in policy.points and self.attempt < most_attempts(policy) - 1
        return again and not self.ended


def most_attempts(policy: Policy) -> int:
    """Requests of one step: a library that says how often it tries again raises an error after the last refusal."""
    return int(getattr(policy, "most_attempts", MOST_ATTEMPTS))


def ask(job: Job, step: int, state: State, known: Mapping[str, int] | None = None) -> RequestDecision:
    """The decision of one step, after all of the policy's points since the last call. `known`: what the run before it
    knows of it from this state."""
    before = state
    compactions: list[CompactionRecord] = []
    for point, at in job.points(step):
        early = job.policy.decide(job.check(step, point, at), state)
        state = early.state
        if early.compaction is not None:
            compactions.append(early.compaction)
    decision = job.policy.decide(job.check(step, known=known if state is before else None), state)
    raised = decision.evidence.get("held") == RAISED  # no request is made that a provider could refuse
    return RequestDecision(decision, tuple(compactions), bool(compactions), ended=raised)


def retry(job: Job, step: int, asked: RequestDecision) -> RequestDecision:
    """The decision after the provider has refused a request as too large."""
    decision, attempt = asked.decision, asked.attempt + 1
    again = job.policy.decide(job.check(step, Point.ON_OVERFLOW, attempt=attempt), decision.state)
    if again.compaction is None:
        held = {"held": RAISED} if again.evidence.get("held") == RAISED else {}
        same = decision._replace(state=again.state, compaction=None, evidence={**decision.evidence, **held})
        return RequestDecision(same, asked.all_compactions, asked.fired, attempt, ended=True)
    return RequestDecision(again, asked.all_compactions, fired=True, attempt=attempt)


def make_job(
    ledger: Ledger,
    policy: Policy,
    window: int,
    usage: Usage | None = None,
    summarizer: Summarizer | None = None,
    session: Session | None = None,
    request: str | None = None,
    todos: tuple[Todo, ...] = (),
) -> Job:
    """What a replay needs, with its defaults."""
    usage = assumed_usage(ledger, policy) if usage is None else usage
    summarizer = summarizer or RecordedSummaries.of(ledger)
    run = ReplayRun(ledger, window, usage, request_bytes(ledger, request), session, summarizer, todos)
    return Job(run, policy, summarizer, session, request, todos)


def request_bytes(ledger: Ledger, request: str | None = None) -> Ints:
    """UTF-8 bytes of the user's request at every step: the words that began its turn, or `request` for all.

    A simulated session has none, as in the original's simulator, so that it gives the same numbers everywhere.
    """
    if request is None and ledger.usage_ratio is not None:
        request = ""
    if request is not None:
        return np.full(ledger.step_count, len(request.encode("utf-8", "surrogatepass")), dtype=np.int64)
    if "request bytes" not in ledger.derived:
        sizes = np.append(ledger.events["request_bytes"], 0)
        ledger.derived["request bytes"] = sizes[ledger.steps["user_event"]]  # -1, no event, takes the 0 at the end
    recorded: Ints = ledger.derived["request bytes"]
    return recorded


@dataclass(frozen=True)
class AssumedUsage(RatioUsage):
    """A provider that reports nothing: its count is assumed to be the heuristic times the default factor."""

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        return RequestCount(int(heuristic * self.ratio), False, ASSUMED)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> Any:
        return _unreported(super().run(start, stop, head, kept_from, heuristics, form))

    def many(self, steps: Ints, views: ViewColumns, heuristics: Ints) -> CountedRun:
        return _unreported(super().many(steps, views, heuristics))

    def growing(self, requests: GrowingRequests, heuristics: Ints) -> CountedRun:
        return _unreported(super().growing(requests, heuristics))


def _unreported(counted: CountedRun) -> CountedRun:
    """The same counts, reported by no provider."""
    size = len(counted.tokens)
    return CountedRun(counted.tokens, np.zeros(size, dtype=np.bool_), np.full(size, ASSUMED, dtype=np.int64))


def assumed_usage(ledger: Ledger, policy: Policy) -> RatioUsage:
    """The provider of a simulated session, or one about which nothing is known."""
    if ledger.usage_ratio is not None:
        return RatioUsage(ledger.usage_ratio, ledger.usage_reported_from)
    return AssumedUsage(getattr(policy.settings, "default_factor", defaults.DEFAULT_FACTOR))


def settings_of(policy: Policy) -> dict[str, Any]:
    """A policy's settings by name."""
    settings = policy.settings
    names = getattr(settings, "__struct_fields__", None)
    return {name: getattr(settings, name) for name in (settings.__dataclass_fields__ if names is None else names)}


def empty_columns(ledger: Ledger, policy: Policy) -> dict[str, NDArray[Any]]:
    """Columns of a trace before anything is known."""
    columns = {column.name: column.empty(ledger.step_count) for column in (*COMMON_COLUMNS, *policy.columns)}
    columns["recorded_prompt_tokens"] = ledger.steps["prompt_tokens"].copy()
    return columns


def _take_over(columns: dict[str, NDArray[Any]], before: Trace) -> None:
    """Write the steps of a replay of the log's beginning; what was recorded is in the columns already."""
    for name in columns.keys() - {"recorded_prompt_tokens"}:
        columns[name][: len(before)] = before.columns[name]


def _still_open(record: CompactionRecord, steps: int, ledger: Ledger) -> CompactionRecord:
    """A compaction in the last turn of a log that had so many steps: the turn may have got longer."""
    if record.turn_end != steps:
        return record
    turns = ledger.steps["user_event"]
    return msgspec.structs.replace(record, turn_end=int(np.searchsorted(turns, turns[record.step], side="right")))


def _write_run(columns: dict[str, NDArray[Any]], step: int, part: Quiet | Acted, heads: Heads) -> None:
    place = slice(step, step + part.size)
    for name, values in part.columns.items():
        columns[name][place] = values
    columns["modelled_prompt_tokens"][place] = part.counted.tokens
    columns["prompt_tokens_source"][place] = part.counted.source
    columns["head"][place] = heads.place(part.head) if isinstance(part, Quiet) else [*map(heads.place, part.heads)]


def _write_decided(columns: dict[str, NDArray[Any]], step: int, decided: Decided, head: int) -> None:
    for name, value in decided.decision.evidence.items():
        columns[name][step] = value
    columns["modelled_prompt_tokens"][step] = decided.counted.tokens
    columns["prompt_tokens_source"][step] = decided.counted.source
    columns["overflow"][step] = decided.refused
    columns["head"][step] = head


def _notes(columns: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    assumed = bool((columns["prompt_tokens_source"] == ASSUMED).any())
    text = "no call has recorded usage: prompt tokens are assumed from the size of the content"
    return (text,) if assumed else ()


def _compacts_otherwise(columns: dict[str, NDArray[Any]]) -> bool:
    """Does a replay make a compaction after which it does not send what the recording did."""
    return bool((columns["prompt_tokens_source"][columns["fired"] == 1] != PROVIDER).any())


def observe_recorded(
    ledger: Ledger, policy: Policy, *, window: int, usage: Usage | None = None, summarizer: Summarizer | None = None
) -> Trace:
    """The shadow trace: a policy's arithmetic over the requests that were really sent, without ever acting.

    `fired` means "would have fired". At the first step after a recorded compaction the decision is made on what the
    request would have been without it, as at a step that compacts; `heuristic_sent` is what was sent. The requests
    are those of the recording (Ledger.recorded_view), so the trace has no heads of its own.
    """
    run = ReplayRun(ledger, window, assumed_usage(ledger, policy) if usage is None else usage, request_bytes(ledger))
    columns = empty_columns(ledger, policy)
    columns |= _recorded_heuristics(ledger, policy.estimator(ledger))
    columns |= policy.shadow(run, columns)
    columns["modelled_prompt_tokens"], columns["prompt_tokens_source"] = _recorded_counts(run, columns)
    columns["overflow"] = (columns["modelled_prompt_tokens"] > run.largest_answered).astype(np.int64)
    settings = {**settings_of(policy), "mode": "shadow"}
    notes = (*_notes(columns), *run.usage.notes(compacted=False))
    return Trace(policy.name, settings, __version__, window, columns, notes=notes, declared=policy.columns)


def _recorded_heuristics(ledger: Ledger, estimator: Estimator) -> dict[str, NDArray[Any]]:
    """Contents and estimates of the recorded requests, with and without the compaction just before each."""
    at, epoch = ledger.steps["at"], ledger.steps["epoch"]
    before = np.append(epoch[:1], epoch[:-1])
    tokens, counts = _epoch_offsets(ledger, estimator)
    log = estimator.fixed + estimator.log()[at]
    sent, decided = log + tokens[epoch + 1], log + tokens[before + 1]
    return {
        "contents_built": at + counts[before + 1],
        "contents_decided": at + counts[before + 1],
        "contents_sent": at + counts[epoch + 1],
        "heuristic_built": decided,
        "heuristic_decided": decided,
        "heuristic_sent": sent,
        "watermark": np.array([0, *(base.at for base in ledger.bases)], dtype=np.int64)[epoch + 1],
    }


def _epoch_offsets(ledger: Ledger, estimator: Estimator) -> tuple[Ints, Ints]:
    """What the base of each epoch costs beyond the log before it, in tokens and in messages. Those of the estimator
    that asked last are kept: another window or threshold changes none of them."""
    known: tuple[Estimator, tuple[Ints, Ints]] | None = ledger.derived.get("epoch offsets")
    if known is None or known[0] is not estimator:
        tokens, counts = [0], [0]
        for epoch, base in enumerate(ledger.bases):
            tokens.append(estimator.recorded(base.view, epoch) - int(estimator.log()[base.at]))
            counts.append(content_count(base.view) - base.at)
        offsets = np.array(tokens, dtype=np.int64), np.array(counts, dtype=np.int64)
        known = ledger.derived["epoch offsets"] = estimator, offsets
    return known[1]


def _recorded_counts(run: ReplayRun, columns: dict[str, NDArray[Any]]) -> tuple[Ints, Ints]:
    """What the provider counts for the requests that were sent, one recorded compaction after the other; where it has
    reported all of them, nothing is modelled."""
    ledger, size = run.ledger, run.ledger.step_count
    tokens, source = ledger.steps["prompt_tokens"].copy(), np.full(size, PROVIDER, dtype=np.int64)
    missing = np.append(0, np.cumsum(tokens <= 0))
    edges = np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1
    for start, stop in pairwise([0, *edges.tolist(), size] if size else []):
        if missing[start] == missing[stop]:
            continue
        epoch = int(ledger.steps["epoch"][start])
        head, kept_from = (ledger.bases[epoch].view, ledger.bases[epoch].at) if epoch >= 0 else ((), 0)
        counted = run.usage.run(start, stop, head, kept_from, columns["heuristic_sent"][start:stop])
        unknown = tokens[start:stop] <= 0
        tokens[start:stop][unknown], source[start:stop][unknown] = counted.tokens[unknown], counted.source[unknown]
    return tokens, source
