"""Hermes' message rows as a session: rows that a compaction wrote again are told apart from new ones.

A compaction in place marks the rows of the context as compacted and writes the new context behind them: the head, the
summary, the tail. The copies keep role, time and call id of their originals, and often a shortened content. Before
version 0.19 a compaction ended the session and began a child session with the new context.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import chat, fields
from guard_core.recordings.base import ImportNotes
from guard_core.recordings.build import SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.limits import Limits
from guard_core.sessions import Evidence, RecordedCompaction, Session, Sourced
from guard_core.sessions import Source as NumberSource
from guard_core.views import Inserted, Rewritten, Segment, Span

MARKERS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")  # how Hermes' own summaries begin, new and old
JSON_PREFIX = "json:"  # of content that is a list of parts, behind a NUL


class RowReader:
    """Takes the rows of one session (or of a chain of sessions) in the order in which they were written."""

    def __init__(self, limits: Limits, notes: ImportNotes) -> None:
        self.builder = SessionBuilder("hermes", limits=limits)
        self._notes = notes
        self._originals: dict[tuple[Any, ...], int] = {}
        self._batch: list[tuple[int | None, Event]] = []  # the rows of a rewritten context: place in the log, message
        self._batch_time: float | None = None
        self._leading = False  # at the head of a child session: copies may have new times
        self._compacted = False

    def rows(self, rows: Iterable[JSON], *, declared: bool) -> None:
        """Rows of one session. `declared`: has the recording a sign of its own for compactions (rows, a parent)?"""
        for row in rows:
            self._take(row, declared)
        self._close(declared)

    def child(self, rows: Iterable[JSON]) -> None:
        """Rows of a session that goes on after a compaction."""
        self._leading = True
        before = len(self.builder.compactions)
        self.rows(rows, declared=True)
        self._leading = False
        if len(self.builder.compactions) == before:
            self._notes.skip("compaction without a summary in the file")

    def _take(self, row: JSON, declared: bool) -> None:
        event = row_event(row)
        if event is None:
            self._notes.skip(f"row of role {fields.text(row, 'role')[:40] or 'none'}")
            return
        compacted = _flag(row, "compacted")
        self._compacted = self._compacted or compacted
        if not compacted and row.get("active") is not None and not _flag(row, "active"):
            self._notes.skip("row that was taken back")
            return
        if is_summary(event):
            self._batch_time = event.timestamp
            self._batch.append((None, event))
            return
        place = self._original(row, event, declared)
        if place is not None:
            self._notes.folded += 1
            self._batch.append((place, event))
            return
        if self._batch and not declared and self._belongs_before_summary(event):
            self._batch.append((self._log(row, event), event))
            return
        self._close(declared)
        self._leading = False
        self._log(row, event)

    def _belongs_before_summary(self, event: Event) -> bool:
        """In an export, a row behind the summary with an earlier time is kept tail."""
        return self._batch_time is not None and event.timestamp is not None and event.timestamp < self._batch_time

    def _original(self, row: JSON, event: Event, declared: bool) -> int | None:
        """The log's event that a row repeats; only where the file can hold copies at all."""
        if not declared or not (self._compacted or self._leading):
            return None
        keys = [_time_key(row, event)]
        if self._leading:
            keys.append(_content_key(row, event))
        return next((self._originals[key] for key in keys if key is not None and key in self._originals), None)

    def _log(self, row: JSON, event: Event) -> int:
        place: dict[str, Any] = {"source_id": event.source_id, "timestamp": event.timestamp}
        if event.role is Role.MODEL:
            call = {"timestamp": event.timestamp, "source_id": event.source_id}
            index = self.builder.answer(event.parts, call=call, **place)
        else:
            index = self.builder.event(event.role, event.parts, **place)
        for key in (_time_key(row, event), _content_key(row, event)):
            if key is not None:
                self._originals[key] = index
        return index

    def _close(self, declared: bool) -> None:
        """The rewritten context is complete: it is a compaction when it has a summary or when rows were compacted."""
        batch, self._batch = self._batch, []
        summaries = [event for place, event in batch if place is None]
        if not batch or (not summaries and not self._compacted):
            return
        if not declared:  # an export: what stands before the summary was kept at the head
            first = next((place for place, _ in batch if place is not None), len(self.builder.events))
            batch = [(index, self.builder.events[index]) for index in range(first)] + batch
        self.builder.compactions.append(
            RecordedCompaction(
                at=len(self.builder.events),
                evidence=Evidence.DECLARED if declared else Evidence.MATCHED,
                kind=_kind(batch),
                base=tuple(self._segments(batch)),
                messages=tuple(summaries),
                timestamp=summaries[0].timestamp if summaries else None,
                note="" if declared else "The history before the compaction is not in the file.",
            )
        )

    def _segments(self, batch: list[tuple[int | None, Event]]) -> list[Segment]:
        segments: list[Segment] = []
        inserted = 0
        for place, event in batch:
            last = segments[-1] if segments else None
            if place is None:
                segments.append(Inserted(inserted))
                inserted += 1
            elif event.parts != self.builder.events[place].parts:
                segments.append(Rewritten(place, event, "shortened by the compaction"))
            elif isinstance(last, Span) and last.stop == place:
                segments[-1] = Span(last.start, place + 1)
            else:
                segments.append(Span(place, place + 1))
        return segments


