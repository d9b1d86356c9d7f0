"""Claude Code transcripts: `~/.claude/projects/<directory>/<session>.jsonl`, one JSON object a line.

No definition is published; this is how real files look. One API message is several lines with one `message.id`
and the same usage; lines form a tree over `parentUuid`; sub-agents are lines with `isSidechain`; a compaction is a
`compact_boundary` line, then the summary. The system prompt and the tools are not in the file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from sys import intern

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Part, Role, ToolCallPart, ToolResultPart
from guard_core.recordings import claude_look, fields, normalise
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.claude_lines import (
    NAME,
    Boundary,
    Message,
    fuller,
    is_automatic,
    is_summary,
    is_worded,
    parts_of,
    usage_of,
)
from guard_core.recordings.claude_log import build
from guard_core.recordings.claude_tree import Node, main_path
from guard_core.recordings.first_look import FirstLook
from guard_core.recordings.shelf import outline
from guard_core.recordings.source import Line, Source
from guard_core.sessions import ModelCall, Session

_MESSAGE_KINDS = frozenset({"user", "assistant", "system", "progress", "attachment"})
_OTHER_KINDS = frozenset({"file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "permission-mode"})
_MISSING_ID = "(none)"  # all parts without an id are one in the facts


class ClaudeCode:
    """Reads Claude Code transcripts."""

    name = NAME
    label = "Claude Code"

    def matches(self, source: Source) -> bool:
        """Lines with a `uuid` know their parent and session; files of side lines alone are known by their kinds."""
        heads = [line.obj for line in source.head_lines()]
        linked = [
            obj for obj in heads if obj.keys() >= {"uuid", "sessionId"} and str(obj.get("type")) in _MESSAGE_KINDS
        ]
        if any("parentUuid" in obj or "logicalParentUuid" in obj for obj in linked):
            return True
        kinds = [str(obj.get("type")) for obj in heads]
        return bool(kinds) and all(kind in _OTHER_KINDS or (kind == "summary") for kind in kinds)

    def read(self, source: Source) -> Recording:
        return _Reader(source).read()

    def first_look(self, source: Source) -> FirstLook:
        return claude_look.look(source)


FORMAT = ClaudeCode()


class _Reader:
    """Reads the lines of one file, then builds the main session and those of its sub-agents."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes = source.notes
        self.nodes: list[Node] = []
        self.messages: dict[int, Message] = {}  # by line
        self.boundaries: dict[int, Boundary] = {}  # by line
        self.side: dict[str, ModelCall] = {}  # calls of sub-agents told in progress lines, by message id
        self.uuids: dict[str, set[str]] = {}  # by kind of line
        self.counter = FactCounter(ClaudeCode.name)
        self.titles: dict[str, str] = {}
        self.session_id = ""

    def read(self) -> Recording:
        for line in self.source.lines():
            with self.source.tolerate(line.number):
                self._line(line)
        if not self.messages:
            raise DamagedRecording("a Claude Code file without any user or assistant message")
        self._count()
        sessions = self._sessions()
        return Recording(ClaudeCode.name, tuple(sessions), self.counter.facts(), self.notes)

    # -- lines

    def _line(self, line: Line) -> None:
        obj, kind = line.obj, fields.text(line.obj, "type")
        if kind in {"user", "assistant"}:
            self._message(line, kind)
        elif kind == "system" and fields.text(obj, "subtype").endswith("compact_boundary"):
            self._boundary(line)
        else:
            self._side_line(line, kind)

    def _message(self, line: Line, kind: str) -> None:
        obj = line.obj
        message = obj.get("message")
        if not isinstance(message, dict):
            raise DamagedRecording(f'"message" of a {kind} line is missing or no object', column=line.column("message"))
        usage = usage_of(line, message) if kind == "assistant" else None
        summary = kind == "user" and obj.get("isCompactSummary") is True
        node = self._node(line, "summary" if summary else kind)
        if node is None:
            return
        self.session_id = self.session_id or fields.text(obj, "sessionId")
        parts = parts_of(message.get("content"))
        _count_parts(parts, self.counter)
        shelf = self.source.shelf
        self.messages[line.number] = Message(
            node=node,
            role=Role.USER if kind == "user" else Role.MODEL,
            parts=tuple(map(outline, parts)) if shelf else parts,
            place=shelf.put(parts) if shelf else None,
            timestamp=fields.timestamp(obj, "timestamp"),
            message_id=fields.text(message, "id"),
            model=intern(fields.text(message, "model")),
            usage=usage,
            meta=obj.get("isMeta") is True or is_automatic(parts),
            summary=summary,
            worded=kind == "user" and is_worded(parts),
            agent=fields.text(obj, "agentId"),
        )

    def _boundary(self, line: Line) -> None:
        subtype = fields.text(line.obj, "subtype")
        details = fields.mapping(line.obj, "compactMetadata") or fields.mapping(line.obj, "microcompactMetadata")
        for key in ("preTokens", "postTokens"):
            normalise.count(details.get(key), key)
        node = self._node(line, "boundary", keep_copies=True)
        if node is not None:
            when = fields.timestamp(line.obj, "timestamp")
            self.boundaries[line.number] = Boundary(node, details, when, cleared=subtype.startswith("micro"))

    def _side_line(self, line: Line, kind: str) -> None:
        obj = line.obj
        subtype = fields.text(obj, "subtype")
        self.notes.skip(" ".join(("line kind", kind[:60] or "(none)", subtype[:60])).strip())
        for key in ("customTitle", "aiTitle", "summary"):
            if fields.text(obj, key):
                self.titles[key] = fields.text(obj, key)
        if kind == "progress":
            self._progress(line)
        if fields.text(obj, "uuid"):
            self._node(line, kind)

    def _progress(self, line: Line) -> None:
        """A sub-agent's message inside a progress line: its call is counted apart."""
        outer = fields.mapping(fields.mapping(line.obj, "data"), "message")
        message = fields.mapping(outer, "message")
        if fields.text(outer, "type") == "assistant" and fields.text(message, "id"):
            usage = usage_of(line, message)
            if usage is not None:
                self.side[fields.text(message, "id")] = usage

    def _node(self, line: Line, kind: str, *, keep_copies: bool = False) -> Node | None:
        """The place of a line in the tree; None for a second copy of a line (resumed and forked files hold them)."""
        uuid = intern(fields.text(line.obj, "uuid"))  # it comes again as the parent of the next line
        seen = self.uuids.setdefault("message" if kind in {"user", "assistant", "summary"} else kind, set())
        if uuid in seen and uuid:
            self.notes.folded += 1
            if not keep_copies:
                return None
        seen.add(uuid)
        parent = fields.text(line.obj, "parentUuid")
        logical = fields.text(line.obj, "logicalParentUuid")
        sidechain = line.obj.get("isSidechain") is True
        node = Node(line.number, uuid, intern(parent or logical), kind, sidechain, rooted="parentUuid" in line.obj)
        self.nodes.append(node)
        return node

    # -- facts

    def _count(self) -> None:
        seen: set[str] = set()
        calls: dict[str, ModelCall] = {}
        for message in self.messages.values():
            if message.role is Role.USER or message.key not in seen:
                self.counter.message()
            if message.role is Role.MODEL:
                seen.add(message.key)
                if message.usage is not None and not message.node.sidechain:
                    calls[message.key] = fuller(calls.get(message.key), message.usage)
        for call in calls.values():
            if call.prompt_tokens:
                self.counter.call(call.prompt_tokens)
        self._count_compactions()

    def _count_compactions(self) -> None:
        declared: set[str] = set()
        for boundary in self.boundaries.values():
            key = boundary.node.uuid or f"line {boundary.node.line}"
            if not boundary.cleared and key not in declared:
                declared.add(key)
                self.counter.compaction()
        marks = sorted([*self.boundaries, *self.messages])
        for before, line in pairwise([0, *marks]):
            message = self.messages.get(line)
            if message is not None and is_summary(message) and before not in self.boundaries:
                self.counter.compaction()

    # -- sessions

    def _sessions(self) -> list[Session]:
        main = [message for message in self.messages.values() if not message.node.sidechain]
        if not main:
            return [self._whole(group, name) for name, group in self._sidechains().items()]
        path = main_path([node for node in self.nodes if not node.sidechain], self._tool_links(), self._bridges())
        log = build(path, self.messages, self.boundaries, self.source)
        builder = log.builder
        chains = self._sidechains()
        if path and path[0].parent and path[0].parent not in {node.uuid for node in self.nodes}:
            builder.notes.append("the file begins in the middle of a session: what came before is not in it")
        self._add_side_calls(builder, {node.line for node in path}, chains)
        session = log.session(source_id=self.session_id, agent=ClaudeCode.label, title=self._title())
        return [session, *(self._whole(group, name) for name, group in chains.items() if _answers(group))]

    def _whole(self, group: list[Message], name: str) -> Session:
        log = build([message.node for message in group], self.messages, {}, self.source)
        return log.session(source_id=name, agent=f"{ClaudeCode.label} sub-agent", title=f"Sub-agent {name[:40]}")

    def _sidechains(self) -> dict[str, list[Message]]:
        """The messages of each sub-agent: by its id, in older versions by the first line of its branch."""
        roots: dict[str, str] = {}
        chains: dict[str, list[Message]] = {}
        for node in self.nodes:
            if node.sidechain:
                roots[node.uuid] = roots.get(node.parent, node.uuid)
        for message in self.messages.values():
            if message.node.sidechain:
                name = message.agent or roots.get(message.node.uuid) or "sub-agent"
                chains.setdefault(name, []).append(message)
        return chains

    def _add_side_calls(self, builder: SessionBuilder, on_path: set[int], chains: dict[str, list[Message]]) -> None:
        apart = [message for group in chains.values() for message in group]
        known = {call.source_id for call in builder.calls}
        branch = [m for line, m in self.messages.items() if line not in on_path and not m.node.sidechain]
        dropped = {m.key: m for m in branch if m.usage is not None and m.message_id not in known}
        if branch:
            builder.notes.append(f"{len(branch)} messages on edited or rewound branches are not part of the session")
        calls = dict(self.side)
        for message in [*apart, *dropped.values()]:
            if message.usage is not None:
                calls[message.key] = fuller(calls.get(message.key), message.usage)
        lines = [event.line or 0 for event in builder.outlines]  # in the order of the file
        for call in sorted(calls.values(), key=lambda call: call.line or 0):
            builder.side_calls.append(msgspec.structs.replace(call, at=bisect_left(lines, call.line or 0)))

    def _tool_links(self) -> dict[str, set[int]]:
        """For each message that called tools, by the lines that belong together: its own lines and the results."""
        links: dict[str, set[int]] = {}
        owner: dict[str, str] = {}
        for line, message in self.messages.items():
            if message.node.sidechain:
                continue
            if message.role is Role.MODEL:
                links.setdefault(message.key, set()).add(line)
                owner.update({part.id: message.key for part in message.parts if isinstance(part, ToolCallPart)})
            for part in message.parts:
                if isinstance(part, ToolResultPart) and part.call_id in owner:
                    links[owner[part.call_id]].add(line)
        return links

    def _bridges(self) -> dict[int, set[str]]:
        """Boundaries whose chain runs on through the messages they preserved instead of through the boundary line."""
        return {line: set(boundary.preserved) for line, boundary in self.boundaries.items() if boundary.preserved}

    def _title(self) -> str:
        return self.titles.get("customTitle") or self.titles.get("aiTitle") or self.titles.get("summary") or ""


def _count_parts(parts: Sequence[Part], counter: FactCounter) -> None:
    for part in parts:
        if isinstance(part, ToolCallPart):
            counter.tool_call(part.id or _MISSING_ID)
        elif isinstance(part, ToolResultPart):
            counter.tool_result(part.call_id or _MISSING_ID, len(part.content or ""))


def _answers(group: Iterable[Message]) -> bool:
    return any(message.role is Role.MODEL for message in group)
