"""Hermes: what it sends at a step, and what a compaction leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, ReplayRun
from guard_core.policies.hermes import triggers
from guard_core.policies.hermes.compaction import Compacted, Compactor, estimate
from guard_core.policies.hermes.explaining import explain
from guard_core.policies.hermes.messages import HermesEstimates, message_count
from guard_core.policies.hermes.settings import HermesMemory, HermesSettings
from guard_core.policies.pieces.counters import last_counts
from guard_core.policies.pieces.request_numbers import REFUSED, only_grow, sent_columns
from guard_core.trace import NOTHING_TO_COMPACT, STILL_OVER, Column, CompactionRecord, Head, Term, Trace
from guard_core.views import View, content_count

PREFLIGHT_PASSES = 3  # section 1.1 of the specification of policies
PROGRESS = 0.95  # of the estimate before a pass: what counts as progress although no message went (0.19.0)


@dataclass(frozen=True)
class Hermes:
    """The policy; see the package."""

    settings: HermesSettings
    name: str = field(default="hermes", init=False)
    columns: tuple[Column, ...] = field(default=triggers.COLUMNS, init=False)
    points: tuple[Point, ...] = field(default=(Point.BEFORE_CALL, Point.ON_OVERFLOW), init=False)
    state_type: type = field(default=HermesMemory, init=False)

    @property
    def moments(self) -> tuple[Point, ...]:
        return self.points

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> HermesMemory:
        return HermesMemory()

    def observe(self, state: HermesMemory, prompt_tokens: int | None, step: int) -> HermesMemory:
        return triggers.after_count(state, prompt_tokens, step) if prompt_tokens and prompt_tokens > 0 else state

    # ---- the decision

    def decide(self, check: Check, state: HermesMemory) -> Decision:
        threshold = self.settings.threshold(check.window)
        if state.threshold != threshold:
            state = msgspec.structs.replace(state, threshold=threshold)
        costs = self.estimator(check.ledger)
        estimates = HermesEstimates(check.ledger, self.settings, check.session)
        compactor = Compactor(self.settings, check, estimates, costs)
        view = Head(state.head, state.kept_from).at(check.ledger, check.at)
        steps, known = _steps(compactor, view), triggers.one_known(state)
        judged = triggers.judge(self.settings, threshold, steps, known)
        columns = triggers.columns_of(steps, known, judged)
        columns |= sent_columns(costs, Head(state.head, state.kept_from), np.array([check.at]))
        evidence = {**{name: int(values[0]) for name, values in columns.items()}, **_remembered(state)}
        if not self.settings.is_seed:
            state = triggers.raised(state, int(steps.estimates[0]))
        if check.point is not Point.ON_OVERFLOW and not judged.fires[0]:
            return Decision(view, state, evidence)
        return self._act(state, view, compactor, evidence)

    def _act(self, state: HermesMemory, view: View, compactor: Compactor, evidence: dict[str, int]) -> Decision:
        """Compacts as the checks of the step ask for it."""
        acting = Acting(self.settings, compactor, state, view)
        acting.run()
        check, costs, estimates = compactor.check, compactor.costs, compactor.estimates
        compacting = [done for done in acting.done if done.record is not None]
        if not compacting:
            held = acting.done[-1].held if acting.done else NOTHING_TO_COMPACT
            return Decision(acting.view, acting.state, {**evidence, "held": held})
        sent_view, after = acting.view, acting.state
        sent = costs.request(sent_view)
        threshold, decided = evidence["threshold"], evidence["decision_tokens"]
        over = check.usage is not None and check.usage.one(check.step, sent_view, sent).tokens >= threshold
        refused = check.point is Point.ON_OVERFLOW
        record = CompactionRecord(
            step=check.step,
            reason=REFUSED if refused else f"{decided:,} tokens >= threshold {threshold:,}",
            passes=tuple(done.record for done in compacting if done.record is not None),
            before=view,
            after=sent_view,
            tokens_before=evidence["heuristic_decided"],
            tokens_after=sent,
            previous_summary_bytes=state.summary_bytes,
            carried=after.head,
            kept_from=after.kept_from,
            point=check.point.value if refused else "",
            cut=compacting[-1].cut,
            notes=tuple(dict.fromkeys(note for done in compacting for note in done.notes)),
        )
        entries = {
            **evidence,
            **_remembered(after),
            "contents_sent": content_count(sent_view),
            "heuristic_sent": sent,
            "fired": 1,
            "held": STILL_OVER if over else 0,
            "trigger": acting.trigger,
            "estimate_sent": estimate(estimates, sent_view),
        }
        return Decision(sent_view, after, entries, record)

    # ---- many steps at once

    def scan(self, run: ReplayRun, start: int, stop: int, state: HermesMemory) -> Quiet | None:
        ledger, head = run.ledger, Head(state.head, state.kept_from)
        at = ledger.steps["at"][start:stop]
        if not only_grow(ledger, head, start, stop):
            return None
        threshold = self.settings.threshold(run.window)
        costs, estimates = self.estimator(ledger), HermesEstimates(ledger, self.settings, run.session)
        columns = sent_columns(costs, head, at)
        plain = estimates.chars[""]
        chars = estimates.request_chars(head.view) + plain[at] - plain[head.kept_from]
        contents = columns["contents_sent"] - content_count(head.view) + message_count(head.view)
        steps = triggers.steps_of(ledger, np.arange(start, stop), chars, estimates.fixed, contents)
        counts = last_counts(run, start, stop, head, columns["heuristic_sent"], state.tokens, state.as_of)
        ahead = triggers.run_ahead(state, counts, start, steps, threshold)
        judged = triggers.judge(self.settings, threshold, steps, ahead.known)
        ends = judged.fires | judged.odd | (judged.recovers & (counts.counted.tokens > run.largest_answered))
        first = int(np.argmax(ends))
        ended = bool(ends[first])
        size = first if ended else stop - start
        columns |= triggers.columns_of(steps, ahead.known, judged)
        columns |= {name: np.full(stop - start, value) for name, value in _remembered(state).items()}
        columns["threshold"] = np.full(stop - start, threshold)
        if size:
            state = msgspec.structs.replace(ahead.after(state, size), threshold=threshold)
        cut = {name: values[:size] for name, values in columns.items()}
        return Quiet(size, cut, counts.first(size), state, ended, head)

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return triggers.recorded_decisions(run, trace, self.settings, self.settings.threshold(run.window))

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain(self.settings, trace, step)


def _remembered(state: HermesMemory) -> dict[str, int]:
    """The columns that the state gives."""
    return {
        "threshold": state.threshold,
        "watermark": state.watermark,
        "summary_bytes": state.summary_bytes,
        "summary_role": state.summary_role,
    }


def _steps(compactor: Compactor, view: View) -> triggers.HermesSteps:
    """What the checks look at at one step."""
    check = compactor.check
    chars, contents = compactor.estimates.request_chars(view), message_count(view)
    rows = np.array([check.step])
    return triggers.steps_of(check.ledger, rows, np.array([chars]), compactor.estimates.fixed, np.array([contents]))


class Acting:
    """The checks of one step, one after the other, each on what the one before it left."""

    def __init__(self, settings: HermesSettings, compactor: Compactor, state: HermesMemory, view: View) -> None:
        self.settings, self.compactor = settings, compactor
        self.state, self.view = state, view
        self.done: list[Compacted] = []
        self.trigger = 0  # of the first pass that did something

    def run(self) -> None:
        """All checks of the step."""
        if self.compactor.check.point is Point.ON_OVERFLOW:
            if self._judged().recovers[0]:
                self._compact_before_call(triggers.OVERFLOW)
            return
        if self._judged().after_results[0]:
            self._compact(triggers.AFTER_RESULTS)
        if self._judged().before_turn[0]:
            self._before_turn()
        while self._judged().before_call[0]:
            self._compact_before_call(triggers.BEFORE_CALL)

    def _judged(self) -> triggers.Judgement:
        steps, known = _steps(self.compactor, self.view), triggers.one_known(self.state)
        return triggers.judge(self.settings, self.state.threshold, steps, known)

    def _compact(self, trigger: int) -> Compacted:
        done = self.compactor.run(self.state, self.view)
        self.done.append(done)
        self.trigger = self.trigger or (trigger if done.record else 0)
        self.view, self.state = done.view, done.state
        return done

    def _compact_before_call(self, trigger: int) -> None:
        """One of the compactions that a turn has a limited number of."""
        turn = int(self.compactor.check.ledger.steps["turn"][self.compactor.check.step])
        attempts = self.state.attempts if self.state.turn == turn else 0
        self.state = msgspec.structs.replace(self.state, turn=turn, attempts=attempts + 1)
        self._compact(trigger)

    def _before_turn(self) -> None:
        """Up to three passes, as long as each makes progress and the estimate is over the threshold."""
        for _ in range(PREFLIGHT_PASSES):
            count, tokens = message_count(self.view), self._estimate()
            done = self._compact(triggers.BEFORE_TURN)
            left = self._estimate()
            progress = message_count(self.view) < count or (not self.settings.is_seed and left < tokens * PROGRESS)
            if done.record is None or not progress or self._is_blocked() or left < self.state.threshold:
                return

    def _estimate(self) -> int:
        return estimate(self.compactor.estimates, self.view)

    def _is_blocked(self) -> bool:
        """Are no more passes made for now: after two strikes, or while the summariser rests after a failure; under the
        seed profile never."""
        strikes = max(self.state.ineffective, self.state.fallbacks)
        blocked = strikes >= triggers.MOST_STRIKES or self.compactor.is_cooling(self.state)
        return blocked and not self.settings.is_seed