def is_summary(event: Event) -> bool:
    """Does a message begin as Hermes' summaries do? Tool results never count."""
    first = event.parts[0] if event.parts else None
    return isinstance(first, TextPart) and first.text.startswith(MARKERS)


def row_event(row: JSON) -> Event | None:
    """One row as an event; None for a role that is no message."""
    role = chat.ROLES.get(fields.text(row, "role"))
    if role is None:
        return None
    message = {"content": _content(row.get("api_content") or row.get("content")), **_tool_fields(row)}
    parts = chat.result_parts(message) if fields.text(row, "role") in chat.RESULT_ROLES else _parts(row, message)
    name = row.get("id")
    source_id = str(name) if isinstance(name, int | str) and not isinstance(name, bool) else ""
    return Event(role, parts, source_id=source_id, timestamp=fields.timestamp(row, "timestamp"))


def _tool_fields(row: JSON) -> JSON:
    return {
        "tool_calls": fields.decoded(row.get("tool_calls")),
        "tool_call_id": row.get("tool_call_id"),
        "name": row.get("tool_name") or row.get("name"),
    }


def _content(content: Any) -> Any:
    """Text, or the list of parts that Hermes stores as JSON behind a NUL."""
    if isinstance(content, str) and content[:1] in {"\x00", "␀"} and content[1:].startswith(JSON_PREFIX):
        return fields.decoded(content[1 + len(JSON_PREFIX) :])
    return content


def _parts(row: JSON, message: JSON) -> tuple[Part, ...]:
    readable = fields.text(row, "reasoning_content") or fields.text(row, "reasoning")
    head: tuple[Part, ...] = (ReasoningPart(readable),) if readable else ()
    return (*head, *chat.message_parts(message))


def _flag(row: JSON, key: str) -> bool:
    value = row.get(key)
    return value is True or (isinstance(value, int) and value != 0)


def _call_ids(event: Event) -> tuple[str, ...]:
    called = (part.id for part in event.parts if isinstance(part, ToolCallPart))
    answered = (part.call_id for part in event.parts if isinstance(part, ToolResultPart))
    return (*called, *answered)


def _time_key(row: JSON, event: Event) -> tuple[Any, ...] | None:
    if event.timestamp is None:
        return None
    return "time", fields.text(row, "role"), event.timestamp, _call_ids(event)


def _content_key(row: JSON, event: Event) -> tuple[Any, ...]:
    ids = _call_ids(event)
    return "content", fields.text(row, "role"), ids or fields.plain_text(row.get("content"))


def _kind(batch: list[tuple[int | None, Event]]) -> str:
    places = [place for place, _ in batch]
    if None not in places:
        return "trim"
    last = len(places) - 1 - places[::-1].index(None)
    return "summary" if last == len(places) - 1 else "summary+tail"


def about(row: JSON) -> dict[str, Any]:
    """The session's own fields, as fields of Session."""
    prompt = fields.text(row, "system_prompt")
    config = fields.decoded(row.get("model_config"))
    window = fields.first_tokens(config, "context_length", "context_window")
    return {
        "system": (TextPart(prompt),) if prompt else None,
        "tools": chat.tool_definitions(fields.decoded(row.get("tools"))),
        "agent": "Hermes",
        "model": fields.text(row, "model"),
        "title": fields.text(row, "title") or fields.text(row, "display_name"),
        "source_id": fields.text(row, "id") or fields.text(row, "session_id"),
        "started_at": fields.timestamp(row, "started_at") or fields.timestamp(row, "session_start"),
        "window": Sourced(window, NumberSource.RECORDER, "model_config of the session") if window else None,
    }


def usage_note(row: JSON) -> str:
    """The session's totals in words; Hermes records no tokens per call."""
    counts = [fields.tokens(row, key) or 0 for key in ("input_tokens", "cache_read_tokens", "cache_write_tokens")]
    calls = fields.tokens(row, "api_call_count") or 0
    if not calls or not sum(counts):
        return "Hermes records no tokens per call."
    return (
        f"Hermes records tokens per session only: {sum(counts)} prompt tokens (cached ones included) in {calls} calls, "
        f"{sum(counts) // calls} on average."
    )


def finish(reader: RowReader, row: JSON, notes: Iterable[str] = ()) -> Session:
    """The session of a reader that has taken all rows; `row` is the session's own."""
    reader.builder.notes.append(usage_note(row))
    return reader.builder.session(**about(row), notes=tuple(notes))
