"""Goose: the database `sessions.db`, an exported session (one JSON object), and the lines of older versions.

A compaction hides every message from the model (`agentVisible`), and adds a summary of the user and a text of the
assistant that asks to continue, both hidden from the user; behind them comes a copy of the user's last message, unless
the user asked for the compaction. So two such messages side by side declare one, and the copy is no message of its
own. Other messages that only the model sees are one-line summaries of tool calls, which newer versions put in their
place: the file does not say when.
Newer databases have a table with the tokens of every call (`usage_ledger`), compactions marked in it. It names no
message, so they are given to the calls in their order where there are as many. Otherwise a session has those of its
last call, with cached tokens included; after a compaction, the size of the summary is in their place, without output.
System prompt and tools are not in the file.
Source: https://github.com/aaif-goose/goose, formerly block/goose, crates/goose/src: `session/session_manager.rs`,
`session/legacy.rs`, `conversation/message.rs`, `context_mgmt/mod.rs`, `agents/reply_parts.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from guard_core.events import (
    Event,
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
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Database, tables
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Span

NAME = "goose"
_COUNTS = ("input_tokens", "output_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens")
_REQUESTS = frozenset({"toolRequest", "frontendToolRequest"})
_OWN_BLOCKS = _REQUESTS | {"toolResponse", "toolConfirmationRequest", "actionRequired", "systemNotification"}
# What is displayed, or says something to the program; none of it is sent to the model.
_DISPLAYED = frozenset(
    {"toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted"}
    | {"contextLengthExceeded", "summarizationRequested", "jsonRenderSpec"}
)
_WINDOW = "context_limit in the session's model configuration"


class GooseFormat:
    name = NAME
    label = "Goose"
    place = "~/.local/share/goose/sessions/sessions.db"
    known_names = Names(
        beside=words(" ".join(_COUNTS)) | {f"accumulated_{name}" for name in _COUNTS},
        tools=words("toolCall toolResult content value") | _REQUESTS | {"toolResponse", "toolConfirmationRequest"},
        windows=words("context_limit"),
        passed_over=words("metadata extension_data recipe user_recipe_values _meta meta structuredContent data"),
    )

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.SQLITE:
            return "content_json" in tables(source).get("messages", ()) and "sessions" in tables(source)
        if source.shape is SourceShape.LINES:
            return any(_is_header(line.obj) or _is_own(line.obj) for line in source.head_lines())
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return isinstance(value, dict) and "working_dir" in value and isinstance(value.get("conversation"), list)

    def read(self, source: ByteSource) -> Recording:
        facts, sessions = FactCounter(NAME), []
        for stored in _sessions(source):
            reader = _SessionReader(source, facts)
            reader.read(stored.messages)
            if session := reader.session(stored):
                sessions.append(session)
        if not sessions:
            raise source.nothing_left("no session with messages")
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


FORMAT = GooseFormat()


class _GooseSession(NamedTuple):
    """What is said of a session, its messages, the counts of its calls, and what a person should know of its file."""

    header: JSON
    messages: list[JSON]
    ledger: list[JSON] = []
    notes: tuple[str, ...] = ()


def _is_header(record: JSON) -> bool:
    """The first line of an older session, which says where and how much."""
    return "working_dir" in record and not record.keys().isdisjoint(("message_count", "accumulated_total_tokens"))


def _is_own(record: JSON) -> bool:
    """A message with a block that only Goose writes."""
    return any(fields.text(block, "type") in _OWN_BLOCKS for block in fields.objects(record.get("content")))


def _sessions(source: ByteSource) -> Iterator[_GooseSession]:
    if source.shape is SourceShape.SQLITE:
        yield from _stored(source)
    elif source.shape is SourceShape.LINES:
        lines = [{**line.obj, "line": line.number} for line in source.lines()]
        headers = [line for line in lines if _is_header(line)]
        yield _GooseSession(headers[0] if headers else {}, [line for line in lines if not _is_header(line)])
    else:
        value = source.json()
        yield _GooseSession(value, list(wrong_kinds.objects(source, value.get("conversation"), "message")))


def _stored(source: ByteSource) -> Iterator[_GooseSession]:
    """The sessions of a database, in their order."""
    with Database(source) as database:
        headers = list(database.rows("sessions", order=("created_at", "rowid")))
        known = {row.get("id") for row in headers}
        lost = {row.get("session_id"): None for row in database.rows("messages", ("session_id",))}
        headers += [{"id": name} for name in lost if name not in known]
        for header in headers:
            with source.tolerate():
                config = database.json(header.get("model_config_json"), "the configuration of a session's model")
                header = {**header, "model_config": config}
            where = {"session_id": header.get("id")}
            messages = [
                message
                for row in database.rows("messages", where=where, order=("rowid",))
                if (message := _row(source, database, row))
            ]
            ledger: list[JSON] = []
            with source.tolerate():
                ledger = list(database.rows("usage_ledger", where=where, order=("rowid",)))
            yield _GooseSession(header, messages, ledger, database.notes)


def _row(source: ByteSource, database: Database, row: JSON) -> JSON | None:
    """A message as an export has it."""
    with source.tolerate():
        content = database.json(row.get("content_json"), "a message")
        about = database.json(row.get("metadata_json"), "what is said of a message")
        name, when = row.get("message_id"), row.get("created_timestamp")
        return {"id": name, "role": row.get("role"), "created": when, "content": content, "metadata": about}
    return None


class _SessionReader:
    """Reads the messages of one session, of which compactions hide some."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self._source = source
        self._facts = facts
        self._log = SessionBuilder(NAME, source)
        self._summary: Event | None = None  # perhaps: the next message shows whether it is one
        self._awaits_copy = False  # the next message may be the copy of one that was hidden
        self._hidden = self._lines = 0  # messages hidden behind the last compaction, and lines of tool calls
        facts.session()

    def read(self, messages: list[JSON]) -> None:
        for message in messages:
            line = message.get("line")
            with self._source.tolerate(line):
                self._message(message, line)
        self._end_summary()

    def _message(self, message: JSON, line: int | None) -> None:
        role = chat.ROLES.get(fields.text(message, "role"))
        if role is None:
            self._source.notes.skip(f"message of the role {fields.text(message, 'role')[:40] or 'none'}")
            return
        wrong_kinds.check_words(self._source, message, "content", "a message", line)
        self._facts.message()
        parts = [part for block in fields.objects(message.get("content")) for part in self._parts(block)]
        if not parts:
            return
        name, when = fields.text(message, "id"), fields.timestamp(message, "created")
        event = Event(role, tuple(parts), name, line, when)
        about = fields.mapping(message, "metadata")
        is_inserted = about.get("userVisible") is False
        if is_inserted and role is Role.MODEL and self._summary is not None:
            self._compacted(self._summary, event, line)
            self._summary = None
            return
        self._end_summary()
        if is_inserted and role is Role.USER:
            self._summary = event
        elif not (self._awaits_copy and self._is_copy(event)):
            self._hidden += about.get("agentVisible") is False
            self._append(event)
        self._awaits_copy = False

    def _end_summary(self) -> None:
        """What the user does not see was no summary of a compaction, but a line."""
        if self._summary is not None:
            self._lines += 1
            self._append(replace(self._summary, meta=True))
        self._summary = None

    def _append(self, event: Event) -> None:
        self._facts.parts(event.parts)
        about: JSON = {"source_id": event.source_id, "line": event.line, "timestamp": event.timestamp}
        log = self._log
        is_first = not log.events or (bool(log.compactions) and log.compactions[-1].at == len(log.events))
        if event.role is not Role.MODEL:
            log.event(event.role, event.parts, meta=event.meta, **about)
        elif is_first or log.events[-1].role is not Role.MODEL:
            log.answer(event.parts, call=about, **about)
        else:  # more of the same answer
            log.events[-1] = replace(log.events[-1], parts=(*log.events[-1].parts, *event.parts))

    def _compacted(self, summary: Event, request: Event, line: int | None) -> None:
        """A summary and the text that asks to continue took the place of all before them."""
        self._facts.compaction()
        inserted = (replace(summary, meta=True), replace(request, meta=True))
        text = "".join(part.text for part in summary.parts if isinstance(part, TextPart))
        self._log.compaction(
            RecordedCompaction(
                at=len(self._log.events),
                evidence=Evidence.DECLARED,
                kind="summary" if text.strip() else "empty",
                base=(Inserted(0), Inserted(1)),
                messages=inserted,
                trigger="manual",
                line=line,
                timestamp=summary.timestamp,
            )
        )
        self._hidden, self._awaits_copy = 0, True

    def _is_copy(self, event: Event) -> bool:
        """Is a message behind a compaction the copy of the user's last one, which stays in the context? That one is
        hidden from the user, too, where no answer was between."""
        events, last = self._log.events, self._log.compactions[-1]
        turns = (at for at in reversed(range(last.at)) if events[at].starts_turn())
        place = last.at - 1 if last.at and events[last.at - 1].meta else next(turns, None)
        if place is None or event.role is not Role.USER or _words(events[place]) != _words(event):
            return False
        if events[place].meta:
            self._lines -= 1
            events[place] = replace(events[place], meta=False)
        kept = replace(last, base=(*last.base, Span(place, place + 1)), kind="summary+tail", trigger="auto")
        self._log.compactions[-1] = kept
        return True

    def _parts(self, block: JSON) -> list[Part]:
        kind, name = fields.text(block, "type"), fields.text(block, "id")
        if kind == "text":
            wrong_kinds.check_words(self._source, block, "text", "a block")
            return [TextPart(text)] if (text := fields.text(block, "text")) else []
        if kind in {"thinking", "reasoning"}:
            signature = fields.text(block, "signature")
            text = fields.text(block, "thinking") or fields.text(block, "text")
            return [ReasoningPart(text, fields.opaque_size(signature) if signature else 0)]
        if kind == "redactedThinking":
            return [ReasoningPart("", fields.opaque_size(fields.text(block, "data")))]
        if kind == "image":
            return [fields.media(fields.text(block, "mimeType"), fields.text(block, "data"))]
        if kind in _REQUESTS:
            call = fields.mapping(block, "toolCall")
            value = fields.mapping(call, "value")
            arguments = value.get("arguments") if value else fields.text(call, "error")
            return [ToolCallPart(fields.text(value, "name"), arguments, name)]
        if kind == "toolResponse":
            return _result(block, name)
        if kind in _DISPLAYED:
            self._source.notes.skip(f"{kind} block, which is displayed")
            return []
        return [OtherPart(kind or "unknown", block)]

    # -- the session

    def session(self, stored: _GooseSession) -> Session | None:
        """The session; None where it has no messages."""
        header = stored.header
        if not self._log.events and not self._log.compactions:
            self._source.notes.skip("session without messages")
            return None
        config = fields.mapping(header, "model_config")
        model = fields.text(config, "model_name")
        self._log.calls = [replace(call, model=model) for call in self._log.calls]
        wrong_kinds.check_counts(self._source, header, _COUNTS, "a session")
        notes = [*stored.notes, *self._count(header, stored.ledger), "System prompt and tools are not in the file."]
        if self._lines:
            notes.append(
                f"{counted(self._lines, 'message')} that only the model sees, of tool calls that were summarised: the "
                f"file does not say when. {counted(self._hidden, 'message')} hidden by them stay in the log."
            )
        self._log.states_window(0, fields.window(config, "context_limit"))
        return self._log.session(
            source_id=str(header.get("id") or ""),
            title=fields.text(header, "name") or fields.text(header, "description"),
            parent=str(header.get("parent_session_id") or ""),
            agent="Goose",
            model=model,
            window=self._log.window(_WINDOW),
            started_at=fields.timestamp(header, "created_at"),
            notes=notes,
        )

    def _count(self, header: JSON, ledger: list[JSON]) -> list[str]:
        """Give the calls the tokens that the file has; what it has of them, in words."""
        own = [row for row in ledger if not row.get("is_compaction")]
        calls, log = self._log.calls, self._log
        compacted_at = log.compactions[-1].at if log.compactions else 0
        ends_compacted = bool(calls) and (calls[-1].response or 0) < compacted_at
        if own and len(own) == len(calls):
            log.calls = [replace(call, **_counts(row)) for call, row in zip(calls, own, strict=True)]
            self._count_summaries([row for row in ledger if row.get("is_compaction")])
        elif calls and fields.tokens(header, "output_tokens") and not ends_compacted:
            log.calls = [*calls[:-1], replace(calls[-1], **_counts(header))]
        for call in (*log.calls, *(item.summariser for item in log.compactions if item.summariser)):
            if call.prompt_tokens:
                self._facts.call(call.prompt_tokens)
        if own and len(own) == len(calls):
            return []
        if not own:
            last = any(call.prompt_tokens for call in log.calls)
            return [f"The file has tokens of no call{' but the last' if last else ''}."]
        return [
            f"The table of calls has {len(own)}, the messages show {counted(len(calls), 'call')}: at most the tokens "
            "of the last one are known."
        ]

    def _count_summaries(self, rows: list[JSON]) -> None:
        compactions = self._log.compactions
        if len(rows) == len(compactions):
            self._log.compactions = [
                replace(item, summariser=ModelCall(item.at, **_counts(row)))
                for item, row in zip(compactions, rows, strict=True)
            ]


