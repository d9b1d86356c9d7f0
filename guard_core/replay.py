"""Replay: one session's log run again under a policy, step by step, to a trace.

Views are priced and not built, and between two compactions a policy looks ahead over arrays: N steps cost O(N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core import __version__
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Policy, Quiet, Run, State
from guard_core.policies.contextguard.contents import Costs
from guard_core.policies.contextguard.settings import Settings
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.trace import FLOAT_COLUMNS, TRACE_COLUMNS, CompactionRecord, Trace
from guard_core.usage import ASSUMED, Counted, RatioUsage, Usage
from guard_core.views import View, content_count

FIRST_BLOCK, LARGEST_BLOCK = 64, 8_192  # steps looked ahead at once, doubling while nothing happens
CALM = 2  # steps decided one by one after a compaction, so that a loop does not pay for looking ahead


@dataclass(frozen=True)
class Job:
    """One replay: the run and what the policy may ask."""

    run: Run
    policy: Policy
    summarizer: Summarizer
    session: Session | None = None
    request: str | None = None
    todos: tuple[Todo, ...] = ()

    def check(self, step: int) -> Check:
        """What the policy may look at before a step."""
        steps = self.run.ledger.steps
        user_event = int(steps["user_event"][step])
        return Check(
            ledger=self.run.ledger,
            step=step,
            at=int(steps["at"][step]),
            window=self.run.window,
            summarizer=self.summarizer,
            user_event=user_event,
            request_bytes=int(self.run.request_bytes[step]),
            request=self._words(user_event),
            session=self.session,
            todos=self.todos,
        )

    def _words(self, user_event: int) -> str | None:
        if self.request is not None or self.session is None or user_event < 0:
            return self.request
        if self.session.usage_ratio is not None:
            return ""
        parts = self.session.events[user_event].parts
        return next((text for part in parts if (text := getattr(part, "text", ""))), "")


@dataclass(frozen=True)
class Decided:
    """One step that a policy decided by itself."""

    decision: Decision
    counted: Counted


def replay(
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
) -> Trace:
    """Run a session's log under a policy.

    `window` in tokens. `usage` says what the provider counts (default: the simulated ratio, else the heuristic times
    the default
    factor, assumed and never reported). `summarizer` defaults to the recorded sizes. `session` gives texts to the
    summariser and to what it writes. `request` replaces the words of every turn ("" for none). `each` is called with
    the number of steps replayed so far, often; what it raises ends the replay.
    """
    job = make_job(ledger, policy, window, usage, summarizer, session, request, todos)
    columns = empty_columns(ledger)
    compactions: list[CompactionRecord] = []
    state: State = policy.start()
    for step, part, after in iter_steps(job):
        each(step)
        state = after
        if isinstance(part, Quiet):
            _write_quiet(columns, step, part)
        else:
            _write_decided(columns, step, part)
            if part.decision.compaction is not None:
                compactions.append(part.decision.compaction)
    columns["overflow"] = (columns["modelled_prompt_tokens"] > window).astype(np.int64)
    return Trace(
        policy=policy.name,
        settings={**settings_of(policy), "summary": job.summarizer.name},
        engine_version=__version__,
        window=window,
        columns=columns,
        compactions=tuple(compactions),
        notes=(*_notes(columns), *job.run.usage.notes(compacted=bool(compactions))),
        state=state,
    )


def iter_steps(job: Job) -> Iterator[tuple[int, Quiet | Decided, State]]:
    """The crux: a step, what happened from it on, and the policy's state after that.

    Each step is either decided by itself or lies in a run that the policy looked ahead over. Both give the same
    numbers.
    """
    policy, run = job.policy, job.run
    steps = run.ledger.step_count
    state: State = policy.start()
    step, calm, block = 0, CALM, FIRST_BLOCK
    while step < steps:
        if calm >= CALM:
            quiet = policy.scan(run, step, min(step + block, steps), state)
            block = min(block * 2, LARGEST_BLOCK)
            if quiet is not None and quiet.size:
                state = quiet.state
                yield step, quiet, state
                step += quiet.size
                if not quiet.ended:
                    continue
        decision = policy.decide(job.check(step), state)
        counted = run.usage.one(step, decision.view, decision.evidence.heuristic_sent)
        state = policy.observe(decision.state, counted.tokens if counted.reported else None, step)
        yield step, Decided(decision, counted), state
        step += 1
        calm = 0 if decision.compaction is not None else calm + 1
        block = FIRST_BLOCK if decision.compaction is not None else block


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
    run = Run(ledger, window, usage, request_bytes(ledger, request))
    return Job(run, policy, summarizer or RecordedSummaries.of(ledger), session, request, todos)


def request_bytes(ledger: Ledger, request: str | None = None) -> Ints:
    """UTF-8 bytes of the user's request at every step: the words that began its turn, or `request` for all.

    A simulated session has none, as in the original's simulator, so that it gives the same numbers everywhere.
    """
    if request is None and ledger.usage_ratio is not None:
        request = ""
    if request is not None:
        return np.full(ledger.step_count, len(request.encode("utf-8", "surrogatepass")), dtype=np.int64)
    event = ledger.steps["user_event"]
    sizes = np.append(ledger.events["request_bytes"], 0)
    return sizes[event]  # -1, no event, takes the 0 at the end


@dataclass(frozen=True)
class AssumedUsage(RatioUsage):
    """A provider that reports nothing: its count is assumed to be the heuristic times the default factor."""

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> Counted:
        return Counted(int(heuristic * self.ratio), False, ASSUMED)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints) -> Any:
        counted = super().run(start, stop, head, kept_from, heuristics)
        size = stop - start
        return counted._replace(reported=np.zeros(size, dtype=np.bool_), source=np.full(size, ASSUMED, dtype=np.int64))


def assumed_usage(ledger: Ledger, policy: Policy) -> RatioUsage:
    """The provider of a simulated session, or one about which nothing is known."""
    if ledger.usage_ratio is not None:
        return RatioUsage(ledger.usage_ratio, ledger.usage_reported_from)
    return AssumedUsage(getattr(policy.settings, "default_factor", Settings.default_factor))


def settings_of(policy: Policy) -> dict[str, Any]:
    """A policy's settings by name."""
    settings = policy.settings
    names = getattr(settings, "__struct_fields__", None)
    return {name: getattr(settings, name) for name in (settings.__dataclass_fields__ if names is None else names)}


