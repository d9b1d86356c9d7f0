"""What ContextGuard's strategies share: the injection of a summary, the arithmetic of quiet runs, what is remembered.

Source: specification of ContextGuard, sections 5, 6.2 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import STARTS_WITH_MARKER, USER
from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, ReplayRun
from guard_core.policies.contextguard.contents import costs_of
from guard_core.policies.contextguard.memory import GuardMemory
from guard_core.policies.contextguard.settings import Settings
from guard_core.policies.pieces.counters import LastCounts, last_counts, recorded_counts
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.summaries.continuation import continuation_message
from guard_core.summaries.fallback import fallback_summary, without_text
from guard_core.summaries.wrapper import summary_message
from guard_core.tokens.calibration import CORRECTION_SOURCES
from guard_core.trace import INDEX, Column, Head
from guard_core.views import Span, Synthetic, View, content_count

Columns = Mapping[str, NDArray[Any]]


# What a trace of ContextGuard has beside the common columns.
COLUMNS = (
    Column("real_loaded", "prompt tokens the policy remembered from the step before", none=0),
    Column("last_heuristic_loaded", "heuristic tokens the policy remembered from the step before", none=0),
    Column("real_as_of", "step at which real_loaded was measured", "step", none=-1),
    Column("correction_raw", "prompt tokens / last heuristic before clamping", "factor", real=True),
    Column("correction", "factor that was applied", "factor", real=True, label="factor"),
    Column("correction_source", "where the factor comes from", INDEX, words=CORRECTION_SOURCES),
    Column("calibrated", "heuristic x correction, truncated", none=-1),
)


@dataclass(frozen=True)
class GuardStrategy:
    """A strategy with its settings; the base of threshold, recent tail and sliding window."""

    settings: Settings

    @property
    def columns(self) -> tuple[Column, ...]:
        return COLUMNS

    @property
    def points(self) -> tuple[Point, ...]:
        return (Point.BEFORE_CALL,)

    @property
    def moments(self) -> tuple[Point, ...]:
        return self.points

    @property
    def state_type(self) -> type:
        return GuardMemory

    def estimator(self, ledger: Ledger) -> Heuristic:
        return costs_of(ledger, self.settings)

    def start(self) -> GuardMemory:
        return GuardMemory()

    def observe(self, state: GuardMemory, prompt_tokens: int | None, step: int) -> GuardMemory:
        """After the model answered: only a positive count is remembered, a missing one leaves the old."""
        if not prompt_tokens or prompt_tokens <= 0:
            return state
        return msgspec.structs.replace(state, real_tokens=prompt_tokens, real_as_of=step)

    # What is sent where nothing is compacted

    def head(self, ledger: Ledger, memory: GuardMemory, user_event: int) -> Head:
        """The summary in place of what it summarises; nothing where there is none or the user's text looks like one."""
        if not memory.summary_bytes or self._looks_summarised(ledger):
            return Head((), 0)
        view: tuple[Synthetic, ...] = (summary_message(memory.summary, self.settings.marker_dash),)
        if self.settings.mend_request and user_event == memory.request_event:
            view = (*view, continuation_message(memory.request_bytes, memory.request_text))
        return Head(view, memory.watermark)

    def _looks_summarised(self, ledger: Ledger) -> bool:
        """Does the log begin with a user's text that opens like a summary: the original then leaves the request as it
        is."""
        marked = USER | STARTS_WITH_MARKER
        return not self.settings.mend_marker and ledger.events["flags"].item(0) & marked == marked

    def carried(self, check: Check, memory: GuardMemory) -> dict[str, Any]:
        """What later steps send after a compaction, as fields of its record."""
        head = self.head(check.ledger, memory, -3)
        fields: dict[str, Any] = {"carried": head.view, "kept_from": head.kept_from}
        if not self.settings.mend_request:  # all later steps send the same
            return fields
        in_turn = self.head(check.ledger, memory, memory.request_event)
        if in_turn != head:
            turns = check.ledger.steps["user_event"]
            fields |= {"in_turn": in_turn.view, "turn_end": int(np.searchsorted(turns, check.user_event, side="right"))}
        return fields

    def injected(self, check: Check, memory: GuardMemory) -> View:
        """The view of a step before any decision."""
        head = self.head(check.ledger, memory, check.user_event)
        start = head.kept_from if head.kept_from <= check.at else 0
        return (*head.view, Span(start, check.at)) if start < check.at else head.view

    # Decisions

    def passes(self, check: Check, memory: GuardMemory, view: View, **columns: Any) -> Decision:
        """The decision to do nothing: the heuristic of what is sent is remembered, always."""
        costs = costs_of(check.ledger, self.settings)
        heuristic, count = costs.request(view), content_count(view)
        evidence = dict(
            contents_built=check.at,
            contents_decided=count,
            contents_sent=count,
            heuristic_built=costs.built(check.at),
            heuristic_decided=heuristic,
            heuristic_sent=heuristic,
            **loaded(memory),
            **columns,
            watermark=memory.watermark,
            summary_bytes=memory.summary_bytes,
        )
        return Decision(view, msgspec.structs.replace(memory, last_heuristic=heuristic), evidence)

    def nothing(self, check: Check, memory: GuardMemory) -> Decision:
        """An empty request: the original's callback returns before anything is read or kept."""
        fixed = costs_of(check.ledger, self.settings).fixed
        evidence = {
            **dict.fromkeys(("contents_built", "contents_decided", "contents_sent"), 0),
            **dict.fromkeys(("heuristic_built", "heuristic_decided", "heuristic_sent"), fixed),
            **loaded(memory),
            "watermark": memory.watermark,
            "summary_bytes": memory.summary_bytes,
        }
        return Decision((), memory, evidence)

    def continues(self, check: Check) -> Synthetic:
        """The message that follows a summary."""
        return continuation_message(check.request_bytes if self.settings.name_request else 0, check.request)

    # Summaries

    def asked(self, check: Check, memory: GuardMemory, view: View, tokens: int) -> SummaryRequest:
        """What the summariser is asked at one pass."""
        limits = self.settings.limits(check.window)
        return SummaryRequest(
            view=view,
            tokens=tokens,
            previous=memory.summary,
            output_tokens=limits.output_tokens,
            words=limits.words,
            call=memory.calls,
            step=check.step,
            session=check.session,
            todos=check.todos,
        )

    def summarise(self, check: Check, request: SummaryRequest, *, on_error: bool) -> tuple[Summary, str]:
        """A summary and how it came about: "", "empty" or "failed" for the mechanical one.

        Raises SummaryFailed where `on_error` is false and the summariser failed.
        """
        try:
            summary, how = check.summarizer.summarise(request), "empty"
        except SummaryFailed:
            if not on_error:
                raise
            summary, how = Summary(0), "failed"
        return (summary, "") if summary.bytes else (self._mechanical(check, request), how)

    def _mechanical(self, check: Check, request: SummaryRequest) -> Summary:
        """The fallback summary. One without any line is empty in the original, and it may be longer than what it
        replaces, unless the settings mend that."""
        excerpt = self.settings.fallback_excerpt
        summary = fallback_summary(request.view, check.ledger, request.previous, excerpt=excerpt, session=check.session)
        if self.settings.mend_fallback and not summary.bytes:
            summary = without_text(content_count(request.view))
        return _shortened(summary, request.output_tokens * 4) if self.settings.mend_growth else summary

    # Quiet runs

    def quiet_columns(
        self, run: ReplayRun, start: int, stop: int, memory: GuardMemory
    ) -> tuple[Head, dict[str, NDArray[Any]]]:
        """Contents and heuristics of steps `start` to `stop` while nothing is compacted."""
        costs = costs_of(run.ledger, self.settings)
        at = run.ledger.steps["at"][start:stop]
        head = self.head(run.ledger, memory, int(run.ledger.steps["user_event"][start]))
        if at[0] < head.kept_from:
            head = Head(head.view, 0)
        built = costs.prefix[at] + costs.fixed
        sent, contents = built, at
        if head.view:
            sent = built + (costs.contents(head.view) - costs.prefix.item(head.kept_from))
            contents = at + (len(head.view) - head.kept_from)
        return head, {
            "contents_built": at,
            "contents_decided": contents,
            "contents_sent": contents,
            "heuristic_built": built,
            "heuristic_decided": sent,
            "heuristic_sent": sent,
        }

    def same_head(self, run: ReplayRun, start: int, stop: int, memory: GuardMemory) -> int:
        """Where a run must end because the head changes there: with the turn whose request is repeated, or where the
        log gets shorter than the watermark."""
        if not memory.summary_bytes:
            return stop
        steps = run.ledger.steps
        at = steps["at"][start:stop]
        if not self.settings.mend_request and at.min() >= memory.watermark:
            return stop
        same = (at >= memory.watermark).astype(np.int8)
        if self.settings.mend_request:
            same += 2 * (steps["user_event"][start:stop] == memory.request_event)
        changes = same != same[0]
        return start + int(np.argmax(changes)) if changes.any() else stop

    def quiet(
        self,
        count: int,
        columns: dict[str, NDArray[Any]],
        constants: dict[str, int],
        counts: LastCounts,
        memory: GuardMemory,
        head: Head,
        *,
        ended: bool,
    ) -> Quiet:
        """The first `count` steps of a run, which all send `head`, and the memory after them; `constants` are columns
        of one number."""
        cut = {name: column[:count] for name, column in columns.items()}
        if count:
            memory = msgspec.structs.replace(
                memory,
                last_heuristic=int(cut["heuristic_sent"][-1]),
                real_tokens=int(counts.tokens[count]),
                real_as_of=int(counts.as_of[count]),
            )
        return Quiet(count, {**cut, **constants}, counts.first(count), memory, ended, head)


