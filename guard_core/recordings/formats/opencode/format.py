"""OpenCode: `opencode export`, the database `opencode.db`, and the lines of `opencode run --format json`.

An export is one object `{info, messages}`, the database the same in tables (session, message, part; ids in columns, the
rest as JSON in `data`). The lines of a run hold the parts of the assistant's messages as they were finished, without
the user's messages. Kilo Code writes all three: `kilo.db` has the tables of OpenCode and some of its own, its exports
and lines measure each step (`metrics`), and its sessions may name a permission that OpenCode does not know (7.7.9,
run). Its 7.0.33 (run) wrote nothing of its own but its version. Until 1.1 OpenCode kept every session, message and part
in a file of its own: one of these alone is not a recording and is refused with what to do. Sub-agents are sessions of
their own (`parentID`).
Source: https://github.com/sst/opencode, packages/opencode/src/cli/cmd (export.ts, run.ts) and src/storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.agent_versions import numbers
from guard_core.errors import DamagedRecording, LimitExceeded, UnknownFormat
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.opencode.known_names import NAMES
from guard_core.recordings.formats.opencode.session import KILO, LABEL, NAME, read_session
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Database, DatabaseRow, tables
from guard_core.recordings.reading.states import SessionState, superseded
from guard_core.sessions import Session

# Kinds of lines of a run, which each hold a part; an error line holds none (run.ts).
RUN_KINDS = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use"})
KILO_PERMISSION = "suggest"  # a tool of Kilo Code that sessions of `kilo run` forbid (7.7.9)
KILO_VERSION = (7,)  # the first number of Kilo Code's versions (7.0.33, run); OpenCode's have begun with 0 or 1
KILO_TABLES = "kilo_"  # how tables begin that only Kilo Code has (7.7.9: kilo_board, kilo_board_message)
# How the ids of OpenCode begin (id.ts), and what a file of the folder storage with such an id is.
LOOSE = {"ses_": "session", "msg_": "message", "prt_": "part"}


class OpenCodeFormat:
    """Exported sessions, the database and the run lines of OpenCode."""

    name = NAME
    label = LABEL
    place = "~/.local/share/opencode/opencode.db"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.SQLITE:
            schema = tables(source)
            columns = {name for table in ("message", "part") for name in schema.get(table, ())}
            return "session" in schema and {"session_id", "message_id", "data"} <= columns
        if source.shape is SourceShape.LINES:
            heads = [line.obj for line in source.head_lines()]
            return any(_is_run_line(item) or _is_export(item) for item in heads)
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head()
        if isinstance(value, list):
            return bool(value) and all(_is_export(item) for item in value[:5])
        return _is_export(value) or _is_run_line(value) or bool(_loose(value))

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(NAME)
        sessions = list(_sessions(source, facts))
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


def _sessions(source: ByteSource, facts: FactCounter) -> Iterator[Session]:
    if source.shape is SourceShape.SQLITE:
        yield from _from_database(source, facts)
    elif source.shape is SourceShape.LINES or _is_run_line(source.json_head()):
        yield from _from_lines(source, facts)
    else:
        value = source.json_head()
        if kind := _loose(value):
            session = fields.text(value, "sessionID") or fields.text(value, "id")
            raise UnknownFormat(
                f"this is one {kind} of OpenCode's storage folder, which keeps every message and part in a file of its "
                f"own: import what `opencode export {session[:60]}` writes"
            )
        earlier = superseded(_state(place, item) for place, item in enumerate(fields.objects(source.elements())))
        for place, item in enumerate(fields.objects(source.elements())):
            if place in earlier:
                source.notes.folded += 1
            else:
                yield read_session(item, source, facts, agent=_writer(item))


def _writer(export: JSON) -> str:
    """Who wrote an export or the lines of a run: Kilo Code, where something in them is its own."""
    permissions = fields.objects(fields.mapping(export, "info").get("permission"))
    steps = (part for item in fields.objects(export.get("messages")) for part in fields.objects(item.get("parts")))
    is_kilos = numbers(fields.text(fields.mapping(export, "info"), "version")) >= KILO_VERSION
    is_kilos = is_kilos or any(fields.text(item, "permission") == KILO_PERMISSION for item in permissions)
    is_kilos = is_kilos or any(fields.text(part, "type") == "step-finish" and "metrics" in part for part in steps)
    return KILO if is_kilos else LABEL


def _is_export(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    messages = value.get("messages")
    return isinstance(messages, list) and all(
        isinstance(item, dict) and "parts" in item and "info" in item for item in messages[:5]
    )


def _state(place: int, export: JSON) -> SessionState:
    """Which session an export is of, and which of its messages it has."""
    messages = (fields.mapping(item, "info") for item in fields.objects(export.get("messages")))
    keys = (
        (fields.text(info, "id"), fields.text(info, "role"), fields.timestamp(fields.mapping(info, "time"), "created"))
        for info in messages
    )
    return SessionState(place, fields.text(fields.mapping(export, "info"), "id"), tuple(keys))


def _is_run_line(value: Any) -> bool:
    part = fields.mapping(value, "part")
    return fields.text(value, "type") in RUN_KINDS and "sessionID" in value and "messageID" in part


def _loose(value: Any) -> str:
    """What a file of the folder storage holds: a session, a message or a part; empty for any other value."""
    kind = LOOSE.get(fields.text(value, "id")[:4], "")
    needed = {"session": ("title", "version", "time"), "message": ("sessionID", "role"), "part": ("messageID", "type")}
    return kind if kind and all(key in value for key in needed[kind]) else ""


def _from_lines(source: ByteSource, facts: FactCounter) -> Iterator[Session]:
    """Exports, one a line; or the lines of runs: the parts of each session's messages, in their order."""
    runs: dict[str, dict[str, list[JSON]]] = {}
    is_export = any(_is_export(line.obj) for line in source.head_lines())
    exports = (line for line in source.lines() if _is_export(line.obj)) if is_export else iter(())
    earlier = superseded(_state(line.number, line.obj) for line in exports)
    for line in source.lines():
        if line.number in earlier:
            source.notes.folded += 1
        elif _is_export(line.obj):
            yield read_session(line.obj, source, facts, agent=_writer(line.obj))
        elif _is_run_line(line.obj):
            part = fields.mapping(line.obj, "part")
            messages = runs.setdefault(fields.text(line.obj, "sessionID"), {})
            messages.setdefault(fields.text(part, "messageID"), []).append(part)
        else:
            source.notes.skip(f"{fields.text(line.obj, 'type')[:40] or 'unnamed'} line")
    for name, messages in runs.items():
        # The parts of one run as an export has them.
        listed = [{"info": {"id": key, "role": "assistant"}, "parts": parts} for key, parts in messages.items()]
        run = {"info": {"id": name}, "messages": listed}
        notes = ["The user's messages are not in the file."]
        yield read_session(run, source, facts, agent=_writer(run), notes=notes)


