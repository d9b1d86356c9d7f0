"""Claude Code transcripts: `~/.claude/projects/<directory>/<session>.jsonl`, one JSON object a line.

No definition is published; this is how real files look. One API message is several lines with one `message.id`
and the same usage; lines form a tree over `parentUuid`; sub-agents are lines with `isSidechain`; a compaction is a
`compact_boundary` line, then the summary. The system prompt and the tools are not in the file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from sys import intern
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import claude_look, fields, normalise
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.claude_tree import Node, main_path
from guard_core.recordings.first_look import FirstLook
from guard_core.recordings.rebase import view_of
from guard_core.recordings.shelf import outline
from guard_core.recordings.source import Line, Source
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Rewritten, Segment, Span, View

SYNTHETIC = "<synthetic>"  # the model name of lines that Claude Code wrote itself: errors, interruptions
# How the summary of versions without a boundary line begins; a line that only looks so is called "matched".
SUMMARY_WORDING = "This session is being continued from a previous conversation"
# What Claude Code puts in place of a tool result that a micro-compaction cleared.
CLEARED = "[Old tool result content cleared]"
# Messages that Claude Code adds by itself in the user's name: they begin no turn.
AUTOMATIC = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "[Request interrupted by user",
)
_MESSAGE_KINDS = frozenset({"user", "assistant", "system", "progress", "attachment"})
_OTHER_KINDS = frozenset({"file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "permission-mode"})
_MISSING_ID = "(none)"  # all parts without an id are one in the facts


@dataclass(slots=True)
class _Message:
    """One user or assistant line, reduced to what the model saw."""

    node: Node
    role: Role
    parts: tuple[Part, ...]  # outlines, where the texts are on a shelf
    place: int | None  # on the shelf
    timestamp: float | None
    message_id: str = ""
    model: str = ""
    usage: ModelCall | None = None  # without `at`: where the call stands is known later
    meta: bool = False
    summary: bool = False  # by its own mark
    worded: bool = False  # by the wording of versions that had no mark
    agent: str = ""

    @property
    def key(self) -> str:
        """What joins the lines of one API message."""
        return self.message_id or self.node.uuid or f"line {self.node.line}"


@dataclass(slots=True)
class _Boundary:
    """A line that says that the history was compacted."""

    node: Node
    details: dict[str, Any]
    timestamp: float | None
    cleared: bool  # a micro-compaction: tool results cleared, no summary

    @property
    def preserved(self) -> list[str]:
        """The uuids of messages that were kept word for word behind the summary, as far as they are listed."""
        listed = fields.items(fields.mapping(self.details, "preservedMessages"), "uuids")
        return [uuid for uuid in (*listed, *self.segment) if isinstance(uuid, str) and uuid]

    @property
    def segment(self) -> tuple[str, str]:
        """The uuids of the first and the last of them, where versions tell only these."""
        ends = fields.mapping(self.details, "preservedSegment")
        return fields.text(ends, "headUuid"), fields.text(ends, "tailUuid")


class ClaudeCode:
    """Reads Claude Code transcripts."""

    name = "claude-code"
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
        self.messages: dict[int, _Message] = {}  # by line
        self.boundaries: dict[int, _Boundary] = {}  # by line
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
        usage = _usage(line, message) if kind == "assistant" else None
        summary = kind == "user" and obj.get("isCompactSummary") is True
        node = self._node(line, "summary" if summary else kind)
        if node is None:
            return
        self.session_id = self.session_id or fields.text(obj, "sessionId")
        parts = _parts(message.get("content"))
        _count_parts(parts, self.counter)
        shelf = self.source.shelf
        self.messages[line.number] = _Message(
            node=node,
            role=Role.USER if kind == "user" else Role.MODEL,
            parts=tuple(map(outline, parts)) if shelf else parts,
            place=shelf.put(parts) if shelf else None,
            timestamp=fields.timestamp(obj, "timestamp"),
            message_id=fields.text(message, "id"),
            model=intern(fields.text(message, "model")),
            usage=usage,
            meta=obj.get("isMeta") is True or _is_automatic(parts),
            summary=summary,
            worded=kind == "user" and _is_worded(parts),
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
            self.boundaries[line.number] = _Boundary(node, details, when, cleared=subtype.startswith("micro"))

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
            usage = _usage(line, message)
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
                    calls[message.key] = _fuller(calls.get(message.key), message.usage)
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
            if message is not None and _is_summary(message) and before not in self.boundaries:
                self.counter.compaction()

    # -- sessions

    def _sessions(self) -> list[Session]:
        main = [message for message in self.messages.values() if not message.node.sidechain]
        if not main:
            return [self._whole(group, name) for name, group in self._sidechains().items()]
        path = main_path([node for node in self.nodes if not node.sidechain], self._tool_links(), self._bridges())
        log = _build(path, self.messages, self.boundaries, self.source)
        builder = log.builder
        chains = self._sidechains()
        if path and path[0].parent and path[0].parent not in {node.uuid for node in self.nodes}:
            builder.notes.append("the file begins in the middle of a session: what came before is not in it")
        self._add_side_calls(builder, {node.line for node in path}, chains)
        session = log.session(source_id=self.session_id, agent=ClaudeCode.label, title=self._title())
        return [session, *(self._whole(group, name) for name, group in chains.items() if _answers(group))]

    def _whole(self, group: list[_Message], name: str) -> Session:
        log = _build([message.node for message in group], self.messages, {}, self.source)
        return log.session(source_id=name, agent=f"{ClaudeCode.label} sub-agent", title=f"Sub-agent {name[:40]}")

    def _sidechains(self) -> dict[str, list[_Message]]:
        """The messages of each sub-agent: by its id, in older versions by the first line of its branch."""
        roots: dict[str, str] = {}
        chains: dict[str, list[_Message]] = {}
        for node in self.nodes:
            if node.sidechain:
                roots[node.uuid] = roots.get(node.parent, node.uuid)
        for message in self.messages.values():
            if message.node.sidechain:
                name = message.agent or roots.get(message.node.uuid) or "sub-agent"
                chains.setdefault(name, []).append(message)
        return chains

    def _add_side_calls(self, builder: SessionBuilder, on_path: set[int], chains: dict[str, list[_Message]]) -> None:
        apart = [message for group in chains.values() for message in group]
        known = {call.source_id for call in builder.calls}
        branch = [m for line, m in self.messages.items() if line not in on_path and not m.node.sidechain]
        dropped = {m.key: m for m in branch if m.usage is not None and m.message_id not in known}
        if branch:
            builder.notes.append(f"{len(branch)} messages on edited or rewound branches are not part of the session")
        calls = dict(self.side)
        for message in [*apart, *dropped.values()]:
            if message.usage is not None:
                calls[message.key] = _fuller(calls.get(message.key), message.usage)
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


def _build(
    path: Sequence[Node],
    messages: dict[int, _Message],
    boundaries: dict[int, _Boundary],
    source: Source,
) -> _Log:
    """Events, calls and compactions along a path, in the order of the file."""
    log = _Log(SessionBuilder(ClaudeCode.name, source), source)
    groups: dict[str, list[_Message]] = {}
    for node in path:
        message = messages.get(node.line)
        if message is not None and message.role is Role.MODEL:
            groups.setdefault(message.key, []).append(message)
    for node in path:
        if node.line in boundaries:
            log.boundary(boundaries[node.line])
        elif (message := messages.get(node.line)) is None:
            continue
        elif message.role is Role.USER:
            log.user(message)
        elif group := groups.pop(message.key, None):
            log.answer(group)
    log.close()
    return log


class _Log:
    """Grows a session line by line; a compaction is finished when its summary, or another message, has come."""

    def __init__(self, builder: SessionBuilder, source: Source) -> None:
        self.builder = builder
        self.notes = source.notes
        self.shelf = source.shelf
        self.index: dict[str, int] = {}  # event of each uuid
        self.results: dict[str, int] = {}  # event of each tool result
        self.pending: _Boundary | None = None

    def user(self, message: _Message) -> None:
        if _is_summary(message):
            self._compaction(message)
            return
        self.close()
        self._event(message, message.parts, message.place)

    def answer(self, group: list[_Message]) -> None:
        """The lines of one API message: one event, one call."""
        self.close()
        first, last = group[0], group[-1]
        if first.model == SYNTHETIC:
            self.notes.skip("line written by Claude Code itself (no model call)")
            return
        alone = len(group) == 1
        parts = first.parts if alone else _joined(map(self._parts, group))
        self.notes.folded += len(group) - 1
        usage: ModelCall | None = None
        for message in group:
            usage = _fuller(usage, message.usage) if message.usage is not None else usage
        at = len(self.builder.events)
        response = self._event(first, parts, first.place if alone else None)
        call = usage or ModelCall(at=0, model=last.model, line=first.node.line, source_id=first.message_id)
        call = msgspec.structs.replace(call, at=at, response=response, line=first.node.line)
        self.builder.calls.append(call if call.prompt_tokens else msgspec.structs.replace(call, prompt_tokens=None))
        for message in group:
            self.index[message.node.uuid] = response

    def session(self, **values: Any) -> Session:
        """The session (fields of `Session`)."""
        return self.builder.session(**values)

    def _parts(self, message: _Message) -> tuple[Part, ...]:
        """The parts of a message with their texts."""
        return message.parts if self.shelf is None or message.place is None else self.shelf.get(message.place)

    def boundary(self, boundary: _Boundary) -> None:
        self.close()
        if boundary.cleared:
            self._micro_compaction(boundary)
        else:
            self.pending = boundary

    def close(self) -> None:
        """A boundary that no summary followed."""
        if self.pending is not None:
            self._compaction(None)

    def _event(self, message: _Message, parts: tuple[Part, ...], place: int | None) -> int:
        index = self.builder.event(
            message.role,
            parts,
            place=place,
            line=message.node.line,
            source_id=message.message_id or message.node.uuid,
            timestamp=message.timestamp,
            meta=message.meta,
        )
        self.index[message.node.uuid] = index
        self.results.update({part.call_id: index for part in parts if isinstance(part, ToolResultPart)})
        return index

    def _compaction(self, summary: _Message | None) -> None:
        boundary, self.pending = self.pending, None
        details = boundary.details if boundary else {}
        kept = view_of(self._preserved(boundary))
        messages = (_summary_event(summary, self._parts(summary)),) if summary else ()
        place = boundary.node if boundary else summary.node if summary else None
        stated = boundary is not None or (summary is not None and summary.summary)
        self.builder.compaction(
            RecordedCompaction(
                at=len(self.builder.events),
                evidence=Evidence.DECLARED if stated else Evidence.MATCHED,
                kind="opaque" if summary is None else "summary+tail" if kept else "summary",
                base=(Inserted(0), *kept) if summary else kept,
                messages=messages,
                trigger=fields.text(details, "trigger"),
                tokens_before=fields.tokens(details, "preTokens"),
                tokens_after=fields.tokens(details, "postTokens"),
                line=place.line if place else None,
                timestamp=boundary.timestamp if boundary else summary.timestamp if summary else None,
                note=self._compaction_note(summary),
            )
        )

    def _preserved(self, boundary: _Boundary | None) -> list[int]:
        """The events that a compaction kept, in order."""
        if boundary is None:
            return []
        places = {self.index[uuid] for uuid in boundary.preserved if uuid in self.index}
        head, tail = (self.index.get(uuid) for uuid in boundary.segment)
        if head is not None and tail is not None:
            places.update(range(head, tail + 1))
        return sorted(places)

    def _compaction_note(self, summary: _Message | None) -> str:
        if summary is None:
            return "the summary is not in the file"
        if not self.builder.events:
            return "the history before this compaction is not in the file"
        return ""

    def _micro_compaction(self, boundary: _Boundary) -> None:
        """Old tool results cleared in place: the view so far with those results rewritten."""
        cleared = {item for item in fields.items(boundary.details, "compactedToolIds") if isinstance(item, str)}
        last = self.builder.compactions[-1] if self.builder.compactions else None
        size = len(self.builder.events)
        before: View = (*last.base, Span(last.at, size)) if last else (Span(0, size),)
        self.builder.compaction(
            RecordedCompaction(
                at=size,
                evidence=Evidence.DECLARED,
                kind="edit",
                base=self._without_results(before, cleared),
                messages=last.messages if last else (),
                trigger=fields.text(boundary.details, "trigger"),
                tokens_before=fields.tokens(boundary.details, "preTokens"),
                tokens_after=_tokens_after(boundary.details),
                line=boundary.node.line,
                timestamp=boundary.timestamp,
                note=f"{len(cleared)} tool results cleared",
            )
        )

    def _without_results(self, view: View, cleared: set[str]) -> View:
        """The view with the content of some tool results replaced by the placeholder."""
        places = sorted({self.results[call_id] for call_id in cleared if call_id in self.results})
        segments: list[Segment] = []
        for segment in view:
            if not isinstance(segment, Span):
                segments.append(segment)
                continue
            start = segment.start
            for index in places[bisect_left(places, start) : bisect_left(places, segment.stop)]:
                segments.append(Span(start, index))
                segments.append(Rewritten(index, _cleared(self.builder.events[index], cleared), "cleared"))
                start = index + 1
            segments.append(Span(start, segment.stop))
        return tuple(item for item in segments if not isinstance(item, Span) or item.start < item.stop)


def _tokens_after(details: dict[str, Any]) -> int | None:
    before, saved = fields.tokens(details, "preTokens"), fields.tokens(details, "tokensSaved")
    return None if before is None or saved is None else max(before - saved, 0)


def _joined(group: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """The parts of several lines of one message; a copied line adds nothing."""
    parts = {msgspec.msgpack.encode(part): part for each in group for part in each}
    return tuple(parts.values())


def _cleared(event: Event, cleared: set[str]) -> Event:
    parts = tuple(
        msgspec.structs.replace(part, content=CLEARED)
        if isinstance(part, ToolResultPart) and part.call_id in cleared
        else part
        for part in event.parts
    )
    return msgspec.structs.replace(event, parts=parts)


def _summary_event(message: _Message, parts: tuple[Part, ...]) -> Event:
    return Event(
        role=Role.USER,
        parts=parts,
        source_id=message.node.uuid,
        line=message.node.line,
        timestamp=message.timestamp,
        meta=True,
    )


def _is_summary(message: _Message) -> bool:
    """A summary by its own mark, or by the wording of versions that had no mark; a quoted wording does not count."""
    return message.summary or message.worded


def _is_worded(parts: Sequence[Part]) -> bool:
    first = parts[0] if parts else None
    return isinstance(first, TextPart) and first.text.startswith(SUMMARY_WORDING)


def _is_automatic(parts: Sequence[Part]) -> bool:
    first = parts[0] if parts else None
    return isinstance(first, TextPart) and first.text.lstrip().startswith(AUTOMATIC)


def _answers(group: Iterable[_Message]) -> bool:
    return any(message.role is Role.MODEL for message in group)


def _usage(line: Line, message: dict[str, Any]) -> ModelCall | None:
    """The tokens of the API message a line belongs to; cached tokens are part of the prompt."""
    usage = message.get("usage")
    if message.get("model") == SYNTHETIC or not isinstance(usage, dict):
        return None
    try:
        fresh = normalise.count(usage.get("input_tokens"), "input_tokens") or 0
        read = normalise.count(usage.get("cache_read_input_tokens"), "cache_read_input_tokens") or 0
        written = normalise.count(usage.get("cache_creation_input_tokens"), "cache_creation_input_tokens") or 0
        output = normalise.count(usage.get("output_tokens"), "output_tokens")
    except DamagedRecording as error:
        name = error.reason.split(" ", 1)[0]
        raise DamagedRecording(error.reason, line=line.number, column=line.column(name)) from error
    return ModelCall(
        at=0,
        prompt_tokens=fresh + read + written,
        cached_tokens=read,
        cache_write_tokens=written,
        # Before the message is complete this is the value at its start, not the number of tokens written.
        output_tokens=output if message.get("stop_reason") else None,
        model=intern(fields.text(message, "model")),
        timestamp=fields.timestamp(line.obj, "timestamp"),
        line=line.number,
        source_id=fields.text(message, "id"),
    )


def _fuller(old: ModelCall | None, new: ModelCall) -> ModelCall:
    """The usage of one message from two of its lines: the later one, unless it lacks what the earlier had."""
    if old is None:
        return new
    tokens = new if new.prompt_tokens else old
    output = new.output_tokens if new.output_tokens is not None else old.output_tokens
    return msgspec.structs.replace(tokens, output_tokens=output, line=old.line, timestamp=old.timestamp)


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for block in fields.objects(content):
        parts.extend(_block(block))
    return tuple(parts)


def _block(block: dict[str, Any]) -> tuple[Part, ...]:
    kind = fields.text(block, "type")
    if kind == "tool_use":
        return (ToolCallPart(fields.text(block, "name"), block.get("input"), fields.text(block, "id")),)
    if kind == "tool_result":
        return _result(block)
    if kind == "redacted_thinking":
        return (ReasoningPart(opaque_bytes=fields.opaque_size(fields.text(block, "data"))),)
    if kind in {"text", "thinking", "image", "document"}:
        return fields.content_parts([block])
    return (OtherPart(kind or "(none)", block),)


def _result(block: dict[str, Any]) -> tuple[Part, ...]:
    """A tool result, and the images in it as parts of their own: they are not text."""
    content = block.get("content")
    inner = (TextPart(content),) if isinstance(content, str) else _parts(content)
    texts = [part.text for part in inner if isinstance(part, TextPart)]
    result = ToolResultPart(
        content="\n".join(texts),
        call_id=fields.text(block, "tool_use_id"),
        is_error=block.get("is_error") is True,
    )
    return (result, *(part for part in inner if not isinstance(part, TextPart)))


def _count_parts(parts: Sequence[Part], counter: FactCounter) -> None:
    for part in parts:
        if isinstance(part, ToolCallPart):
            counter.tool_call(part.id or _MISSING_ID)
        elif isinstance(part, ToolResultPart):
            counter.tool_result(part.call_id or _MISSING_ID, len(part.content or ""))