def _counts(row: JSON) -> JSON:
    """The counts of one call, as fields of ModelCall."""
    prompt, output = fields.tokens(row, "input_tokens"), fields.tokens(row, "output_tokens")
    model = fields.text(row, "model")
    return {
        "prompt_tokens": prompt or None,
        "output_tokens": output,
        "cached_tokens": fields.tokens(row, "cache_read_tokens"),
        "cache_write_tokens": fields.tokens(row, "cache_write_tokens"),
        **({"model": model} if model else {}),
    }


def _result(block: JSON, name: str) -> list[Part]:
    """What a tool gave back: the words for the model, and pictures beside them."""
    result = fields.mapping(block, "toolResult")
    value = result.get("value")
    texts: list[str] = []
    pictures: list[Part] = []
    for item in fields.objects(value if isinstance(value, list) else fields.items(value, "content")):
        audience = fields.mapping(item, "annotations").get("audience")
        if isinstance(audience, list) and "assistant" not in audience:
            continue
        if fields.text(item, "type") == "image":
            pictures.append(fields.media(fields.text(item, "mimeType"), fields.text(item, "data")))
        else:
            resource = fields.mapping(item, "resource")
            texts.append(fields.text(item, "text") or fields.text(resource, "text") or fields.text(item, "uri"))
    failed = fields.text(result, "status") == "error" or fields.mapping(result, "value").get("isError") is True
    content = fields.text(result, "error") if fields.text(result, "status") == "error" else "\n".join(texts)
    return [ToolResultPart("", content, name, failed), *pictures]


def _words(event: Event) -> str:
    return "\n".join(part.text for part in event.parts if isinstance(part, TextPart))