def reported(run: ReplayRun, start: int, stop: int, head: Head, heuristics: Ints, memory: GuardMemory) -> LastCounts:
    """What the provider counts at steps `start` to `stop`, and what the policy remembers of it."""
    return last_counts(run, start, stop, head, heuristics, memory.real_tokens, memory.real_as_of)


def loaded(memory: GuardMemory) -> dict[str, int]:
    """The columns that say what was remembered before a step."""
    return {
        "real_loaded": memory.real_tokens,
        "last_heuristic_loaded": memory.last_heuristic,
        "real_as_of": memory.real_as_of,
    }


def constant(size: int, value: int) -> Ints:
    """A column with one value."""
    return np.full(size, value, dtype=np.int64)


def _shortened(summary: Summary, limit: int) -> Summary:
    """The end of a summary that is longer than `limit` bytes: what is newest stays."""
    if summary.bytes <= limit:
        return summary
    if summary.text is None:
        return Summary(limit)
    text = summary.text.encode("utf-8", "replace")[-limit:].decode("utf-8", "ignore") if limit else ""
    return Summary(len(text.encode("utf-8")), text)


def remembered(ledger: Ledger, trace: Columns) -> dict[str, NDArray[Any]]:
    """What ContextGuard would have remembered before each recorded step: the last reported count of the same epoch.

    A recorded compaction resets the calibration, so no count is compared with a request it does not belong to.
    """
    recorded, epoch = ledger.steps["prompt_tokens"], ledger.steps["epoch"]
    tokens, as_of = recorded_counts(recorded)
    previous = np.append(epoch[:1], epoch[:-1])
    belongs = (as_of >= 0) & (epoch[as_of] == previous)
    return {
        "real_loaded": np.where(belongs, tokens, 0),
        "real_as_of": np.where(belongs, as_of, -1),
        "last_heuristic_loaded": _last_heuristics(trace["heuristic_sent"], trace["contents_sent"]),
    }


def _last_heuristics(sent: Ints, contents: Ints) -> Ints:
    """The heuristic remembered before each step: that of the last request which was not empty."""
    size = len(sent)
    place = np.maximum.accumulate(np.where(contents > 0, np.arange(size), -1)) if size else np.zeros(0, dtype=np.int64)
    last = np.where(place >= 0, sent[place], 0)
    return np.append(np.zeros(min(size, 1), dtype=np.int64), last[:-1])
