"""OpenClaw's sessions: pi's entries, in lines or, in newer versions, in a SQLite database for each agent.

The table `transcript_events` has an entry a row, some behind zstd; `session_nodes` says of each session which window
was resolved for its model (`contextTokens`). Entries that only OpenClaw writes name it (`__openclaw`, or a `customType`
that begins with its name); files of lines show it by a `model-snapshot`. One of its entries, `openclaw.cache-ttl`,
lists the results of tools as they are sent from then on: those with `texts` are sent cut. What it puts into a request
itself is not in the database: the time before each message of the user, and a last message of the user with what runs
in the background.
Source: OpenClaw 2026.4.22 and 2026.9.6, run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from guard_core.recordings.reading import fields, zstd_frames
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.recordings.reading.sqlite_source import Database, DatabaseRow, tables

NAME = "OpenClaw"
WINDOW_NOTE = "contextTokens of the session"
EVENTS, NODES = "transcript_events", "session_nodes"
_OWN = "openclaw."  # how kinds of its own entries begin
_SENT_RESULTS = "openclaw.cache-ttl"
_SNAPSHOT = "model-snapshot"
_PUNCTUATION = re.compile(r"[^0-9A-Za-z]+")  # which it takes out of ids of calls before some providers


class StoredSession(NamedTuple):
    """A session of the database: its entries as lines, numbered as they were written and read when they are asked for,
    and the window in tokens."""

    lines: Iterator[Line]
    window: int | None


def is_its(entry: dict[str, Any]) -> bool:
    """Did OpenClaw write an entry."""
    marked = "__openclaw" in entry or "__openclaw" in fields.mapping(entry, "message")
    kind = fields.text(entry, "customType")
    return marked or kind.startswith(_OWN) or kind == _SNAPSHOT


def is_database(source: ByteSource) -> bool:
    """Is this the database of an agent of OpenClaw."""
    return {"session_id", "seq", "event_json"} <= set(tables(source).get(EVENTS, ()))


def stored_sessions(source: ByteSource) -> Iterator[StoredSession]:
    """The sessions of a database in the order in which they began."""
    with Database(source) as database:
        windows = {str(row.get("current_session_id")): _window(database, row) for row in database.rows(NODES)}
        names = dict.fromkeys(
            str(row.get("session_id")) for row in database.rows(EVENTS, ("session_id",), order=("rowid",))
        )
        for name in names:
            rows = database.rows(EVENTS, where={"session_id": name}, order=("seq",))
            lines = (line for row in rows if (line := _line(database, row)) is not None)
            yield StoredSession(lines, windows.get(name))


def sent_results(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The results that are sent cut from here on: the id of each call without its punctuation, and the text."""
    if fields.text(entry, "customType") != _SENT_RESULTS:
        return
    for item in fields.objects(fields.mapping(entry, "data").get("frozenToolResults")):
        texts = [text for text in fields.items(item, "texts") if isinstance(text, str)]
        _, _, rest = fields.text(item, "key").partition(":")
        if texts and (call_id := plain_id(rest.partition(":")[0])):
            yield call_id, "".join(texts)


def plain_id(call_id: str) -> str:
    """The id of a call as entries about results have it."""
    return _PUNCTUATION.sub("", call_id)


def _window(database: Database, row: DatabaseRow) -> int | None:
    """The context window of an entry in tokens. Its other counts are sums and estimates."""
    with database.source.tolerate():
        entry = database.json(row.get("entry_json"), "")
        return fields.tokens(entry, "contextTokens") if isinstance(entry, dict) else None
    return None


def _line(database: Database, row: DatabaseRow) -> Line | None:
    """The entry of a row; None where there is none that can be read."""
    source, what = database.source, f"event {row.get('seq')} of session {str(row.get('session_id'))[:60]}"
    with source.tolerate():
        stored = row.get("event_json") or row.get("event_zstd")
        raw = stored.encode("utf-8", "replace") if isinstance(stored, str) else stored
        if isinstance(raw, bytes) and raw.startswith(zstd_frames.MAGIC):
            raw = zstd_frames.inflated(source, raw, what)
        entry = database.json(raw, what)
        if isinstance(entry, dict) and isinstance(raw, bytes):
            sequence = row.get("seq")
            return Line(sequence + 1 if isinstance(sequence, int) else 1, 0, entry, raw)
        source.problem(f"{what} is not an object")
    return None
