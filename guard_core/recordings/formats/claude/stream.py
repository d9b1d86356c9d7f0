"""What `claude -p --output-format stream-json` (or `json`) prints: the messages of a run, then its result.

Lines say what transcripts say, in other words: `session_id`, `compact_metadata`, and `parent_tool_use_id` on the
lines of a sub-agent, which is a session of its own. One API message is several lines with one id. A compaction is a
`compact_boundary` line, then (newer versions) the summary. The user's prompt is printed where it is replayed, that of
a sub-agent by some versions; pieces (`stream_event`) repeat what comes whole. `json` prints the same in one array, or
the result alone. What the program adds by itself (attachments) is not printed, nor in versions of 2025 a sub-agent's
last answer. The tokens of a result line are a sum over the run (in 1.0: those of its last call), so no call has them.
Its `modelUsage` has the context window. Neither the system prompt nor the schemas of the tools are printed.
Source: the output of Claude Code 0.2.126 to 2.1.330.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from sys import intern
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.claude.known_names import NAMES
from guard_core.recordings.formats.claude.lines import (
    NAME,
    Boundary,
    ClaudeLines,
    ClaudeMessage,
    fuller,
    is_automatic,
    is_of_command,
    is_too_long,
    is_unsent,
    is_worded,
    parts_of,
    usage_of,
)
from guard_core.recordings.formats.claude.log import Log
from guard_core.recordings.formats.claude.run import (
    PrintedRun,
    agent_notes,
    failed,
    run_notes,
    total_of_results,
    totals,
    window_of,
)
from guard_core.recordings.formats.claude.tree import Node
from guard_core.recordings.reading import fields, normalise, wrong_kinds
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.shelf import ShelvedEvents, outline
from guard_core.recordings.reading.source import ByteSource, Line, SourceShape
from guard_core.recordings.reading.versions import single
from guard_core.sessions import ModelCall, Session

_KINDS = frozenset({"system", "assistant", "user", "result", "stream_event"})
_HEADS = 50  # items of an array that are looked at


class ClaudeStreamFormat:
    """Reads what Claude Code prints when it runs without a screen."""

    name = NAME
    label = "Claude Code"
    place = ""
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            return _is_stream([line.obj for line in source.head_lines()])
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head()
        return _is_stream(list(fields.objects(value[:_HEADS])) if isinstance(value, list) else [value])

    def read(self, source: ByteSource) -> Recording:
        return ClaudeStreamReader(source).read()


FORMAT = ClaudeStreamFormat()


def _is_stream(heads: list[Any]) -> bool:
    """Most lines name a kind and a session, and one has what only Claude Code prints."""
    own = [obj for obj in heads if isinstance(obj, dict) and fields.text(obj, "type") in _KINDS and "session_id" in obj]
    if any("parentUuid" in obj or "sessionId" in obj for obj in own):
        return False
    return len(own) * 2 > len(heads) and any(map(_is_marked, own))


def _is_marked(obj: JSON) -> bool:
    match fields.text(obj, "type"):
        case "system":
            return obj.get("subtype") == "init" and isinstance(obj.get("tools"), list)
        case "result":
            return {"is_error", "num_turns"} <= obj.keys()
        case "stream_event":
            return isinstance(obj.get("event"), dict)
    message = fields.mapping(obj, "message")
    return bool(message) and ("parent_tool_use_id" in obj or isinstance(message.get("usage"), dict))


class ClaudeStreamReader:
    """Collects the lines of a run, by session."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.notes = source.notes
        self.lines = ClaudeLines(packing=source.shelf is not None)
        self.runs: dict[str, PrintedRun] = {}
        self.session_id = ""
        self.seen = Identities(self.source, "line")
        self.numbered = source.shape is SourceShape.LINES
        self.counter = FactCounter(NAME)

    def read(self) -> Recording:
        if self.numbered:
            records = self.source.lines()
        else:  # the items of an array, which have numbers but no lines of their own
            items = wrong_kinds.objects(self.source, self.source.elements(), "item")
            records = (Line(number, 0, item, b"") for number, item in enumerate(items, start=1))
        for line in records:
            with self.source.tolerate(self._number(line)):
                self._line(line)
        self.lines.cached.judge()
        self._count()
        sessions = [session for name, run in self.runs.items() for session in self._sessions(name, run)]
        if not sessions:
            raise self.source.nothing_left("what Claude Code printed holds no message")
        return Recording(NAME, tuple(sessions), self.counter.facts(), self.notes)

    # -- lines

    def _line(self, line: Line) -> None:
        obj, kind, subtype = line.obj, fields.text(line.obj, "type"), fields.text(line.obj, "subtype")
        self.session_id = fields.text(obj, "session_id") or self.session_id
        run = self.runs.setdefault(self.session_id, PrintedRun())
        if kind in {"user", "assistant"}:
            self._message(line, kind, run)
        elif kind == "system" and subtype.endswith("compact_boundary"):
            self._boundary(line, run)
        elif kind == "result":
            for used in fields.mapping(line.obj, "modelUsage").values():
                if isinstance(used, dict):
                    wrong_kinds.check_window(self.source, used, "contextWindow", line.number)
            run.results.append(line._replace(raw=b""))
        else:
            if kind == "system" and subtype == "init":
                run.model = run.model or fields.text(obj, "model")
                run.version = run.version or fields.text(obj, "claude_code_version")
            self.notes.skip(" ".join(("line kind", kind[:60] or "(none)", subtype[:60])).strip())

    def _message(self, line: Line, kind: str, run: PrintedRun) -> None:
        obj, message = line.obj, line.obj.get("message")
        if not isinstance(message, dict):
            raise self._damaged(line, f'"message" of a {kind} line is missing or no object', "message")
        try:
            usage = usage_of(line, message) if kind == "assistant" else None
        except DamagedRecording as error:
            raise self._damaged(line, error.reason, error.reason.split(" ", 1)[0]) from error
        node = self._node(line, kind, run)
        if node is None:
            return
        if not isinstance(message.get("content"), str | list | None):
            actual = wrong_kinds.kind_of(message["content"])
            self.source.leave_out(f"a {kind} message whose content is {actual}, left out", self._number(line))
        parts = parts_of(message.get("content"))
        unsent = bool(obj.get("error")) or is_unsent(obj, parts)
        self.counter.parts(parts)
        shelf = self.source.shelf
        self.lines.messages[line.number] = said = ClaudeMessage(
            node=node,
            role=Role.USER if kind == "user" else Role.MODEL,
            parts=tuple(map(outline, parts)) if shelf else parts,
            place=shelf.put(parts) if shelf else None,
            timestamp=fields.timestamp(obj, "timestamp"),
            message_id=fields.text(message, "id"),
            model=intern(fields.text(message, "model")),
            usage=usage,
            meta=obj.get("isSynthetic") is True or is_automatic(parts),
            worded=kind == "user" and is_worded(parts),
            of_command=kind == "user" and is_of_command(parts),
            marked=True,  # without a boundary before it the wording of a summary is a quotation
            unsent=unsent,
            too_long=is_too_long(parts, unsent=unsent),
        )
        if usage is not None:
            self.lines.cached.hear(fields.text(obj, "parent_tool_use_id"), said.key, usage)

    def _boundary(self, line: Line, run: PrintedRun) -> None:
        metadata = fields.mapping(line.obj, "microcompact_metadata") or fields.mapping(line.obj, "compact_metadata")
        details = _camel(metadata)
        for key in ("preTokens", "postTokens"):
            normalise.count(details.get(key), key)
        node = self._node(line, "boundary", run)
        if node is not None:
            cleared = fields.text(line.obj, "subtype").startswith("micro")
            when = fields.timestamp(line.obj, "timestamp")
            self.lines.boundaries[line.number] = Boundary(node, details, when, cleared=cleared)

    def _node(self, line: Line, kind: str, run: PrintedRun) -> Node | None:
        """The place of a line in its session; None for one that was printed before (a replay)."""
        uuid, agent = intern(fields.text(line.obj, "uuid")), fields.text(line.obj, "parent_tool_use_id")
        content = fields.mapping(line.obj, "message").get("content")
        if self.seen.is_repeat(uuid, content, self._number(line)):
            self.notes.folded += 1
            return None
        node = Node(line.number, uuid, "", kind, bool(agent), rooted=False)
        if agent:
            run.agents.setdefault(agent, []).append(node)
            run.titles[agent] = fields.text(line.obj, "task_description") or run.titles.get(agent, "")
        else:
            run.main.append(node)
        return node

    def _number(self, line: Line) -> int | None:
        return line.number if self.numbered else None

    def _damaged(self, line: Line, reason: str, key: str) -> DamagedRecording:
        if self.numbered:
            return DamagedRecording(reason, line=line.number, column=line.column(key))
        return DamagedRecording(f"item {line.number}: {reason}")

    # -- facts

    def _count(self) -> None:
        messages = self.lines.messages
        self.counter.message(sum(message.role is Role.USER for message in messages.values()))
        self.counter.message(len({message.key for message in messages.values() if message.role is Role.MODEL}))
        for call in self._calls(message for message in messages.values() if not message.node.sidechain):
            self.counter.call(call.prompt_tokens or 0)
        for boundary in self.lines.boundaries.values():
            if not boundary.cleared:
                self.counter.compaction()

    # -- sessions

    def _sessions(self, name: str, run: PrintedRun) -> Iterator[Session]:
        log = self._log(run.main)
        answered = any(node.kind == "assistant" for node in run.main)
        if not answered:
            self._take_results(log, run)
        apart = (self.lines.messages.get(node.line) for chain in run.agents.values() for node in chain)
        lines = [event.line or 0 for event in log.builder.outlines]
        for call in self._calls(message for message in apart if message is not None):
            log.builder.side_calls.append(replace(call, at=bisect_left(lines, call.line or 0)))
        if log.builder.events:
            notes = [*run_notes(run, log.builder.outlines), *([] if answered else totals(run))]
            about: dict[str, Any] = {"agent": ClaudeStreamFormat.label, "model": run.model, "notes": notes}
            about["prompt_tokens_total"] = None if answered else total_of_results(run) or None
            started = {agent: agent for agent in run.agents}
            yield self._session(log, run, source_id=name, sub_agents=started, **about)
        for agent, chain in run.agents.items():
            if any(node.kind == "assistant" for node in chain):
                part, title = self._log(chain), f"Sub-agent {run.titles[agent] or agent}"[:80]
                notes = [*agent_notes(part.builder.outlines)]
                agents: dict[str, Any] = {
                    "agent": f"{ClaudeStreamFormat.label} sub-agent",
                    "title": title,
                    "notes": notes,
                }
                yield self._session(part, run, source_id=agent, parent=name, **agents)

    def _session(self, log: Log, run: PrintedRun, **about: Any) -> Session:
        answered = next((call.model for call in reversed(log.builder.calls) if call.model), "")
        about["model"] = answered or about.get("model", "")
        session = log.session(window=window_of(run, about["model"]), versions=single(run.version), **about)
        return session if self.numbered else _without_lines(session)

    def _log(self, chain: Sequence[Node]) -> Log:
        log = Log(self.lines, self.source)
        log.take(chain)
        log.finish()
        return log

    def _take_results(self, log: Log, run: PrintedRun) -> None:
        """Where nothing but results was printed, they are the answers."""
        for line in run.results:
            text = fields.text(line.obj, "result")
            if text and not failed(line.obj):
                self.counter.message()
                models = list(fields.mapping(line.obj, "modelUsage"))
                call = {"line": line.number, "model": models[0] if len(models) == 1 else run.model}
                log.builder.answer((TextPart(text),), call=call, line=line.number)

    def _calls(self, messages: Iterator[ClaudeMessage]) -> list[ModelCall]:
        """The usage of each API message, written on several of its lines, in the order of the file."""
        calls: dict[str, ModelCall] = {}
        for message in messages:
            usage = self.lines.usage_of(message)
            if message.role is Role.MODEL and usage is not None:
                calls[message.key] = fuller(calls.get(message.key), usage)
        return sorted((call for call in calls.values() if call.prompt_tokens), key=lambda call: call.line or 0)


def _camel(value: Any) -> Any:
    """An object with its keys as transcripts spell them."""
    if not isinstance(value, dict):
        return value
    return {_camel_key(key): _camel(item) for key, item in value.items()}


def _camel_key(key: str) -> str:
    """`tool_use_id` as `toolUseId`."""
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))


def _without_lines(session: Session) -> Session:
    """The session of an array: the numbers of its items are not lines."""
    events: Any = session.events
    fresh = (replace(event, line=None) for event in (events.outlines if isinstance(events, ShelvedEvents) else events))
    if isinstance(events, ShelvedEvents):
        events.outlines.replace_all(fresh)
    else:
        events = tuple(fresh)
    return replace(
        session,
        events=events,
        calls=tuple(replace(call, line=None) for call in session.calls),
        side_calls=tuple(replace(call, line=None) for call in session.side_calls),
        compactions=tuple(replace(compaction, line=None) for compaction in session.compactions),
        notes=tuple(note.replace(" at line ", " at item ") for note in session.notes),
    )
