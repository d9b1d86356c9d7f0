"""SummarizationMiddleware: the messages before a cut are replaced by one summary in the user's role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import ReplayRun
from guard_core.policies.langchain.context_sizes import MESSAGES, ContextSize, Trigger, size_of, trigger_of
from guard_core.policies.langchain.counting import ANTHROPIC_CHARS_PER_TOKEN, CHARS_PER_TOKEN, approximate
from guard_core.policies.langchain.partial import part_of
from guard_core.policies.langchain.reported import BackwardCount, ReportedPolicy, reported_of
from guard_core.policies.langchain.settings import ANTHROPIC, LangChainSummarizationSettings
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes, failed
from guard_core.policies.pieces.messages import (
    SYSTEM_ROLE,
    TOOL,
    USER,
    ListMessage,
    MessageCosts,
    answered_by,
    role_of,
    view_of,
)
from guard_core.sessions import Provenance
from guard_core.trace import HELD_REASONS, NOTHING_TO_COMPACT, Term, Trace
from guard_core.views import Synthetic, View, content_count

FRAME_BYTES = 48  # before the summary (scripted runs of 1.4.7)
TOO_LONG_BYTES = 48  # of what is written where no message fits the summariser (as above)
ATTEMPTS = 3  # calls of the summariser before its error leaves the library (1.4.7)
OUTPUT_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit


class WrittenSummary(NamedTuple):
    """The text that replaces messages, without its frame, and what the summariser was given for it (nothing: it was not
    asked)."""

    bytes: int
    text: str | None
    given: View
    state: Any


class SummarizationPolicy(ReportedPolicy):
    """What the middlewares of LangChain and of deepagents share."""

    relation: ClassVar[str] = ">="
    settings: LangChainSummarizationSettings

    @cached_property
    def trigger(self) -> Trigger:
        return trigger_of(self.settings.trigger)

    @cached_property
    def keep(self) -> ContextSize:
        return size_of(self.settings.keep, "keep")

    def costs(self) -> MessageCosts:
        return approximate(self.chars_per_token)

    @property
    def chars_per_token(self) -> float:
        """The characters that the library takes for a token of this kind of model."""
        return ANTHROPIC_CHARS_PER_TOKEN if self.settings.model_kind == ANTHROPIC else CHARS_PER_TOKEN

    def limit(self, window: int) -> int:
        """The smallest number of tokens that the trigger names, -1: it names none."""
        named = [size for group in self.trigger for size in group if size.kind != MESSAGES]
        return min((size.tokens(window) for size in named), default=-1)

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(super().over(counted, limit) & (limit >= 0))

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return self.met(np.maximum(counted, self.reported(sizes)), sizes.messages, sizes.window)

    def met(self, tokens: Ints, messages: Ints, window: int) -> NDArray[np.bool_]:
        """Where the trigger is met by lists of so many tokens and messages."""
        met = np.zeros_like(tokens, dtype=np.bool_)
        for group in self.trigger:
            whole = np.ones_like(tokens, dtype=np.bool_)
            for size in group:
                whole &= messages >= size.value if size.kind == MESSAGES else tokens >= size.tokens(window)
            met |= whole
        return met

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        messages, tokens = np.asarray(trace["contents_decided"]), np.asarray(trace["heuristic_decided"])
        return {
            **super().shadow(run, trace),
            "fired": np.asarray(self.met(tokens, messages, run.window), dtype=np.int64),
        }

    def reason(self, request: ListRequest) -> str:
        return f"{request.counted:,} tokens, {content_count(request.view):,} messages: {self.settings.trigger}"

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        at = {name: int(trace.columns[name][step]) for name in ("decision_tokens", "contents_decided", "fired", "held")}
        rule = {"source": Provenance.RECOMPUTED, "as_of": step}
        terms = [
            Term("tokens of the list", at["decision_tokens"], "tokens", **rule),  # type: ignore[arg-type]
            Term("messages of the list", at["contents_decided"], "messages", **rule),  # type: ignore[arg-type]
            Term("context window", trace.window, as_of=step),
        ]
        for size in dict.fromkeys(size for group in self.trigger for size in group):
            unit = "messages" if size.kind == MESSAGES else "tokens"
            number = size.value if size.kind == MESSAGES else size.tokens(trace.window)
            terms.append(Term("trigger", number, unit, expression=str(size), **rule))  # type: ignore[arg-type]
        held = HELD_REASONS[at["held"]]
        done = "it compacts" if at["fired"] else f"it does not compact: {held}" if held else "it does not compact"
        words = f"{self.settings.trigger or 'no trigger'}: {done}"
        return (*terms, Term("verdict", float(at["fired"]), "", Provenance.RECOMPUTED, step, words))

    # ---- what both do with a list

    def cut_of(self, request: ListRequest, messages: Sequence[ListMessage], costs: Sequence[int], counted: int) -> int:
        """The first message that stays, 0: nothing goes. `costs` are counted of the messages, `counted` of the list."""
        count = len(messages)
        if self.keep.kind == MESSAGES:
            keep = int(self.keep.value)
            return _whole(request.ledger, messages, count - keep) if count > keep else 0
        target = self.keep.tokens(request.check.window)
        if counted <= target:
            return 0
        suffix = np.cumsum(np.array(costs[::-1]))
        cut = count - int(np.searchsorted(suffix, target, side="right"))
        if cut == count == 1:
            return 0
        return _whole(request.ledger, messages, min(cut, count - 1))

    def written_for(self, request: ListRequest, messages: Sequence[ListMessage], state: Any) -> WrittenSummary:
        """What replaces messages. Raises SummaryFailed after as many calls as there are attempts."""
        trimmed = self._trimmed(request, messages, state) if self.settings.trim_tokens_to_summarize else messages
        if not trimmed:
            return WrittenSummary(TOO_LONG_BYTES, None, (), state)
        given = view_of(request.ledger, trimmed)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                summary, state = request.summarise(state, given, OUTPUT_TOKENS)
            except SummaryFailed:
                if attempt == ATTEMPTS:
                    raise
                state = msgspec.structs.replace(state, calls=state.calls + 1)
            else:
                break
        return WrittenSummary(summary.bytes, summary.text, given, state)

    def failed(self, request: ListRequest, state: Any, given: View, error: SummaryFailed) -> ListOutcome:
        """The error of the last attempt, which leaves the library."""
        return failed(request, msgspec.structs.replace(state, calls=state.calls + ATTEMPTS - 1), given, error)

    def _trimmed(self, request: ListRequest, messages: Sequence[ListMessage], state: Any) -> Sequence[ListMessage]:
        """The newest messages that fit the summariser, from one of the user's on, behind a leading system message."""
        ledger, costs = request.ledger, self.costs()
        system = [message for message in messages[:1] if role_of(ledger, message) == SYSTEM_ROLE]
        others, room = messages[len(system) :], self.settings.trim_tokens_to_summarize
        room = max(0, room - sum(costs.messages(ledger, system)))
        count = BackwardCount.of(costs.messages(ledger, others), reported_of(ledger, others, state))
        start, part = _first_fitting(count, room), None
        if start and role_of(ledger, others[start - 1]) == USER:
            part = self._part(request, others[start - 1], count, start, room)
        if part is not None:
            return [*system, part, *others[start:]]
        while start < len(others) and role_of(ledger, others[start]) != USER:
            start += 1
        return [*system, *others[start:]]

    def _part(
        self, request: ListRequest, message: ListMessage, count: BackwardCount, start: int, room: int
    ) -> ListMessage | None:
        """The part of a message of the user that fits beside the messages from `start` on."""
        ledger, costs = request.ledger, self.costs()

        def fits_blocks(part: ListMessage) -> bool:
            return count.since(start, costs.message(ledger, part)) <= room

        def fits_lines(part: ListMessage) -> bool:
            return count.since(start) + costs.message(ledger, part) <= room

        if message.inserted is None:
            return part_of(request, message.event, fits_blocks, fits_lines, last=True)
        summary = message.inserted
        for size in reversed(self.last_lines(summary)):
            part = ListMessage(inserted=Synthetic("part of the summary", size, None, summary.role))
            if fits_lines(part):
                return part
        return None

    def last_lines(self, summary: Synthetic) -> list[int]:
        """Bytes of the last line of a summary's message, of its last two and so on. Its own text is taken as one."""
        size = summary.bytes - FRAME_BYTES
        return [size, size + 1]