_START_VALUES = {"real_as_of": -1, "calibrated": -1, "decision_tokens": -1, "threshold": -1}


def empty_columns(ledger: Ledger) -> dict[str, NDArray[Any]]:
    """Columns of a trace before anything is known."""
    size = ledger.step_count
    columns: dict[str, NDArray[Any]] = {
        name: np.full(size, np.nan)
        if name in FLOAT_COLUMNS
        else np.full(size, _START_VALUES.get(name, 0), dtype=np.int64)
        for name in TRACE_COLUMNS
    }
    columns["recorded_prompt_tokens"] = ledger.steps["prompt_tokens"].copy()
    return columns


def _write_quiet(columns: dict[str, NDArray[Any]], step: int, quiet: Quiet) -> None:
    place = slice(step, step + quiet.size)
    for name, values in quiet.columns.items():
        columns[name][place] = values
    columns["modelled_prompt_tokens"][place] = quiet.counted.tokens
    columns["prompt_tokens_source"][place] = quiet.counted.source


def _write_decided(columns: dict[str, NDArray[Any]], step: int, decided: Decided) -> None:
    evidence = decided.decision.evidence
    for name, value in zip(evidence._fields, evidence, strict=True):
        columns[name][step] = value
    columns["modelled_prompt_tokens"][step] = decided.counted.tokens
    columns["prompt_tokens_source"][step] = decided.counted.source


