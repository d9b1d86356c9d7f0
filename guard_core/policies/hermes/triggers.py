"""When Hermes fires: after tool results on the last count, before a turn and before calls on an estimate.

Sections 1.1 and 1.2 of the specification of policies; the check before every call as scripted runs of 0.19.0 have it.
The same arithmetic takes one step or, over arrays, many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import ReplayRun
from guard_core.policies.hermes.settings import HermesMemory, HermesSettings
from guard_core.policies.pieces.counters import LastCounts
from guard_core.trace import INDEX, SWITCH, Column

TRIGGERS = ("none", "after tool results", "before a turn", "before a call", "overflow")
AFTER_RESULTS, BEFORE_TURN, BEFORE_CALL, OVERFLOW = range(1, 5)
COUNTERS = ("none", "provider's count", "estimate")
PROVIDER_COUNT, ESTIMATE = 1, 2
ROLES = ("none", "user", "assistant", "merged into the next message")
MOST_ATTEMPTS = 3  # compactions before calls and after refusals of one turn (section 1.1)
MOST_STRIKES = 2  # section 1.2
LEAST_GROWTH, GROWTH_SHARE = 4_096, 0.05  # of the estimate since one that fitted (section 1.2)

COLUMNS = (
    Column("last_prompt", "prompt tokens of the last call that the provider counted since the last compaction", none=0),
    Column("last_step", "the step of that call", "step", none=-1),
    Column("request_estimate", "estimate of the request: characters of its messages as Python writes them / 4"),
    Column("estimate_sent", "the same estimate of the request that is sent, after a compaction"),
    Column("counted_by", "what the decision was made on", INDEX, words=COUNTERS),
    Column("trigger", "the check that compacted", INDEX, words=TRIGGERS, label="trigger"),
    Column("deferred", "the estimate is over the threshold, but the last count was not: no compaction", SWITCH),
    Column("ineffective", "compactions in a row that left the count over the threshold, or did nothing", "compactions"),
    Column("fallbacks", "compactions in a row without a summary of the model", "compactions"),
    Column("summary_role", "how the newest summary is sent, after the step", INDEX, words=ROLES),
)


class HermesSteps(NamedTuple):
    """What is known of some steps beside the state; an array each. `times` in milliseconds, -1: not recorded."""

    estimates: Ints
    chars: Ints
    contents: Ints
    same_turn: NDArray[np.bool_]
    turns: Ints
    times: Ints


class Known(NamedTuple):
    """What is remembered before each of some steps; an array each, `cooldown_until`, `turn`, `attempts` the same for
    all."""

    last: Ints
    as_of: Ints
    real: Ints
    awaiting: NDArray[np.bool_]
    ineffective: Ints
    fallbacks: Ints
    baseline: Ints
    cooldown_until: int
    turn: int
    attempts: int


def steps_of(ledger: Ledger, rows: Ints, chars: Ints, fixed: int, contents: Ints) -> HermesSteps:
    """The steps of some rows, whose requests have `chars` characters in `contents` messages."""
    turns, at = ledger.steps["turn"], ledger.steps["at"][rows]
    before = turns[np.maximum(rows - 1, 0)]
    same = (rows > 0) & (before == turns[rows])
    times = np.append(ledger.events["time_ms"], -1)[at - 1]
    return HermesSteps(fixed + -(-chars // 4), chars, contents, same, turns[rows], times)


def one_known(state: HermesMemory) -> Known:
    """What is remembered before one step."""
    last, as_of, real, awaiting, ineffective, fallbacks, baseline = np.array(_remembered(state)).reshape(-1, 1)
    limits = (state.cooldown_until, state.turn, state.attempts)
    return Known(last, as_of, real, awaiting > 0, ineffective, fallbacks, baseline, *limits)


def _remembered(state: HermesMemory) -> tuple[int, ...]:
    """The first values of Known before a step."""
    baseline = state.fitted_estimate or state.compacted_estimate
    awaiting = int(state.awaiting)
    return state.tokens, state.as_of, state.real, awaiting, state.ineffective, state.fallbacks, baseline


def is_cooling(until: Any, times: Any) -> Any:
    """Is it within the cool-down after a failed summary. Without times there is none."""
    return (times >= 0) & (times < until)


class Judgement(NamedTuple):
    """What the checks at some steps find; an array each. `odd`: an estimate would be deferred, but has grown too much,
    `recovers`: would a refused request be compacted."""

    after_results: NDArray[np.bool_]
    before_turn: NDArray[np.bool_]
    before_call: NDArray[np.bool_]
    deferred: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    recovers: NDArray[np.bool_]
    by_count: NDArray[np.bool_]
    decision: Ints

    @property
    def fires(self) -> NDArray[np.bool_]:
        return self.after_results | self.before_turn | self.before_call


def can_defer(steps: HermesSteps, known: Known, threshold: int) -> NDArray[np.bool_]:
    """Where an estimate over the threshold is weighed against one that fitted."""
    fitted = (known.real > 0) & (known.real < threshold) & (known.baseline > 0)
    return np.asarray((steps.estimates >= threshold) & ~known.awaiting & fitted & (known.fallbacks < MOST_STRIKES))


def judge(settings: HermesSettings, threshold: int, steps: HermesSteps, known: Known) -> Judgement:
    """The checks of some steps."""
    over = steps.estimates >= threshold
    if settings.is_seed:
        blocked = deferred = odd = np.zeros(len(over), dtype=np.bool_)
    else:
        tried = (known.ineffective >= MOST_STRIKES) | (known.fallbacks >= MOST_STRIKES)
        blocked = tried | is_cooling(known.cooldown_until, steps.times)
        weighed = can_defer(steps, known, threshold)
        grown = steps.estimates - known.baseline > tolerated(threshold)
        deferred, odd = (over & known.awaiting) | (weighed & ~grown), weighed & grown
    compared = np.where(known.last == 0, steps.estimates, known.last)
    after_results = steps.same_turn & (compared >= threshold) & ~blocked
    by_estimate = over & ~deferred & ~blocked
    many = steps.contents > settings.protect_first_n + settings.protect_last_n + 1
    gate = many if settings.is_seed else many | (-(-steps.chars // 4) >= threshold)
    before_turn = ~steps.same_turn & gate & by_estimate
    may_try = (steps.turns != known.turn) | (known.attempts < MOST_ATTEMPTS)
    before_call = by_estimate & may_try & (steps.contents > 1) & (not settings.is_seed)
    recovers = may_try & ~blocked
    by_count = steps.same_turn & (known.last > 0) & (after_results | ~(before_turn | before_call))
    decision = np.where(by_count, known.last, steps.estimates)
    return Judgement(after_results, before_turn, before_call, deferred, odd, recovers, by_count, decision)


def columns_of(steps: HermesSteps, known: Known, judged: Judgement) -> dict[str, NDArray[Any]]:
    """The columns of the decision at some steps."""
    return {
        "last_prompt": np.maximum(known.last, 0),
        "last_step": known.as_of,
        "request_estimate": steps.estimates,
        "estimate_sent": steps.estimates,
        "counted_by": np.where(judged.by_count, PROVIDER_COUNT, ESTIMATE),
        "deferred": judged.deferred.astype(np.int64),
        "ineffective": known.ineffective,
        "fallbacks": known.fallbacks,
        "decision_tokens": judged.decision,
    }


def after_count(state: HermesMemory, tokens: int, step: int) -> HermesMemory:
    """The state after the provider counted a request."""
    over = tokens >= state.threshold
    fitted = 0 if over else state.fitted_estimate
    if not over and state.awaiting and state.compacted_estimate:
        fitted = state.compacted_estimate
    return msgspec.structs.replace(
        state,
        tokens=tokens,
        as_of=step,
        real=tokens,
        ineffective=state.ineffective + state.verifying if over else 0,
        fitted_estimate=fitted,
        awaiting=False,
        verifying=False,
    )


class Ahead(NamedTuple):
    """What is remembered before each step of a run, and, with one more entry, what changes in the state."""

    known: Known
    fitted: Ints
    changes: dict[str, Ints]

    def after(self, state: HermesMemory, size: int) -> HermesMemory:
        """The state after the first steps."""
        changes: dict[str, Any] = {name: int(values[size]) for name, values in self.changes.items()}
        seen = bool(changes.pop("seen"))
        flags = {"awaiting": state.awaiting and not seen, "verifying": state.verifying and not seen}
        return msgspec.structs.replace(state, **changes, **flags)


def run_ahead(state: HermesMemory, counts: LastCounts, start: int, steps: HermesSteps, threshold: int) -> Ahead:
    """What is remembered over a run of steps in which nothing fires; the estimates never fall there."""
    size = len(steps.estimates)
    tokens, reported, _ = counts.counted
    known = reported & (tokens > 0)
    seen = counts.as_of >= start
    # Did a known count fit before each step, and, as last entry, before the end?
    fits = _last_before(known & (tokens < threshold)) >= 0
    last_over = _last_before(known & (tokens >= threshold))
    fitted = np.full(size + 1, state.fitted_estimate)
    if state.awaiting and state.compacted_estimate:
        fitted[seen] = state.compacted_estimate
    fitted[last_over >= 0] = 0
    baseline = np.where(fitted > 0, fitted, state.compacted_estimate)
    real = np.where(seen, counts.tokens, state.real)
    ineffective = np.where(fits, 0, state.ineffective + (state.verifying & seen))
    before = Known(
        counts.tokens[:-1],
        counts.as_of[:-1],
        real[:-1],
        state.awaiting & ~seen[:-1],
        ineffective[:-1],
        np.full(size, state.fallbacks),
        baseline[:-1],
        state.cooldown_until,
        state.turn,
        state.attempts,
    )
    # An estimate that is deferred is the next baseline, until a count over the threshold.
    last_weighed = _last_before(can_defer(steps, before, threshold))
    raised = last_weighed > last_over
    estimates = np.append(steps.estimates, 0)[last_weighed]
    baseline = np.where(raised, np.maximum(baseline, estimates), baseline)
    fitted = np.where(raised, baseline, fitted)
    changes = {"tokens": counts.tokens, "as_of": counts.as_of, "real": real, "ineffective": ineffective}
    return Ahead(before._replace(baseline=baseline[:-1]), fitted, changes | {"fitted_estimate": fitted, "seen": seen})


def _last_before(happens: NDArray[np.bool_]) -> Ints:
    """The last place before each one at which something happens, -1: none; one more entry for the end."""
    places = np.where(happens, np.arange(len(happens)), -1)
    return np.append(-1, np.maximum.accumulate(places)).astype(np.int64) if len(places) else np.array([-1])


def recorded_decisions(
    run: ReplayRun, trace: Mapping[str, NDArray[Any]], settings: HermesSettings, threshold: int
) -> dict[str, NDArray[Any]]:
    """The checks of every step over the requests that were sent, each after the counts before it.

    A recorded compaction is taken as one of Hermes: its next count is waited for. The estimate of a request is the
    heuristic one, bytes // 4.
    """
    ledger, size = run.ledger, run.ledger.step_count
    contents, decided = trace["contents_decided"], trace["heuristic_decided"]
    rows = np.arange(size)
    steps = steps_of(ledger, rows, decided * 4, 0, contents)
    recorded, epochs = ledger.steps["prompt_tokens"].tolist(), ledger.steps["epoch"].tolist()
    sent = trace["heuristic_sent"].tolist()
    state, before = HermesMemory(threshold=threshold), []
    for row, estimate in enumerate(decided.tolist()):
        before.append(_remembered(state))
        if not settings.is_seed:
            state = raised(state, estimate)
        if row and epochs[row] != epochs[row - 1]:
            state = compacted(state, settings, sent[row])
        if recorded[row] > 0:
            state = after_count(state, recorded[row], row)
    arrays = np.array(before, dtype=np.int64).reshape(size, len(_remembered(state))).T
    last, as_of, real, awaiting, ineffective, fallbacks, baseline = arrays
    known = Known(last, as_of, real, awaiting > 0, ineffective, fallbacks, baseline, -1, -1, 0)
    judged = judge(settings, threshold, steps, known)
    columns = columns_of(steps, known, judged)
    return {**columns, "fired": judged.fires.astype(np.int64), "threshold": np.full(size, threshold)}


def raised(state: HermesMemory, estimate: int) -> HermesMemory:
    """The state after an estimate was weighed: one that is deferred is what the next one is weighed against."""
    baseline, threshold = state.fitted_estimate or state.compacted_estimate, state.threshold
    fitted = 0 < state.real < threshold and baseline > 0 and not state.awaiting
    if estimate < threshold or not fitted or state.fallbacks >= MOST_STRIKES:
        return state
    if estimate - baseline > tolerated(threshold):
        return state
    return msgspec.structs.replace(state, fitted_estimate=max(baseline, estimate))


def tolerated(threshold: int) -> int:
    """Tokens by which an estimate may have grown and still be deferred."""
    return max(LEAST_GROWTH, int(threshold * GROWTH_SHARE))


def compacted(state: HermesMemory, settings: HermesSettings, estimate: int) -> HermesMemory:
    """The counters after a compaction that left a request of this estimate."""
    current = not settings.is_seed
    if current and settings.stored:  # to the compressor a session ends, and another begins
        state = msgspec.structs.replace(state, ineffective=0, real=0, fitted_estimate=0)
    return msgspec.structs.replace(
        state,
        tokens=-1 if current else 0,
        as_of=-1,
        awaiting=current,
        verifying=current,
        compacted_estimate=estimate,
    )
