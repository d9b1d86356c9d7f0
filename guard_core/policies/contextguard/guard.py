"""What ContextGuard's strategies share: the injection of a summary, the arithmetic of quiet runs, what is remembered.

Source: specification of ContextGuard, sections 5, 6.2 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import STARTS_WITH_MARKER, USER
from guard_core.errors import SummaryFailed
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, CheckEvidence, Decision, Quiet, Run
from guard_core.policies.contextguard.contents import Costs
from guard_core.policies.contextguard.memory import Memory
from guard_core.policies.contextguard.settings import Settings
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.summaries.continuation import continuation_message
from guard_core.summaries.fallback import fallback_summary, without_text
from guard_core.summaries.wrapper import summary_message
from guard_core.usage import CountedRun
from guard_core.views import Span, Synthetic, View, content_count

Columns = Mapping[str, NDArray[Any]]


class Head(NamedTuple):
    """What stands before the log's events at a step without compaction: `view`, then events `kept_from` on."""

    view: View
    kept_from: int


@dataclass(frozen=True)
class Guard:
    """A strategy with its settings; the base of threshold, recent tail and sliding window."""

    settings: Settings

    def start(self) -> Memory:
        return Memory()

    def observe(self, state: Memory, prompt_tokens: int | None, step: int) -> Memory:
        """After the model answered: only a positive count is remembered, a missing one leaves the old."""
        if not prompt_tokens or prompt_tokens <= 0:
            return state
        return msgspec.structs.replace(state, real_tokens=prompt_tokens, real_as_of=step)

    # What is sent where nothing is compacted

    def head(self, ledger: Ledger, memory: Memory, user_event: int) -> Head:
        """The summary in place of what it stands for; nothing where there is none or the user's text looks like one."""
        if not memory.summary_bytes or self._looks_summarised(ledger):
            return Head((), 0)
        view: tuple[Synthetic, ...] = (summary_message(memory.summary, self.settings.marker_dash),)
        if self.settings.mend_request and user_event == memory.request_event:
            view = (*view, continuation_message(memory.request_bytes, memory.request_text))
        return Head(view, memory.watermark)

    def _looks_summarised(self, ledger: Ledger) -> bool:
        marked = USER | STARTS_WITH_MARKER
        return not self.settings.mend_marker and int(ledger.events["flags"][0]) & marked == marked

    def carried(self, check: Check, memory: Memory) -> dict[str, Any]:
        """What later steps send after a compaction, as fields of its record."""
        head = self.head(check.ledger, memory, -3)
        fields: dict[str, Any] = {"carried": head.view, "kept_from": head.kept_from}
        in_turn = self.head(check.ledger, memory, memory.request_event)
        if in_turn != head:
            turns = check.ledger.steps["user_event"]
            fields |= {"in_turn": in_turn.view, "turn_end": int(np.searchsorted(turns, check.user_event, side="right"))}
        return fields

    def injected(self, check: Check, memory: Memory) -> View:
        """The view of a step before any decision."""
        head = self.head(check.ledger, memory, check.user_event)
        start = head.kept_from if head.kept_from <= check.at else 0
        return (*head.view, Span(start, check.at)) if start < check.at else head.view

    # Decisions

    def passes(self, check: Check, memory: Memory, view: View, **columns: Any) -> Decision:
        """The decision to do nothing: the heuristic of what is sent is remembered, always."""
        costs = Costs.of(check.ledger, self.settings)
        heuristic, count = costs.request(view), content_count(view)
        evidence = CheckEvidence(
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

    def nothing(self, check: Check, memory: Memory) -> Decision:
        """An empty request: the original's callback returns before anything is read or kept."""
        fixed = Costs.of(check.ledger, self.settings).fixed
        evidence = CheckEvidence(0, 0, 0, fixed, fixed, fixed, **loaded(memory), watermark=memory.watermark)
        return Decision((), memory, evidence._replace(summary_bytes=memory.summary_bytes))

    def continues(self, check: Check) -> Synthetic:
        """The message that follows a summary."""
        return continuation_message(check.request_bytes if self.settings.name_request else 0, check.request)

    # Summaries

    def asked(self, check: Check, memory: Memory, view: View, tokens: int) -> SummaryRequest:
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
        excerpt = self.settings.fallback_excerpt
        made = fallback_summary(request.view, check.ledger, request.previous, excerpt=excerpt, session=check.session)
        if self.settings.mend_fallback and not made.bytes:
            made = without_text(content_count(request.view))
        return _shortened(made, request.output_tokens * 4) if self.settings.mend_growth else made

    # Quiet runs

    def quiet_columns(self, run: Run, start: int, stop: int, memory: Memory) -> tuple[Head, dict[str, NDArray[Any]]]:
        """Contents and heuristics of steps `start` to `stop` while nothing is compacted."""
        costs = Costs.of(run.ledger, self.settings)
        at = run.ledger.steps["at"][start:stop]
        head = self.head(run.ledger, memory, int(run.ledger.steps["user_event"][start]))
        built = costs.prefix[at] + costs.fixed
        sent, contents = built, at
        if head.view:
            extra = costs.contents(head.view)
            kept_from = np.where(at >= head.kept_from, head.kept_from, 0) if head.kept_from else 0
            sent = built + extra - costs.prefix[kept_from]
            contents = at - kept_from + len(head.view)
        return head, {
            "contents_built": at,
            "contents_decided": contents,
            "contents_sent": contents,
            "heuristic_built": built,
            "heuristic_decided": sent,
            "heuristic_sent": sent,
        }

    def turn_end(self, run: Run, start: int, stop: int, memory: Memory) -> int:
        """Where a run must end because the head changes there: with the turn whose request is repeated."""
        if not self.settings.mend_request or not memory.summary_bytes:
            return stop
        same = run.ledger.steps["user_event"][start:stop] == memory.request_event
        changes = same != same[0]
        return start + int(np.argmax(changes)) if changes.any() else stop

    def quiet(
        self, count: int, columns: dict[str, NDArray[Any]], reported: Reported, memory: Memory, *, ended: bool
    ) -> Quiet:
        """The first `count` steps of a run, and the memory after them."""
        cut = {name: column[:count] for name, column in columns.items()}
        if count:
            memory = msgspec.structs.replace(
                memory,
                last_heuristic=int(cut["heuristic_sent"][-1]),
                real_tokens=int(reported.real[count]),
                real_as_of=int(reported.as_of[count]),
            )
        told = reported.counted
        counted = CountedRun(told.tokens[:count], told.reported[:count], told.source[:count])
        return Quiet(count, cut, counted, memory, ended)


class Reported(NamedTuple):
    """The provider's counts of a run: `real` and `as_of` are what is remembered before each step and after the last."""

    counted: CountedRun
    real: Ints
    as_of: Ints


def reported(run: Run, start: int, stop: int, head: Head, heuristics: Ints, memory: Memory) -> Reported:
    """What the provider counts at steps `start` to `stop`, and what the policy remembers of it."""
    counted = run.usage.run(start, stop, head.view, head.kept_from, heuristics)
    size = stop - start
    told = counted.reported & (counted.tokens > 0)
    if told.all():
        real, as_of = counted.tokens, np.arange(start, stop)
    else:
        place = np.maximum.accumulate(np.where(told, np.arange(size), -1))
        real = np.where(place >= 0, counted.tokens[place], memory.real_tokens)
        as_of = np.where(place >= 0, place + start, memory.real_as_of)
    return Reported(counted, np.append(memory.real_tokens, real), np.append(memory.real_as_of, as_of))


def loaded(memory: Memory) -> dict[str, int]:
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
