"""Gemini CLI chats: one JSON object (to early 2026), a patch log in JSON Lines (now), a checkpoint, or a stream.

In the patch log a message may be written again under its id (the last one counts: first without, then with its tool
calls), `$set` changes fields, `$set.messages` replaces the whole history and `$rewindTo` takes back a message and all
behind it. Prompt tokens are `tokens.input`, cached ones included. Compactions are not marked: a replaced history that
holds a new `<state_snapshot>` is an inferred one, with the messages it kept as its tail. A history replaced without a
new snapshot (a session resumed, where results stand twice) is an inferred edit, and no compaction in the facts. Older
files have the results of tools inside the calls only; they become the message that the API got. Notices (`info`,
`error`, `warning`) are not sent. A file of a resumed session may begin with a history that another file holds. What
`--output-format stream-json` prints has tokens for the whole run only. Neither the system prompt nor the tools are in
the file.
Source: https://github.com/google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings import adk_parts, fields, gemini_stream
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.rebase import LogIndex
from guard_core.recordings.source import Shape, Source
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted, Span, View, content_count

JSON = dict[str, Any]
NAME = "gemini-cli"
SNAPSHOT = "<state_snapshot>"
# How the CLI opens the messages that it writes in the user's name.
OWN_OPENINGS = ("<session_context>", "This is the Gemini CLI.", SNAPSHOT, "<hook_context>")
NOTICES = frozenset({"info", "error", "warning"})
_SPEAKERS = frozenset({"user", "gemini", "model"})


class GeminiCliFormat:
    """Chats that the Gemini CLI recorded or saved."""

    name = NAME
    label = "Gemini CLI"

    def matches(self, source: Source) -> bool:
        if source.shape is Shape.LINES:
            heads = [line.obj for line in source.head_lines()]
            return _is_patch_log(heads) or gemini_stream.is_stream(heads)
        if source.shape is not Shape.JSON:
            return False
        value = source.json()
        if isinstance(value, dict):
            return ("projectHash" in value and "sessionId" in value) or _is_checkpoint(value.get("history"))
        return _is_checkpoint(value)

    def read(self, source: Source) -> Recording:
        if source.shape is Shape.LINES and gemini_stream.is_stream([line.obj for line in source.head_lines()]):
            return gemini_stream.read_stream(source, NAME)
        reader = _Reader(source)
        for line, record in _records(source):
            with source.tolerate(line):
                reader.record(record, line)
        return reader.recording()


def _is_patch_log(heads: list[JSON]) -> bool:
    header = any("projectHash" in obj and "sessionId" in obj for obj in heads)
    patches = sum("$set" in obj or "$rewindTo" in obj for obj in heads)
    messages = sum(
        fields.text(obj, "type") in _SPEAKERS | NOTICES and "content" in obj and "id" in obj for obj in heads
    )
    return header or (patches > 0 and (patches + messages) * 2 > len(heads))


def _is_checkpoint(value: Any) -> bool:
    heads = value[:20] if isinstance(value, list) else []
    return bool(heads) and all(
        isinstance(item, dict) and item.get("role") in ("user", "model") and isinstance(item.get("parts"), list)
        for item in heads
    )


def _records(source: Source) -> Iterator[tuple[int | None, JSON]]:
    """Headers, patches and messages: the lines, or what the one object or array holds, in the same form."""
    if source.shape is Shape.LINES:
        yield from ((line.number, line.obj) for line in source.lines())
        return
    value = source.json()
    if isinstance(value, dict) and "history" not in value:
        yield None, {key: found for key, found in value.items() if key != "messages"}
        if "$set" not in value:
            yield from ((None, message) for message in fields.objects(value.get("messages")))
        return
    contents = value.get("history") if isinstance(value, dict) else value
    for content in fields.objects(contents):
        yield None, {"type": content.get("role"), "content": content.get("parts")}


@dataclass
class _Message:
    """One message as the API gets it, and the results that its calls carry."""

    event: Event
    results: tuple[ToolResultPart, ...] = ()


class _Reader:
    """One chat, record by record."""

    def __init__(self, source: Source) -> None:
        self.notes = source.notes
        self.facts = FactCounter(NAME)
        self.log = SessionBuilder(NAME, source)
        self.index = LogIndex(self.log.events)
        self.header: JSON = {}
        self.title = ""
        self.places: dict[str, int | None] = {}  # every id ever written; its event in the log, None: not there
        self.used: set[str] = set()  # ids whose tokens are counted
        self.answered: set[str] = set()  # calls whose results are in the log
        self.waiting: tuple[ToolResultPart, ...] = ()
        self.snapshot = ""  # the last one that was seen
        self.edits = 0

    def record(self, record: JSON, line: int | None) -> None:
        if "$set" in record:
            self._set(fields.mapping(record, "$set"), line)
        elif "$rewindTo" in record:
            self._rewind(fields.text(record, "$rewindTo"))
        elif fields.text(record, "type") in _SPEAKERS:
            self._message(record, line)
        elif fields.text(record, "type") in NOTICES:
            if self._is_new(fields.text(record, "id")):
                self.notes.skip(f"{record['type']} message")
        elif "sessionId" in record:
            self.header = self.header or record
            self.title = fields.text(record, "summary") or self.title
        else:
            self.notes.skip(fields.text(record, "type") or "line without a type")

    def _is_new(self, message_id: str) -> bool:
        if message_id and message_id in self.places:
            return False
        self.facts.message()
        self.places[message_id] = None
        return True

    # -- messages

    def _message(self, record: JSON, line: int | None) -> None:
        message_id = fields.text(record, "id")
        message = _read_message(record, line)
        self._count(message)
        if not self._is_new(message_id):
            self._again(message_id, message, record, line)
            return
        self._flush(message.event)
        at = len(self.log.events)
        if message.event.parts:
            self._append(message.event)
            self.places[message_id] = at
        self.waiting = message.results
        if message.event.role is Role.MODEL:
            self._called(record, at, at if message.event.parts else None, line)

    def _again(self, message_id: str, message: _Message, record: JSON, line: int | None) -> None:
        """A message written once more: the last one counts."""
        self.notes.folded += 1
        place = self.places[message_id]
        if place is None:
            return
        self.log.events[place] = message.event
        self.index.forget(place)
        self.waiting = tuple(result for result in message.results if result.call_id not in self.answered)
        if message_id not in self.used and message.event.role is Role.MODEL:
            self.log.calls = [call for call in self.log.calls if call.response != place]
            self._called(record, place, place, line)
            self.log.calls.sort(key=lambda call: call.at)

    def _append(self, event: Event) -> None:
        self.log.event(**{name: getattr(event, name) for name in event.__struct_fields__})
        self.answered.update(part.call_id for part in event.parts if isinstance(part, ToolResultPart))
        self.snapshot = _snapshot((event,)) or self.snapshot

    def _flush(self, upcoming: Event | None) -> None:
        """Results that the calls carry and no message brings become a message of their own."""
        brought = {part.call_id for part in upcoming.parts if isinstance(part, ToolResultPart)} if upcoming else set()
        missing = [part for part in self.waiting if part.call_id not in brought]
        if missing:
            self._append(Event(Role.USER, tuple(missing), line=upcoming.line if upcoming else None))
        self.waiting = ()

    def _called(self, record: JSON, at: int, response: int | None, line: int | None) -> None:
        call = _call(record, line)
        if call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
            self.used.add(fields.text(record, "id"))
        self.log.calls.append(replace(call, at=at, response=response))

    def _count(self, message: _Message) -> None:
        for part in (*message.event.parts, *message.results):
            if isinstance(part, ToolCallPart):
                self.facts.tool_call(part.id)
            elif isinstance(part, ToolResultPart):
                self.facts.tool_result(part.call_id, len(_shown(part.content)))

    # -- changes of the history

    def _set(self, change: JSON, line: int | None) -> None:
        self.title = fields.text(change, "summary") or self.title
        if "messages" not in change:
            return
        records = list(fields.objects(change["messages"]))
        if not self.log.events:
            for record in records:
                self._message(record, line)
            return
        self._flush(None)
        history: list[Event] = []
        for record in records:
            message = _read_message(record, line)
            self._count(message)
            self._is_new(fields.text(record, "id"))
            if message.event.parts:
                history.append(message.event)
        self._replaced(tuple(history), line)

    def _replaced(self, history: tuple[Event, ...], line: int | None) -> None:
        base, messages = self.index.rebase(history)
        snapshot, at = _snapshot(history), len(self.log.events)
        compacted = bool(snapshot) and snapshot != self.snapshot
        if compacted:
            self.facts.compaction()
            self.snapshot = snapshot
        elif self._is_current(base, messages):
            self.notes.folded += 1
            return
        else:
            self.edits += 1
        self.log.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.INFERRED,
                kind=_kind(base) if compacted else "edit",
                base=base,
                messages=messages,
                trigger="" if compacted else "resume",
                line=line,
                timestamp=max((event.timestamp or 0 for event in history), default=0) or None,
                note="" if compacted else "The history was replaced without a new summary.",
            )
        )

    def _is_current(self, base: View, messages: tuple[Event, ...]) -> bool:
        """Is a replacing history the one that was sent anyway?"""
        last = self.log.compactions[-1] if self.log.compactions else None
        at = len(self.log.events)
        if last is None:
            return not messages and content_count(base) == at
        return messages == last.messages and _flat(base) == _flat((*last.base, Span(last.at, at)))

    def _rewind(self, message_id: str) -> None:
        """The user went back to before a message: it and all behind it are in no later request."""
        cut = self.places.get(message_id)
        if cut is None:
            self.notes.skip("$rewindTo a message that is not there")
            return
        self.waiting = ()
        gone = [call for call in self.log.calls if call.at >= cut]
        self.log.calls = [call for call in self.log.calls if call.at < cut]
        self.log.side_calls += [replace(call, at=cut, response=None) for call in gone]
        self.log.compactions = [item for item in self.log.compactions if item.at <= cut]
        self.places = {key: None if place is None or place >= cut else place for key, place in self.places.items()}
        del self.log.events[cut:]
        self.index.forget(cut)
        self.log.notes.append(f"Taken back by a rewind: not in the log, {len(gone)} calls count apart.")

    def recording(self) -> Recording:
        self._flush(None)
        if not self.header and not self.places:
            raise DamagedRecording("the chat holds no message that can be read")
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        notes += [f"The history was loaded anew {self.edits} times (resumed sessions)."] if self.edits else []
        session = self.log.session(
            source_id=fields.text(self.header, "sessionId"),
            title=self.title,
            agent="Gemini CLI",
            started_at=fields.timestamp(self.header, "startTime"),
            notes=tuple(notes),
        )
        return Recording(NAME, (session,), self.facts.facts(), self.notes)


def _read_message(record: JSON, line: int | None) -> _Message:
    role = Role.USER if record.get("type") == "user" else Role.MODEL
    parts = _content(record.get("content"))
    results: tuple[ToolResultPart, ...] = ()
    if role is Role.MODEL:
        calls = list(fields.objects(record.get("toolCalls")))
        if not any(isinstance(part, ReasoningPart) for part in parts):
            parts = (*_thoughts(record), *parts)
        if not any(isinstance(part, ToolCallPart) for part in parts):
            parts = (*parts, *(_tool_call(call) for call in calls))
        results = tuple(part for call in calls for part in _results(call))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    meta = role is Role.USER and bool(texts) and texts[0].lstrip().startswith(OWN_OPENINGS)
    at, source_id = fields.timestamp(record, "timestamp"), fields.text(record, "id")
    return _Message(Event(role, parts, source_id, line, at, meta=meta), results)


def _content(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    items = content if isinstance(content, list) else [content]
    whole = [{"text": item} if isinstance(item, str) else item for item in items]
    return adk_parts.content_parts({"parts": whole})


def _thoughts(record: JSON) -> Iterator[Part]:
    for thought in fields.objects(record.get("thoughts")):
        subject, description = fields.text(thought, "subject"), fields.text(thought, "description")
        yield ReasoningPart(f"**{subject}** {description}" if subject else description)


def _tool_call(call: JSON) -> ToolCallPart:
    return ToolCallPart(fields.text(call, "name"), call.get("args"), fields.text(call, "id"))


def _results(call: JSON) -> Iterator[ToolResultPart]:
    """The results that a call carries; the call's own id where they have none."""
    result = call.get("result")
    for part in _content(result) if isinstance(result, list) else ():
        if isinstance(part, ToolResultPart):
            failed = part.is_error or fields.text(call, "status") in {"error", "cancelled"}
            yield replace(part, call_id=part.call_id or fields.text(call, "id"), is_error=failed)


