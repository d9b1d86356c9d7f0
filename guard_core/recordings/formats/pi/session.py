"""pi (pi-coding-agent) sessions: a header line, then entries that are a list (version 1) or a tree (2 and 3).

In a tree the log is the path from the last entry to the root; calls on other branches count apart. Prompt tokens are
`input + cacheRead + cacheWrite`; an aborted or failed message without usage is not a call, and since version 3 its
words are never sent again: they stay out of the log. `compaction` declares a compaction: after it the context is its
summary and the entries from `firstKeptEntryId` on (version 1: `firstKeptEntryIndex`, counted over all entries with the
header). Branch summaries, `custom_message` entries and the output of the user's own commands (`bashExecution`) are
sent, but begin no turn; `custom`, labels and changes of model or thinking level are not sent. A `context_edit` takes a
message out of later requests or changes it. Kinds that pi's descendants add are counted and keep the chain of parents
whole; of oh-my-pi's the titles, `reset_boundary` (`/clear`: an empty context, no compaction in the facts) and a sub-
agent's `session_init` with its system prompt are read. Messages of the role `system` (0.87) bring system prompt and
tools; else neither is in the file. Where compactions name their own `usage` (0.85), an older summary that lies in what
a newer one keeps is sent at its place, too.
Source: https://github.com/badlogic/pi-mono, packages/coding-agent/docs/session.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.pi import edits, letta, look, oh_my_pi, openclaw
from guard_core.recordings.formats.pi.edits import ContextEdits
from guard_core.recordings.formats.pi.known_names import NAMES
from guard_core.recordings.formats.pi.system import SystemPrompt
from guard_core.recordings.formats.pi.tree import active_paths, begins_another, is_header
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.lost_lines import lost_words
from guard_core.recordings.reading.refusals import names_length, says_too_long
from guard_core.recordings.reading.served_models import served_model
from guard_core.recordings.reading.source import ByteSource, Line, SourceShape
from guard_core.recordings.reading.versions import Versions
from guard_core.sessions import AgentSetting, Evidence, LeftBranches, ModelCall, RecordedCompaction, Session
from guard_core.triggers import BY_EXTENSION, CUT_OFF, OVERFLOW
from guard_core.views import Inserted, Segment, Span, View

# How pi words the messages that it makes of summaries (packages/coding-agent/src/core/messages.ts).
COMPACTED = f"{summary_words.PI}\n\n<summary>\n{{}}\n</summary>"
BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}</summary>"
FAILED = frozenset({"aborted", "error"})
MOST_SUMMARIES = 100  # older summaries that are looked for in what a compaction keeps; usual are one or two
# Measured by running: compactions name their own usage in 0.84.2, which looks at the end of turns, and in 0.85.1, which
# looks before every call; 1.6.0, which does so too, writes its system prompt down as messages, as all do from 0.86 on.
LOOKS_WITHIN_TURNS = AgentSetting("looks_within_turns", 1, "it compacted within a turn, or writes its system prompt")
PASSES_OVER_FAILED = 3  # session version (2026-01); packages/ai/src/providers/transform-messages.ts
# Whom OpenClaw names as the author of what stays in the transcript: src/shared/transcript-only-openclaw-assistant.ts.
COPIES = frozenset({("openclaw", "delivery-mirror"), ("openclaw", "gateway-injected")})
_ENTRY_KINDS = frozenset({"message", "compaction", "branch_summary", "model_change", "thinking_level_change", "custom"})


class PiSessionFormat:
    """Session files of pi and of its descendants."""

    name = "pi"
    label = "pi"
    place = "~/.pi/agent/sessions/…/*.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.SQLITE:
            return openclaw.is_database(source)
        if source.shape not in (SourceShape.LINES, SourceShape.JSON):
            return False
        heads = [line.obj for line in source.head_lines()]
        if heads and all(map(letta.is_bare, heads)):
            return True
        entries = sum(_is_entry(obj) for obj in heads)
        if any(is_header(obj) for obj in heads):
            return entries > 0 or len(heads) == 1
        return entries * 2 > len(heads) and any("parentId" in obj or _is_pis_own(obj) for obj in heads)

    def read(self, source: ByteSource) -> Recording:
        if source.shape is SourceShape.SQLITE:
            return _from_database(source)
        if all(letta.is_bare(line.obj) for line in source.head_lines()):
            return _from_messages(source)
        paths, sessions = [*active_paths(source.lines())], list[Session]()
        (path, lost_at), reader, entries = paths[0], PiSessionReader(source), 0
        for line in source.lines():
            if begins_another(line.obj, fields.text(reader.header, "id"), entries):
                sessions += reader.recording(lost_at).sessions
                (path, lost_at), entries = paths[len(sessions)], 0
                reader = reader.next()
            entries += not is_header(line.obj)
            with source.tolerate(line.number):
                reader.line(line, path is None or line.number in path)
        last = reader.recording(lost_at)
        return Recording(last.format, (*sessions, *last.sessions), last.facts, last.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        """The calls of entries in lines; a database and messages without entries have no lines of that kind."""
        if source.shape is SourceShape.SQLITE or all(letta.is_bare(line.obj) for line in source.head_lines()):
            return None
        return look.look(source)


def _from_database(source: ByteSource) -> Recording:
    """The sessions of a database of OpenClaw."""
    sessions, reader = list[Session](), PiSessionReader(source, has_lines=False)
    for stored in openclaw.stored_sessions(source):
        with source.apart(sessions):
            entries = list(stored.lines)
            if not any(is_header(line.obj) or _is_entry(line.obj) for line in entries):
                source.notes.skip("session without an entry that can be read")
                continue
            reader = reader.next() if sessions else reader
            reader.log.states_window(0, stored.window)
            ((path, lost_at),) = active_paths(entries)
            for line in entries:
                with source.tolerate():
                    reader.line(line, path is None or line.number in path)
            sessions += reader.recording(lost_at).sessions
    if not sessions:
        raise source.nothing_left("the OpenClaw database holds no session that can be read")
    return Recording("pi", tuple(sessions), reader.facts.facts(), source.notes)


def _from_messages(source: ByteSource) -> Recording:
    """A conversation of an earlier version of Letta Code."""
    reader = PiSessionReader(source)
    reader.settings = (letta.KEEPS_LAST_ALONE,)
    for line in letta.entries_of(source.lines()):
        with source.tolerate(line.number):
            reader.line(line, on_path=True)
    return reader.recording()


def _is_entry(obj: dict[str, Any]) -> bool:
    if obj.get("type") == "message":
        return bool(fields.text(fields.mapping(obj, "message"), "role")) and "sessionId" not in obj
    return fields.text(obj, "type") in _ENTRY_KINDS and "timestamp" in obj


def _is_pis_own(obj: dict[str, Any]) -> bool:
    """A message as only pi writes it: the beginning of a list (version 1) may be missing."""
    message = fields.mapping(obj, "message")
    return fields.text(message, "role") == "toolResult" or "cacheRead" in fields.mapping(message, "usage")


def _content(entry: dict[str, Any]) -> Any:
    """What an entry says, without its place in the tree."""
    return {key: value for key, value in entry.items() if key not in ("parentId", "timestamp")}


class PiSessionReader:
    """One session, entry by entry. `first`: it is the first of its source. `has_lines`: the entries are lines of it."""

    def __init__(self, source: ByteSource, *, first: bool = True, has_lines: bool = True) -> None:
        self.source = source
        self.has_lines = has_lines
        self.notes = source.notes
        self.facts = FactCounter("pi")
        self.log = SessionBuilder("pi", source, first=first)
        self.edits = ContextEdits(self.log)
        self.header: dict[str, Any] = {}
        self.title = ""
        self.system = SystemPrompt()
        self.seen = Identities(source, "entry")
        self.starts: dict[str, int] = {}  # entry id: events before it
        self.earlier: dict[str, int] = {}  # entry id: compactions before it
        self.behind: dict[str, int] = {}  # entry id: events before the first entry that follows it
        self.starts_by_index: list[int] = []  # entry number, the header being 0: events before it
        self.left = LeftBranches()  # on other branches
        self.refused = False  # was the last message a request that the provider found too long?
        self.unsent = 0  # answers that were aborted or failed
        self.last_role = ""  # of the last message
        self.last_answer = ""  # the entry of the last answer
        self.last_stop = ""  # why the last answer ended
        self.takes_back = False  # did the last entry take out the last answer?
        self.names_usage = False  # of its compactions
        self.looks_within_turns = False
        self.settings: tuple[AgentSetting, ...] = ()
        self.agent = "pi"
        self.versions = Versions()
        self.results: dict[str, int] = {}  # the id of a call, without punctuation: the event with its result
        self.cut: dict[int, str] = {}  # events of results that are sent cut, and as what

    def next(self) -> PiSessionReader:
        """The reader of the session that follows in the same file; the facts are of both."""
        following = PiSessionReader(self.source, first=False, has_lines=self.has_lines)
        following.facts = self.facts
        following.facts.session()
        return following

    def line(self, line: Line, on_path: bool) -> None:
        kind, entry = fields.text(line.obj, "type"), fields.text(line.obj, "id")
        self.starts_by_index.append(len(self.log.events))
        if self.agent == "pi":
            self.agent = _writer(line.obj)
        if on_path and entry:
            self.starts[entry] = len(self.log.events)
            self.earlier[entry] = len(self.log.compactions)
            self.behind.setdefault(fields.text(line.obj, "parentId"), len(self.log.events))
        if is_header(line.obj):
            self.header = self.header or line.obj
            self.title = self.title or fields.text(line.obj, "title")
        elif self.seen.is_repeat(entry, _content(line.obj), line.number):
            self.notes.folded += 1
        elif kind == "message":
            self._message(line, fields.mapping(line.obj, "message"), on_path)
        elif kind == "compaction":
            self._compaction(line, on_path)
        elif kind in {"branch_summary", "custom_message"}:
            self._added(line, kind, on_path)
        elif kind == "reset_boundary" and on_path:
            self._reset(line)
        elif kind == "context_edit" and on_path:
            self._edit(line)
        else:
            self._other(line, kind, on_path)

    def _number(self, line: Line) -> int | None:
        """The number of an entry's line, None where it is a row of a database."""
        return line.number if self.has_lines else None

    def _other(self, line: Line, kind: str, on_path: bool) -> None:
        entry = line.obj
        if kind == "custom" and on_path:
            self._cut_results(line)
        if kind == "session_info":
            self.title = fields.text(entry, "name").strip()  # an empty name takes the old one back
        elif kind in {"title", "title_change"}:
            self.title = fields.text(entry, "title").strip() or self.title
        elif kind == "session_init":
            self.system.take({"content": fields.text(entry, "systemPrompt"), "replace": True})
        else:
            self.notes.skip(kind or "line without a type")

    def _message(self, line: Line, message: dict[str, Any], on_path: bool) -> None:
        role, refused = fields.text(message, "role"), self._is_refused(message, on_path)
        if role == "system":
            if on_path:
                self.system.take(message)
                self.looks_within_turns = True
            return
        at = fields.timestamp(line.obj, "timestamp") or fields.timestamp(message, "timestamp")
        place: dict[str, Any] = {"line": self._number(line), "timestamp": at, "source_id": fields.text(line.obj, "id")}
        self.facts.message()
        if on_path:
            self.last_role, self.takes_back = role, False
        else:
            messages, refusals = self.left.messages + 1, self.left.refused + refused
            self.left = replace(self.left, messages=messages, refused=refusals)
        if role == "assistant":
            self._answer(message, place, on_path)
            return
        if role == "toolResult":
            parts = self._result(message, on_path)
        elif role == "user":
            parts = _parts(message.get("content"))
        else:
            parts = _own_words(message, role)
        if on_path and parts:
            meta = role not in {"user", "toolResult"}
            if self.agent == letta.NAME and role == "user":
                self.versions.see(line.number, letta.version(parts))
            self.log.event(Role.USER, parts, author=role if meta else "", meta=meta, **place)
        elif not parts:
            self.notes.skip(f"{role or 'message'} without content")

    def _is_refused(self, message: dict[str, Any], on_path: bool) -> bool:
        """Is a message an error that the request was too long; one on the path is a refused request of the session."""
        error = fields.text(message, "errorMessage") if fields.text(message, "stopReason") == "error" else ""
        if on_path:
            self.refused = says_too_long(error)
            if names_length(error):
                self.log.refuse(error)
        return names_length(error)

    def _result(self, message: dict[str, Any], on_path: bool) -> tuple[Part, ...]:
        parts = _parts(message.get("content"))
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        call_id = fields.text(message, "toolCallId")
        self.facts.tool_result(call_id, len(text))
        if on_path:
            self.results[openclaw.plain_id(call_id)] = len(self.log.events)
        name, failed = fields.text(message, "toolName"), message.get("isError") is True
        media = (part for part in parts if not isinstance(part, TextPart))
        return (ToolResultPart(name, text, call_id, failed), *media)

    def _answer(self, message: dict[str, Any], place: dict[str, Any], on_path: bool) -> None:
        if (fields.text(message, "provider"), fields.text(message, "model")) in COPIES:
            self.notes.skip("copy of a delivered answer, not sent")
            return
        parts = _parts(message.get("content"))
        for part in parts:
            if isinstance(part, ToolCallPart):
                self.facts.tool_call(part.id)
        call = _call(message, place)
        if call is not None and call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
        at = len(self.log.events)
        if on_path:
            self.last_answer, self.last_stop = place["source_id"], fields.text(message, "stopReason")
        else:
            self.log.side_calls += [_placed(call, at, None)] if call is not None else []
            prompt = call.prompt_tokens or 0 if call is not None else 0
            self.left = replace(self.left, largest=max(self.left.largest, prompt))
            return
        # Later versions pass over answers that were aborted or failed; those of 2025 sent what there was of them.
        passes_over = (fields.tokens(self.header, "version") or 1) >= PASSES_OVER_FAILED
        if parts and passes_over and fields.text(message, "stopReason") in FAILED:
            self.unsent += 1
            parts = ()
        if parts:
            self.log.event(Role.MODEL, parts, **place)
        if call is not None:
            self.log.calls.append(_placed(call, at, at if parts else None))

    def _added(self, line: Line, kind: str, on_path: bool) -> None:
        """What pi or an extension put into the conversation as the user's message."""
        if kind == "branch_summary":
            summary = fields.text(line.obj, "summary")
            parts: tuple[Part, ...] = (TextPart(BRANCH.format(summary)),) if summary else ()
        else:
            parts = _parts(line.obj.get("content"))
        if not on_path or not parts:
            self.notes.skip(f"{kind} not sent")
            return
        at, source_id = fields.timestamp(line.obj, "timestamp"), fields.text(line.obj, "id")
        self.log.event(
            Role.USER, parts, line=self._number(line), timestamp=at, source_id=source_id, author=kind, meta=True
        )

    def _compaction(self, line: Line, on_path: bool) -> None:
        self.facts.compaction()
        if not on_path:
            self.left = replace(self.left, compactions=self.left.compactions + 1)
            self.notes.skip("compaction on another branch")
            return
        at, start = len(self.log.events), self._first_kept(line.obj)
        if self.agent == letta.NAME:
            self.log.states_window(at, letta.window(line.obj))
        summary, has_summary = fields.text(line.obj, "summary"), isinstance(line.obj.get("summary"), str)
        by_hook = True in (line.obj.get("fromHook"), line.obj.get("fromExtension"))
        is_bare = oh_my_pi.hides_frame(line.obj)
        words = letta.sent_message(line.obj) or (summary if is_bare else COMPACTED.format(summary))
        note = oh_my_pi.UNWRITTEN if is_bare else ""
        message = Event(role=Role.USER, parts=(TextPart(words),), meta=True)
        self.names_usage |= "usage" in line.obj
        self.looks_within_turns |= self.names_usage and self.last_role == "toolResult" and not (by_hook or self.refused)
        # Of versions whose compactions name their usage those whose compactions also have the system prompt (0.87.1 to
        # 1.6.0, run with several settings) send the newest summary alone, like the versions before them.
        sends_older = self.names_usage and "systemMessage" not in line.obj
        if oh_my_pi.summarises_beside(line.obj) and oh_my_pi.BESIDE not in self.settings:
            self.settings = (*self.settings, oh_my_pi.BESIDE)
        # What else than a count forced it: a refused request, or an answer that was cut off.
        cause = OVERFLOW if self.refused else CUT_OFF if self.takes_back and self.last_stop == "length" else ""
        earlier = self.earlier.get(fields.text(line.obj, "firstKeptEntryId"))
        tail, before = self._tail(start, at, earlier) if sends_older else (_span(start, at), [])
        self.log.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind=("summary+tail" if tail else "summary") if summary else "empty" if has_summary else "opaque",
                base=self.edits.applied((Inserted(0), *tail) if has_summary else tail),
                messages=(message, *before) if has_summary else (),
                trigger=BY_EXTENSION if by_hook else letta.trigger(line.obj) or cause,
                tokens_before=fields.tokens(line.obj, "tokensBefore"),
                line=self._number(line),
                timestamp=fields.timestamp(line.obj, "timestamp"),
                note=note if summary else "The summary is empty." if has_summary else "The summary is not in the file.",
            )
        )

    def _edit(self, line: Line) -> None:
        """A message is no longer sent as it is in the log. A failed answer never was in it."""
        target, replacement = fields.text(line.obj, "targetId"), line.obj.get("replacement")
        self.takes_back |= replacement is None and target == self.last_answer != ""
        place = self.starts.get(target, -1)
        if not 0 <= place < len(self.log.events) or (event := self.log.events[place]).source_id != target:
            self.notes.skip("context_edit of what is not sent")
            return
        content = None if replacement is None else _parts(fields.mapping(line.obj, "replacement").get("content"))
        when = fields.timestamp(line.obj, "timestamp")
        message = None if content is None else edits.with_content(event, content)
        self.edits.edit(place, message, line=self._number(line), timestamp=when)

    def _cut_results(self, line: Line) -> None:
        """Results of tools are sent cut from here on."""
        for call_id, text in openclaw.sent_results(line.obj):
            place = self.results.get(call_id)
            if place is None or self.cut.get(place) == text:
                continue
            self.cut[place] = text
            when, message = fields.timestamp(line.obj, "timestamp"), self.log.events[place]
            message = edits.with_content(message, (TextPart(text),))
            self.edits.edit(place, message, line=self._number(line), timestamp=when)

    def _tail(self, start: int, at: int, earlier: int | None) -> tuple[View, list[Event]]:
        """What a compaction keeps, and the summaries in it: later versions send an older one where its entry stands.
        `earlier` is the number of compactions before the first entry that it keeps, None where that is not known."""
        tail: list[Segment] = []
        summaries: list[Event] = []
        count = len(self.log.compactions)
        newest = islice(zip(range(count - 1, -1, -1), reversed(self.log.compactions)), MOST_SUMMARIES)
        held = (item for place, item in newest if (item.at > start if earlier is None else place >= earlier))
        inside = [item for item in held if item.messages]
        for older in reversed(inside):
            tail += (*_span(start, older.at), Inserted(1 + len(summaries)))
            summaries.append(older.messages[0])
            start = older.at
        return (*tail, *_span(start, at)), summaries

    def _reset(self, line: Line) -> None:
        """The user cleared the context: nothing from before is sent any more."""
        at = len(self.log.events)
        when = fields.timestamp(line.obj, "timestamp")
        note = "The user cleared the context."
        self.log.compaction(
            RecordedCompaction(
                at, Evidence.DECLARED, "edit", (), trigger="clear", line=self._number(line), timestamp=when, note=note
            )
        )

    def _first_kept(self, entry: dict[str, Any]) -> int:
        """Log index of the first entry that a compaction kept; the end of the log where it kept none."""
        end = len(self.log.events)
        first_id = fields.text(entry, "firstKeptEntryId")
        start = self.starts.get(first_id, self.behind.get(first_id) if first_id else None)  # its own line may be lost
        index = fields.tokens(entry, "firstKeptEntryIndex")
        if start is None and index is not None and index < len(self.starts_by_index):
            start = self.starts_by_index[index]
        return end if start is None else start

    def recording(self, lost_at: Sequence[int] = ()) -> Recording:
        """The session; on the lines `lost_at` are entries whose parent is not in the file."""
        if not self.header and not self.facts.messages:
            raise DamagedRecording("the session holds no entry that can be read")
        system, tools = self.system.parts, self.system.tools
        absent = [what for what, value in (("system prompt", system), ("schemas of the tools", tools)) if not value]
        notes = [f"The {' and the '.join(absent)} are not in the file."] if absent else []
        if self.system.changes > 0:
            notes.append(f"Later changes of the system prompt or the tools: {self.system.changes}. The last are shown.")
        if fields.text(self.header, "parentSession") or fields.text(self.header, "branchedFrom"):
            notes.append("Forked from another session file: its history comes first.")
        if self.left.messages:
            notes.append(
                f"{counted(self.left.messages, 'message')} on other branches: not in the log, their calls count apart."
            )
        if self.unsent:
            notes.append(f"{counted(self.unsent, 'answer')} aborted or failed: not in the log, as not sent again.")
        notes += lost_words(lost_at)
        notes += [letta.LOST] if letta.KEEPS_LAST_ALONE in self.settings and self.log.compactions else []
        session = self.log.session(
            system=system,
            tools=tools,
            source_id=fields.text(self.header, "id"),
            title=self.title,
            agent=self.agent,
            versions=self.versions.of(self.log.outlines),
            window=self.log.window(openclaw.WINDOW_NOTE if self.agent == openclaw.NAME else letta.WINDOW_NOTE),
            model=""
            if self.log.calls
            else served_model(fields.text(self.header, "provider"), fields.text(self.header, "modelId")),
            notes=tuple(notes),
            settings=(*self.settings, *((LOOKS_WITHIN_TURNS,) if self.looks_within_turns else ())),
            left=self.left if self.left != LeftBranches() else None,
        )
        return Recording("pi", (session,), self.facts.facts(), self.notes)


