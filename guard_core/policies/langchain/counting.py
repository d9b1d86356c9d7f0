"""`count_tokens_approximately`: characters / 4, rounded up for each message, and three tokens more."""

from __future__ import annotations

from typing import Any

import numpy as np

from guard_core.costs import CALL, HAS_RESULT, MEDIA, MODEL, RESULT, SYSTEM, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.views import Synthetic

CHARS_PER_TOKEN, MESSAGE_TOKENS, IMAGE_TOKENS = 4, 3, 85  # langchain-core 1.7.2
ANTHROPIC_CHARS_PER_TOKEN = 3.3  # langchain 1.4.7: where it summarises for models of Anthropic's
# Of a call besides its name, arguments and id, as Python writes the list of calls.
CALL_CHARS = len(repr({"name": "", "args": "", "id": "", "type": "tool_call"})) - len("''")
BETWEEN, AROUND = len(", "), len("[]")
ROLE_CHARS = {"user": 4, "assistant": 9, "tool": 4, "system": 6}


def message_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The characters that are counted of each event: texts, calls as Python writes them, ids, names of tools, role."""
    kind = parts["kind"]
    chars = np.where((kind == TEXT) | (kind == RESULT), parts["chars"], 0)
    chars = np.where(kind == RESULT, chars + parts["id_chars"] + parts["name_chars"], chars)
    written = CALL_CHARS + BETWEEN + parts["name_chars"] + parts["repr_chars"] + parts["id_chars"]
    chars = np.where(kind == CALL, written, chars)
    flags = ledger.events["flags"]
    calls = ledger.by_event((kind == CALL).astype(np.int64)) > 0
    role = np.where(flags & MODEL, ROLE_CHARS["assistant"], np.where(flags & SYSTEM, ROLE_CHARS["system"], 0))
    role = np.where(flags & HAS_RESULT, ROLE_CHARS["tool"], np.where(role == 0, ROLE_CHARS["user"], role))
    return np.asarray(ledger.by_event(chars) + np.where(calls, AROUND - BETWEEN, 0) + role)


def approximate(chars_per_token: float) -> MessageCosts:
    """The tokens of messages, with so many characters for each of them."""

    def rounded_up(chars: Any) -> Any:
        return np.ceil(chars / chars_per_token).astype(np.int64)

    def of_events(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
        images = ledger.by_event((parts["kind"] == MEDIA).astype(np.int64))
        return np.asarray(rounded_up(message_chars(ledger, parts)) + MESSAGE_TOKENS + IMAGE_TOKENS * images)

    def of_inserted(message: Synthetic) -> int:
        role = {"model": "assistant"}.get(message.role.value, message.role.value)
        return int(rounded_up(np.int64(message.bytes + ROLE_CHARS[role]))) + MESSAGE_TOKENS

    return MessageCosts(f"langchain approximate {chars_per_token:g}", of_events, of_inserted)


APPROXIMATE = approximate(CHARS_PER_TOKEN)
