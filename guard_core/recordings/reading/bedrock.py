"""The blocks of messages in Amazon Bedrock's Converse API as parts: objects of one key, without a type.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/, ContentBlock, ToolResultBlock and TokenUsage.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import (
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

_KEYS = frozenset(("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint"))
_KEYS |= {"audio", "guardContent", "citationsContent", "searchResult"}
_MEDIA = ("image", "document", "video", "audio")


def blocks(content: Any) -> list[JSON]:
    """The blocks of a message's content, which may be JSON as text; empty where it has others."""
    listed = fields.decoded(content)
    objects = list(fields.objects(listed)) if isinstance(listed, list) else []
    return objects if objects and all(is_known(block) and "type" not in block for block in objects) else []


def is_known(block: JSON) -> bool:
    """Is a block of a kind that is known here?"""
    return not _KEYS.isdisjoint(block)


def parts(block: JSON) -> tuple[Part, ...]:
    """One block as parts; a mark for the cache is none."""
    if call := fields.mapping(block, "toolUse"):
        return (ToolCallPart(fields.text(call, "name"), call.get("input"), fields.text(call, "toolUseId")),)
    if result := fields.mapping(block, "toolResult"):
        return _result(result)
    if thought := fields.mapping(block, "reasoningContent"):
        said = fields.mapping(thought, "reasoningText")
        sealed = fields.text(said, "signature") or fields.text(thought, "redactedContent")
        return (ReasoningPart(fields.text(said, "text"), opaque_bytes=fields.opaque_size(sealed)),)
    if text := _text(block):
        return (text,)
    kind = next((key for key in block if key in _KEYS), "unknown")
    if kind == "cachePoint":
        return ()
    return (_media(kind, fields.mapping(block, kind)) if kind in _MEDIA else OtherPart(kind, block),)


def _result(result: JSON) -> tuple[Part, ...]:
    listed = list(fields.objects(result.get("content")))
    texts = [part.text for item in listed if (part := _text(item))]
    media = [_media(kind, item[kind]) for item in listed for kind in _MEDIA if isinstance(item.get(kind), dict)]
    content = "\n".join(texts) if texts else "" if media else result.get("content")
    failed = fields.text(result, "status") == "error"
    return (ToolResultPart("", content, fields.text(result, "toolUseId"), failed), *media)


def _media(kind: str, block: JSON) -> MediaPart:
    """A picture, a document, a film or sound, by its size or its place in S3."""
    place, mime = fields.mapping(block, "source"), f"{kind}/{fields.text(block, 'format')}".removesuffix("/")
    if data := fields.text(place, "bytes"):
        return fields.media(mime, data)
    uri = fields.text(fields.mapping(place, "s3Location"), "uri") or fields.text(block, "name")
    return MediaPart(mime, uri=uri[:2000])


def _text(block: JSON) -> TextPart | None:
    if "json" in block:
        return TextPart(value_text(block["json"]))
    return TextPart(block["text"]) if isinstance(block.get("text"), str) else None
