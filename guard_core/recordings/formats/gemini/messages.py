"""One message of a Gemini CLI chat: what the API got, the results that its calls carry, and its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from guard_core.events import (
    Event,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.recordings.formats.adk import parts as adk_parts
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ModelCall

CONTEXT = "<session_context>"  # begins what opens a chat
# How the CLI opens the messages that it writes in the user's name.
OWN_OPENINGS = (CONTEXT, "This is the Gemini CLI.", summary_words.SNAPSHOT, "<hook_context>")


@dataclass
class GeminiMessage:
    """One message as the API gets it, and the results that its calls carry."""

    event: Event
    results: tuple[ToolResultPart, ...] = ()


def name_of(record: JSON) -> str:
    """What the repeats of one message share: its id; where that was taken out, its time and who spoke."""
    when = fields.text(record, "timestamp")
    return fields.text(record, "id") or (f"{when} {fields.text(record, 'type')}" if when else "")


def read_message(record: JSON, line: int | None) -> GeminiMessage:
    """A message of the user or the model, with the results that its tool calls carry."""
    role = Role.USER if record.get("type") == "user" else Role.MODEL
    parts = _content(record.get("content")) or _content(record.get("parts"))
    results: tuple[ToolResultPart, ...] = ()
    if role is Role.MODEL:
        calls = list(fields.objects(record.get("toolCalls")))
        if not any(isinstance(part, ReasoningPart) for part in parts):
            parts = (*_thoughts(record), *parts)
        if not any(isinstance(part, ToolCallPart) for part in parts):
            named = ((fields.text(call, "name"), call.get("args"), fields.text(call, "id")) for call in calls)
            parts = (*parts, *(ToolCallPart(*each) for each in named))
        results = tuple(part for call in calls for part in _results(call))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    meta = role is Role.USER and bool(texts) and texts[0].lstrip().startswith(OWN_OPENINGS)
    at, source_id = fields.timestamp(record, "timestamp"), name_of(record)
    return GeminiMessage(Event(role, parts, source_id, line, at, meta=meta), results)


def _content(content: Any) -> tuple[Part, ...]:
    """The parts of a content: text, one part, or a list of either. What is neither is kept as it is."""
    if content is None:
        return ()
    items = content if isinstance(content, list) else [content]
    return tuple(part for item in items for part in _content_item(item))


def _content_item(item: Any) -> tuple[Part, ...]:
    if isinstance(item, str):
        return (TextPart(item),) if item else ()
    if not isinstance(item, dict):
        return (OtherPart("unknown", item),)
    parts = adk_parts.content_parts({"parts": [item]})
    # An empty text and the mark of a thought say nothing.
    says_something = any(value for key, value in item.items() if key not in ("thought", "thoughtSignature"))
    return (OtherPart("unknown", item),) if says_something and not parts else parts


def _thoughts(record: JSON) -> Iterator[Part]:
    """Thoughts that Gemini CLI writes beside the content, each with its subject in bold."""
    for thought in fields.objects(record.get("thoughts")):
        subject, description = fields.text(thought, "subject"), fields.text(thought, "description")
        yield ReasoningPart(f"**{subject}** {description}" if subject else description)


def _results(call: JSON) -> Iterator[ToolResultPart]:
    """The results that a call carries; the call's own id where they have none."""
    result = call.get("result")
    for part in _content(result) if isinstance(result, list) else ():
        if isinstance(part, ToolResultPart):
            failed = part.is_error or fields.text(call, "status") in {"error", "cancelled"}
            yield replace(part, call_id=part.call_id or fields.text(call, "id"), is_error=failed)


def model_call(record: JSON, line: int | None) -> ModelCall:
    """The call that gave an answer; without tokens where none were counted."""
    usage = fields.mapping(record, "tokens")
    prompt = fields.tokens(usage, "input") or None
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=fields.tokens(usage, "cached") if prompt else None,
        output_tokens=output_tokens(usage, "output") if prompt else None,
        model=fields.text(record, "model"),
        timestamp=fields.timestamp(record, "timestamp"),
        line=line,
        source_id=name_of(record),
    )


def output_tokens(usage: JSON, answer: str) -> int | None:
    """Tokens that the model wrote: Gemini counts the thoughts beside the answer, whose count has the key `answer`."""
    counts = [count for key in (answer, "thoughts") if (count := fields.tokens(usage, key)) is not None]
    return sum(counts) if counts else None


def shown(content: Any) -> str:
    """The text of a result: its `output` where that is all it has, else the whole as JSON."""
    if isinstance(content, dict) and len(content) == 1:
        only = next(iter(content.values()))
        return only if isinstance(only, str) else value_text(content)
    return value_text(content)
