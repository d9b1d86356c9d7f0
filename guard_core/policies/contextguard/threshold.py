"""ContextGuard's threshold strategy: everything is summarised once the calibrated estimate reaches the threshold.

Source of the rules: specification of ContextGuard, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.estimators import Heuristic
from guard_core.policies.base import Check, Decision, Quiet, ReplayRun
from guard_core.policies.contextguard.contents import costs_of, truncate
from guard_core.policies.contextguard.explain import explain_threshold
from guard_core.policies.contextguard.guard import GuardStrategy, constant, loaded, remembered, reported
from guard_core.policies.contextguard.memory import GuardMemory
from guard_core.policies.pieces.counters import behind
from guard_core.summaries.continuation import continuation_bytes
from guard_core.summaries.wrapper import summary_message
from guard_core.tokens.calibration import CalibratedEstimate, CalibratedEstimates, estimate, estimate_run
from guard_core.trace import (
    FLOOR_OVER_THRESHOLD,
    FLOOR_OVER_WINDOW,
    NOTHING_TO_COMPACT,
    STILL_OVER,
    CompactionRecord,
    Pass,
    Term,
    Trace,
)
from guard_core.views import Span, View, content_count

NEVER = 2**62  # a trigger that no count reaches


class _Turned(NamedTuple):
    """The outcome of all passes."""

    view: View
    memory: GuardMemory
    passes: tuple[Pass, ...]
    tokens: int


@dataclass(frozen=True)
class Threshold(GuardStrategy):
    """The strategy `threshold` in the profiles `early`, `current` and `fixed`."""

    name: str = field(default="contextguard", init=False)

    def decide(self, check: Check, state: GuardMemory) -> Decision:
        if not check.at:
            return self.nothing(check, state)
        view = self.injected(check, state)
        costs = costs_of(check.ledger, self.settings)
        heuristic = costs.request(view)
        estimated = estimate(heuristic, state.real_tokens, state.last_heuristic, self.settings.factors)
        threshold = self.settings.limits(check.window).threshold
        trigger, held = self._trigger(check, costs, state, threshold, estimated.factor)
        numbers = {**_numbers(estimated), "threshold": threshold}
        first = self._kept_from(check, state)
        if estimated.tokens < trigger or not first:
            wanted = estimated.tokens >= threshold
            return self.passes(check, state, view, **numbers, held=(held or NOTHING_TO_COMPACT) if wanted else 0)
        turned = self._compact(check, state, view, heuristic, estimated, first)
        record = _record(
            check, state, view, heuristic, turned, estimated.tokens, threshold, self.carried(check, turned.memory)
        )
        evidence = dict(
            contents_built=check.at,
            contents_decided=content_count(view),
            contents_sent=content_count(turned.view),
            heuristic_built=costs.built(check.at),
            heuristic_decided=heuristic,
            heuristic_sent=turned.tokens,
            **loaded(state),
            **numbers,
            fired=1,
            held=STILL_OVER if self._measure(turned.tokens, estimated) >= threshold else 0,
            watermark=turned.memory.watermark,
            summary_bytes=turned.memory.summary_bytes,
        )
        return Decision(turned.view, turned.memory, evidence, record)

    def _kept_from(self, check: Check, state: GuardMemory) -> int:
        """Events from here on stay: none, except where a call still waits for its result. 0: nothing can go."""
        if not self.settings.mend_pairs:
            return check.at
        cut = check.ledger.cut(check.at)
        return cut if cut > (state.watermark if state.summary_bytes else 0) else 0

    def _trigger(
        self, check: Check, costs: Heuristic, state: GuardMemory, threshold: int, factor: float
    ) -> tuple[int, int]:
        """The count that fires, and why it is not the threshold (only where the loop is mended)."""
        if not self.settings.mend_loop or not state.summary_bytes:
            return threshold, 0
        floor = int((self._floor(costs, state) + self.continues(check).bytes // 4) * factor)
        if floor >= check.window:
            return NEVER, FLOOR_OVER_WINDOW
        return (check.window, FLOOR_OVER_THRESHOLD) if floor >= threshold else (threshold, 0)

    def _floor(self, costs: Heuristic, state: GuardMemory) -> int:
        """What a compaction cannot shrink: system prompt, tools, a summary like the last (but for the continuation)."""
        return costs.request((summary_message(state.summary, self.settings.marker_dash),))

    def _measure(self, heuristic: int, estimated: CalibratedEstimate) -> int:
        """The count by which a pass is judged: raw tokens in the original, calibrated ones where mended."""
        return int(heuristic * estimated.factor) if self.settings.mend_retry else heuristic

    def _compact(
        self, check: Check, memory: GuardMemory, view: View, tokens: int, estimated: CalibratedEstimate, first: int
    ) -> _Turned:
        """All passes over a view of so many `tokens` by the heuristic estimate."""
        costs = costs_of(check.ledger, self.settings)
        limits = self.settings.limits(check.window)
        tail: View = (Span(first, check.at),) if first < check.at else ()
        passes: list[Pass] = []
        contents, count = self._old(view, first), content_count(view)
        continuation, after = self.continues(check), 2 + content_count(tail)
        fixed = costs.request((continuation, *tail))
        for _ in range(self.settings.max_passes):
            given, given_tokens, dropped = truncate(contents, costs, int(check.window * self.settings.summariser_share))
            request = self.asked(check, memory, given, given_tokens)
            summary, how = self.summarise(check, request, on_error=True)
            memory = self._remember(check, memory, summary.bytes, summary.text, estimated.tokens, first)
            wrapped = summary_message(summary, self.settings.marker_dash)
            contents = (wrapped, continuation)
            tokens_in, tokens = tokens, fixed + costs.segment(wrapped)
            passes.append(
                Pass(
                    contents_in=count,
                    tokens_in=tokens_in,
                    summariser_contents=content_count(given),
                    summariser_tokens=given_tokens,
                    summary_bytes=summary.bytes,
                    contents_after=after,
                    tokens_after=tokens,
                    failed=how == "failed",
                    fallback=bool(how),
                    empty=how == "empty",
                    dropped_before_summariser=dropped,
                    summariser_view=given,
                )
            )
            count = after
            if self._measure(tokens, estimated) < limits.threshold:
                break
        memory = msgspec.structs.replace(memory, last_heuristic=tokens)
        return _Turned((*contents, *tail), memory, tuple(passes), tokens)

    def _old(self, view: View, first: int) -> View:
        """The contents that are summarised: all of them up to the log's event `kept`."""
        last = view[-1]
        if not isinstance(last, Span) or last.stop <= first:
            return view
        return (*view[:-1], Span(last.start, first)) if last.start < first else view[:-1]

    def _remember(
        self, check: Check, memory: GuardMemory, size: int, text: str | None, decided: int, first: int
    ) -> GuardMemory:
        """Summary, watermark and diagnostics are stored at every pass, and the calibration is reset."""
        named = self.settings.name_request
        return GuardMemory(
            summary_bytes=size,
            summary_text=text,
            watermark=first,
            summarized_at=decided,
            calls=memory.calls + 1,
            request_event=check.user_event,
            request_bytes=check.request_bytes if named else 0,
            request_text=check.request if named else None,
        )

    # Quiet runs

    def scan(self, run: ReplayRun, start: int, stop: int, state: GuardMemory) -> Quiet | None:
        at = run.ledger.steps["at"]
        if not at[start]:
            return None
        stop = self.same_head(run, start, stop, state)
        head, columns = self.quiet_columns(run, start, stop, state)
        heuristics = columns["heuristic_sent"]
        counts = reported(run, start, stop, head, heuristics, state)
        last = behind(state.last_heuristic, heuristics[:-1])
        estimated = estimate_run(heuristics, counts.tokens[:-1], last, self.settings.factors)
        threshold = self.settings.limits(run.window).threshold
        trigger, held = self._triggers(run, slice(start, stop), state, threshold, estimated.factor)
        fires = estimated.tokens >= trigger
        first = int(fires.argmax())
        ended = bool(fires[first])
        columns |= {
            "real_loaded": counts.tokens[:-1],
            "last_heuristic_loaded": last,
            "real_as_of": counts.as_of[:-1],
            **_numbers(estimated),
        }
        constants = {"threshold": threshold, "watermark": state.watermark, "summary_bytes": state.summary_bytes}
        if isinstance(held, int):  # 0, where nothing holds
            constants["held"] = held
        else:
            columns["held"] = np.where(estimated.tokens >= threshold, held, 0)
        size = first if ended else stop - start
        return self.quiet(size, columns, constants, counts, state, head, ended=ended)

    def _triggers(
        self, run: ReplayRun, steps: slice, state: GuardMemory, threshold: int, factor: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
        """`_trigger` for a run of steps: numbers where they are the same at every step."""
        if not self.settings.mend_loop or not state.summary_bytes:
            return threshold, 0
        asked = run.request_bytes[steps] if self.settings.name_request else constant(len(factor), 0)
        continued = np.where(asked > 0, continuation_bytes(1) - 1 + asked, continuation_bytes(0)) // 4
        floor = ((self._floor(costs_of(run.ledger, self.settings), state) + continued) * factor).astype(np.int64)
        over, full = floor >= threshold, floor >= run.window
        trigger = np.where(full, NEVER, np.where(over, run.window, threshold))
        held = np.where(full, FLOOR_OVER_WINDOW, np.where(over, FLOOR_OVER_THRESHOLD, 0))
        return trigger, held

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        memory = remembered(run.ledger, trace)
        estimated = estimate_run(
            trace["heuristic_decided"], memory["real_loaded"], memory["last_heuristic_loaded"], self.settings.factors
        )
        threshold = self.settings.limits(run.window).threshold
        return {
            **memory,
            **_numbers(estimated),
            "threshold": constant(len(estimated.tokens), threshold),
            "fired": (estimated.tokens >= threshold).astype(np.int64),
        }

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain_threshold(self.settings, trace, step)


def _numbers(estimated: CalibratedEstimate | CalibratedEstimates) -> dict[str, Any]:
    """What was estimated, of one step or of many, as columns."""
    return {
        "correction_raw": estimated.raw,
        "correction": estimated.factor,
        "correction_source": estimated.source,
        "calibrated": estimated.calibrated,
        "decision_tokens": estimated.tokens,
    }


def _record(
    check: Check,
    before: GuardMemory,
    view: View,
    heuristic: int,
    turned: _Turned,
    tokens: int,
    threshold: int,
    carried: dict[str, Any],
) -> CompactionRecord:
    notes = tuple(
        f"pass {number}: the summariser {'failed' if item.failed else 'gave no text'}; mechanical summary used"
        for number, item in enumerate(turned.passes, 1)
        if item.fallback
    )
    return CompactionRecord(
        step=check.step,
        reason=f"{tokens:,} tokens >= threshold {threshold:,}",
        passes=turned.passes,
        before=view,
        after=turned.view,
        tokens_before=heuristic,
        tokens_after=turned.tokens,
        previous_summary_bytes=before.summary_bytes,
        **carried,
        cut=(check.at, turned.memory.watermark, turned.memory.watermark),
        notes=notes,
    )
