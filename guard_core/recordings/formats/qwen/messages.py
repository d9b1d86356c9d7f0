"""Google's contents as Qwen Code keeps them, in the form in which a model gets them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.events import Event, MediaPart, OtherPart, Part, Role, TextPart, ToolResultPart
from guard_core.recordings.formats.adk import parts as adk_parts
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ModelCall

# How the messages open that Qwen Code writes in the user's name, at the beginning and behind a summary.
OWN_OPENINGS = (
    summary_words.SNAPSHOT,
    "<system-reminder>",
    "<task-notification>",
    "Recently accessed file",
    "Recently viewed image",
)
_MARKS = frozenset({"thought", "thoughtSignature"})  # of a part, and nothing that it says


def parts_of(content: JSON) -> tuple[Part, ...]:
    """The parts of a content. The text of a result stands for the object around it, which no provider is sent; the
    pictures of a result follow it."""
    parts: list[Part] = []
    for item in fields.objects(content.get("parts")):
        known = adk_parts.content_parts({"parts": [item]})
        parts.extend(_as_sent(part) if isinstance(part, ToolResultPart) else part for part in known)
        if not known and any(value for key, value in item.items() if key not in _MARKS):
            parts.append(OtherPart("unknown", item))
        inner = fields.mapping(item, "functionResponse").get("parts")
        parts.extend(part for part in adk_parts.content_parts({"parts": inner}) if isinstance(part, MediaPart))
    return tuple(parts)


def _as_sent(part: ToolResultPart) -> ToolResultPart:
    """The result with the text of its object alone: that is what a provider is sent."""
    response = part.content
    for key in ("output", "error"):
        if isinstance(response, dict) and isinstance(response.get(key), str):
            return replace(part, content=response[key], is_error=key == "error")
    return part


def event_of(content: JSON, **place: Any) -> Event:
    """A content as an event; one in the user's name that the agent's software wrote is marked."""
    role = Role.MODEL if fields.text(content, "role") == "model" else Role.USER
    parts = parts_of(content)
    first = next((part.text for part in parts if isinstance(part, TextPart)), "")
    meta = role is Role.USER and first.lstrip().startswith(OWN_OPENINGS)
    return Event(role, parts, meta=place.pop("meta", False) or meta, **place)


def answer_of(record: JSON, line: int) -> ModelCall:
    """The call that a line of the assistant answers. Output tokens are what Qwen Code adds to the prompt: the total
    less the prompt, which holds the reasoning of every provider."""
    usage = fields.mapping(record, "usageMetadata")
    prompt, total = fields.tokens(usage, "promptTokenCount") or None, fields.tokens(usage, "totalTokenCount")
    output = max(0, total - prompt) if prompt and total else _sum_of_output(usage)
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=fields.tokens(usage, "cachedContentTokenCount") if prompt else None,
        output_tokens=output if prompt else None,
        model=fields.text(record, "model"),
        timestamp=fields.timestamp(record, "timestamp"),
        line=line,
        source_id=fields.text(record, "uuid"),
    )


def _sum_of_output(usage: JSON) -> int | None:
    """Output tokens of a usage without a total: some providers count reasoning within the answer, which is then the
    larger number, others beside it."""
    answer, thoughts = fields.tokens(usage, "candidatesTokenCount"), fields.tokens(usage, "thoughtsTokenCount")
    if answer is None:
        return thoughts
    return answer if answer > (thoughts or 0) else answer + (thoughts or 0)


def reported_call(event: JSON, line: int) -> ModelCall:
    """A call as the telemetry of a session reports it."""
    prompt, total = fields.tokens(event, "input_token_count") or None, fields.tokens(event, "total_token_count")
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=fields.tokens(event, "cached_content_token_count") if prompt else None,
        output_tokens=max(0, total - prompt) if prompt and total else fields.tokens(event, "output_token_count"),
        model=fields.text(event, "model"),
        timestamp=fields.timestamp(event, "event.timestamp"),
        line=line,
        source_id=fields.text(event, "response_id"),
    )
