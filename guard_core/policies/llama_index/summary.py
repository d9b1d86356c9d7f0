"""LlamaIndex's chat summary memory buffer: the newest messages that fit a number of tokens, and a summary of the rest.

The list is kept as it was sent. What does not fit is summarised, with an earlier summary, and so are answers and
results that would be first. Only texts are counted. Not here: the tokens of a system prompt outside the list
(`count_initial_tokens`), and a buffer without a model, which drops what does not fit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import RESULT, TEXT
from guard_core.errors import SummaryFailed
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.llama_index.begins import (
    CHARS_PER_TOKEN,
    NONE_CHARS,
    NULL_CONTENT,
    SHARE_OF_WINDOW,
    is_null,
    next_begin,
)
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes, failed
from guard_core.policies.pieces.messages import SYSTEM_ROLE, MessageCosts, role_numbers
from guard_core.policies.pieces.shared_settings import SUMMARY_TOKENS, summary_budget
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.policies.settings import BEGINS_WITH_ANSWER, COUNT, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.summaries.base import Summary
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Span, Synthetic, View

_SOURCE = "llama-index-core 0.14.25, ChatSummaryMemoryBuffer"


def _tokens(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Tokens of each event: of its texts joined by line breaks, and of each result."""
    kind, chars = parts["kind"], parts["chars"]
    texts = ledger.by_event(np.where(kind == TEXT, chars + 1, 0))
    results = ledger.by_event(np.where(kind == RESULT, chars // CHARS_PER_TOKEN, 0))
    return np.asarray(np.maximum(texts - 1, 0) // CHARS_PER_TOKEN + results)


def _with_null(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The same where contents without a text are None."""
    return _tokens(ledger, parts) + NONE_CHARS // CHARS_PER_TOKEN * is_null(ledger)


COSTS = {
    False: MessageCosts("llama-index tokens", _tokens, lambda message: message.bytes // CHARS_PER_TOKEN, is_local=True),
    True: MessageCosts(
        "llama-index tokens, null", _with_null, lambda message: message.bytes // CHARS_PER_TOKEN, is_local=True
    ),
}


class LlamaIndexSummarySettings(msgspec.Struct, frozen=True):
    """`token_limit` is 0 where the share of the window counts."""

    token_limit: int = 0
    summary_budget: int = SUMMARY_TOKENS
    null_content: bool = True


class ChatSummaryMemoryBuffer(StagedPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "llama-index-summary"
    settings: LlamaIndexSummarySettings

    def costs(self) -> MessageCosts:
        return COSTS[self.settings.null_content]

    def limit(self, window: int) -> int:
        return self.settings.token_limit or int(window * SHARE_OF_WINDOW)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        head = sizes.head
        begins_amiss = not head.view and next_begin(sizes.ledger).item(head.kept_from) > head.kept_from
        return np.asarray(self.over(counted, limit) | (begins_amiss & (sizes.at > head.kept_from)))

    @property
    def acts_below(self) -> str:
        return "the list begins with an answer or a tool result"

    def walks(self, ledger: Ledger, state: ListMemory) -> bool:
        return bool(state.head) or next_begin(ledger).item(state.kept_from) == state.kept_from

    def act(self, asked: ScanRequest, row: int, head: Head, state: ListMemory) -> Act | int:
        ledger, at = asked.ledger, asked.at.item(row)
        first = self._first(ledger, head, at, self.limit(asked.run.window))
        if first is None:
            return NOTHING_TO_COMPACT
        given = self._given(ledger, head, first)
        summary, state, asked_for = asked.summarised(
            row, given, self.estimator(ledger), state, self.settings.summary_budget
        )
        return Act(Head((_message(summary),), first), _remembering(state, summary, first), (asked_for,))

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        at, head = request.check.at, self._list(state)
        first = self._first(request.ledger, head, at, request.limit)
        if first is None:
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        given = self._given(request.ledger, head, first)
        try:
            summary, state = request.summarise(state, given, self.settings.summary_budget)
        except SummaryFailed as error:
            return failed(request, state, given, error)
        tail = (Span(first, at),) if first < at else ()
        after = (_message(summary), *tail)
        passed = request.passed(given, after, summary_bytes=summary.bytes)
        return ListOutcome(after, _remembering(state, summary, first), (passed,))

    def _given(self, ledger: Ledger, head: Head, first: int) -> View:
        """What the summariser is given: the list before an event, of which contents that are None are left out."""
        read = np.ones(first - head.kept_from, dtype=np.bool_)
        if self.settings.null_content:
            read = ~is_null(ledger)[head.kept_from : first]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], read, [False]]))) + head.kept_from
        return (*head.view, *(Span(start, stop) for start, stop in edges.reshape(-1, 2).tolist()))

    def _first(self, ledger: Ledger, head: Head, at: int, limit: int) -> int | None:
        """The first event that stays as it is; None where only one message of the system does not fit: that stays."""
        prefix, start = self.costs().prefix(ledger), head.kept_from
        fits = start + int(np.searchsorted(prefix[start : at + 1], prefix.item(at) - limit))
        first = min(next_begin(ledger).item(fits), at)
        roles = [SYSTEM_ROLE] * len(head.view) + role_numbers(ledger)[start : min(first, start + 2)]
        return None if roles == [SYSTEM_ROLE] else first


def _message(summary: Summary) -> Synthetic:
    return Synthetic("summary", summary.bytes, summary.text, Role.SYSTEM)


def _remembering(state: Any, summary: Summary, first: int) -> Any:
    return msgspec.structs.replace(state, watermark=first, summary_bytes=summary.bytes)


KIND = PolicyKind(
    ChatSummaryMemoryBuffer.name,
    "LlamaIndex (chat summary memory buffer)",
    "Keeps the newest messages that fit within a number of tokens, from a user message on, and a summary of the rest.",
    lambda **values: ChatSummaryMemoryBuffer(LlamaIndexSummarySettings(**values)),
    (
        Setting(
            "token_limit",
            "Token limit",
            COUNT,
            0,
            "maximum tokens of the texts of the list; 0: 75 % of the window",
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(0, 30_000, 100_000),
        ),
        summary_budget("the library"),
        NULL_CONTENT,
    ),
    judged_by=RecordedRuns(
        "llama-index-core",
        "chat_summary_memory_buffer",
        settings={"null_content": False},  # the runs had empty texts
    ),
    parts_pairs="results that come after their call was summarised stay without it",
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "A turn that does not fit is a summary alone",
            "The user's newest message, the calls and their results are summarised; the request has only that summary.",
            "llama-index-core 0.14.25, by running",
        ),
        KnownProblem(
            "A summary longer than the limit",
            "Each later step of a turn then summarises its newest calls and results, too.",
            "llama-index-core 0.14.25, by running",
        ),
    ),
)
