"""Crush and the old Go OpenCode: SQLite databases in the project's folder, one session per session row.

What `crush session show --json` writes is read as well; it does not show which message is a summary.

Definition: `internal/db` and `internal/message/content.go` of https://github.com/charmbracelet/crush.
A message's `parts` are a JSON array of `{type, data}`, in some versions behind zstd; the input of a `tool_call` is JSON
text. Attached text and the user's own shell commands are sent as text of the user's message. The token counts of a
session row are overwritten at every step, so only those after the last call are known, and differently by version (the
prompt may leave cached tokens to the completion, it is 0 after a summary). In every version but the first ones of the
old OpenCode, which added up all calls, their sum is the context after the last answer: it is the count of the last
call, which so includes its answer; a note says so. Of Gemini's models it counts cached tokens twice, for these are
within the provider's count of the prompt, and how many there were is not stored: the last call then has no count
(`mapUsage` in providers/google/google.go of https://github.com/charmbracelet/fantasy). The other calls carry none, but
where a version wrote them beside the end of an answer (`prompt_tokens` of `finish`, cached ones included).
`message_count` may be larger than the rows. The message that `summary_message_id` names (or every one with
`is_summary_message`) is a declared compaction: from then on it is the first message, sent as the user's. Where it came
within a turn, Crush continues by itself with the user's request in a sentence of its own (`agent.go`): such a message
belongs to the compaction, which was automatic. Of others the database does not say who asked. Sessions with
a `parent_session_id` are sub-agents and titles, sessions of their own. Facts count message rows, ids of calls and
results, and summaries.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, MutableSequence
from typing import Any, NamedTuple

import msgspec

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
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import chat, fields, normalise, wrong_kinds, zstd_frames
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.served_models import served_model
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Database, tables
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted

# How the message begins with which Crush continues after an automatic summary: `agent.go`, of a full window ("it got
# too long") and of a refused request ("it exceeded the context window").
_CONTINUES = "The previous session was interrupted because it "
NOT_SENT = frozenset({"finish"})  # parts that only say how a message ended
# Colours and moves of the cursor, which Crush takes out of what it sends (ECMA-48, 5.4).
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Seconds: 9 May 2025. Until then OpenCode added the counts of all calls up in the row of their session, and compacted
# none (internal/llm/agent/agent.go and internal/tui/tui.go of opencode-ai/opencode, revision 90084ce).
SUMMED_UNTIL = 1_746_748_800
# Providers, as Crush names them, through which it asks Gemini by Google's own API; the old OpenCode names none.
_OF_GOOGLE = frozenset({"gemini", "vertexai", ""})
_MILLISECONDS_FROM = 1e11  # times above this are milliseconds; both are found, whatever the schema says


_KNOWN_NAMES = Names(
    beside=words("prompt_tokens completion_tokens"),
    holders=words("data"),
    tools=words("tool_call tool_result tool_use function data"),
)


class CrushFormat:
    name = "crush"
    label = "Crush"
    place = ".crush/crush.db"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.JSON:
            value = source.json_head()  # of `crush session show --json`: `meta` and `messages` with flat parts
            first = next(fields.objects(fields.items(value, "messages")), None)
            has_parts = first is not None and "parts" in first and "role" in first
            return has_parts and "uuid" in fields.mapping(value, "meta")
        columns = tables(source)
        return {"parts", "role", "session_id"} <= set(columns.get("messages", ())) and "sessions" in columns

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        sessions = _from_database(source, facts) if source.shape is SourceShape.SQLITE else [_from_shown(source, facts)]
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = CrushFormat()


class _Finish(NamedTuple):
    """How an answer ended: the tokens that a version wrote beside it, whether the call failed, and the words in which
    the provider refused the request as too long, "" where it did not."""

    prompt: int | None
    completion: int | None
    failed: bool
    refused: str


def _from_database(source: ByteSource, facts: FactCounter) -> list[Session]:
    messages: dict[str, list[JSON]] = {}
    with Database(source) as database:
        for row in database.rows("messages", order=("created_at", "rowid")):
            messages.setdefault(str(row.get("session_id")), []).append(row)
        headers = {str(row.get("id")): row for row in database.rows("sessions", order=("created_at", "rowid"))}
        # Crush has always recorded the provider of a message (migration 20250627000000); the old OpenCode never did.
        agent = "Crush" if "provider" in database.tables.get("messages", ()) else "OpenCode"
        missing = database.wal_sentence()
    if not messages:
        raise DamagedRecording(missing or "the Crush database holds no session with messages")
    for name in messages:
        headers.setdefault(name, {"id": name})
    for name in headers:
        if name not in messages:
            source.notes.skip("session without messages")
    reader = CrushReader(source, facts, agent)
    children: dict[str, list[str]] = {}
    named = {name: row for name, row in headers.items() if name in messages}
    for name, row in named.items():
        children.setdefault(str(row.get("parent_session_id") or ""), []).append(name)
    sessions: list[Session] = []
    for name, row in named.items():
        with source.apart(sessions):
            sessions.append(reader.session(row, messages[name], children.get(name, ())))
    return sessions


def _from_shown(source: ByteSource, facts: FactCounter) -> Session:
    value = source.json()
    meta = fields.mapping(value, "meta")
    header = {**meta, "id": meta.get("uuid"), "created_at": meta.get("created")}
    rows = [
        {**message, "created_at": message.get("created"), "parts": _unflattened(message.get("parts"))}
        for message in fields.objects(fields.items(value, "messages"))
    ]
    return CrushReader(source, facts, "Crush").session(header, rows)


def _unflattened(parts: Any) -> Any:
    """Flat parts as the database has them."""
    if not isinstance(parts, list):
        return parts
    return [
        {"type": part.get("type"), "data": {"id": part.get("tool_call_id"), **part}} for part in fields.objects(parts)
    ]


class CrushReader:
    """Sessions of rows, whatever they were stored in."""

    def __init__(self, source: ByteSource, facts: FactCounter, agent: str) -> None:
        self._source = source
        self._facts = facts
        self._agent = agent

    def session(self, header: JSON, rows: list[JSON], children: Iterable[str] = ()) -> Session:
        """One session. `children`: the ids of the sessions that belong to it; each ends in that of a tool call."""
        builder = SessionBuilder("crush", self._source)
        self._facts.session()
        wrong_kinds.check_counts(self._source, header, ("prompt_tokens", "completion_tokens"), "a session's row")
        summary = header.get("summary_message_id")
        for row in rows:
            self._facts.message()
            with self._source.tolerate():
                named = bool(summary) and row.get("id") == summary
                items = self._items(row)
                event = self._event(row, items)
                if event is None:
                    continue
                finish = _finish(items)
                first = event.parts[0] if event.role is Role.USER and event.parts else None
                continues = isinstance(first, TextPart) and first.text.startswith(_CONTINUES)
                if finish.prompt:
                    self._facts.call(finish.prompt)
                if named or row.get("is_summary_message"):
                    self._summarised(builder, row, event, finish)
                elif builder.compactions and continues:
                    _continued(builder, event)
                else:
                    _append(builder, row, event, finish)
        if summary and not any(row.get("id") == summary for row in rows):
            self._facts.compaction()
            builder.notes.append("The session was summarised; the summary message is no longer in the database.")
        if not any(call.prompt_tokens for call in builder.calls):
            summed = self._agent == "OpenCode" and _ended_before(rows, SUMMED_UNTIL)
            says = _sums(header) if summed else _count_last(header, builder.calls, self._twice(rows))
            builder.notes.append(f"{self._agent} keeps no tokens per call.{says}")
        builder.notes += _notes(header, len(rows))
        return builder.session(
            agent=self._agent,
            title=fields.text(header, "title"),
            source_id=str(header.get("id") or ""),
            parent=str(header.get("parent_session_id") or ""),
            sub_agents={child: child.rpartition("$$")[2] for child in children},
            started_at=_time(header.get("created_at")),
        )

    def _twice(self, rows: list[JSON]) -> set[str]:
        """The ids of messages whose provider's count of the prompt has the cached tokens that are added to it again."""
        named = "" if self._agent == "Crush" else "vertexai."
        return {
            str(row.get("id") or "")
            for row in rows
            if fields.text(row, "model").removeprefix(named).startswith("gemini")
            and fields.text(row, "provider") in _OF_GOOGLE
        }

    def _items(self, row: JSON) -> list[JSON]:
        """The parts of a message as they are stored. Raises DamagedRecording."""
        message = f"message {str(row.get('id'))[:60]}"
        what = f"the parts of {message}"
        stored = row.get("parts")
        if isinstance(stored, bytes) and stored.startswith(zstd_frames.MAGIC):
            stored = zstd_frames.inflated(self._source, stored, what)
        if isinstance(stored, str):
            stored = stored.encode("utf-8", "replace")
        listed = (
            self._source.parse(stored, allow_nan=True, what=what) if isinstance(stored, bytes) and stored else stored
        )
        if not isinstance(listed, list):
            raise DamagedRecording(f"{what} are not a list")
        return list(wrong_kinds.objects(self._source, listed, f"{message}: part"))

    def _event(self, row: JSON, items: list[JSON]) -> Event | None:
        role = chat.ROLES.get(fields.text(row, "role"))
        if role is None:
            self._source.notes.skip(f"message of role {fields.text(row, 'role')[:40] or 'none'}")
            return None
        parts = tuple(part for item in items for part in self._parts(item))
        return Event(role, parts, source_id=str(row.get("id") or ""), timestamp=_time(row.get("created_at")))

    def _parts(self, item: JSON) -> tuple[Part, ...]:  # noqa: PLR0911 - one return for each kind of part
        data = fields.mapping(item, "data")
        match fields.text(item, "type"):
            case "text":
                return (TextPart(fields.text(data, "text")),)
            case "reasoning":
                return (ReasoningPart(fields.text(data, "thinking"), opaque_bytes=_sealed(data)),)
            case "tool_call":
                self._facts.tool_call(fields.text(data, "id"))
                arguments = fields.arguments(data.get("input"))
                return (ToolCallPart(fields.text(data, "name"), arguments, fields.text(data, "id")),)
            case "tool_result":
                return self._result(data)
            case "binary":
                return (_attached(data),)
            case "shell_command":
                output = _ANSI.sub("", fields.text(data, "output"))
                return (
                    TextPart(f"$ {fields.text(data, 'command')}\n{output}\n(exit code {data.get('exit_code') or 0})"),
                )
            case "image_url":
                return (fields.media("", fields.text(data, "url")),)
            case kind if kind in NOT_SENT:
                return ()
            case kind:
                return (OtherPart(kind or "unknown", data or item),)

    def _result(self, data: JSON) -> tuple[Part, ...]:
        """The result of a call, and the picture that it may have returned, which is sent behind it."""
        content, call_id = fields.text(data, "content"), fields.text(data, "tool_call_id")
        self._facts.tool_result(call_id, len(content))
        result = ToolResultPart(fields.text(data, "name"), content, call_id, data.get("is_error") is True)
        picture = fields.text(data, "data")
        return (result, fields.media(_mime(data), picture)) if picture else (result,)

    def _summarised(self, builder: SessionBuilder, row: JSON, event: Event, finish: _Finish) -> None:
        self._facts.compaction()
        parts = tuple(part for part in event.parts if not isinstance(part, ReasoningPart))
        message = Event(Role.USER, parts, source_id=event.source_id, timestamp=event.timestamp, meta=True)
        builder.compactions.append(
            RecordedCompaction(
                at=len(builder.events),
                evidence=Evidence.DECLARED,
                kind="summary",
                base=(Inserted(0),),
                messages=(message,),
                summariser=ModelCall(at=len(builder.events), **_call(row, event, finish)) if finish.prompt else None,
                timestamp=event.timestamp,
            )
        )


