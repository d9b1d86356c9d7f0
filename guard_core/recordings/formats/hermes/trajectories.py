"""Hermes' trajectories, and whatever else is ShareGPT: `conversations` of `from` and `value`.

Calls, results and thoughts are `<tool_call>`, `<tool_response>` and `<think>` inside the text; one tool turn may
hold several responses. A response names the id of its call, a call has none: they go together in their order. The tools
stand in the system text as `<tools>`, in some data sets beside the conversation.
Definition: `agent/trajectory.py` of https://github.com/NousResearch/hermes-agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.formats.hermes.contexts import LOST
from guard_core.recordings.reading import chat, fields, summary_words
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence, RecordedCompaction, Session, ToolDefinition
from guard_core.views import Inserted, Span

SPEAKERS = {"system": Role.SYSTEM, "human": Role.USER, "user": Role.USER, "gpt": Role.MODEL, "assistant": Role.MODEL}
RESULT_SPEAKERS = frozenset({"tool", "function", "observation", "ipython"})
_TAG = re.compile(r"<(think|tool_call|tool_response|tools)>")


def read_trajectory(source: ByteSource, value: JSON, facts: FactCounter) -> Session:
    """A ShareGPT trajectory as a session: its calls have no tokens."""
    builder = SessionBuilder("hermes", source)
    facts.session()
    system: tuple[Part, ...] | None = None
    turns = list(fields.objects(value.get("conversations")))
    for turn, after in zip(turns, [*turns[1:], {}], strict=True):
        speaker, text = fields.text(turn, "from").lower(), fields.text(turn, "value")
        role = SPEAKERS.get(speaker)
        facts.message()
        if not isinstance(turn.get("value"), str):
            source.leave_out(f"a turn of {speaker[:40] or 'an unnamed speaker'} whose value is not text")
        if text.startswith(summary_words.HERMES):
            _summarised(builder, text)
        elif speaker in RESULT_SPEAKERS:
            builder.event(Role.USER, _responses(text, facts))
        elif role is Role.MODEL:
            builder.answer(_answer(text, _answered_ids(after), facts), call={})
        elif role is Role.SYSTEM and not builder.events:
            system = (TextPart(text),)
        elif role is not None:
            builder.event(role, (TextPart(text),))
        else:
            source.notes.skip(f"turn of {speaker[:40] or 'an unnamed speaker'}")
    builder.notes.append("Trajectories hold no tokens.")
    model, name = fields.text(value, "model"), fields.text(value, "id")
    return builder.session(
        system=system,
        tools=chat.tool_definitions(fields.decoded(value.get("tools"))) or _tools(system),
        agent="Hermes",
        model=model,
        source_id=name,
        started_at=fields.timestamp(value, "timestamp"),
    )


def _summarised(builder: SessionBuilder, text: str) -> None:
    """A summary: the turns before it are what was kept at the head, those behind it cannot be distinguished from new
    ones."""
    at = len(builder.events)
    builder.compaction(
        RecordedCompaction(
            at=at,
            evidence=Evidence.MATCHED,
            kind="summary",
            base=(*((Span(0, at),) if at else ()), Inserted(0)),
            messages=(Event(Role.USER, (TextPart(text),), meta=True),),
            note=LOST,
        )
    )


def _answer(text: str, call_ids: list[str], facts: FactCounter) -> tuple[Part, ...]:
    """Thoughts, text and calls in the order of the text. Calls have no ids of their own: `call_ids` in their order."""
    parts: list[Part] = []
    ids = iter(call_ids)
    end = 0
    for name, body, start, stop in _tagged(text, ("think", "tool_call")):
        _add_text(parts, text[end:start])
        end = stop
        if name == "tool_call":
            facts.tool_call()
            call = fields.decoded(body)
            part = chat.tool_call(call) if isinstance(call, dict) else ToolCallPart("", body)
            parts.append(msgspec.structs.replace(part, id=part.id or next(ids, "")))
        elif body:  # a model that does not think has empty tags
            parts.append(ReasoningPart(body))
    _add_text(parts, text[end:])
    return tuple(parts)


def _answered_ids(turn: JSON) -> list[str]:
    """The ids of the calls that the results of a turn answer."""
    if fields.text(turn, "from").lower() not in RESULT_SPEAKERS:
        return []
    bodies = (fields.decoded(body) for _, body, _, _ in _tagged(fields.text(turn, "value"), ("tool_response",)))
    return [fields.text(body, "tool_call_id") for body in bodies]


def _tagged(text: str, names: tuple[str, ...]) -> Iterator[tuple[str, str, int, int]]:
    """Name, body and place of each tagged piece. One pass: a tag that is never closed is searched for once only."""
    unclosed: set[str] = set()
    position = 0
    while (tag := _TAG.search(text, position)) is not None:
        name, position = tag[1], tag.end()
        if name not in names or name in unclosed:
            continue
        stop = text.find(f"</{name}>", position)
        if stop < 0:
            unclosed.add(name)
            continue
        yield name, text[position:stop].strip(), tag.start(), stop + len(name) + 3
        position = stop + len(name) + 3


def _add_text(parts: list[Part], text: str) -> None:
    if text.strip():
        parts.append(TextPart(text.strip()))


def _responses(text: str, facts: FactCounter) -> tuple[Part, ...]:
    """The results in one tool turn."""
    bodies = [body for _, body, _, _ in _tagged(text, ("tool_response",))] or [text]
    parts: list[Part] = []
    for body in bodies:
        response = fields.decoded(body)
        name = fields.text(response, "name")
        content = response["content"] if isinstance(response, dict) and "content" in response else body
        call_id = fields.text(response, "tool_call_id")
        facts.tool_result(call_id, len(value_text(content)))
        parts.append(ToolResultPart(name, content, call_id))
    return tuple(parts)


def _tools(system: tuple[Part, ...] | None) -> tuple[ToolDefinition, ...] | None:
    """The first list of tools between tags of the system prompt that can be read: Hermes' function calling has it
    there."""
    first = system[0] if system else None
    pieces = _tagged(first.text, ("tools",)) if isinstance(first, TextPart) else iter(())
    return next((tools for _, body, _, _ in pieces if (tools := chat.tool_definitions(fields.decoded(body)))), None)
