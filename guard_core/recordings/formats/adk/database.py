"""ADK sessions in SQLite: the three layouts of `DatabaseSessionService`, `adk web` and the Go services.

Newer layouts keep the whole event as JSON in `event_data`; older ones have a column per field, where Python pickled
`actions`. A pickle can run code when it is read, so it never is: such actions are counted as left out.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.adk import events as adk_events
from guard_core.recordings.formats.adk.known_names import NAMES
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.sqlite_source import Database, DatabaseRow, tables
from guard_core.sessions import Session

Key = tuple[str, str, str]  # app, user, session
_PICKLE = b"\x80"  # the first byte of every pickle since protocol 2
# What a pickle hides, by the names of fields, which are in it as plain text: only a compaction has the one; the other
# is there always, and is nothing ("N") in all but a rewind.
_HIDDEN = {
    "compactions": re.compile(rb"start_timestamp"),
    "rewinds": re.compile(rb"rewind_before_invocation_id\x94[^N]"),
}
_JSON_COLUMNS = {
    "content": "content",
    "usage_metadata": "usageMetadata",
    "actions": "actions",
}
_PLAIN_COLUMNS = {
    "id": "id",
    "author": "author",
    "timestamp": "timestamp",
    "invocation_id": "invocationId",
    "branch": "branch",
    "isolation_scope": "isolationScope",
    "error_code": "errorCode",
    "model_version": "modelVersion",
}
_COLUMNS = ("app_name", "user_id", "session_id", "event_data", "partial", *_JSON_COLUMNS, *_PLAIN_COLUMNS)


class AdkDatabaseFormat:
    """Reads all sessions of an ADK database."""

    name = adk_events.NAME
    label = "Google ADK database"
    place = "sessions as JSON or SQLite"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        columns = tables(source)
        if "events" not in columns or "sessions" not in columns:
            return False
        return "app_states" in columns or "event_data" in columns["events"]

    def read(self, source: ByteSource) -> Recording:
        counter = FactCounter(self.name)
        with Database(source) as database:
            headers = _headers(database)
            events = _events(database, source)
            missing, notes = database.wal_sentence(), database.notes
        sessions: list[Session] = []
        for key, rows in events.items():
            header = headers.get(key, {"id": key[2], "appName": key[0]})
            contexts = adk_events.read_sessions(header, rows, source, counter)
            sessions.extend(_with_hidden(contexts, rows))
        with_events = tuple(session for session in sessions if session.events)
        if not with_events:
            raise DamagedRecording(missing) if missing else source.nothing_left("an ADK database without any message")
        noted = tuple(msgspec.structs.replace(session, notes=(*session.notes, *notes)) for session in with_events)
        return Recording(self.name, noted, counter.facts(), source.notes)


FORMAT = AdkDatabaseFormat()


def _headers(database: Database) -> dict[Key, dict[str, Any]]:
    headers: dict[Key, dict[str, Any]] = {}
    limit = database.source.limits.sessions
    for row in database.rows("sessions", ("app_name", "user_id", "id", "state")):
        if len(headers) >= limit:
            raise LimitExceeded(f"a database with more than {limit} sessions")
        key = _key(row, "id")
        with database.source.tolerate():
            state = database.json(row["state"], f"the state of session {len(headers) + 1}")
            headers[key] = {"id": key[2], "appName": key[0], "state": state}
    return headers


def _events(database: Database, source: ByteSource) -> dict[Key, list[Any]]:
    """Event objects by session, in the order of the rows."""
    sessions: dict[Key, list[Any]] = {}
    for number, row in enumerate(database.rows("events", _COLUMNS), start=1):
        with source.tolerate():
            event = _whole_event(database, row, number) or _event_of_columns(database, row, number)
            sessions.setdefault(_key(row, "session_id"), []).append(event)
        if source.progress is not None and number % 1000 == 0:
            source.progress(0, source.size)
    return sessions


def _key(row: DatabaseRow, session: str) -> Key:
    return str(row["app_name"] or ""), str(row["user_id"] or ""), str(row[session] or "")


def _whole_event(database: Database, row: DatabaseRow, number: int) -> dict[str, Any] | None:
    value = database.json(row["event_data"], f"event row {number}")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise DamagedRecording(f"event row {number}: event_data is not a JSON object")
    for column in ("id", "timestamp"):
        if value.get(column) is None:
            value[column] = row[column]
    return value


def _event_of_columns(database: Database, row: DatabaseRow, number: int) -> dict[str, Any]:
    event: dict[str, Any] = {name: row[column] for column, name in _PLAIN_COLUMNS.items()}
    event["partial"] = row["partial"] in (1, True, "true", "1")
    for column, name in _JSON_COLUMNS.items():
        value = row[column]
        if isinstance(value, bytes) and value.startswith(_PICKLE):
            database.source.notes.skip(f"pickled column {column} (never unpickled)")
            event["hidden"] = [kind for kind, mark in _HIDDEN.items() if mark.search(value)]
        else:
            event[name] = database.json(value, f"event row {number}, column {column}")
    return event


def _with_hidden(sessions: list[Session], rows: list[Any]) -> list[Session]:
    """The sessions with a note of the compactions and rewinds that only a pickle shows."""
    hidden = Counter(kind for row in rows for kind in row.get("hidden", ()))
    if not hidden:
        return sessions
    what = ", ".join(f"{kind} ({count})" for kind, count in sorted(hidden.items()))
    note = f"Pickled columns, which are never read, hide {what}: what these took away is shown in full."
    return [msgspec.structs.replace(session, notes=(*session.notes, note)) for session in sessions]
