"""Typed access to parsed JSON of unknown shape: a field of the wrong type reads as absent, never as an error."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from guard_core.bounds import MAX_TOKENS
from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, TextPart
from guard_core.recordings.reading import normalise, strict_json
from guard_core.recordings.reading.limits import Limits

JSON = dict[str, Any]
HOUR_TOKENS = "ephemeral_1h_input_tokens"  # what Anthropic's `usage.cache_creation` calls tokens cached for an hour
_LIMITS = Limits()
_DATA_URL = "data:"


def text(value: Any, key: str) -> str:
    """The text under `key`; "" where there is none."""
    item = value.get(key) if type(value) is dict else None  # parsed JSON has no other kinds, and this is asked a lot
    return item if type(item) is str else ""


def mapping(value: Any, key: str) -> JSON:
    """The object under `key`; empty where there is none."""
    item = value.get(key) if isinstance(value, dict) else None
    return item if isinstance(item, dict) else {}


def items(value: Any, key: str) -> list[Any]:
    """The array under `key`; empty where there is none."""
    item = value.get(key) if isinstance(value, dict) else None
    return item if isinstance(item, list) else []


def objects(value: Any) -> Iterator[JSON]:
    """The objects of an array, or of the elements of one; whatever else it holds is passed over."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list | Iterator) else iter(())


def tokens(value: Any, key: str) -> int | None:
    """A count of tokens; None where there is none. Text of digits counts (64-bit integers of protobuf)."""
    count = value.get(key) if isinstance(value, dict) else None
    if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) <= 16:
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= MAX_TOKENS:
        return None
    return int(count) if count == int(count) else None


def signed_tokens(value: Any, key: str) -> int | None:
    """A count of tokens that may be below 0: what an agent gets that takes cached tokens from a count without them."""
    count = value.get(key) if isinstance(value, dict) else None
    below = tokens({key: -count}, key) if isinstance(count, int) else None
    return -below if below else tokens(value, key)


def first_tokens(value: Any, *keys: str) -> int | None:
    """The first of several spellings of a count that is there."""
    there = [key for key in keys if key in value] if isinstance(value, dict) else ()
    return next((count for key in there if (count := tokens(value, key)) is not None), None)


def window(value: Any, key: str) -> int | None:
    """A context window in tokens; None where none is stated (agents write 0 for one they do not know), or one that no
    model has (`may_be_window`)."""
    count = tokens(value, key)
    return count if count and may_be_window(count) else None


def may_be_window(value: Any) -> bool:
    """Can a value in the place of a context window be one, or say that it is not known."""
    if value is None:
        return True
    count = tokens({"window": value}, "window")
    return count is not None and (count == 0 or MIN_WINDOW <= count <= MAX_WINDOW)


def timestamp(value: Any, key: str) -> float | None:
    """Seconds since the epoch, from ISO text, seconds or milliseconds."""
    return normalise.timestamp(value.get(key)) if isinstance(value, dict) else None


def decoded(value: Any) -> Any:
    """JSON inside a text (tool arguments, span attributes) as a value; text that is not JSON stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return strict_json.decode(value.encode("utf-8", "replace"), _LIMITS, mend=True).value
    except strict_json.JsonProblem:
        return value


def arguments(value: Any) -> Any:
    """The arguments of a tool call: the object inside the text, or the raw text where it is none."""
    parsed = decoded(value)
    return parsed if isinstance(parsed, dict | list) or not isinstance(value, str) else value


def media(mime: str, data: str) -> MediaPart:
    """Inline data or a reference, by its text: base64, a data URL or an address."""
    if data.startswith(_DATA_URL):
        head, _, data = data.partition(",")
        return MediaPart(mime=mime or head[len(_DATA_URL) :].split(";")[0], size=base64_size(data))
    if "://" in data[:16] or data.startswith("attachment:"):
        return MediaPart(mime=mime, uri=data[:2000])
    return MediaPart(mime=mime, size=base64_size(data))


def base64_size(data: str) -> int:
    """Bytes after decoding base64, computed from its length."""
    return max(0, len(data) * 3 // 4 - data[-2:].count("="))


def opaque_size(data: str) -> int:
    """Bytes of a signature or an encrypted blob: decoded where it is base64 (of either alphabet), else as it is."""
    try:
        return len(base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True))
    except (binascii.Error, ValueError):
        return len(data)


def plain_text(content: Any) -> str:
    """All the text of a message's content, whatever blocks it comes in, joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text(content, "text") or text(content, "content")
    if isinstance(content, list):
        return "\n".join(inner for item in content if (inner := plain_text(item)))
    return ""


def content_parts(content: Any) -> tuple[Part, ...]:
    """Text, reasoning and media of a content field as OpenAI, Anthropic, LangChain, Inspect and OpenHands write it."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ()
    return tuple(part for item in content if (part := _content_part(item)) is not None)


def _content_part(item: Any) -> Part | None:
    if isinstance(item, str):
        return TextPart(item)
    if not isinstance(item, dict):
        return None
    kind = text(item, "type")
    if kind in {"thinking", "reasoning", "redacted_thinking"}:
        return _reasoning(item)
    if kind in {"", "text", "input_text", "output_text"} and isinstance(item.get("text"), str):
        return TextPart(item["text"])
    if kind == "refusal":
        return TextPart(text(item, "refusal"))
    if "image" in kind or "audio" in kind or "video" in kind or kind in {"file", "document", "input_file"}:
        return _media(item, kind)
    if kind in {"tool_use", "tool_call", "function_call"}:
        return None  # listed beside the content, too
    return OtherPart(kind=kind or "unknown", value=item)


def _reasoning(item: JSON) -> Part:
    readable = text(item, "thinking") or text(item, "reasoning") or text(item, "text")
    signature = text(item, "signature") or text(item, "data")
    if item.get("redacted") is True:
        return ReasoningPart(text(item, "summary"), opaque_bytes=opaque_size(readable))
    summary = plain_text(item.get("summary"))
    return ReasoningPart(readable or summary, opaque_bytes=opaque_size(signature) if signature else 0)


def _media(item: JSON, kind: str) -> MediaPart:
    source = mapping(item, "source") or mapping(item, kind) or mapping(item, "file") or item
    mime = text(source, "media_type") or text(source, "mime_type") or text(source, "format")
    for key in ("url", "image_url", "data", "base64", "file_data", "image", "audio", "video", "document"):
        if data := text(source, key):
            return media(mime, data)
    return MediaPart(mime=mime, uri=text(source, "file_id") or text(source, "file_url") or text(source, "id"))
