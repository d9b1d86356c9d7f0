"""LlamaIndex's memory: a queue from which the oldest messages are flushed, up to a message of the user.

After each message that is put, the queue is compared with a share of the token limit. Over it, messages of at least
`token_flush_size` tokens go, and then all up to the next message of the user; where none follows, the turn of the last
one stays, however long it is, and without any the queue is empty. Texts are counted one by one, a picture as a fixed
number of tokens, of a result also the identifier of its call; arguments of calls and reasoning are not.

Here each message is put when it is in the log, as chat engines do. Agents of its workflows put the calls and results of
a turn at its end. Not here: memory blocks, which say something of what is flushed; and what an integration repeats of
calls beside the message (llama-index-llms-openai does), which the library counts, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import MEDIA, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.llama_index.begins import CHARS_PER_TOKEN
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest
from guard_core.policies.pieces.messages import USER, MessageCosts, roles_of
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Span

IMAGE_TOKENS = 256  # image_token_size_estimate
ID_CHARS = len("{'tool_call_id': ''}")  # additional_kwargs of a result, without the identifier
_SOURCE = "llama-index-core 0.14.25, Memory"


def _tokens(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Tokens of each event: of every text, picture and result by itself."""
    kind, chars = parts["kind"], parts["chars"]
    texts = np.where((kind == TEXT) | (kind == RESULT), chars // CHARS_PER_TOKEN, 0)
    others = np.where(kind == RESULT, (parts["id_chars"] + ID_CHARS) // CHARS_PER_TOKEN, 0)
    return np.asarray(ledger.by_event(texts + others + np.where(kind == MEDIA, IMAGE_TOKENS, 0)))


COSTS = MessageCosts(
    "llama-index memory tokens", _tokens, lambda message: message.bytes // CHARS_PER_TOKEN, is_local=True
)


class MemorySettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    token_limit: int = 30_000
    token_flush_size: int = 3_000
    chat_history_token_ratio: float = 0.7

    @property
    def flush(self) -> int:
        """What is flushed at least. The library replaces a value over the limit, and then one that is 0."""
        size = self.token_flush_size
        size = int(self.token_limit * 0.7) if size > self.token_limit else size
        return int(self.token_limit * 0.1) if size < 1 else size


class LlamaIndexMemory(StagedPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "llama-index-memory"
    settings: MemorySettings

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return int(self.settings.token_limit * self.settings.chat_history_token_ratio)

    def walks(self, ledger: Ledger, state: Any) -> bool:
        return True

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int:
        start = self._flushed(asked.ledger, head.kept_from, asked.at.item(row), self.limit(asked.run.window))
        return NOTHING_TO_COMPACT if start == head.kept_from else Act(Head((), start), state)

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        at = request.check.at
        start = self._flushed(request.ledger, state.kept_from, at, request.limit)
        if start == state.kept_from:
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        return ListOutcome((Span(start, at),) if start < at else (), state)

    def _flushed(self, ledger: Ledger, start: int, at: int, limit: int) -> int:
        """Where a queue begins that began at `start` once all up to `at` are put."""
        queue, count = _queue_of(ledger), start
        while (count := max(count, bisect_right(queue.sums, queue.sums[start] + limit))) <= at:
            begin = self._begin(queue, start, count)
            if begin == start:  # nothing goes before another message of the user is there
                count = max(count, queue.users[min(start + 1, ledger.event_count)]) + 1
            start = begin
        return start

    def _begin(self, queue: _Queue, start: int, stop: int) -> int:
        """Where the queue from `start` up to `stop` begins after one flush; it is over the limit."""
        if stop - start <= 1:
            return start
        first = min(bisect_left(queue.sums, queue.sums[start] + self.settings.flush), stop - 1)
        first = max(first, start)
        user = queue.users[first]
        if user < stop:
            return user
        last = queue.last_users[stop - 1]
        return last if last >= start else stop


class _Queue(NamedTuple):
    """Of a log: tokens of the messages before each event, the first message of the user from each event on (the number
    of events and more: none), and the last one up to it (-1: none)."""

    sums: list[int]
    users: list[int]
    last_users: list[int]


def _queue_of(ledger: Ledger) -> _Queue:
    if "llama-index queue" not in ledger.derived:
        count, is_user = ledger.event_count, roles_of(ledger) == USER
        places = np.append(np.where(is_user, np.arange(count), count), count)
        users = np.minimum.accumulate(places[::-1])[::-1].tolist()
        last_users = np.maximum.accumulate(np.where(is_user, np.arange(count), -1)).tolist()
        ledger.derived["llama-index queue"] = _Queue(COSTS.prefix(ledger).tolist(), users, last_users)
    queue: _Queue = ledger.derived["llama-index queue"]
    return queue


KIND = PolicyKind(
    LlamaIndexMemory.name,
    "LlamaIndex (memory)",
    "Flushes the oldest messages, up to a user message, once the queue exceeds a share of the token limit.",
    lambda **values: LlamaIndexMemory(MemorySettings(**values)),
    (
        Setting(
            "token_limit",
            "Token limit",
            COUNT,
            30_000,
            "tokens of the whole memory",
            _SOURCE,
            unit="tokens",
            least=1,
            main=True,
            sweep=(30_000, 100_000),
        ),
        Setting(
            "chat_history_token_ratio",
            "Share of messages",
            SHARE,
            0.7,
            "messages are flushed above this share of the token limit",
            _SOURCE,
            main=True,
        ),
        Setting(
            "token_flush_size",
            "Flushed at once",
            COUNT,
            3_000,
            "minimum number of tokens flushed; if above the limit, 70 % of it; 0: 10 % of it",
            _SOURCE,
            unit="tokens",
        ),
    ),
    summarises=False,
    judged_by=RecordedRuns("llama-index-core", "memory"),
    parts_pairs="it cuts only at user messages, even between a call and its result; without one it drops everything",
    known_problems=(
        KnownProblem(
            "A long turn is never cut",
            "Nothing of the newest turn is flushed, so within a long turn requests grow over the limit.",
            "llama-index-core 0.14.25, by running",
        ),
    ),
)