def _call(record: JSON, line: int | None) -> ModelCall:
    usage = fields.mapping(record, "tokens")
    prompt = fields.tokens(usage, "input") or None
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=fields.tokens(usage, "cached") if prompt else None,
        output_tokens=fields.tokens(usage, "output") if prompt else None,
        model=fields.text(record, "model"),
        timestamp=fields.timestamp(record, "timestamp"),
        line=line,
        source_id=fields.text(record, "id"),
    )


def _snapshot(history: tuple[Event, ...]) -> str:
    """What tells the summary at the head of a history (its first two messages) from others; "" where there is none."""
    for event in history[:2]:
        for part in event.parts:
            if event.role is Role.USER and isinstance(part, TextPart) and SNAPSHOT in part.text:
                return event.source_id or part.text
    return ""


def _shown(content: Any) -> str:
    """The text of a result: its `output` where that is all it has, else the whole as JSON."""
    if isinstance(content, dict) and len(content) == 1:
        only = next(iter(content.values()))
        return only if isinstance(only, str) else value_text(content)
    return value_text(content)


def _kind(base: View) -> str:
    return "summary+tail" if base and not isinstance(base[-1], Inserted) else "summary"


def _flat(view: View) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for segment in view:
        if isinstance(segment, Span):
            found += [("event", index) for index in range(segment.start, segment.stop)]
        elif isinstance(segment, Inserted):
            found.append(("inserted", segment.index))
    return found


FORMAT = GeminiCliFormat()
