"""What Agent Framework counts: tokens of messages as JSON, and characters of the transcript that a summariser reads.

Source: agent-framework-core 1.23.0, `_compaction.py`. A message has `max(1, characters // 4)` tokens, each by itself,
of its JSON form with sorted keys and characters beyond ASCII as they are. Its id is part of it: here a prefix and the
number of the message in the log. Not counted here: what the application adds to contents, errors of tools.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from guard_core.costs import CALL, MEDIA, REASONING, RESULT, TEXT, text_sizes
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import ASSISTANT, SYSTEM_ROLE, TOOL, USER, MessageCosts, roles_of
from guard_core.views import Synthetic

CHARS_PER_TOKEN = 4
ROLE_CHARS = {USER: len("user"), ASSISTANT: len("assistant"), TOOL: len("tool"), SYSTEM_ROLE: len("system")}
MESSAGE = len('{"contents": [], "message_id": "", "role": ""}')
BETWEEN = len(", ")
# The JSON form of a content without what varies: text, arguments and results with their quotation marks, and names.
CONTENT = {
    TEXT: len('{"additional_properties": {}, "text": , "type": "text"}'),
    REASONING: len('{"additional_properties": {}, "text": , "type": "text_reasoning"}'),
    CALL: len(
        '{"additional_properties": {}, "arguments": , "call_id": "", "hosted": false, "name": "", '
        '"type": "function_call"}'
    ),
    RESULT: len('{"additional_properties": {}, "call_id": "", "result": , "type": "function_result"}'),
    MEDIA: len(
        '{"additional_properties": {}, "media_type": "image/png", "type": "data", "uri": "data:image/png;base64,"}'
    ),
}
# How the transcript writes a message: its number, its role, then its contents.
LINE = len(". [] ")
CALL_LINE, CALL_ID = len("function_call ()"), len(" [call_id=]")
RESULT_LINE, EMPTY_RESULT = len("function_result: "), len("text content")
TYPE_NAMES = {TEXT: len("text"), REASONING: len("text_reasoning"), MEDIA: len("data")}
PROMPT_TOKENS = 148  # of the summariser's own instructions: 594 characters // 4
LINE_BREAK_TOKENS = 1


def tokens_of(chars: Ints) -> Ints:
    """Tokens of messages of so many characters."""
    return np.maximum(chars // CHARS_PER_TOKEN, 1)


@cache
def message_costs(id_prefix: str) -> MessageCosts:
    """Tokens of events. Messages that were inserted are counted when they are made, for their ids differ."""
    prefix = len(id_prefix)

    def events(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
        numbers = np.arange(ledger.event_count)
        digits = np.searchsorted(10 ** np.arange(1, 13), numbers, side="right") + 1
        around = MESSAGE + prefix + digits + _by_role(ledger)
        contents = ledger.by_event(_content_chars(parts) + BETWEEN)
        return tokens_of(around + np.maximum(contents - BETWEEN, 0))

    return MessageCosts(f"agent-framework tokens/{prefix}", events, lambda message: 0)


def inserted_tokens(message: Synthetic, id_chars: int, quoted: int = 0) -> int:
    """Tokens of an inserted message of the assistant, whose text has `quoted` characters as a JSON string; where that
    is not given and the text not known, as if nothing in it were escaped."""
    if not quoted:
        quoted = message.bytes + 2 if message.text is None else text_sizes(message.text)["json_chars"]
    chars = MESSAGE + id_chars + ROLE_CHARS[ASSISTANT] + CONTENT[TEXT] + quoted
    return max(chars // CHARS_PER_TOKEN, 1)


def _by_role(ledger: Ledger) -> Ints:
    table = np.array([ROLE_CHARS[role] for role in range(len(ROLE_CHARS))])
    return np.asarray(table[roles_of(ledger)])


def _content_chars(parts: dict[str, Ints]) -> Ints:
    """Characters of the JSON form of each content."""
    kind, quoted = parts["kind"], parts["json_chars"]
    base64 = (parts["bytes"] + 2) // 3 * 4
    varies = {
        TEXT: quoted,
        REASONING: quoted,
        CALL: quoted + parts["separators"] + parts["id_chars"] + parts["name_chars"],
        RESULT: quoted + parts["id_chars"],
        MEDIA: base64,
    }
    return np.select([kind == each for each in varies], [CONTENT[each] + varies[each] for each in varies], 0)


class TranscriptSize(NamedTuple):
    """Of some messages of a transcript, their characters without their numbers, and how many they are."""

    chars: int
    messages: int

    def tokens(self, first: int) -> int:
        """Tokens of the lines, whose numbers begin with `first`, joined by line breaks."""
        numbers = sum(map(len, map(str, range(first, first + self.messages))))
        return max((self.chars + numbers + self.messages - 1) // CHARS_PER_TOKEN, 1)


def _line_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    kind, chars, event = parts["kind"], parts["chars"], parts["event"]
    ids = np.where(parts["id_chars"] > 0, CALL_ID + parts["id_chars"], 0)
    result = np.where(chars > 0, chars, EMPTY_RESULT)
    written = np.select(
        [kind == CALL, kind == RESULT, kind == TEXT],
        [CALL_LINE + parts["name_chars"] + chars + parts["separators"] + ids, RESULT_LINE + result + ids, chars],
        0,
    )
    shown = np.flatnonzero(written > 0)
    neighbours = event[shown][1:] == event[shown][:-1]
    texts = (kind[shown][1:] == TEXT) & (kind[shown][:-1] == TEXT)
    joints = np.zeros(len(kind), dtype=np.int64)
    joints[shown[1:]] = np.where(neighbours, np.where(texts, len(" "), len("; ")), 0)
    names = np.select([kind == each for each in TYPE_NAMES], list(TYPE_NAMES.values()), 0)
    contents = ledger.by_event(written + joints)
    types = np.maximum(ledger.by_event(names + BETWEEN) - BETWEEN, 0)
    return LINE + _by_role(ledger) + np.where(contents > 0, contents, types)


# Characters of messages in the summariser's transcript, without their numbers.
LINE_COSTS = MessageCosts(
    "agent-framework transcript",
    _line_chars,
    lambda message: LINE + ROLE_CHARS[ASSISTANT] + (message.bytes if message.text is None else len(message.text)),
)