def _writer(entry: dict[str, Any]) -> str:
    """The agent that wrote an entry, as far as it shows."""
    return next((writer.NAME for writer in (letta, openclaw, oh_my_pi) if writer.is_its(entry)), "pi")


def _span(start: int, stop: int) -> tuple[Span, ...]:
    return (Span(start, stop),) if start < stop else ()


def _call(message: dict[str, Any], place: dict[str, Any]) -> ModelCall | None:
    """The call that a message answers; None where it was aborted or failed before any usage."""
    usage = fields.mapping(message, "usage")
    cached, written = fields.tokens(usage, "cacheRead"), fields.tokens(usage, "cacheWrite")
    prompt = max(0, (fields.signed_tokens(usage, "input") or 0) + (cached or 0) + (written or 0))
    if not prompt and fields.text(message, "stopReason") in FAILED:
        return None
    return ModelCall(
        at=0,
        prompt_tokens=prompt or None,
        cached_tokens=cached if prompt else None,
        cache_write_tokens=written if prompt else None,
        output_tokens=fields.tokens(usage, "output") if prompt else None,
        model=served_model(fields.text(message, "provider"), fields.text(message, "model")),
        timestamp=place["timestamp"],
        line=place["line"],
        source_id=fields.text(message, "responseId"),
        cache_hour_tokens=fields.tokens(usage, "cacheWrite1h") if prompt else None,
    )


