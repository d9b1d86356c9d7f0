"""One LangChain message, in whatever way it was serialised, as an event, with its usage and its model."""

from __future__ import annotations

from typing import Any

from guard_core.events import Event, Part, Role, TextPart
from guard_core.recordings.formats.openai.completions import usage_of as usage_of_chat
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.fields import JSON

_ESCAPED = "__lc_escaped__"
KINDS = {
    "human": Role.USER,
    "user": Role.USER,
    "ai": Role.MODEL,
    "assistant": Role.MODEL,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.USER,
    "function": Role.USER,
    "chat": Role.USER,
}


def unescaped(value: Any) -> Any:
    """A value without the objects that LangChain (`langchain_core.load`) puts around those of its user's that look like
    its own: they have a key `lc`."""
    if isinstance(value, list):
        return [unescaped(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and _ESCAPED in value:
        return unescaped(value[_ESCAPED])
    return {key: unescaped(item) for key, item in value.items()}


def is_message(value: JSON) -> bool:
    """Is it a message in one of the three spellings: `{type, data}`, a serialised constructor, or flat."""
    if isinstance(value.get("lc"), int) and isinstance(value.get("kwargs"), dict):
        return kind_of(value) in KINDS
    kind = kind_of(value)
    if isinstance(value.get("data"), dict):
        return kind in KINDS
    own = any(
        key in value for key in ("additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls")
    )
    return kind in {"human", "ai", "tool", "system"} and "content" in value and (own or "role" not in value)


def body_of(message: JSON) -> JSON:
    """The fields of a message, wherever its spelling puts them."""
    return fields.mapping(message, "data") or fields.mapping(message, "kwargs") or message


def kind_of(message: JSON) -> str:
    """human, ai, system, tool, …, from the type, the role or the class name, chunks included."""
    body = body_of(message)
    constructor = message.get("id")
    name = fields.text(message, "type")
    if name in {"", "constructor"}:
        name = fields.text(body, "type") or fields.text(body, "role")
    if not name and isinstance(constructor, list) and constructor and isinstance(constructor[-1], str):
        name = constructor[-1]
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def event_of(message: Any) -> Event | None:
    """A message as an event: also a bare text and a pair of type and text. None where it is neither."""
    if isinstance(message, str):
        return Event(Role.USER, (TextPart(message),))
    if isinstance(message, list) and len(message) == 2 and all(isinstance(item, str) for item in message):
        message = {"type": message[0], "content": message[1]}
    if not isinstance(message, dict):
        return None
    kind = kind_of(message)
    role = KINDS.get(kind)
    if role is None:
        return None
    body = body_of(message)
    parts = chat.result_parts(body) if kind in chat.RESULT_ROLES else _parts(body)
    return Event(role, parts, source_id=fields.text(body, "id"))


def _parts(body: JSON) -> tuple[Part, ...]:
    extra = fields.mapping(body, "additional_kwargs")
    reasoning = fields.text(extra, "reasoning_content")
    head = fields.content_parts([{"type": "reasoning", "text": reasoning}]) if reasoning else ()
    calls = list(fields.objects(body.get("tool_calls"))) or list(fields.objects(extra.get("tool_calls")))
    invalid = fields.objects(body.get("invalid_tool_calls"))
    call_parts = [chat.tool_call(item) for item in (*calls, *invalid)]
    return (*head, *fields.content_parts(body.get("content")), *call_parts)


def usage_of(body: JSON) -> dict[str, Any]:
    """The usage of an answer, as fields of ModelCall."""
    usage = fields.mapping(body, "usage_metadata")
    if usage:
        details = fields.mapping(usage, "input_token_details")
        hour = fields.tokens(details, fields.HOUR_TOKENS)
        # langchain-anthropic (1.7.10) says 0 of all tokens written to the cache where it knows how long it keeps each.
        written = (fields.tokens(details, "ephemeral_5m_input_tokens") or 0) + (hour or 0)
        return {
            "prompt_tokens": fields.tokens(usage, "input_tokens"),
            "cached_tokens": fields.tokens(details, "cache_read"),
            "cache_write_tokens": written or fields.tokens(details, "cache_creation"),
            "output_tokens": fields.tokens(usage, "output_tokens"),
            **({} if hour is None else {"cache_hour_tokens": hour}),
        }
    metadata = fields.mapping(body, "response_metadata")
    return provider_usage_of(fields.mapping(metadata, "token_usage") or fields.mapping(metadata, "usage"))


def provider_usage_of(usage: JSON) -> dict[str, Any]:
    """Usage in the provider's own words: OpenAI's includes cached tokens, Anthropic's does not."""
    output = fields.first_tokens(usage, "completion_tokens", "output_tokens")
    if fields.tokens(usage, "prompt_tokens") is not None:
        return usage_of_chat(usage)
    if (fresh := fields.tokens(usage, "input_tokens")) is not None:
        read = fields.tokens(usage, "cache_read_input_tokens")
        written = fields.tokens(usage, "cache_creation_input_tokens")
        cache = {"cached_tokens": read, "cache_write_tokens": written}
        return {"prompt_tokens": fresh + (read or 0) + (written or 0), "output_tokens": output, **cache}
    return {"output_tokens": output}


def model_of(body: JSON) -> str:
    """The model that the provider named in its answer; "" where none is."""
    metadata = fields.mapping(body, "response_metadata")
    return fields.text(metadata, "model_name") or fields.text(metadata, "model")
