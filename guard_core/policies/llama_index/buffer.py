"""LlamaIndex's chat memory buffer: the newest messages that fit a number of tokens, from a message of the user on.

The store keeps all messages, and each request is made of it anew. Only texts are counted: the arguments of calls and
pictures are not.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from guard_core.costs import RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.llama_index.begins import (
    CHARS_PER_TOKEN,
    NONE_CHARS,
    NULL_CONTENT,
    SHARE_OF_WINDOW,
    is_null,
    next_begin,
)
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import Sizes
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.view_columns import ViewColumns

_SOURCE = "llama-index-core 0.14.25, ChatMemoryBuffer"


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of the texts of each event, and the space between two messages."""
    texts = (parts["kind"] == TEXT) | (parts["kind"] == RESULT)
    return np.asarray(ledger.by_event(np.where(texts, parts["chars"], 0)) + 1)


def _with_null(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The same where contents without a text are None."""
    return _chars(ledger, parts) + NONE_CHARS * is_null(ledger)


COSTS = {
    False: MessageCosts("llama-index characters", _chars, lambda message: message.bytes + 1),
    True: MessageCosts("llama-index characters, null", _with_null, lambda message: message.bytes + 1),
}


class LlamaIndexSettings(msgspec.Struct, frozen=True):
    """`token_limit` is 0 where the share of the window counts."""

    token_limit: int = 0
    null_content: bool = True


class ChatMemoryBuffer(EditingPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "llama-index-buffer"
    settings: LlamaIndexSettings

    def costs(self) -> MessageCosts:
        return COSTS[self.settings.null_content]

    def limit(self, window: int) -> int:
        return self.settings.token_limit or int(window * SHARE_OF_WINDOW)

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(np.maximum(sizes.whole - 1, 0) // CHARS_PER_TOKEN)

    def edited(self, steps: ActingSteps) -> Edited:
        """The first message of the user (or system) from which the rest fits; where none does, the newest message."""
        ledger, at = steps.ledger, steps.at
        prefix = self.costs().prefix(ledger)
        most = CHARS_PER_TOKEN * (steps.limit + 1)  # characters, spaces between messages included
        first = np.maximum(np.searchsorted(prefix, prefix[at] - most, side="left"), 1)
        start = next_begin(ledger)[np.minimum(first, ledger.event_count)]
        return Edited(ViewColumns.spans((np.where(start < at, start, at - 1), at)))


KIND = PolicyKind(
    ChatMemoryBuffer.name,
    "LlamaIndex (chat memory buffer)",
    "Sends the newest messages that fit within a number of tokens, beginning with a user message.",
    lambda **values: ChatMemoryBuffer(LlamaIndexSettings(**values)),
    (
        Setting(
            "token_limit",
            "Token limit",
            COUNT,
            0,
            "maximum tokens of the texts of a request; 0: 75 % of the window",
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(0, 30_000, 100_000),
        ),
        NULL_CONTENT,
    ),
    summarises=False,
    judged_by=RecordedRuns(
        "llama-index-core",
        "chat_memory_buffer",
        settings={"null_content": False},  # the runs had empty texts
    ),
    parts_pairs="if a turn does not fit, only its newest message is sent, which may be a tool result",
    known_problems=(
        KnownProblem(
            "One tool result without its call",
            (
                "Within a turn that does not fit, the request is a single tool result, without its call, the "
                "user's message or the system message: 111 of 503 steps at a limit of 2,000."
            ),
            "measured, specification of new policies section 3",
        ),
    ),
)
