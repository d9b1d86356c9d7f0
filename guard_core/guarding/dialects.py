"""Message lists as agents hold them, read as events of the log and written from a view again.

What a policy leaves as it was is sent as the very message that the agent gave; only what it changed is written anew,
from the parts that are left. OpenAI: https://platform.openai.com/docs/api-reference/chat/create, Anthropic:
https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from guard_core.errors import SettingError
from guard_core.events import (
    Event,
    MediaPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.recordings.formats.anthropic_messages import block_parts
from guard_core.recordings.reading import chat, fields, normalise

Message = Any  # a mapping, or the object in which a library gives a message, such as an answer of a model


class MessagePiece(NamedTuple):
    """Something of a message that is sent as it is as long as its parts are: a block, a call, a text."""

    parts: tuple[Part, ...]
    value: Any


class Dialect(Protocol):
    """How one API writes messages."""

    name: str
    begins_with_user: bool  # does it refuse a request whose first message is the model's

    def split_system(self, messages: Sequence[Message]) -> int:
        """How many messages at the head are the system prompt."""
        ...

    def event(self, message: Message) -> Event:
        """The event of a message. Raises GuardError for a role that the API does not have."""
        ...

    def messages(self, event: Event, original: Message | None = None) -> list[dict[str, Any]]:
        """The messages of an event that a policy wrote, or changed from that of `original`."""
        ...


class OpenAI:
    """Chat Completions: tool results are separate messages, calls have a key of their own next to the content."""

    name = "openai"
    begins_with_user = False

    def split_system(self, messages: Sequence[Message]) -> int:
        count = 0
        while count < len(messages) and role_of(messages[count]) in ("system", "developer"):
            count += 1
        return count

    def event(self, message: Message) -> Event:
        return _known(chat.chat_event(readable(dict(message))), message)

    def messages(self, event: Event, original: Message | None = None) -> list[dict[str, Any]]:
        results = [part for part in event.parts if isinstance(part, ToolResultPart)]
        rest = tuple(part for part in event.parts if not isinstance(part, ToolResultPart))
        if event.role is Role.MODEL:
            return [self._answer(rest, original)]
        written = [self._result(part, original) for part in results]
        if results and original is not None:  # pictures that came with a result stay with it
            rest = tuple(part for part in rest if not isinstance(part, MediaPart))
        if rest or not results:
            role = "system" if event.role is Role.SYSTEM else "user"
            head = _head(original, {"role": role}, ("role", "name"))
            written.append({**head, "content": _content(rest, self._pieces(original), _openai_text)})
        return written

    def _answer(self, parts: tuple[Part, ...], original: Message | None) -> dict[str, Any]:
        given = fields.objects((original or {}).get("tool_calls"))
        known = {_key(chat.tool_call(readable(item))): item for item in given}
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        contents = tuple(part for part in parts if not isinstance(part, ToolCallPart | ReasoningPart))
        message = _head(original, {"role": "assistant"}, ("role", "name", "refusal"))
        if any(isinstance(part, ReasoningPart) for part in parts) and original is not None:
            message |= {key: original[key] for key in _REASONING_KEYS if key in original}
        message["content"] = _content(contents, self._pieces(original), _openai_text) if contents else None
        if calls:
            message["tool_calls"] = [known.get(_key(call)) or _openai_call(call) for call in calls]
        return message

    def _result(self, part: ToolResultPart, original: Message | None) -> dict[str, Any]:
        """A result, which is a message of its own in OpenAI's API."""
        head = _head(original, {"role": "tool", "tool_call_id": part.call_id}, ("role", "tool_call_id", "name"))
        return {**head, "content": value_text(part.content)}

    def _pieces(self, original: Message | None) -> list[MessagePiece]:
        content = (original or {}).get("content")
        blocks = content if isinstance(content, list) else []
        return [MessagePiece(fields.content_parts([readable(block)]), block) for block in blocks]


