"""Kimi Code: the wire log of an agent (`agents/<id>/wire.jsonl` of a session), and zip archives of a session's folder.

Protocol 1.0 to 1.5. A wire log holds system prompt, tools and all messages; the model's window only where its requests
show it, the version of Kimi Code nowhere. Compactions are declared (`context.apply_compaction`) with their trigger; an
automatic one behind a step without an answer is a recovery from a refused request ("overflow"). What a compaction keeps
follows from Kimi Code's own rule (`context`). A sub-agent has a log of its own. Blobs (`blobref:`) are kept as
references. Facts count appended messages, answers and results.
Source: packages/agent-core-v2 of https://github.com/MoonshotAI/kimi-code at d723cc47 (docs/wire-manifest.d.ts).
"""

from __future__ import annotations

import re

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.kimi_code import look
from guard_core.recordings.formats.kimi_code.known_names import NAMES
from guard_core.recordings.formats.kimi_code.wire import MAIN, WireReader
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.zip_entries import entry_names
from guard_core.sessions import Session

_WIRE = re.compile(r"(?:^|(?P<folder>.*/))agents/(?P<agent>[^/]+)/wire\.jsonl$")
_ROOMS = ("context.", "llm.", "turn.", "token_counting.", "full_compaction.", "profile.", "config.", "usage.")
_CODEX = ("turn.started", "turn.completed", "turn.failed")  # what `codex exec --json` prints of a turn


class KimiCodeFormat:
    name = "kimi-code"
    label = "Kimi Code"
    place = "~/.kimi-code/sessions/…/agents/main/wire.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        """Records of rooms that only Kimi Code has; the header alone is also Kimi CLI's."""
        if source.shape is SourceShape.ZIP:
            with source.stream() as stream:
                return any(_WIRE.search(name) for name in entry_names(stream, source.size))
        if source.shape not in (SourceShape.LINES, SourceShape.JSON):
            return False
        heads = [line.obj for line in source.head_lines()]
        return any(map(is_context, heads)) or sum(map(is_record, heads)) * 2 > len(heads)

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        if source.shape is SourceShape.ZIP:
            sessions = _archived(source, facts)
        else:
            reader = _read(source, source, facts)
            sessions = [reader.session()] if reader.log.events else []
        if not sessions:
            raise source.nothing_left("this Kimi Code log holds no message that can be read")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook:
        return look.look(source)


FORMAT = KimiCodeFormat()


def _read(source: ByteSource, lines: ByteSource, facts: FactCounter, *, first: bool = True) -> WireReader:
    """One wire log; `lines` are its own, of a source that may hold others."""
    reader = WireReader(source, facts, first=first)
    for line in lines.lines():
        with lines.tolerate(line.number):
            reader.line(line)
    return reader


def _archived(source: ByteSource, facts: FactCounter) -> list[Session]:
    """The sessions of an archive: each with its sub-agents behind it."""
    sessions: list[Session] = []
    with Bundle(source) as bundle:
        wires = {name: match for name in bundle.names() if (match := _WIRE.search(name))}
        for name in sorted(wires, key=lambda name: (wires[name]["folder"] or "", wires[name]["agent"] != MAIN, name)):
            folder = (wires[name]["folder"] or "").rstrip("/").rpartition("/")[2]
            facts.session()
            with source.apart(sessions), source.tolerate(), bundle.open(name) as part:
                if part is None:
                    continue
                reader = _read(source, part, facts, first=False)
                main = sessions[-1].parent or sessions[-1].source_id if sessions and reader.is_sub_agent else ""
                if reader.log.events:
                    sessions.append(reader.session(parent=main, folder=folder))
    return sessions


def is_record(value: JSON) -> bool:
    """Is it a record as Kimi Code writes them."""
    kind = fields.text(value, "type")
    return kind.startswith(_ROOMS) and kind not in _CODEX and not value.keys() & {"sessionId", "payload", "data"}


def is_context(value: JSON) -> bool:
    """Is it a record of the context's messages, which no other agent writes."""
    kind = fields.text(value, "type")
    return kind.startswith("context.append_") and ("message" in value or "event" in value)