def _finish(items: list[JSON]) -> _Finish:
    ends = [fields.mapping(item, "data") for item in items if item.get("type") == "finish"]
    end = ends[-1] if ends else {}
    prompt, completion = (fields.tokens(end, name) or None for name in ("prompt_tokens", "completion_tokens"))
    failed = fields.text(end, "reason") == "error"
    words = f"{fields.text(end, 'message')} {fields.text(end, 'details')}" if failed else ""
    return _Finish(prompt, completion, failed, words if names_length(words) else "")


def _call(row: JSON, event: Event, finish: _Finish) -> dict[str, Any]:
    """Fields of ModelCall."""
    model = served_model(fields.text(row, "provider"), fields.text(row, "model"))
    about = {"model": model, "timestamp": event.timestamp, "source_id": event.source_id}
    return {**about, "prompt_tokens": finish.prompt, "output_tokens": finish.completion}


def _append(builder: SessionBuilder, row: JSON, event: Event, finish: _Finish) -> None:
    place: dict[str, Any] = {"source_id": event.source_id, "timestamp": event.timestamp}
    if event.role is Role.MODEL and not finish.failed:
        builder.answer(event.parts, call=_call(row, event, finish), **place)
        return
    if finish.refused:
        builder.refuse(finish.refused)
    elif event.role is Role.MODEL:
        builder.calls.append(ModelCall(at=len(builder.events), **_call(row, event, finish)))
    builder.event(event.role, event.parts, **place)