def _from_database(source: ByteSource, facts: FactCounter) -> list[Session]:
    """Every session of the database that has messages, in the order in which they began."""
    sessions: list[Session] = []
    with Database(source) as database:
        is_kilos = any(name.startswith(KILO_TABLES) for name in database.tables)
        for row in list(database.rows("session", order=("time_created", "id"))):
            if len(sessions) >= source.limits.sessions:
                raise LimitExceeded(f"more than {source.limits.sessions} sessions in the database")
            export = _exported(database, row)
            if export["messages"]:
                agent = KILO if is_kilos else _writer(export)
                sessions.append(read_session(export, source, facts, agent=agent, notes=database.notes))
            else:
                source.notes.skip("session without messages")
        missing = database.wal_sentence()
        if later := database.count("session_message"):
            source.notes.problem(
                f"{counted(later, 'row')} of the table session_message left out, which no released version reads"
            )
    if not sessions:
        raise DamagedRecording(missing or "the database holds no session with messages")
    return sessions


def _exported(database: Database, session: DatabaseRow) -> JSON:
    """One session as the export has it: ids are in columns, the rest in `data`."""
    key = {"session_id": session.get("id")}
    parts: dict[Any, list[JSON]] = {}
    for row in database.rows("part", ("id", "message_id", "data"), where=key, order=("id",)):
        part = _data(database, row, "part")
        parts.setdefault(row["message_id"], []).append({**part, "id": row["id"]})
    columns = ("id", "time_created", "data")
    messages: list[JSON] = [
        {"info": {**_data(database, row, "message"), "id": row["id"]}, "parts": parts.get(row["id"], [])}
        for row in database.rows("message", columns, where=key, order=("time_created", "id"))
    ]
    info: JSON = {**session, "parentID": session.get("parent_id"), "time": {"created": session.get("time_created")}}
    info["revert"] = fields.decoded(session.get("revert"))
    return {
        "info": {**info, **(_data(database, session, "session") if session.get("data") else {})},
        "messages": messages,
    }


def _data(database: Database, row: DatabaseRow, what: str) -> JSON:
    with database.source.tolerate():
        name = f"{what} {str(row.get('id'))[:60]}"
        value = database.json(row.get("data"), name)
        if isinstance(value, dict):
            return value
        raise DamagedRecording(f"the data of {name} are not an object")
    return {}


FORMAT = OpenCodeFormat()
