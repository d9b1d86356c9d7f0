"""What an agent's conversation is made of: events and their parts, as frozen values.

Lengths are named by their unit everywhere in this package: `chars` are Unicode code points, `bytes` are
UTF-8 bytes, `tokens` are tokens of the measure that the name says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from guard_core.bounds import Count, Moment


class Role(StrEnum):
    """Who speaks. Tool results are carried by USER events, as in the Gemini and Anthropic conventions."""

    USER = "user"
    MODEL = "model"
    SYSTEM = "system"


# `gc=False` below: values hold no cycles, and a long session is hundreds of thousands of them to pass over.


class TextPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="text"):
    """Plain text that the model reads or wrote."""

    text: str
    metadata: dict[str, Any] | None = None


class ReasoningPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="reasoning"):
    """Reasoning of the model. `opaque_bytes` is the size of a signed or encrypted blob that cannot be read here."""

    text: str = ""
    opaque_bytes: Count = 0
    metadata: dict[str, Any] | None = None


class ToolCallPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="tool_call"):
    """A call of a tool. `arguments` is the decoded JSON object, or the raw text where it is not valid JSON."""

    name: str
    arguments: Any = None
    id: str = ""
    metadata: dict[str, Any] | None = None


class ToolResultPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="tool_result"):
    """What a tool returned: text, or the decoded JSON value that was sent to the model."""

    name: str = ""
    content: Any = None
    call_id: str = ""
    is_error: bool = False
    metadata: dict[str, Any] | None = None


class MediaPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="media"):
    """An image, sound or document. Its bytes stay in the uploaded file; here is its size.

    `size` is raw bytes after base64 decoding (0 when only a reference is known); `uri` is set for a reference,
    which counts as file data, not as inline data.
    """

    mime: str = ""
    size: Count = 0
    uri: str = ""
    metadata: dict[str, Any] | None = None


class OtherPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="other"):
    """A part of a kind that no other class covers (server-side tool call, executable code); kept, counted, shown."""

    kind: str
    value: Any = None
    metadata: dict[str, Any] | None = None


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | MediaPart | OtherPart


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One entry of the append-only log: one message as the agent would send it to the model.

    `line` is the line (from 1) of the recording it came from, `source_id` its id there, `timestamp` seconds since
    the epoch (UTC). `meta` marks messages that the agent's software added by itself (reminders, command output):
    they are sent to the model but do not start a user turn. `joined`: it was sent in one message with the event before.
    """

    role: Role
    parts: tuple[Part, ...]
    source_id: str = ""
    line: Count | None = None
    timestamp: Moment | None = None
    author: str = ""
    meta: bool = False
    joined: bool = False

    def starts_turn(self) -> bool:
        """Does a user turn begin here: a user's own words, not a tool result, not an automatic message."""
        return (
            self.role is Role.USER
            and not self.meta
            and bool(self.parts)
            and not any(isinstance(part, ToolResultPart) for part in self.parts)
        )


def part_text(part: Part) -> str:
    """The text of a part as a tokenizer or a reader sees it; media have none."""
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return part.name + " " + value_text(part.arguments)
        case ToolResultPart():
            return value_text(part.content)
        case OtherPart():
            return value_text(part.value)
        case MediaPart():
            return ""


def value_text(value: Any) -> str:
    """A JSON value as text: strings as they are, everything else as compact JSON, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="deterministic").decode()


def utf8_bytes(text: str) -> int:
    """UTF-8 length in bytes; a lone surrogate counts as the three bytes of its replacement character."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
