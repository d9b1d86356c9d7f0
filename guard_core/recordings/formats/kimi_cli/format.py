"""Kimi CLI sessions: `context.jsonl`, the files that were put aside before it, and `wire.jsonl` are one session.

A ZIP archive (`kimi export` writes one) or a folder holds all files of a session, below `subagents/` those of its
sub-agents; each file is read by itself, too. A context alone is what was sent until it was put aside, without times and
window; a wire alone lacks the system prompt, summaries and what the software added. Prompt tokens are the provider's,
cached ones included. Two user messages in a row, as behind a summary, are sent as one and kept here as two. Neither
tools nor the model's name are in any file; of the version there is only the wire's protocol, for sub-agents their
session's.
Source: https://github.com/MoonshotAI/kimi-cli, src/kimi_cli/soul/context.py, src/kimi_cli/wire, 0.32 to 1.49.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.kimi_cli import context as contexts
from guard_core.recordings.formats.kimi_cli import look
from guard_core.recordings.formats.kimi_cli import wire as wires
from guard_core.recordings.formats.kimi_cli.context import KimiCliContext
from guard_core.recordings.formats.kimi_cli.known_names import NAMES
from guard_core.recordings.formats.kimi_cli.session import LABEL, NAME, SessionJoiner
from guard_core.recordings.formats.kimi_cli.wire import Wire
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import Session

# context.jsonl, what was put aside of it (_1, _2 …), and what old versions wrote of their sub-agents (_sub_1).
_CONTEXT = re.compile(r"(context(?:_sub(?:_[0-9]+)?)?)(?:_([0-9]+))?\.jsonl")
WIRE = "wire.jsonl"
SUB_AGENTS = "subagents"


class KimiCliFormat:
    """Sessions that Kimi CLI recorded."""

    name = NAME
    label = LABEL
    place = "~/.kimi/sessions/…, a folder or its zip archive"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.ZIP:
            with Bundle(source, noting=False) as bundle:
                return bundle.holds(_members(bundle), lambda inner: _is_kimi(_heads(inner)))
        return source.shape in (SourceShape.LINES, SourceShape.JSON) and _is_kimi(_heads(source))

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(NAME)
        if source.shape is SourceShape.ZIP:
            return Recording(NAME, tuple(_read_bundle(source, facts)), facts.facts(), source.notes)
        files = _Files()
        files.add(source, order=0)
        session = files.session(source, facts, lined=True)
        if session is None:
            raise source.nothing_left("the file holds no message that can be read")
        return Recording(NAME, (session,), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return look.look(source) if source.shape is SourceShape.LINES else None


def _heads(source: ByteSource) -> list[JSON]:
    return [line.obj for line in source.head_lines()]


def _is_kimi(heads: list[JSON]) -> bool:
    """Lines that only a context or a wire of Kimi CLI has."""
    if any(map(contexts.is_record, heads)):
        return True
    if any(map(wires.is_header, heads[:1])) and len(heads) == 1:
        return True
    return sum(map(wires.is_record, heads)) * 2 > len(heads)


def _members(bundle: Bundle) -> list[str]:
    """The entries that may be a session's files, by their names."""
    names = (PurePosixPath(name) for name in bundle.names())
    return [str(name) for name in names if name.name == WIRE or _CONTEXT.fullmatch(name.name)]


@dataclass
class _Files:
    """The files of one session."""

    wire: Wire | None = None
    contexts: list[tuple[float, KimiCliContext]] = field(default_factory=list)

    def add(self, source: ByteSource, *, order: float) -> None:
        """Another file, by its content; contexts in the order of their numbers."""
        heads = _heads(source)
        if any(map(wires.is_record, heads)) or any(map(wires.is_header, heads[:1])):
            self.wire = wires.read_wire(source)
        else:
            self.contexts.append((order, contexts.read_context(source)))

    def take_protocol(self, parent: _Files | None) -> None:
        """The protocol of the session that started this one, which the same program wrote, where its own says less."""
        if self.wire and not self.wire.protocol and parent and parent.wire:
            self.wire.protocol = parent.wire.protocol

    def session(self, source: ByteSource, facts: FactCounter, *, lined: bool = False, **fields: str) -> Session | None:
        """The session, None where no file says anything."""
        ordered = [context for _, context in sorted(self.contexts, key=lambda pair: pair[0]) if context.messages]
        if not ordered and not (self.wire and self.wire.entries):
            return None
        facts.session()
        joiner = SessionJoiner(source, facts, lined=lined, first=lined)
        return joiner.join(self.wire, ordered, **fields)


def _read_bundle(source: ByteSource, facts: FactCounter) -> list[Session]:
    """Each folder of an archive with such files is a session, and each old sub-agent's context."""
    groups = defaultdict[tuple[str, str], _Files](_Files)
    with Bundle(source) as bundle:
        for name in _members(bundle):
            path = PurePosixPath(name)
            match = _CONTEXT.fullmatch(path.name)
            stem = match[1] if match else "context"
            order = float(match[2]) if match and match[2] else float("inf")
            with source.tolerate(), bundle.open(name) as inner:
                if inner is not None:
                    groups[str(path.parent), stem].add(inner, order=order)
    # A session is named by its folder.
    mains = {folder: PurePosixPath(folder).name for folder, stem in groups if stem == "context"}
    sessions = []
    for (folder, stem), files in groups.items():
        own = mains.get(folder, "")
        above = PurePosixPath(folder).parent
        is_sub = above.name == SUB_AGENTS
        parent = mains.get(str(above.parent), "") if is_sub else own if stem != "context" else ""
        if is_sub:
            files.take_protocol(groups.get((str(above.parent), "context")))
        source_id = own if stem == "context" else f"{own}/{stem}"
        session = files.session(source, facts, source_id=source_id, parent=parent)
        if session is not None:
            sessions.append(session)
    if not sessions:
        raise source.nothing_left("the archive holds no message that can be read")
    return sessions


FORMAT = KimiCliFormat()