def _continued(builder: SessionBuilder, event: Event) -> None:
    """Crush's own message after a summary: part of the compaction, unless messages that waited were sent before it."""
    message = msgspec.structs.replace(event, meta=True)
    last = msgspec.structs.replace(builder.compactions[-1], trigger="auto")
    if last.at == len(builder.events):
        inserted = (*last.messages, message)
        base = tuple(Inserted(index) for index in range(len(inserted)))
        last = msgspec.structs.replace(last, base=base, messages=inserted)
    else:
        builder.event(message.role, message.parts, source_id=message.source_id, timestamp=message.timestamp, meta=True)
    builder.compactions[-1] = last


def _attached(data: JSON) -> Part:
    """A file: text as Crush sends it to the model, anything else by its size."""
    mime = _mime(data)
    stored = fields.text(data, "Data") or fields.text(data, "data")
    if not mime.startswith("text/") or not stored:
        return fields.media(mime, stored) if stored else MediaPart(mime, fields.tokens(data, "size") or 0)
    try:
        text, _ = normalise.text(base64.b64decode(stored, validate=True).decode("utf-8", "replace"))
    except (binascii.Error, ValueError):
        return fields.media(mime, stored)
    path = fields.text(data, "Path")
    return TextPart(f"<file path='{path}'>\n\n{text}\n</file>\n" if path else f"<file>\n\n{text}\n</file>\n")