def _notes(columns: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    assumed = bool((columns["prompt_tokens_source"] == ASSUMED).any())
    text = "no call has recorded usage: prompt tokens are assumed from the size of the content"
    return (text,) if assumed else ()


def observe_recorded(
    ledger: Ledger, policy: Policy, *, window: int, usage: Usage | None = None, summarizer: Summarizer | None = None
) -> Trace:
    """The shadow trace: a policy's arithmetic over the requests that were really sent, without ever acting.

    `fired` means "would have fired". At the first step after a recorded compaction the decision is made on what the
    request would have been without it, as ContextGuard does at a step that compacts; `heuristic_sent` is what was
    sent. A recorded compaction resets the calibration, so no count is compared with a request it does not belong to.
    """
    run = Run(ledger, window, assumed_usage(ledger, policy) if usage is None else usage, request_bytes(ledger))
    columns = empty_columns(ledger)
    columns |= _recorded_heuristics(ledger, policy) | _remembered(ledger, _recorded_heuristics(ledger, policy))
    columns |= policy.shadow(run, columns)
    recorded = ledger.steps["prompt_tokens"]
    counted = _recorded_counts(run, columns)
    columns["modelled_prompt_tokens"] = np.where(recorded > 0, recorded, counted[0])
    columns["prompt_tokens_source"] = np.where(recorded > 0, 1, counted[1])
    columns["overflow"] = (columns["modelled_prompt_tokens"] > window).astype(np.int64)
    settings = {**settings_of(policy), "mode": "shadow"}
    notes = (*_notes(columns), *run.usage.notes(compacted=False))
    return Trace(policy.name, settings, __version__, window, columns, notes=notes)


def _recorded_heuristics(ledger: Ledger, policy: Policy) -> dict[str, NDArray[Any]]:
    """Contents and heuristics of the recorded requests, with and without the compaction just before each."""
    settings = policy.settings if isinstance(policy.settings, Settings) else Settings()
    costs = Costs.of(ledger, settings)
    at, epoch = ledger.steps["at"], ledger.steps["epoch"]
    before = np.append(epoch[:1], epoch[:-1])
    tokens, counts = _epoch_offsets(ledger, costs)
    sent = costs.fixed + costs.prefix[at] + tokens[epoch + 1]
    decided = costs.fixed + costs.prefix[at] + tokens[before + 1]
    return {
        "contents_built": at + counts[before + 1],
        "contents_decided": at + counts[before + 1],
        "contents_sent": at + counts[epoch + 1],
        "heuristic_built": decided,
        "heuristic_decided": decided,
        "heuristic_sent": sent,
        "watermark": np.array([0, *(base.at for base in ledger.bases)], dtype=np.int64)[epoch + 1],
    }


def _epoch_offsets(ledger: Ledger, costs: Costs) -> tuple[Ints, Ints]:
    """What the base of each epoch costs beyond the log before it, in tokens and in messages."""
    tokens, counts = [0], [0]
    for epoch, base in enumerate(ledger.bases):
        priced = sum(ledger.price(base.view, name, epoch=epoch) for name in costs.names)
        tokens.append(priced - int(costs.prefix[base.at]))
        counts.append(content_count(base.view) - base.at)
    return np.array(tokens, dtype=np.int64), np.array(counts, dtype=np.int64)


def _remembered(ledger: Ledger, heuristics: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What ContextGuard would have remembered before each step: the last reported count of the same epoch."""
    recorded, epoch = ledger.steps["prompt_tokens"], ledger.steps["epoch"]
    size = len(recorded)
    told = np.maximum.accumulate(np.where(recorded > 0, np.arange(size), -1)) if size else np.zeros(0, dtype=np.int64)
    as_of = np.append(np.full(min(size, 1), -1), told[:-1])
    previous = np.append(epoch[:1], epoch[:-1])
    known = (as_of >= 0) & (epoch[as_of] == previous)
    return {
        "real_loaded": np.where(known, recorded[as_of], 0),
        "real_as_of": np.where(known, as_of, -1),
        "last_heuristic_loaded": _last_heuristics(heuristics["heuristic_sent"], heuristics["contents_sent"]),
    }


def _last_heuristics(sent: Ints, contents: Ints) -> Ints:
    """The heuristic kept before each step: that of the last request which was not empty."""
    size = len(sent)
    place = np.maximum.accumulate(np.where(contents > 0, np.arange(size), -1)) if size else np.zeros(0, dtype=np.int64)
    kept = np.where(place >= 0, sent[place], 0)
    return np.append(np.zeros(min(size, 1), dtype=np.int64), kept[:-1])


def _recorded_counts(run: Run, columns: dict[str, NDArray[Any]]) -> tuple[Ints, Ints]:
    """What the provider counts for the requests that were sent, one recorded compaction after the other."""
    ledger, size = run.ledger, run.ledger.step_count
    tokens, source = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    edges = np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1
    for start, stop in pairwise([0, *edges.tolist(), size] if size else []):
        epoch = int(ledger.steps["epoch"][start])
        head, kept_from = (ledger.bases[epoch].view, ledger.bases[epoch].at) if epoch >= 0 else ((), 0)
        counted = run.usage.run(start, stop, head, kept_from, columns["heuristic_sent"][start:stop])
        tokens[start:stop], source[start:stop] = counted.tokens, counted.source
    return tokens, source
