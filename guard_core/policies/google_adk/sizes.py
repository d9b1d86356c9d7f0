"""What ADK measures: characters / 4 of a request, and the JSON of contents."""

from __future__ import annotations

from typing import Any

import numpy as np

from guard_core.costs import CALL, MEDIA, MODEL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.groups import starts
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.views import Synthetic

# Of contents as JSON, besides texts, names, ids and arguments.
CONTENT = len('{"parts":[],"role":""}')
TEXT_PART = len('{"text":}') + len(",")
CALL_PART = len('{"function_call":{"id":"","args":,"name":""}}') + len(",")
RESULT_PART = len('{"function_response":{"id":"","name":"","response":{"result":}}}') + len(",")
IMAGE_PART = len('{"inline_data":{"data":"","mime_type":"image/png"}}') + len(",")
NO_ARGUMENTS = len("{}")  # `_count_chars_in_content` counts arguments only if there are any (2.13.0)
RESULT_CHARS = len('{"result": }')  # a result is a JSON object with the text (2.13.0)
# Around results that are quoted as those of another agent, whose name has five characters: before all results of an
# event, and around each, without the tool's name (scripted runs of 2.13.0).
PREAMBLE, QUOTED = 409, 97
USER_ROLE, MODEL_ROLE = len("user"), len("model")


def _ascii(parts: dict[str, Ints], column: str) -> Ints:
    """The length of a text as JSON in ASCII."""
    return parts[column] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - parts["chars"])


def counted_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The characters that an estimate counts of each event; empty arguments have none."""
    kind = parts["kind"]
    chars = np.where(kind == TEXT, parts["chars"], 0)
    arguments = np.where(parts["chars"] > NO_ARGUMENTS, _ascii(parts, "chars") + parts["separators"], 0)
    chars = np.where(kind == CALL, parts["name_chars"] + arguments, chars)
    result = parts["name_chars"] + RESULT_CHARS + _ascii(parts, "json_chars")
    return ledger.by_event(np.where(kind == RESULT, result, chars))


def json_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The characters of each event's content as JSON; an event that belongs to the one before it shares its frame."""
    kind = parts["kind"]
    chars = np.where(kind == TEXT, TEXT_PART + parts["json_chars"], 0)
    call = CALL_PART + parts["id_chars"] + parts["name_chars"] + parts["chars"]
    result = RESULT_PART + parts["id_chars"] + parts["name_chars"] + parts["json_chars"]
    chars = np.where(kind == CALL, call, np.where(kind == RESULT, result, chars))
    chars = np.where(kind == MEDIA, IMAGE_PART + -(-parts["bytes"] // 3) * 4, chars)
    role = np.where(ledger.events["flags"] & MODEL, MODEL_ROLE, USER_ROLE)
    return np.asarray(ledger.by_event(chars) + starts(ledger) * (CONTENT + role - len(",")))


def summary_json(size: int) -> int:
    """The characters of a summary of so many characters as JSON."""
    return CONTENT + MODEL_ROLE + TEXT_PART - len(",") + size + len('""')


EMPTY_JSON = CONTENT + MODEL_ROLE


def _bytes_of(message: Synthetic) -> Any:
    return message.bytes


def relayed_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The same after a turn, when the library counts for no agent in particular: tool results are then quoted as those
    of another agent, and their calls left out."""
    kind = parts["kind"]
    result = QUOTED + parts["name_chars"] + RESULT_CHARS + parts["repr_chars"]
    chars = np.where(kind == RESULT, result, np.where(kind == TEXT, parts["chars"], 0))
    has_result = ledger.by_event((kind == RESULT).astype(np.int64)) > 0
    return np.asarray(ledger.by_event(chars) + np.where(has_result, starts(ledger) * PREAMBLE, 0))


ESTIMATE = MessageCosts("adk estimate", counted_chars, _bytes_of)
RELAYED = MessageCosts("adk relayed", relayed_chars, _bytes_of)
JSON = MessageCosts("adk json", json_chars, lambda message: summary_json(message.bytes))
