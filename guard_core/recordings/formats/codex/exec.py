"""What `codex exec --json` prints: from 0.40 on threads, turns and items; before that messages in envelopes.

Items do not separate requests: an answer ends where a result has come back and the model speaks or calls again, so
calls that were made one after the other in one answer look like several. Their tokens are reported at the end of a turn
only, as a running sum over the thread, and the user's prompt and the model are not printed. Envelopes `{"id", "msg"}`
follow a line with the settings and one with the prompt; a `token_count` ends an answer there and has its prompt
tokens, cached ones included; a repeat (same running total) is folded. A compaction is at most a notice (in 0.36 and
0.45; none in 0.169): neither the summary nor what was kept is printed. Neither the system prompt nor the tools are.
Source: the output of Codex CLI 0.21 to 0.169; https://github.com/openai/codex, codex-rs/exec/src.
"""

from __future__ import annotations

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.codex.exec_thread import LABEL, NAME, ExecThread
from guard_core.recordings.formats.codex.known_names import NAMES
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import Session

_THREADS = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "error"})
_ITEMS = frozenset({"item.started", "item.updated", "item.completed"})
_SETTINGS = frozenset({"workdir", "provider", "sandbox", "approval"})
_MESSAGES = frozenset(
    {"session_configured", "task_started", "agent_message", "agent_reasoning", "exec_command_begin", "token_count"}
)


class CodexExecFormat:
    """Reads what Codex prints when it runs without a screen."""

    name = NAME
    label = LABEL
    place = ""
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        heads = [line.obj for line in source.head_lines()]
        items, known = any(map(_is_marked, heads)), sum(map(_is_known, heads))
        return items and known * 2 > len(heads)

    def read(self, source: ByteSource) -> Recording:
        reader = CodexExecReader(source)
        for line in source.lines():
            with source.tolerate(line.number):
                reader.line(line)
        return reader.recording()


FORMAT = CodexExecFormat()


def _is_marked(obj: JSON) -> bool:
    kind = fields.text(obj, "type")
    if kind in _ITEMS:
        return bool(fields.text(fields.mapping(obj, "item"), "type"))
    if kind == "thread.started":
        return "thread_id" in obj
    return "id" in obj and fields.text(fields.mapping(obj, "msg"), "type") in _MESSAGES


def _is_known(obj: JSON) -> bool:
    """A line of either kind of print, or what stands before the older kind: settings, then the prompt."""
    kind = fields.text(obj, "type")
    return (
        kind in _THREADS | _ITEMS or isinstance(obj.get("msg"), dict) or _is_settings(obj) or obj.keys() == {"prompt"}
    )


def _is_settings(obj: JSON) -> bool:
    return obj.keys() >= _SETTINGS and "msg" not in obj


class CodexExecReader:
    """The lines of one file: of one thread, or of several one after the other."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.facts = FactCounter(NAME)
        self.sessions: list[Session] = []
        self.thread = ExecThread(source, self.facts)

    def line(self, line: Line) -> None:
        obj, kind = line.obj, fields.text(line.obj, "type")
        if kind == "thread.started" and fields.text(obj, "thread_id") != self.thread.id:
            self._next()
            self.thread.id = fields.text(obj, "thread_id")
        elif _is_settings(obj):
            self._next()
            self.thread.model = fields.text(obj, "model")
        elif obj.keys() == {"prompt"}:
            self.thread.prompt(obj["prompt"], line.number)
        elif kind in _ITEMS:
            self.thread.item(kind, fields.mapping(obj, "item"), line.number)
        elif isinstance(obj.get("msg"), dict):
            self.thread.message(obj["msg"], fields.text(obj, "id"), line.number)
        else:
            self.thread.turn(kind, obj)

    def _next(self) -> None:
        """The thread has come to its end."""
        if session := self.thread.session():
            self.sessions.append(session)
        self.thread = ExecThread(self.source, self.facts)

    def recording(self) -> Recording:
        self._next()
        if not self.sessions:
            raise self.source.nothing_left("what Codex printed holds no message")
        return Recording(NAME, tuple(self.sessions), self.facts.facts(), self.source.notes)
