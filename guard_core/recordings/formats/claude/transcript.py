"""Claude Code transcripts: `~/.claude/projects/<directory>/<session>.jsonl`, one JSON object a line.

No definition is published; this is how real files look. One API message is several lines with one `message.id`
and the same usage; lines form a tree over `parentUuid`; sub-agents are lines with `isSidechain`; a compaction is a
`compact_boundary` line, then the summary. The system prompt and the tools are not in the file. Gateways to other
providers may write the cached tokens inside `input_tokens`, too (`reading/cached_tokens.py`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, MutableSequence, Sequence
from heapq import merge
from sys import intern
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Part, Role, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.claude import attachments as claude_attachments
from guard_core.recordings.formats.claude import look
from guard_core.recordings.formats.claude.draft import LogDraft, path_of
from guard_core.recordings.formats.claude.known_names import NAMES
from guard_core.recordings.formats.claude.lines import (
    NAME,
    Boundary,
    ClaudeLines,
    ClaudeMessage,
    fuller,
    is_automatic,
    is_moved,
    is_of_command,
    is_summary,
    is_too_long,
    is_unsent,
    is_worded,
    parts_of,
    usage_of,
    writes_marks,
)
from guard_core.recordings.formats.claude.log import Log
from guard_core.recordings.formats.claude.prompt import PromptPrefix
from guard_core.recordings.formats.claude.requests import ClaudeRequests
from guard_core.recordings.formats.claude.restored import used_file
from guard_core.recordings.formats.claude.tree import (
    API_ERROR,
    Node,
    Picked,
    Shared,
    conversations,
    lost_at,
    parents_first,
)
from guard_core.recordings.reading import fields, normalise
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.lost_lines import lost_words
from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.recordings.reading.packed_list import PackedList
from guard_core.recordings.reading.shelf import outline
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.recordings.reading.versions import Versions
from guard_core.sessions import WROTE_SUMMARY, LeftBranches, ModelCall, Session

_MESSAGE_KINDS = frozenset({"user", "assistant", "system", "progress", "attachment"})
_COMPACTS = "acompact-"  # begins the id under which Claude Code 2.1 keeps the call that writes a summary
_OTHER_KINDS = frozenset({"file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "permission-mode"})


class ClaudeTranscriptFormat:
    """Reads Claude Code transcripts."""

    name = NAME
    label = "Claude Code"
    place = "~/.claude/projects/…/*.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        """Lines with a `uuid` know their parent and session; files of side lines alone are known by their kinds."""
        heads = [line.obj for line in source.head_lines()]
        linked = [
            obj for obj in heads if obj.keys() >= {"uuid", "sessionId"} and str(obj.get("type")) in _MESSAGE_KINDS
        ]
        if any("parentUuid" in obj or "logicalParentUuid" in obj for obj in linked):
            return True
        kinds = [str(obj.get("type")) for obj in heads]
        return bool(kinds) and all(kind in _OTHER_KINDS or (kind == "summary") for kind in kinds)

    def read(self, source: ByteSource) -> Recording:
        return ClaudeTranscriptReader(source).read()

    def first_look(self, source: ByteSource) -> FirstLook:
        return look.look(source)


FORMAT = ClaudeTranscriptFormat()


class ClaudeTranscriptReader:
    """Reads the lines of one file, then builds the main session and those of its sub-agents."""

    def __init__(self, source: ByteSource, entries: Iterable[JSON] | None = None) -> None:
        """`entries`: what the lines say, where the source has them in another way; they are numbered in their place."""
        self.source = source
        self.entries = entries
        self.notes = source.notes
        packing = source.shelf is not None
        self.nodes: MutableSequence[Node] = PackedList(Node) if packing else []
        self.lines = ClaudeLines(packing=packing)
        self.requests = ClaudeRequests(packing=packing)
        self.messages, self.boundaries = self.lines.messages, self.lines.boundaries
        pace = source.early.pace if source.early and source.shelf else None
        self.draft = LogDraft(self.lines, self.requests, source, pace) if pace else None
        self.side: dict[str, ModelCall] = {}  # calls of sub-agents recorded in progress lines, by message id
        self.uuids: dict[str, Identities] = {}  # by kind of line
        self.unnamed: ModelCall | None = None  # the last call whose message has no id
        self.doubled: dict[str, str] = {}  # uuids of several lines, and what the last of them is called here
        self.counter = FactCounter(ClaudeTranscriptFormat.name)
        self.prompt = PromptPrefix(source.notes)
        self.versions = Versions()
        self.titles: dict[str, str] = {}  # by who gave it, or by the last message of the conversation it sums up
        self.moved = 0  # tool outputs that were moved to files of their own
        self.started: dict[str, str] = {}  # ids of sub-agents, with the tool call that started each
        self.starters: dict[str, int] = {}  # the same with the number of the session
        self.session_id = ""
        self.names: dict[str, int] = {}  # ids of sessions, in the order of their first lines, numbered
        self.owners = array("l")  # for each node the number of its session
        self.title = ""

    def read(self) -> Recording:
        if self.entries is None:
            records = self.source.lines()
        else:
            records = (Line(number, 0, entry, b"") for number, entry in enumerate(self.entries, start=1))
        for line in records:
            with self.source.tolerate(self._number(line)):
                self._line(line)
            if self.draft is not None and len(self.nodes) >= self.draft.due:
                self.draft.grow(self.nodes, self.uuids.values())
        if all(message.attached for message in self.messages.values()):
            raise DamagedRecording("a Claude Code file without any user or assistant message")
        # A summary line counts only for a message of this file: many are about another one.
        own = [uuid for uuid in self.titles if uuid in self.uuids.get("message", ())]
        names = ("customTitle", "aiTitle", *reversed(own))
        self.title = next((self.titles[name] for name in names if name in self.titles), "")
        if self.lines.cached.judge():
            self.draft = None  # it took up calls as they are written
        self._count()
        facts = self.counter.facts()
        # What was needed for single lines only goes: finding the sessions takes as much memory for a while.
        self.uuids.clear()
        self.counter = FactCounter(ClaudeTranscriptFormat.name)
        if self.source.shelf is not None:
            self.source.shelf.keep_none()
        return Recording(ClaudeTranscriptFormat.name, tuple(self._sessions()), facts, self.notes)

    def _number(self, line: Line) -> int | None:
        """The place of a line in the file; None of an entry, which has none."""
        return line.number if self.entries is None else None

    # -- lines

    def _line(self, line: Line) -> None:
        try:
            self._read_line(line)
        except DamagedRecording as error:
            if self.entries is None:
                raise
            raise DamagedRecording(f"entry {line.number:,}: {error.reason}") from error

    def _read_line(self, line: Line) -> None:
        obj, kind = line.obj, intern(fields.text(line.obj, "type"))
        if kind in {"user", "assistant"}:
            self._message(line, kind)
        elif kind == "system" and fields.text(obj, "subtype").endswith("compact_boundary"):
            self._boundary(line)
        elif kind == "attachment":
            self._attachment(line)
        elif kind == "api-request-shape":
            self.prompt.shape(obj)
        elif kind in {"api-request", "api-request-blob"}:
            self.prompt.request(obj)
            self.requests.read(line, self.source.shelf)
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
        self.versions.see(line.number, fields.text(obj, "version"))
        self.requests.plain.read(line)
        parts = parts_of(message.get("content"))
        unsent = is_unsent(obj, parts)
        # Parts that were written without an id are one; those whose ids were taken out are many.
        self.counter.parts(parts, without_id="" if self._is_blotted else "(none)")
        self.moved += sum(map(is_moved, parts))
        if started := fields.text(fields.mapping(obj, "toolUseResult"), "agentId"):
            calls = [part.call_id for part in parts if isinstance(part, ToolResultPart)]
            self.started[started], self.starters[started] = calls[0] if calls else "", self.owners[-1]
        self._keep(
            line,
            parts,
            node=node,
            role=Role.USER if kind == "user" else Role.MODEL,
            message_id=self._message_id(line, message, usage),
            model=intern(fields.text(message, "model")),
            usage=usage,
            meta=obj.get("isMeta") is True or is_automatic(parts),
            summary=summary,
            worded=kind == "user" and is_worded(parts),
            of_command=kind == "user" and is_of_command(parts),
            marked=writes_marks(fields.text(obj, "version")),
            unsent=unsent,
            too_long=is_too_long(parts, unsent=unsent),
            request=fields.text(obj, "requestRef"),
            file=used_file(obj) if kind == "user" else None,
        )

    @property
    def _is_blotted(self) -> bool:
        """Were ids taken out of the lines so far?"""
        return self.source.watch is not None and self.source.watch.placeholders > 0

    def _message_id(self, line: Line, message: dict[str, Any], usage: ModelCall | None) -> str:
        """What the lines of one API message share: its id; where ids were taken out, its request's or their tokens."""
        named = fields.text(message, "id")
        if named or usage is None or not self._is_blotted:
            return named
        if request := fields.text(line.obj, "requestId"):
            return request
        same = self.unnamed is not None and _tokens(self.unnamed) == _tokens(usage)
        self.unnamed = self.unnamed if same and self.unnamed else usage
        return f"line {self.unnamed.line}"

    def _attachment(self, line: Line) -> None:
        """What the software put before the model besides the user's words: an event, but no message of the facts."""
        attachment = fields.mapping(line.obj, "attachment")
        kind = fields.text(attachment, "type")
        if kind == "prompt_snapshot":
            self.prompt.snapshot(attachment)
        parts = claude_attachments.parts_sent(line.obj)
        named = bool(fields.text(line.obj, "uuid"))
        node = self._node(line, "attachment") if named else None
        if parts and node is not None:
            role, words = claude_attachments.role_of(line.obj), claude_attachments.is_users(line.obj)
            self._keep(line, parts, node=node, role=role, meta=not words, attached=True)
        elif kind != "prompt_snapshot" and not (parts and named):
            self.notes.skip(f"line kind attachment {kind[:60]}".rstrip())

    def _keep(self, line: Line, parts: tuple[Part, ...], **values: Any) -> None:
        """A message (fields of `Message`), its texts on the shelf where there is one."""
        shelf, usage = self.source.shelf, values.get("usage")
        self.messages[line.number] = message = ClaudeMessage(
            parts=tuple(map(outline, parts)) if shelf else parts,
            place=shelf.put(parts) if shelf else None,
            timestamp=usage.timestamp if usage else fields.timestamp(line.obj, "timestamp"),
            agent=fields.text(line.obj, "agentId"),
            **values,
        )
        if usage is not None:
            self.lines.cached.hear(f"{message.node.sidechain} {message.agent}", message.key, usage)

    def _boundary(self, line: Line) -> None:
        subtype = fields.text(line.obj, "subtype")
        details = fields.mapping(line.obj, "microcompactMetadata") or fields.mapping(line.obj, "compactMetadata")
        for key in ("preTokens", "postTokens"):
            normalise.count(details.get(key), key)
        node = self._node(line, "boundary")
        if node is not None:
            when = fields.timestamp(line.obj, "timestamp")
            agent, cleared = fields.text(line.obj, "agentId"), subtype.startswith("micro")
            self.boundaries[line.number] = Boundary(node, details, when, cleared=cleared, agent=agent)

    def _side_line(self, line: Line, kind: str) -> None:
        obj = line.obj
        subtype = fields.text(obj, "subtype")
        self.notes.skip(" ".join(("line kind", kind[:60] or "(none)", subtype[:60])).strip())
        for key in ("customTitle", "aiTitle"):
            if fields.text(obj, key):
                self.titles[key] = fields.text(obj, key)
        if kind == "summary" and fields.text(obj, "summary"):
            self.titles[fields.text(obj, "leafUuid")] = fields.text(obj, "summary")
        if kind == "progress":
            self._progress(line)
        if fields.text(obj, "uuid"):
            self._node(line, API_ERROR if subtype == API_ERROR else kind)

    def _progress(self, line: Line) -> None:
        """A sub-agent's message inside a progress line: its call is counted apart."""
        outer = fields.mapping(fields.mapping(line.obj, "data"), "message")
        message = fields.mapping(outer, "message")
        if fields.text(outer, "type") == "assistant" and fields.text(message, "id"):
            usage = usage_of(line, message)
            if usage is not None:
                self.side[fields.text(message, "id")] = usage

    def _node(self, line: Line, kind: str) -> Node | None:
        """The place of a line in the tree; None for a second copy of a line: resumed and forked files hold them, and
        Claude Code may write the lines of a compaction and some behind them twice (2.1.250, 2.1.301)."""
        uuid = fields.text(line.obj, "uuid")
        group = "message" if kind in {"user", "assistant", "summary"} else kind
        seen = self.uuids.setdefault(group, Identities(self.source, "line" if self.entries is None else "entry"))
        known = uuid in seen
        if seen.is_repeat(uuid, fields.mapping(line.obj, "message").get("content"), self._number(line)):
            self.notes.folded += 1
            return None
        parent = fields.text(line.obj, "parentUuid")
        parent = self.doubled.get(parent, parent)
        if known and uuid:  # another line of the same uuid follows the first
            parent, uuid = self.doubled.get(uuid, uuid), f"{uuid} on line {line.number}"
            self.doubled[fields.text(line.obj, "uuid")] = uuid
        logical = fields.text(line.obj, "logicalParentUuid")
        sidechain = line.obj.get("isSidechain") is True
        node = Node(line.number, uuid, parent or logical, kind, sidechain, rooted="parentUuid" in line.obj)
        self.nodes.append(node)
        name = fields.text(line.obj, "sessionId")
        last = self.owners[-1] if self.owners else 0
        self.owners.append(self.names.setdefault(name, len(self.names)) if name else last)
        return node

    # -- facts

    def _count(self) -> None:
        seen, prompts = NumbersByName(), NumbersByName()  # API messages; the prompt tokens of each
        for message in self.messages.values():
            if not message.attached and (message.role is Role.USER or message.key not in seen):
                self.counter.message()
            if message.role is Role.MODEL:
                seen.setdefault(message.key, 1)
                usage = None if message.node.sidechain else self.lines.usage_of(message)
                if usage is not None:
                    prompts[message.key] = usage.prompt_tokens or prompts.get(message.key) or 0
        for prompt_tokens in prompts.values():
            if prompt_tokens:
                self.counter.call(prompt_tokens)
        self._count_compactions()

    def _count_compactions(self) -> None:
        declared: set[str] = set()
        for boundary in self.boundaries.values():
            key = boundary.node.uuid or f"line {boundary.node.line}"
            if not boundary.cleared and key not in declared:
                declared.add(key)
                self.counter.compaction()
        before = 0  # the line of the message or boundary before
        for line in merge(self.boundaries, self.messages.lines):
            message = self.messages.get(line)
            if message is None or not message.attached:
                if message is not None and is_summary(message) and before not in self.boundaries:
                    self.counter.compaction()
                before = line

    # -- sessions

    def _sessions(self) -> list[Session]:
        if not self._has_main():
            return [self._whole(chain, name, self.session_id) for name, chain in self._sidechains().items()]
        main = array("q", (index for index, node in enumerate(self.nodes) if not node.sidechain))
        parts = conversations(self.nodes, self.owners, main) if len(self.names) > 1 else [main]
        paths = [path_of(Picked(self.nodes, part), self.lines) for part in parts]
        # The end of an earlier session, without an answer, may stand before the one that the file is of.
        first = next((place for place, one in enumerate(paths) if self._answers(one)), 0)
        unanswered, every = [node for one in paths[:first] for node in one], [node for one in paths for node in one]
        path, is_single = paths[first], len(paths) == 1
        if unanswered:
            self.session_id = list(self.names)[self.owners[parts[first][0]]]
            paths, parts = paths[first:], parts[first:]
        answered = [0, *(place for place in range(1, len(paths)) if self._answers(paths[place]))]
        shared = Shared(self.nodes, self.owners, [parts[place] for place in answered])
        log = (is_single and self.draft and self.draft.finished(path)) or self._log(path)
        log.finish()
        builder = log.builder
        chains = self._sidechains()
        if path and path[0].parent and all(node.uuid != path[0].parent for node in self.nodes):
            builder.notes.append("the file begins in the middle of a session: what came before is not in it")
        builder.notes += lost_words(lost_at(self.nodes, path), are_lines=self.entries is None)
        if ended := sum(node.kind == "user" for node in unanswered):
            builder.notes.append(f"{counted(ended, 'message')} of another session, without an answer, left out")
        if self.moved:
            builder.notes.append(f"tool outputs moved to files of their own, their previews were sent: {self.moved}")
        if elsewhere := self.started.keys() - chains.keys():
            builder.notes.append(f"sub-agents with transcripts of their own (agent-*.jsonl): {len(elsewhere)}")
        left = self._add_side_calls(builder, every, shared, 0)
        about = {
            "left": left,
            "agent": ClaudeTranscriptFormat.label,
            "title": self.title,
            "sub_agents": self._started_by(shared, 0),
            "versions": self.versions.of(builder.outlines),
            "settings": self.prompt.settings,
            **self._prompt(),
        }
        session = log.session(source_id=self.session_id, **about)
        others = [self._other(paths[place], every, shared, number) for number, place in enumerate(answered) if number]
        owners = [session, *others]
        agents = (
            self._whole(chain, name, owners[shared.number(chain[0].line)].source_id)
            for name, chain in chains.items()
            if self._answers(chain)
        )
        return [*owners, *agents]

    def _other(self, path: Sequence[Node], every: Sequence[Node], shared: Shared, number: int) -> Session:
        """Another session whose file was put behind that of the first, or between its lines."""
        log = self._log(path)
        log.finish()
        log.builder.notes += lost_words(lost_at(self.nodes, path), are_lines=self.entries is None)
        versions = self.versions.of(log.builder.outlines)
        left = self._add_side_calls(log.builder, every, shared, number)
        about = {"left": left, "sub_agents": self._started_by(shared, number), "versions": versions, **self._prompt()}
        name = list(self.names)[shared.first_owners[number]]
        return log.session(source_id=name, agent=ClaudeTranscriptFormat.label, **about)

    def _started_by(self, shared: Shared, number: int) -> dict[str, str]:
        """The sub-agents that one of the sessions started, with the tool call of each."""
        return {name: call for name, call in self.started.items() if shared.of_owner(self.starters[name]) == number}

    def _whole(self, chain: Sequence[Node], name: str, parent: str) -> Session:
        log = self._log(parents_first(chain))
        log.finish()
        about = {} if self._has_main() else {"settings": self.prompt.settings, **self._prompt()}
        if compacts := name.startswith(_COMPACTS):
            log.builder.notes.append(WROTE_SUMMARY)
        title = f"{'Call of a compaction' if compacts else 'Sub-agent'} {name[:40]}"
        about |= {"agent": f"{ClaudeTranscriptFormat.label} sub-agent", "title": title, "parent": parent}
        about["versions"] = self.versions.of(log.builder.outlines)
        return log.session(source_id=name, **about)

    def _log(self, path: Sequence[Node]) -> Log:
        is_main = not (self._has_main() and path and path[0].sidechain)
        log = Log(self.lines, self.source, requests=self.requests if is_main else None)
        log.take(path)
        return log

    def _prompt(self) -> dict[str, Any]:
        return {"system": self.prompt.system, "tools": self.prompt.tools}

    def _answers(self, chain: Sequence[Node]) -> bool:
        return any(node.kind == "assistant" for node in chain)

    def _has_main(self) -> bool:
        return any(not message.node.sidechain for message in self.messages.values())

    def _sidechains(self) -> dict[str, Sequence[Node]]:
        """The lines of each sub-agent: by its id, in older versions by the first line of its branch."""
        roots: dict[str, str] = {}
        chains: dict[str, array[int]] = {}
        for index, node in enumerate(self.nodes):
            if node.sidechain:
                roots[node.uuid] = roots.get(node.parent, node.uuid)
                content = self.messages.get(node.line) or self.boundaries.get(node.line)
                if content is not None:
                    chains.setdefault(content.agent or roots[node.uuid] or "sub-agent", array("q")).append(index)
        return {name: Picked(self.nodes, indexes) for name, indexes in chains.items()}

    def _add_side_calls(
        self, builder: SessionBuilder, path: Sequence[Node], shared: Shared, number: int
    ) -> LeftBranches | None:
        """Calls of sub-agents, and those on branches that were left, of one of the sessions; what these branches
        hold."""
        calls = {key: self.lines.cached.counted(call) for key, call in self.side.items()}
        for message in self.messages.values():
            usage = self.lines.usage_of(message) if message.node.sidechain else None
            if usage is not None:
                calls[message.key] = fuller(calls.get(message.key), usage)
        left, left_calls = self._left(builder, path, shared, number)
        for key, usage in left_calls.items():
            calls[key] = fuller(calls.get(key), usage)
        lines = array("q", (event.line or 0 for event in builder.outlines)) if calls else array("q")  # of the file
        own = (call for call in calls.values() if shared.number(call.line or 0) == number)
        for call in sorted(own, key=lambda call: call.line or 0):
            at = bisect_left(lines, call.line or 0)  # a draft may have placed it in the log before the branch was left
            builder.side_calls.append(msgspec.structs.replace(call, at=at, response=None))
        return left

    def _left(
        self, builder: SessionBuilder, path: Sequence[Node], shared: Shared, number: int
    ) -> tuple[LeftBranches | None, dict[str, ModelCall]]:
        """What is on branches of a session that were left, whose messages are noted, and the calls there."""
        on_path = bytearray((self.nodes[-1].line if len(self.nodes) else 0) + 1)
        for node in path:
            on_path[node.line] = 1
        count = refused = 0
        known: set[str] = set()
        calls: dict[str, ModelCall] = {}
        for line, message in zip(self.messages.lines, self.messages.values(), strict=True):
            if not (message.attached or message.node.sidechain or on_path[line]) and shared.number(line) == number:
                known = known or {call.source_id for call in builder.calls}
                count += 1
                refused += message.too_long
                usage = self.lines.usage_of(message)
                if usage is not None and message.message_id not in known:
                    calls[message.key] = usage
        if count:
            builder.notes.append(f"{counted(count, 'message')} on edited or rewound branches: not part of the session")
        here = {boundary.node.uuid for boundary in self.boundaries.values() if on_path[boundary.node.line]}
        there = {
            boundary.node.uuid
            for boundary in self.boundaries.values()
            if not (boundary.cleared or boundary.node.sidechain or on_path[boundary.node.line])
            and shared.number(boundary.node.line) == number
        }
        largest = max((call.prompt_tokens or 0 for call in calls.values()), default=0)
        left = LeftBranches(count, len(there - here), refused, largest)
        return left if count or left.compactions else None, calls


def _tokens(call: ModelCall) -> tuple[int | None, ...]:
    return call.prompt_tokens, call.cached_tokens, call.cache_write_tokens