def _placed(call: ModelCall, at: int, response: int | None) -> ModelCall:
    return replace(call, at=at, response=response)


def _parts(content: Any) -> tuple[Part, ...]:
    """Text, thinking, calls and pictures of a message."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    blocks = content if isinstance(content, list) else []
    return tuple(TextPart(block) if isinstance(block, str) else _part(block) for block in blocks if block)


def _part(block: Any) -> Part:
    if not isinstance(block, dict):
        return OtherPart("unknown", block)
    kind = fields.text(block, "type")
    if kind == "toolCall":
        name, call_id = fields.text(block, "name"), fields.text(block, "id")
        return ToolCallPart(name, fields.arguments(block.get("arguments")), call_id)
    if kind == "thinking":
        sealed = fields.text(block, "thinkingSignature")
        return ReasoningPart(fields.text(block, "thinking"), opaque_bytes=fields.opaque_size(sealed) if sealed else 0)
    if kind == "image":
        mime, data = fields.text(block, "mimeType"), fields.text(block, "data")
        if data.startswith("blob:"):  # oh-my-pi keeps large pictures in files of their own
            return MediaPart(mime=mime, uri=data[:2000])
        return fields.media(mime, data) if data else MediaPart(mime=mime)
    parts = fields.content_parts([block])
    return parts[0] if parts else TextPart("")


def _own_words(message: dict[str, Any], role: str) -> tuple[Part, ...]:
    """What a message of pi's own roles says to the model; nothing where it is kept from it."""
    if message.get("excludeFromContext") is True:
        return ()
    if role == "bashExecution":
        return (TextPart(_command_words(message)),)
    summary = fields.text(message, "summary")
    if summary:
        return (TextPart((BRANCH if role == "branchSummary" else COMPACTED).format(summary)),)
    return _parts(message.get("content"))


def _command_words(message: dict[str, Any]) -> str:
    """How pi reports to the model a command that the user ran: `bashExecutionToText` in core/messages.ts."""
    command, output, code = fields.text(message, "command"), fields.text(message, "output"), message.get("exitCode")
    words = f"Ran `{command}`\n```\n{output}\n```" if output else f"Ran `{command}`\n(no output)"
    if message.get("cancelled") is True:
        words += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        words += f"\n\nCommand exited with code {int(code)}"
    if message.get("truncated") is True and (path := fields.text(message, "fullOutputPath")):
        words += f"\n\n[Output truncated. Full output: {path}]"
    return words


FORMAT = PiSessionFormat()
