"""A context file of Kimi CLI: what was sent, line by line, until the file was put aside for another.

The files of a session in their order are `context_1.jsonl`, `context_2.jsonl` … and, the last, `context.jsonl`: a
compaction, `/clear` and a return to an earlier point put a file aside. `_usage` before an answer is its prompt, the one
behind it prompt and output; the one behind a summary is Kimi CLI's own estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from guard_core.events import Event, Role
from guard_core.recordings.formats.kimi_cli.messages import event_of, is_summary
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall

SYSTEM, CHECKPOINT, USAGE = "_system_prompt", "_checkpoint", "_usage"
_ROLES = frozenset({"user", "assistant", "tool", SYSTEM, CHECKPOINT, USAGE})


@dataclass
class KimiCliContext:
    """One file. `messages` with, for each answer, its call (at 0); the first `base` of them stood in it from the
    beginning, because a compaction put them there. `estimate`: the agent's tokens of these. `keys` are the lines of the
    messages, by which those of two files are told apart."""

    system: str = ""
    messages: list[tuple[Event, ModelCall | None]] = field(default_factory=list)
    base: int = 0
    estimate: int | None = None
    keys: list[bytes] = field(default_factory=list)

    @property
    def is_compacted(self) -> bool:
        """Does the file begin with the summary of a compaction."""
        return bool(self.messages) and is_summary(self.messages[0][0])


def is_record(record: JSON) -> bool:
    """Is this a line that only a context of Kimi CLI has."""
    role = fields.text(record, "role")
    if role == USAGE:
        return "token_count" in record
    return (role == SYSTEM and "content" in record) or (role == CHECKPOINT and "id" in record)


def read_context(source: ByteSource) -> KimiCliContext:
    """The messages and calls of a file."""
    reader = _ContextReader(source)
    for line in source.lines():
        with source.tolerate(line.number):
            reader.line(line.obj, line.raw, line.number)
    reader.end_base()
    return reader.context


class _ContextReader:
    def __init__(self, source: ByteSource) -> None:
        self.notes = source.notes
        self.context = KimiCliContext()
        self.prompt: int | None = None  # reported since the last checkpoint or message
        self.is_base = False  # the lines of a compaction, before the first step after it
        self.checkpoints = 0

    def line(self, record: JSON, raw: bytes, number: int) -> None:
        role = fields.text(record, "role")
        if role == SYSTEM:
            self.context.system = fields.text(record, "content") or self.context.system
        elif role == CHECKPOINT:
            if self.context.messages:
                self.end_base()
            self.prompt = None
        elif role == USAGE:
            self._usage(fields.tokens(record, "token_count"))
        elif role in _ROLES:
            self._message(record, raw, number)
        else:
            self.notes.skip(f"role {role}" if role else "line without a role")

    def end_base(self) -> None:
        if self.is_base:
            self.context.base, self.is_base = len(self.context.messages), False

    def _usage(self, tokens: int | None) -> None:
        if self.is_base:
            self.context.estimate = tokens
            self.end_base()
            return
        last = self.context.messages[-1] if self.context.messages else None
        call = last[1] if last else None
        if last is not None and call is not None and call.prompt_tokens is not None and call.output_tokens is None:
            output = max(0, tokens - call.prompt_tokens) if tokens is not None else None
            self.context.messages[-1] = (last[0], replace(call, output_tokens=output))
        else:
            self.prompt = tokens

    def _message(self, record: JSON, raw: bytes, number: int) -> None:
        event = event_of(record, line=number)
        if not event.parts and event.role is not Role.MODEL:
            self.notes.skip(f"{record['role']} without content")
            return
        if not self.context.messages:
            self.is_base = is_summary(event)
        call = None
        if event.role is Role.MODEL and not self.is_base:
            call = ModelCall(at=0, prompt_tokens=self.prompt or None, line=number)
            self.prompt = None
        self.context.messages.append((event, call))
        self.context.keys.append(raw)
