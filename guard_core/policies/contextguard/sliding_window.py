"""ContextGuard's sliding window: the oldest messages are summarised once too many are after the watermark.

Source of the rules: specification of ContextGuard, section 8, with the defects it names; `fixed` mends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core import defaults
from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.policies.base import Check, Decision, Quiet, ReplayRun
from guard_core.policies.contextguard.contents import Contents, costs_of
from guard_core.policies.contextguard.explain import explain_sliding
from guard_core.policies.contextguard.guard import GuardStrategy, constant, loaded, remembered, reported
from guard_core.policies.contextguard.memory import GuardMemory
from guard_core.policies.contextguard.splits import safe_split
from guard_core.summaries.wrapper import summary_message
from guard_core.trace import NOTHING_TO_COMPACT, STILL_OVER, SUMMARISER_FAILED, CompactionRecord, Pass, Term, Trace
from guard_core.views import Span, Synthetic, View, content_count


@dataclass(frozen=True)
class _Work:
    """The request between two passes; `held` says why the passes ended early."""

    view: View
    memory: GuardMemory
    passes: tuple[Pass, ...] = ()
    held: int = 0
    cut: tuple[int, int, int] | None = None

    @property
    def fired(self) -> bool:
        return any(item.contents_after for item in self.passes)


@dataclass(frozen=True)
class GuardSlidingWindow(GuardStrategy):
    """The strategy `sliding_window`; it never looks at token counts to decide, only at the number of messages."""

    name: str = field(default="contextguard-sliding", init=False)

    def decide(self, check: Check, state: GuardMemory) -> Decision:
        if not check.at:
            return self.nothing(check, state)
        if check.at - state.watermark <= self.settings.max_turns:
            return self.passes(check, state, self.injected(check, state))
        work = self._compact(check, state)
        if not work.fired:
            memory = msgspec.structs.replace(state, calls=work.memory.calls)
            return self.passes(check, memory, work.view, held=work.held)
        return self._fired(check, state, work)

    def _fired(self, check: Check, before: GuardMemory, work: _Work) -> Decision:
        costs = costs_of(check.ledger, self.settings)
        whole: View = (Span(0, check.at),)
        sent, built = costs.request(work.view), costs.built(check.at)
        over = sent >= self.settings.limits(check.window).threshold
        evidence = dict(
            contents_built=check.at,
            contents_decided=check.at,
            contents_sent=content_count(work.view),
            heuristic_built=built,
            heuristic_decided=built,
            heuristic_sent=sent,
            **loaded(before),
            fired=1,
            held=work.held or (STILL_OVER if over else 0),
            watermark=work.memory.watermark,
            summary_bytes=work.memory.summary_bytes,
        )
        record = self._record(check, before, whole, work, built, sent)
        return Decision(work.view, msgspec.structs.replace(work.memory, last_heuristic=sent), evidence, record)

    def _record(
        self, check: Check, before: GuardMemory, whole: View, work: _Work, built: int, sent: int
    ) -> CompactionRecord:
        memory, staying = work.memory, sum(span.stop - span.start for span in work.view if isinstance(span, Span))
        since = check.at - before.watermark
        lost = check.at - staying < memory.watermark and staying
        stacked = sum(isinstance(item, Synthetic) and item.kind == "continuation" for item in work.view)
        notes = (
            *((f"{staying} messages kept here are in no later request: the watermark covers them",) if lost else ()),
            *((f"{stacked} continuations follow one another",) if stacked > 1 else ()),
        )
        return CompactionRecord(
            step=check.step,
            reason=f"{since:,} messages since the watermark > {self.settings.max_turns:,}",
            passes=work.passes,
            before=whole,
            after=work.view,
            tokens_before=built,
            tokens_after=sent,
            previous_summary_bytes=before.summary_bytes,
            **self.carried(check, memory),
            cut=work.cut,
            notes=notes,
        )

    def _compact(self, check: Check, memory: GuardMemory) -> _Work:
        costs = costs_of(check.ledger, self.settings)
        threshold = self.settings.limits(check.window).threshold
        work = _Work((Span(0, check.at),), memory)
        keep = max(defaults.MIN_KEEP, self.settings.max_turns * defaults.KEEP_PERCENT // 100)
        for _ in range(self.settings.max_passes):
            work = self._pass(check, costs, work, keep)
            if work.held or costs.request(work.view) < threshold:
                break
            keep = max(defaults.MIN_KEEP, keep // 2)
        return work

    def _pass(self, check: Check, costs: Heuristic, work: _Work, keep: int) -> _Work:
        contents = Contents(work.view, costs)
        raw = len(contents) - keep
        safe = safe_split(contents, raw)
        split = self._aligned(check, contents, safe) if self.settings.mend_pairs else safe
        if split <= 0:  # the original panics where fewer than `keep` contents exist; here nothing is done
            return _held(work, NOTHING_TO_COMPACT)
        old, recent = contents.slice(0, split), contents.slice(split, len(contents))
        old_tokens = costs.contents(old)
        request = self.asked(check, work.memory, old, old_tokens)
        try:
            summary, how = self.summarise(check, request, on_error=self.settings.mend_failure)
        except SummaryFailed:
            calls = msgspec.structs.replace(work.memory, calls=work.memory.calls + 1)
            return _held(_Work(work.view, calls, work.passes, cut=work.cut), SUMMARISER_FAILED)
        memory = self._remember(check, work.memory, summary.bytes, summary.text, old_tokens, recent)
        if self.settings.mend_stacking:
            recent = tuple(item for item in recent if isinstance(item, Span))
        view: View = (summary_message(summary, self.settings.marker_dash), *recent)
        view = (*view, self.continues(check)) if self.continued else view
        done = Pass(
            contents_in=len(contents),
            tokens_in=old_tokens,
            summariser_contents=split,
            summariser_tokens=old_tokens,
            summary_bytes=summary.bytes,
            contents_after=content_count(view),
            tokens_after=costs.request(view),
            failed=how == "failed",
            fallback=bool(how),
            empty=how == "empty",
            summariser_view=old,
        )
        cut = work.cut or (raw, safe, split)  # of the first pass, whose contents are the log
        return _Work(view, memory, (*work.passes, done), cut=cut)

    @property
    def continued(self) -> bool:
        """`tail` knows no continuation."""
        return self.settings.profile != "tail"

    def _aligned(self, check: Check, contents: Contents, split: int) -> int:
        """Back to where no call is parted from its result, also not from one that is still to come."""
        for before, item in enumerate(contents.view):
            if isinstance(item, Span):
                size = item.stop - item.start
                first = item.start + min(max(split - before, 0), size)
                cut = check.ledger.cut(first)
                return split if cut == first else before + max(cut - item.start, 0)
        return split

    def _remember(
        self, check: Check, memory: GuardMemory, size: int, text: str | None, old_tokens: int, recent: View
    ) -> GuardMemory:
        first = next((item.start for item in recent if isinstance(item, Span)), check.at)
        return msgspec.structs.replace(
            memory,
            summary_bytes=size,
            summary_text=text,
            watermark=first if self.settings.mend_tail else self._covered(check),
            summarized_at=old_tokens,
            calls=memory.calls + 1,
            request_event=check.user_event,
            request_bytes=check.request_bytes if self.settings.name_request else 0,
            request_text=check.request if self.settings.name_request else None,
        )

    def _covered(self, check: Check) -> int:
        """The watermark of the original: all messages, whatever was kept; where pairs are mended, all whole pairs."""
        return check.ledger.cut(check.at) if self.settings.mend_pairs else check.at

    # Quiet runs

    def scan(self, run: ReplayRun, start: int, stop: int, state: GuardMemory) -> Quiet | None:
        at = run.ledger.steps["at"]
        if not at[start]:
            return None
        stop = self.same_head(run, start, stop, state)
        over = at[start:stop] - state.watermark > self.settings.max_turns
        first = int(np.argmax(over))
        ended = bool(over[first])
        size = first if ended else stop - start
        if not size:
            return Quiet(0, {}, run.usage.run(start, start, (), 0, constant(0, 0)), state, True)
        head, columns = self.quiet_columns(run, start, start + size, state)
        heuristics = columns["heuristic_sent"]
        counts = reported(run, start, start + size, head, heuristics, state)
        columns |= {
            **_undecided(size),
            "real_loaded": counts.tokens[:-1],
            "last_heuristic_loaded": np.append(state.last_heuristic, heuristics[:-1]),
            "real_as_of": counts.as_of[:-1],
        }
        constants = {"watermark": state.watermark, "summary_bytes": state.summary_bytes}
        return self.quiet(size, columns, constants, counts, state, head, ended=ended)

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        messages = trace["contents_decided"]
        fired = (messages > self.settings.max_turns).astype(np.int64)
        return {**remembered(run.ledger, trace), **_undecided(len(messages)), "fired": fired}

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain_sliding(self.settings, trace, step)


def _held(work: _Work, reason: int) -> _Work:
    return _Work(work.view, work.memory, work.passes, reason, work.cut)


def _undecided(size: int) -> dict[str, NDArray[Any]]:
    """The columns of a policy that does not count tokens to decide."""
    return {
        "correction_raw": np.full(size, np.nan),
        "correction": np.full(size, np.nan),
        "correction_source": constant(size, 0),
        "calibrated": constant(size, -1),
        "decision_tokens": constant(size, -1),
        "threshold": constant(size, -1),
        "held": constant(size, 0),
    }
