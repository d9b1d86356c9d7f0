"""ContextGuard's first threshold flow (profile `tail`): a summary and the most recent messages, judged on raw tokens.

Source of the rules: specification of ContextGuard, section 10. There is no watermark: later requests hold the summary
and the whole log again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.policies.base import Check, Decision, Quiet, ReplayRun
from guard_core.policies.contextguard.contents import Contents, costs_of
from guard_core.policies.contextguard.explain import explain_threshold
from guard_core.policies.contextguard.guard import GuardStrategy, constant, loaded, remembered, reported
from guard_core.policies.contextguard.memory import GuardMemory
from guard_core.policies.contextguard.splits import find_split
from guard_core.summaries.wrapper import summary_message
from guard_core.trace import NOTHING_TO_COMPACT, STILL_OVER, SUMMARISER_FAILED, CompactionRecord, Pass, Term, Trace
from guard_core.views import View, content_count


@dataclass(frozen=True)
class RecentTail(GuardStrategy):
    """The strategy `threshold` of the profile `tail`."""

    name: str = field(default="contextguard", init=False)

    def decide(self, check: Check, state: GuardMemory) -> Decision:
        if not check.at:
            return self.nothing(check, state)
        view = self.injected(check, state)
        heuristic = costs_of(check.ledger, self.settings).request(view)
        threshold = self.settings.limits(check.window).threshold
        numbers = {"calibrated": heuristic, "decision_tokens": heuristic, "threshold": threshold}
        if heuristic < threshold:
            return self.passes(check, state, view, **numbers)
        after, memory, passes, held = self._compact(check, state, view, threshold)
        if not passes:
            memory = msgspec.structs.replace(state, calls=memory.calls)
            return self.passes(check, memory, view, **numbers, held=held)
        return self._fired(check, state, view, after, memory, passes, numbers, held)

    def _fired(
        self,
        check: Check,
        before: GuardMemory,
        view: View,
        after: View,
        memory: GuardMemory,
        passes: tuple[Pass, ...],
        numbers: dict[str, int],
        held: int,
    ) -> Decision:
        costs = costs_of(check.ledger, self.settings)
        heuristic, sent = numbers["decision_tokens"], costs.request(after)
        evidence = dict(
            contents_built=check.at,
            contents_decided=content_count(view),
            contents_sent=content_count(after),
            heuristic_built=costs.built(check.at),
            heuristic_decided=heuristic,
            heuristic_sent=sent,
            **loaded(before),
            **numbers,
            fired=1,
            held=held or (STILL_OVER if sent >= numbers["threshold"] else 0),
            summary_bytes=memory.summary_bytes,
        )
        record = CompactionRecord(
            step=check.step,
            reason=f"{heuristic:,} tokens >= threshold {numbers['threshold']:,}",
            passes=passes,
            before=view,
            after=after,
            tokens_before=heuristic,
            tokens_after=sent,
            previous_summary_bytes=before.summary_bytes,
            **self.carried(check, memory),
            notes=("the next request holds the whole log again: this profile keeps no watermark",),
        )
        return Decision(after, msgspec.structs.replace(memory, last_heuristic=sent), evidence, record)

    def _compact(
        self, check: Check, memory: GuardMemory, view: View, threshold: int
    ) -> tuple[View, GuardMemory, tuple[Pass, ...], int]:
        costs = costs_of(check.ledger, self.settings)
        passes: list[Pass] = []
        budget = int(check.window * self.settings.recent_ratio)
        for _ in range(self.settings.max_passes):
            contents = Contents(view, costs)
            split = find_split(contents, budget)
            old, recent = contents.slice(0, split), contents.slice(split, len(contents))
            if not old:
                return view, memory, tuple(passes), NOTHING_TO_COMPACT
            old_tokens = costs.contents(old)
            request = self.asked(check, memory, old, old_tokens)
            try:
                summary, how = self.summarise(check, request, on_error=False)
            except SummaryFailed:
                memory = msgspec.structs.replace(memory, calls=memory.calls + 1)
                return view, memory, tuple(passes), SUMMARISER_FAILED
            memory = msgspec.structs.replace(
                memory,
                summary_bytes=summary.bytes,
                summary_text=summary.text,
                summarized_at=old_tokens,
                calls=memory.calls + 1,
            )
            before, view = view, (summary_message(summary, self.settings.marker_dash), *recent)
            tokens = costs.request(view)
            passes.append(
                Pass(
                    contents_in=content_count(before),
                    tokens_in=costs.request(before),
                    summariser_contents=split,
                    summariser_tokens=old_tokens,
                    summary_bytes=summary.bytes,
                    contents_after=content_count(view),
                    tokens_after=tokens,
                    fallback=bool(how),
                    empty=how == "empty",
                    summariser_view=old,
                )
            )
            if tokens < threshold:
                break
            budget //= 2
        return view, memory, tuple(passes), 0

    def scan(self, run: ReplayRun, start: int, stop: int, state: GuardMemory) -> Quiet | None:
        if not run.ledger.steps["at"][start]:
            return None
        stop = self.same_head(run, start, stop, state)
        head, columns = self.quiet_columns(run, start, stop, state)
        heuristics = columns["heuristic_sent"]
        threshold = self.settings.limits(run.window).threshold
        fires = heuristics >= threshold
        first, size = int(np.argmax(fires)), stop - start
        ended = bool(fires[first])
        counts = reported(run, start, stop, head, heuristics, state)
        columns |= {
            **_raw(heuristics, threshold),
            "real_loaded": counts.tokens[:-1],
            "last_heuristic_loaded": np.append(state.last_heuristic, heuristics[:-1]),
            "real_as_of": counts.as_of[:-1],
        }
        constants = {"held": 0, "watermark": 0, "summary_bytes": state.summary_bytes}
        return self.quiet(first if ended else size, columns, constants, counts, state, head, ended=ended)

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        heuristics = trace["heuristic_decided"]
        threshold = self.settings.limits(run.window).threshold
        memory = remembered(run.ledger, trace)
        return {**memory, **_raw(heuristics, threshold), "fired": (heuristics >= threshold).astype(np.int64)}

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain_threshold(self.settings, trace, step)


def _raw(heuristics: NDArray[np.int64], threshold: int) -> dict[str, NDArray[Any]]:
    size = len(heuristics)
    return {
        "correction_raw": np.full(size, np.nan),
        "correction": np.full(size, np.nan),
        "correction_source": constant(size, 0),
        "calibrated": heuristics,
        "decision_tokens": heuristics,
        "threshold": constant(size, threshold),
    }
