"""What `gemini --output-format stream-json` prints: messages in pieces, tool calls and results, totals at the end.

Pieces (`delta`) of an answer are joined, and the calls behind them belong to the same answer. Tokens are told for the
whole run only, so no call has its own.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.events import Part, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings import fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.source import Line, Source

JSON = dict[str, Any]
KINDS = frozenset({"init", "message", "tool_use", "tool_result", "result", "error"})


def is_stream(heads: list[JSON]) -> bool:
    """Do these lines come from the CLI's stream?"""
    known = [obj for obj in heads if fields.text(obj, "type") in KINDS]
    starts = any(obj["type"] == "init" and "session_id" in obj and "model" in obj for obj in known)
    tools = any("tool_id" in obj for obj in known)
    return (starts or tools) and len(known) * 2 > len(heads)


def read_stream(source: Source, name: str) -> Recording:
    """The one session of a stream, as format `name`."""
    reader = _Reader(source, name)
    for line in source.lines():
        with source.tolerate(line.number):
            reader.line(line)
    return reader.recording()


class _Reader:
    def __init__(self, source: Source, name: str) -> None:
        self.notes = source.notes
        self.facts = FactCounter(name)
        self.log = SessionBuilder(name, source)
        self.name = name
        self.init: JSON = {}
        self.total: int | None = None
        self.open = False  # may the last event, an answer, go on?

    def line(self, line: Line) -> None:
        obj, kind = line.obj, fields.text(line.obj, "type")
        if kind == "message":
            self._message(obj, line.number)
        elif kind == "tool_use":
            call = ToolCallPart(fields.text(obj, "tool_name"), obj.get("parameters"), fields.text(obj, "tool_id"))
            self.facts.tool_call(call.id)
            self._answer(call, obj, line.number)
        elif kind == "tool_result":
            self._result(obj, line.number)
        elif kind == "init":
            self.init = self.init or obj
        elif kind == "result":
            self.total = fields.tokens(fields.mapping(obj, "stats"), "input_tokens")
        else:
            self.notes.skip(kind or "line without a type")

    def _message(self, obj: JSON, line: int) -> None:
        text = fields.plain_text(obj.get("content"))
        if fields.text(obj, "role") == "assistant":
            self._answer(TextPart(text), obj, line)
            return
        self.open = False
        self.facts.message()
        self.log.event(Role.USER, (TextPart(text),), line=line, timestamp=fields.timestamp(obj, "timestamp"))

    def _answer(self, part: Part, obj: JSON, line: int) -> None:
        if not self.open:
            self.facts.message()
            at = fields.timestamp(obj, "timestamp")
            call = {"line": line, "timestamp": at, "model": fields.text(self.init, "model")}
            self.log.answer((part,), call=call, line=line, timestamp=at)
            self.open = True
            return
        event = self.log.events[-1]
        last = event.parts[-1]
        if isinstance(last, TextPart) and isinstance(part, TextPart):
            parts = (*event.parts[:-1], TextPart(last.text + part.text))
        else:
            parts = (*event.parts, part)
        self.log.events[-1] = replace(event, parts=parts)

    def _result(self, obj: JSON, line: int) -> None:
        self.open = False
        content = obj.get("output")
        if content is None:
            content = fields.text(fields.mapping(obj, "error"), "message")
        call_id = fields.text(obj, "tool_id")
        self.facts.tool_result(call_id, len(value_text(content)))
        part = ToolResultPart("", content, call_id, fields.text(obj, "status") == "error")
        self.log.event(Role.USER, (part,), line=line, timestamp=fields.timestamp(obj, "timestamp"))

    def recording(self) -> Recording:
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        if self.total is not None:
            notes.append(f"Tokens are told for the whole run only: {self.total} input tokens over all calls.")
        session = self.log.session(
            source_id=fields.text(self.init, "session_id"),
            agent="Gemini CLI",
            model=fields.text(self.init, "model"),
            notes=tuple(notes),
        )
        return Recording(self.name, (session,), self.facts.facts(), self.notes)