def _sealed(data: JSON) -> int:
    """Bytes of signed or encrypted reasoning."""
    signature = fields.text(data, "signature") or fields.text(data, "thought_signature")
    blob = fields.text(fields.mapping(data, "responses_data"), "encrypted_content")
    return sum(fields.opaque_size(text) for text in (signature, blob) if text)


def _ended_before(rows: list[JSON], seconds: float) -> bool:
    """Was the last message that has a time written before this one, in seconds since 1970."""
    ended = next((time for row in reversed(rows) if (time := _time(row.get("created_at")))), None)
    return ended is not None and ended < seconds


def _sums(header: JSON) -> str:
    """What a session row says that adds up the tokens of all calls, as a sentence. Cached ones were left out, so that
    it is no sum of their prompts."""
    prompt, completion = (fields.tokens(header, name) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if not prompt and not completion:
        return ""
    return (
        f" Before 9 May 2025 it added up those of all calls, cached ones left out: {prompt:,} prompt and "
        f"{completion:,} completion tokens."
    )


def _count_last(header: JSON, calls: MutableSequence[ModelCall], twice: set[str]) -> str:
    """Give the last answered call the tokens of the session row; what that row says, as a sentence. `twice`: the ids of
    calls whose cached tokens it counts twice."""
    prompt, completion = (fields.tokens(header, name) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if not prompt and not completion:
        return ""
    says = f" After the last one the session row says {prompt:,} prompt and {completion:,} completion tokens"
    last = next((index for index in reversed(range(len(calls))) if calls[index].response is not None), None)
    if not prompt or last is None:  # a prompt of 0: the summary was the last call
        return f"{says}."
    if calls[last].source_id in twice:
        return f"{says}, in which tokens from Gemini's cache count twice: they are not taken for its prompt."
    calls[last] = msgspec.structs.replace(calls[last], prompt_tokens=prompt + completion)
    return f"{says}; together they are taken as the prompt of step {last + 1}, so that its count includes its answer."


def _notes(header: JSON, rows: int) -> list[str]:
    notes = []
    if header.get("parent_session_id"):
        notes.append(f"A child session of {str(header['parent_session_id'])[:80]}.")
    counted = fields.tokens(header, "message_count")
    if counted is not None and counted > rows:
        missing = counted - rows
        notes.append(
            f"{missing:,} of {counted:,} messages {'is' if missing == 1 else 'are'} no longer in the database."
        )
    return notes


def _mime(data: JSON) -> str:
    return fields.text(data, "MIMEType") or fields.text(data, "mime_type")


def _time(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return normalise.timestamp(value)
    return normalise.seconds(value / 1000 if value >= _MILLISECONDS_FROM else float(value))
