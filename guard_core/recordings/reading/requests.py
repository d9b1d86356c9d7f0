"""Logged requests, each of which repeats the history, as readers give them, and what makes two messages the same."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.sessions import ModelCall, ToolDefinition

UNKNOWN = 1_000_000_000  # of `Request.lost`: none of the messages is known, the history continued


class Declared(msgspec.Struct, frozen=True):
    """What the recording itself says about a compaction that the next request shows.

    `length` is the number of messages at its head that the compaction left or made, None where only a comparison with
    the log can show it: then `inserts` are the messages that it inserted, if their number is known, and further ones at
    the end are news. `edited` are the places of messages that are sent without their thinking, which no comparison
    shows. `anew` are the places of messages that it wrote, whether or not the log has the same words.
    """

    kind: str = "summary"
    length: int | None = None
    summariser: ModelCall | None = None
    trigger: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    line: int | None = None
    timestamp: float | None = None
    note: str = ""
    edited: tuple[int, ...] = ()
    inserts: int | None = None
    anew: tuple[int, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """One logged request and its answer. `call.at` and `call.response` are filled in here.

    `lost` is the number of messages missing at the head of `messages` (dropped by the recorder), UNKNOWN for a request
    without any, whose call is placed behind the history so far. `system` and `tools` are None where not recorded.
    `declared` is the compaction recorded since the previous request, `summarised` one that the provider made of all
    these messages before it answered, with its summary. `refusal`: the words of the provider that it is too
    long, so that there is no call; "" for any other request. `answer_limit` is the most tokens that the request allows
    its answer, 0 where it does not say.
    """

    messages: tuple[Event, ...]
    call: ModelCall
    response: Event | None = None
    lost: int = 0
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    declared: Declared | None = None
    agent: str = ""
    refusal: str = ""
    summarised: tuple[Event, Declared] | None = None
    answer_limit: int = 0


def message_key(event: Event) -> bytes:
    """What distinguishes two messages: role and content, without ids, metadata and reasoning, which agents drop."""
    content = [_part_key(part) for part in event.parts if not isinstance(part, ReasoningPart)]
    return blake2b(msgspec.json.encode([event.role.value, content], order="deterministic"), digest_size=16).digest()


def _part_key(part: Part) -> list[str]:
    match part:
        case TextPart(text):
            return ["text", text.strip()]
        case ToolCallPart(name=name, arguments=arguments, id=call_id):
            return ["call", call_id or name + value_text(arguments)]
        case ToolResultPart(content=content, call_id=call_id):
            return ["result", call_id, value_text(content).strip()]
        case MediaPart(mime=mime, size=size, uri=uri):
            return ["media", mime, str(size), uri]
        case OtherPart(kind=kind, value=value):
            return ["other", kind, value_text(value)]
        case _:
            return []