class Anthropic:
    """Messages: blocks in a content list, results among them; the system prompt is not one of the messages."""

    name = "anthropic"
    # "first message must use the "user" role": https://github.com/anthropics/anthropic-sdk-typescript/issues/622
    begins_with_user = True

    def split_system(self, messages: Sequence[Message]) -> int:
        return 0

    def event(self, message: Message) -> Event:
        role = _ANTHROPIC_ROLES.get(message.get("role", ""))
        parts = block_parts(readable(message.get("content")))
        return _known(None if role is None else Event(role, parts), message)

    def messages(self, event: Event, original: Message | None = None) -> list[dict[str, Any]]:
        role = "assistant" if event.role is Role.MODEL else "user"
        content = (original or {}).get("content")
        blocks = content if isinstance(content, list) else []
        pieces = [MessagePiece(block_parts([readable(block)]), block) for block in blocks]
        return [{"role": role, "content": _content(event.parts, pieces, _anthropic_block)}]


class Neutral(OpenAI):
    """Messages of Chat Completions that a framework writes for any provider."""

    begins_with_user = True


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (OpenAI(), Anthropic())}

# Words for the user where a policy left the request no other beginning than an answer of the model; ours.
LEFT_OUT = "[Earlier messages were left out.]"
_ANTHROPIC_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "system": Role.SYSTEM}
# Where servers of Chat Completions put reasoning that they want to have back.
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


def is_model(value: Any) -> bool:
    """Is it an object of Pydantic's, as the libraries of OpenAI and Anthropic give answers and their blocks. They send
    of one what was set when it was made."""
    return hasattr(value, "model_dump")


def plain(value: Any) -> Any:
    """A message, or something of one, as JSON has it; the very same where it has no such objects."""
    if is_model(value):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        items = {key: plain(item) for key, item in value.items()}
        return value if all(items[key] is value[key] for key in items) else items
    if isinstance(value, list | tuple):
        some = [plain(item) for item in value]
        return value if all(map(operator.is_, some, value)) else some
    return value


def role_of(message: Message) -> str:
    """Whose message it is."""
    role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", "")
    return role if isinstance(role, str) else ""


def readable(value: Any) -> Any:
    """Something of a message as it can be counted and written: a text may have halves of surrogate pairs, which UTF-8
    does not have. What is sent stays as it was."""
    return normalise.tree(value)[0]


def get_dialect(name: str) -> Dialect:
    """A dialect by its name. Raises SettingError with what is allowed."""
    if name not in DIALECTS:
        raise SettingError(f"messages are written as {' or '.join(DIALECTS)}, not as {name[:40]!r}")
    return DIALECTS[name]


def _known(event: Event | None, message: Message) -> Event:
    if event is None:
        raise SettingError(f"a message has no role that this API knows: {str(message.get('role'))[:40]!r}")
    return event


def _head(original: Message | None, default: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return default if original is None else {name: original[name] for name in names if name in original}


def _key(call: ToolCallPart) -> bytes:
    return msgspec.json.encode((call.name, call.arguments, call.id), order="deterministic")


def _content(parts: tuple[Part, ...], pieces: list[MessagePiece], write: Any) -> Any:
    """The content of a message: a text where it is one, else blocks, the very same ones where their parts are."""
    if len(parts) == 1 and isinstance(parts[0], TextPart) and not pieces:
        return parts[0].text
    unnamed = tuple(replace(part, name="") if isinstance(part, ToolResultPart) else part for part in parts)
    blocks: list[Any] = []
    place = 0
    while place < len(parts):
        rest = unnamed[place:]
        piece = next((item for item in pieces if item.parts and rest[: len(item.parts)] == item.parts), None)
        if piece is not None:
            blocks.append(piece.value)
            place += len(piece.parts)
            continue
        written = write(parts[place])
        blocks += [] if written is None else [written]
        place += 1
    return blocks


def _openai_text(part: Part) -> dict[str, Any] | None:
    return {"type": "text", "text": part.text} if isinstance(part, TextPart) else None


def _openai_call(part: ToolCallPart) -> dict[str, Any]:
    """A call as OpenAI's API takes it: its arguments are JSON in a text."""
    given = part.arguments
    arguments = given if isinstance(given, str) else msgspec.json.encode(given or {}, order="deterministic").decode()
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _anthropic_block(part: Part) -> dict[str, Any] | None:
    """One part as a block. Sealed reasoning and media that are not in the original cannot be written."""
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ToolCallPart():
            given = part.arguments if isinstance(part.arguments, dict) else {}
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": given}
        case ToolResultPart():
            block = {"type": "tool_result", "tool_use_id": part.call_id, "content": value_text(part.content)}
            return {**block, "is_error": True} if part.is_error else block
    return None