class LangChainSummarization(SummarizationPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "langchain-summarization"

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, messages = request.ledger, request.messages
        cut = self.cut_of(request, messages, self.costs().messages(ledger, messages), request.counted)
        if cut <= 0:
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        try:
            written = self.written_for(request, messages[:cut], state)
        except SummaryFailed as error:
            return self.failed(request, state, view_of(ledger, messages[:cut]), error)
        text = Synthetic("summary", FRAME_BYTES + written.bytes, written.text)
        after = view_of(ledger, [ListMessage(inserted=text), *messages[cut:]])
        record = request.passed(
            written.given, after, summary_bytes=written.bytes, empty=not written.bytes, fallback=not written.given
        )
        return ListOutcome(after, msgspec.structs.replace(written.state, summary_bytes=written.bytes), (record,))


def _first_fitting(count: BackwardCount, room: int) -> int:
    """The place from which on the messages fit, as the library's binary search finds it: scaled counts may fall where
    messages are added."""
    size = len(count.sums) - 1
    if count.since(0) <= room:
        return 0
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if count.since(size - middle) <= room:
            low = middle
        else:
            high = middle - 1
    return size - low


def _whole(ledger: Ledger, messages: Sequence[ListMessage], cut: int) -> int:
    """A cut that parts no result from its call: moved back to the answer that called, else behind the results."""
    stop = cut
    called: set[int] = set()
    while stop < len(messages) and role_of(ledger, messages[stop]) == TOOL:
        called |= {int(ledger.parts["event"][row]) for row in answered_by(ledger, messages[stop]) if row >= 0}
        stop += 1
    for place in range(cut - 1, -1, -1) if called else ():
        if messages[place].event in called:
            return place
    return stop
