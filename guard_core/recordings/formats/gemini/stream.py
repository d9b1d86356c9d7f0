"""What `gemini --output-format stream-json` prints: messages in pieces, tool calls and results, totals at the end.

Pieces (`delta`) of an answer are joined, and the calls behind them belong to the same answer. Results of tools are what
the screen would show, perhaps nothing: the text that the model got is not printed. Tokens are reported for the whole
run only, so no call has its own.
"""

from __future__ import annotations

from msgspec.structs import replace

from guard_core.errors import LimitExceeded
from guard_core.events import Part, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, Line

KINDS = frozenset({"init", "message", "tool_use", "tool_result", "result", "error"})


def is_stream(heads: list[JSON]) -> bool:
    """Do these lines come from the CLI's stream?"""
    known = [obj for obj in heads if fields.text(obj, "type") in KINDS]
    starts = any(obj["type"] == "init" and "session_id" in obj and "model" in obj for obj in known)
    tools = any("tool_id" in obj for obj in known)
    return (starts or tools) and len(known) * 2 > len(heads)


def read_stream(source: ByteSource, name: str) -> Recording:
    """The one session of a stream, as format `name`."""
    reader = GeminiStreamReader(source, name)
    for line in source.lines():
        with source.tolerate(line.number):
            reader.line(line)
    return reader.recording()


class GeminiStreamReader:
    """Joins the pieces of each answer, and closes it when something else comes."""

    def __init__(self, source: ByteSource, name: str) -> None:
        self.notes = source.notes
        self.facts = FactCounter(name)
        self.log = SessionBuilder(name, source)
        self.name = name
        self.init: JSON = {}
        self.total: int | None = None
        self.failure = ""  # how the run ended, if not well
        self.shown = False  # has a result of a tool come?
        self.answer: int | None = None  # the event of the answer that may still grow
        self.parts: list[Part] = []  # of that answer
        self.pieces: list[str] = []  # of the text at its end

    def line(self, line: Line) -> None:
        obj, kind = line.obj, fields.text(line.obj, "type")
        if kind == "message":
            self._message(obj, line.number)
        elif kind == "tool_use":
            call = ToolCallPart(fields.text(obj, "tool_name"), obj.get("parameters"), fields.text(obj, "tool_id"))
            self.facts.tool_call(call.id)
            self._begin(obj, line.number)
            self._add(call, line.number)
        elif kind == "tool_result":
            self._result(obj, line.number)
        elif kind == "init":
            self.init = self.init or obj
        elif kind == "result":
            self.total = fields.tokens(fields.mapping(obj, "stats"), "input_tokens")
            self.failure = fields.text(fields.mapping(obj, "error"), "message")
        else:
            self.notes.skip(kind or "line without a type")

    def _message(self, obj: JSON, line: int) -> None:
        text = fields.plain_text(obj.get("content"))
        if fields.text(obj, "role") == "assistant":
            self._begin(obj, line)
            self.pieces.append(text)
            return
        self._close()
        self.facts.message()
        self.log.event(Role.USER, (TextPart(text),), line=line, timestamp=fields.timestamp(obj, "timestamp"))

    def _begin(self, obj: JSON, line: int) -> None:
        """An answer begins or grows."""
        if self.answer is None:
            self.facts.message()
            at = fields.timestamp(obj, "timestamp")
            call = {"line": line, "timestamp": at, "model": fields.text(self.init, "model")}
            self.answer = self.log.answer((), call=call, line=line, timestamp=at)

    def _add(self, part: Part, line: int | None) -> None:
        """The next part of the answer, behind the text so far."""
        if len(self.parts) >= self.log.limits.parts:
            raise LimitExceeded(f"an answer with more than {self.log.limits.parts} parts", line=line)
        if self.pieces:
            self.parts.append(TextPart("".join(self.pieces)))
            self.pieces = []
        self.parts.append(part)

    def _close(self) -> None:
        """The answer is complete."""
        if self.answer is None:
            return
        if self.pieces:
            self.parts.append(TextPart("".join(self.pieces)))
        event = self.log.events[self.answer]
        self.log.events[self.answer] = replace(event, parts=tuple(self.parts))
        self.answer, self.parts, self.pieces = None, [], []

    def _result(self, obj: JSON, line: int) -> None:
        self._close()
        self.shown = True
        content = obj.get("output")
        if content is None:
            content = fields.text(fields.mapping(obj, "error"), "message")
        call_id = fields.text(obj, "tool_id")
        self.facts.tool_result(call_id, len(value_text(content)))
        part = ToolResultPart("", content, call_id, fields.text(obj, "status") == "error")
        self.log.event(Role.USER, (part,), line=line, timestamp=fields.timestamp(obj, "timestamp"))

    def recording(self) -> Recording:
        self._close()
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        if self.shown:
            notes.append(
                "Results of tools are what the screen shows; the texts that the model got are not in the file."
            )
        if self.total is not None:
            notes.append(f"Tokens are reported for the whole run only: {self.total} input tokens over all calls.")
        if self.failure:
            notes.append(f"The run ended with an error: {self.failure}")
        session = self.log.session(
            source_id=fields.text(self.init, "session_id"),
            agent="Gemini CLI",
            model=fields.text(self.init, "model"),
            prompt_tokens_total=self.total or None,
            notes=tuple(notes),
        )
        return Recording(self.name, (session,), self.facts.facts(), self.notes)
