"""Answers that were logged in pieces, as they were streamed: put together again as the one response they make.

Pieces are those of OpenAI's Chat Completions (`choices[].delta`, usage in a last piece without choices), Anthropic's
Messages (events that open, fill and close blocks; usage at the start and, cumulative, at the end) and OpenAI's
Responses (the last event holds the whole response). Server-sent events as text are read, too.
Sources: https://platform.openai.com/docs/api-reference/chat-streaming, https://docs.anthropic.com/en/api/messages-streaming,
https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_GROWING = ("content", "refusal", "reasoning_content", "reasoning")  # texts of a chat delta


def is_piece(value: Any) -> bool:
    """Is it one piece of a streamed answer?"""
    if not isinstance(value, dict):
        return False
    if fields.text(value, "object") == "chat.completion.chunk":
        return True
    if fields.text(value, "type").startswith(("message_", "content_block_", "response.")):
        return True
    return any(isinstance(choice.get("delta"), dict) for choice in fields.objects(value.get("choices")))


def pieces_of(text: str) -> list[JSON]:
    """The pieces in the text of a stream of server-sent events; empty where it is none."""
    lines = text.splitlines() if text.lstrip()[:6].startswith(("data:", "event:", ":")) else []
    values = (fields.decoded(line[5:].strip()) for line in lines if line.startswith("data:"))
    return [piece for piece in values if isinstance(piece, dict)]


def joined(pieces: Iterable[Any]) -> JSON:
    """The response that pieces make together; empty where they are none."""
    known = [piece for piece in pieces if is_piece(piece)]
    kind = fields.text(known[0], "type") if known else ""
    if kind.startswith("response."):
        return _of_responses(known)
    if kind.startswith(("message_", "content_block_")):
        return _of_anthropic(known)
    return _of_chat(known) if known else {}


# -- OpenAI's Chat Completions


def _of_chat(pieces: list[JSON]) -> JSON:
    response: JSON = {}
    choices: dict[int, JSON] = {}
    for piece in pieces:
        response |= {key: value for key, value in piece.items() if key != "choices" and value is not None}
        for place, choice in enumerate(fields.objects(piece.get("choices"))):
            number = choice.get("index")
            message = choices.setdefault(number if isinstance(number, int) else place, {"role": "assistant"})
            _add_delta(message, fields.mapping(choice, "delta"))
    return response | {"choices": [{"index": number, "message": message} for number, message in choices.items()]}


def _add_delta(message: JSON, delta: JSON) -> None:
    for key in _GROWING:
        if text := fields.text(delta, key):
            message[key] = message.get(key, "") + text
    for place, call in enumerate(fields.objects(delta.get("tool_calls"))):
        number = call.get("index")
        calls = message.setdefault("tool_calls", [])
        _add_call(calls, number if isinstance(number, int) else place, call)
    if legacy := fields.mapping(delta, "function_call"):
        _grow(message.setdefault("function_call", {}), legacy)


def _add_call(calls: list[JSON], number: int, call: JSON) -> None:
    """A piece of a call: of the one with its number, or of a new one where it names another id."""
    known = next((item for item in reversed(calls) if item["index"] == number), None)
    call_id = fields.text(call, "id")
    if known is None or (call_id and known.get("id") and call_id != known["id"]):
        known = {"index": number}
        calls.append(known)
    known |= {key: call[key] for key in ("id", "type") if fields.text(call, key)}
    for key in ("function", "custom"):
        if isinstance(call.get(key), dict):
            _grow(known.setdefault(key, {}), call[key])


def _grow(known: JSON, piece: JSON) -> None:
    """A name comes whole, arguments in pieces."""
    if fields.text(piece, "name"):
        known["name"] = piece["name"]
    for key in ("arguments", "input"):
        if text := fields.text(piece, key):
            known[key] = known.get(key, "") + text


# -- Anthropic's Messages


def _of_anthropic(pieces: list[JSON]) -> JSON:
    response: JSON = {}
    blocks: dict[Any, JSON] = {}
    usage: JSON = {}
    for piece in pieces:
        match fields.text(piece, "type"):
            case "message_start":
                response |= fields.mapping(piece, "message")
            case "content_block_start":
                blocks[str(piece.get("index"))] = dict(fields.mapping(piece, "content_block"))
            case "content_block_delta":
                _add_to_block(blocks.setdefault(str(piece.get("index")), {}), fields.mapping(piece, "delta"))
            case "message_delta":
                usage |= {key: value for key, value in fields.mapping(piece, "usage").items() if value is not None}
    content = []
    for block in blocks.values():
        written = block.pop("_json", "")
        content.append(block | {"input": fields.arguments(written)} if written else block)
    usage = fields.mapping(response, "usage") | usage
    return response | {"type": "message", "role": "assistant", "content": content, "usage": usage}


def _add_to_block(block: JSON, delta: JSON) -> None:
    kind = fields.text(delta, "type")
    if kind == "input_json_delta":
        block["_json"] = block.get("_json", "") + fields.text(delta, "partial_json")
        return
    key = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}.get(kind)
    key = "content" if kind == "compaction_delta" else key
    if key is not None:
        block.setdefault("type", "thinking" if key == "signature" else key)
        block[key] = fields.text(block, key) + fields.text(delta, key)


# -- OpenAI's Responses


def _of_responses(pieces: list[JSON]) -> JSON:
    """The response of the last event; where the stream broke off, what had been finished of it."""
    response: JSON = {}
    output: list[Any] = []
    for piece in pieces:
        kind = fields.text(piece, "type")
        response = fields.mapping(piece, "response") or response
        if kind == "response.output_item.done":
            output.append(piece.get("item"))
        if kind in _ENDS and fields.items(response, "output"):
            return response
    return response | {"output": output}
