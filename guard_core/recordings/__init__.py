"""Recordings: files of agent sessions, recognised by content and read into sessions and facts.

recording = read("session.jsonl")
recording.format, recording.sessions, recording.facts, recording.notes
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import msgspec

from guard_core.errors import DamagedRecording, LimitExceeded, RecordingError, UnknownFormat
from guard_core.recordings import fields, other_agents, sqlite_source, strict_json
from guard_core.recordings.ahead import Ahead
from guard_core.recordings.base import Facts, ImportNotes, Problem, Progress, Recording, RecordingFormat
from guard_core.recordings.first_look import FirstLook, Looks, look_at
from guard_core.recordings.known_names import NAMES
from guard_core.recordings.limits import Limits
from guard_core.recordings.registry import FORMATS, LABELS
from guard_core.recordings.source import Shape, Source
from guard_core.recordings.watch import Watch
from guard_core.sessions import Session, Sourced
from guard_core.sessions import Source as NumberSource

__all__ = [
    "FORMATS",
    "LABELS",
    "Ahead",
    "Facts",
    "FirstLook",
    "ImportNotes",
    "Limits",
    "Problem",
    "Progress",
    "Recording",
    "RecordingFormat",
    "Shape",
    "Source",
    "detect",
    "first_look",
    "look_at",
    "read",
]

_LOOKED_AT = 20  # objects, to say whose they are
_COMMENTS = re.compile(rb"(?:\s*(?:(?://|#)[^\n]*\n|/\*.*?\*/))+", re.DOTALL)
_BETWEEN = re.compile(r"[ \t\r\n,]*")
# What a reader may raise on content that nobody thought of; told as a damaged recording, never as a traceback.
_UNFORESEEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def read(
    recording: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    strict: bool = False,
    progress: Progress | None = None,
    window: int | None = None,
    limits: Limits | None = None,
    shelve: str | os.PathLike[str] | None = None,
    ahead: Ahead | None = None,
) -> Recording:
    """Read a file, a file object or bytes. `window` (tokens) overrides the context window of every session.

    `shelve`: a folder in which the texts of a large file may lie while its sessions are in use; their events are then
    a sequence that fetches each text when it is asked for, instead of a tuple. Nothing is left there. `ahead` is told
    the events of such a file while it is being read.

    `strict`: the first damaged place raises DamagedRecording; else it is left out and noted. Raises UnknownFormat
    when no format recognises the content, LimitExceeded when it is too large. `progress(done, total)` counts bytes.
    """
    with Source.open(recording, strict=strict, limits=limits, progress=progress) as source:
        source.shelve = None if shelve is None else Path(shelve)
        source.ahead = ahead
        found = read_source(source)
    if window is None:
        return found
    sourced = Sourced(window, NumberSource.USER, "set by the user")
    return replace(found, sessions=tuple(_with_window(session, sourced) for session in found.sessions))


def first_look(recording: str | os.PathLike[str]) -> FirstLook | None:
    """The calls' recorded prompt tokens in a fraction of the time of `read`; None where the format cannot tell so soon,
    and of a long file that is not lines, which would be parsed whole only to know its format.

    Raises RecordingError for what no format recognises.
    """
    with Source.open(recording) as source:
        if not source.may_be_lines:
            return None
        format_ = detect(source)
        try:
            return format_.first_look(source) if isinstance(format_, Looks) else None
        except _UNFORESEEN:  # a full reading tells what is wrong
            return None


def read_source(source: Source) -> Recording:
    """Read an open source with the format that recognises it."""
    format_ = detect(source)
    source.watch = Watch(NAMES[format_.name]) if format_.name in NAMES else None
    try:
        found = format_.read(source)
    except _UNFORESEEN as error:
        raise DamagedRecording(f"cannot be read as {format_.label}: {_words(error)}") from error
    _tell_unread(source, found)
    if len(found.sessions) > source.limits.sessions:
        raise LimitExceeded(f"a file with {len(found.sessions)} sessions (limit {source.limits.sessions})")
    return found


def _tell_unread(source: Source, found: Recording) -> None:
    """Note names that the reader does not know. A strict reading stops where they hold all there is."""
    watch = source.watch
    if watch is None:
        return
    counted = found.facts.model_calls or any(
        call.prompt_tokens for session in found.sessions for call in (*session.calls, *session.side_calls)
    )
    if watch.placeholders:
        source.notes.skipped["placeholder in the place of an id"] = watch.placeholders
    for unknown in watch.unknown:
        whole = not (counted if unknown.counts_tokens else found.facts.tool_calls)
        (source.problem if whole else source.notes.problem)(str(unknown), unknown.line)
    if watch.usages and not counted and watch.counts_calls:
        source.problem(f"{watch.usages} objects with counts of tokens, none of which belongs to a call that was read")


def detect(source: Source) -> RecordingFormat:
    """The first format that recognises the content. Raises UnknownFormat with what was seen, or DamagedRecording."""
    _refuse_other_agents(source)
    first, then = _first_match, _behind_damaged_head
    if _is_value_behind_damage(source):  # its one good line looks like a record of a log
        first, then = then, first
    if found := first(source) or then(source):
        return found
    if source.shape is Shape.JSON:
        _check_value(source)
    _check_single_line(source)
    raise _unknown(source)


def _refuse_other_agents(source: Source) -> None:
    agent = ""
    with suppress(RecordingError, *_UNFORESEEN):  # damage is told by the format that would read it
        agent = other_agents.agent_of(source)
    if agent:
        raise UnknownFormat(f"this was written by {agent}, whose sessions cannot be imported yet")


def _first_match(source: Source) -> RecordingFormat | None:
    for format_ in FORMATS:
        try:
            if format_.matches(source):
                return format_
        except (RecordingError, *_UNFORESEEN):
            continue
    return None


def _behind_damaged_head(source: Source) -> RecordingFormat | None:
    """The format of what follows a comment or one damaged line at the beginning, which a lenient reading leaves out."""
    size, problem = _damaged_head(source) if source.size <= source.limits.line_bytes else (0, None)
    if problem is None:
        return None
    with Source.open(source.without_head(size), limits=source.limits) as rest:
        found = _first_match(rest)
    if found is not None:
        source.drop_head(size, problem)
    return found


def _damaged_head(source: Source) -> tuple[int, strict_json.JsonProblem | None]:
    """Bytes of comments at the beginning of text, or of its first line, and why they are no JSON; None where it is."""
    if source.shape in (Shape.SQLITE, Shape.ZIP, Shape.EMPTY):
        return 0, None
    first = source.head(source.limits.head_bytes)
    if comments := _COMMENTS.match(first):
        return comments.end(), strict_json.JsonProblem("a comment, which JSON does not have", 0)
    line, newline, _ = first.partition(b"\n")
    try:
        strict_json.decode(line, source.limits)
    except strict_json.JsonProblem as problem:
        return len(line + newline), problem if newline else None
    return 0, None


def _is_value_behind_damage(source: Source) -> bool:
    heads = source.head_lines(2) if source.shape is Shape.LINES else []
    return len(heads) == 1 and heads[0].number > 1


def _check_value(source: Source) -> None:
    """Raise what is damaged in a JSON value. Several values one after the other are told as that."""
    try:
        source.json(allow_nan=True)
    except RecordingError as error:
        several = "trailing characters" in error.reason and len(_values(source)) > 1
        if not several or not (whose := _elsewhere(source)):
            raise
        reason = f"{error.reason}: values one after the other; {whose}"
        raise DamagedRecording(reason, line=error.line, column=error.column) from error


def _check_single_line(source: Source) -> None:
    """Raise what is damaged in a file of one line: a JSON value that stops a strict reading looks like a line."""
    heads = source.head_lines(2) if source.shape is Shape.LINES else []
    if len(heads) != 1:
        return
    try:
        source.json(allow_nan=True)
    except RecordingError as error:
        if error.line is not None and error.line >= heads[0].number:
            raise


def _unknown(source: Source) -> UnknownFormat:
    seen = f"this is {_seen(source)}, which no known format writes"
    if whose := _elsewhere(source):
        return UnknownFormat(f"{seen}; {whose}")
    known = ", ".join(dict.fromkeys(format_.label for format_ in FORMATS))
    return UnknownFormat(f"{seen}. Known are: {known}", line=1 if source.shape is Shape.TEXT else None)


def _elsewhere(source: Source) -> str:
    """The format that has such objects in an array instead of lines, or the other way round, and what to do."""
    values = _values(source)
    lined = source.shape is not Shape.LINES
    how = "one per line: jq -c writes them so" if lined else "in one array: jq -s writes it"
    try:
        again = "\n".join(map(json.dumps, values)) if lined else json.dumps(values)
        with Source.open(again.encode()) as other:
            found = _first_match(other)
    except (RecordingError, RecursionError):
        return ""
    return f"{found.label} has such objects {how}" if found else ""


def _values(source: Source) -> list[Any]:
    """The first objects of the file: of its lines, of its array (a good one), or one after the other."""
    if source.shape is Shape.LINES:
        return [line.obj for line in source.head_lines(_LOOKED_AT)]
    found: list[Any] = []
    if source.shape is Shape.JSON:
        with suppress(RecordingError):
            value = source.json(allow_nan=True)
            return list(fields.objects(value[:_LOOKED_AT])) if isinstance(value, list) else []
        text = source.head(source.limits.head_bytes).decode("utf-8-sig", "replace")
        at = 0
        with suppress(ValueError, RecursionError):
            while len(found) < _LOOKED_AT:
                value, at = json.JSONDecoder().raw_decode(text, _BETWEEN.match(text, at).end())  # type: ignore[union-attr]
                found.append(value)
    return [value for value in found if isinstance(value, dict)]


def _seen(source: Source) -> str:
    """What the content looks like, in words; its own text is cut and escaped."""
    match source.shape:
        case Shape.EMPTY:
            return "an empty file"
        case Shape.SQLITE:
            return _database(source)
        case Shape.ZIP:
            return "a ZIP archive (only Inspect's .eval is read; unpack any other and import its files)"
        case Shape.TEXT:
            return f"text that begins with {source.head(60).decode('utf-8', 'replace')[:40]!a}"
        case Shape.LINES:
            return f"JSON Lines whose objects have the keys {_keys(source.head_lines(1)[0].obj)}"
        case Shape.JSON:
            value = source.json(allow_nan=True)
            if isinstance(value, dict):
                return f"a JSON object with the keys {_keys(value)}"
            return f"a JSON array of {len(value)} items" if isinstance(value, list) else "a single JSON value"


def _database(source: Source) -> str:
    names = sqlite_source.tables(source)
    found = f"the tables {_keys(dict.fromkeys(names))}" if names else "no table that can be read"
    missing = sqlite_source.is_wal_missing(source)
    return f"a SQLite database with {found}{' and without its -wal file, which may hold the rest' if missing else ''}"


def _keys(value: dict[str, object]) -> str:
    names = [ascii(key[:40])[1:-1] for key in list(value)[:8]]
    return ", ".join(names) + (", …" if len(value) > 8 else "") or "(none)"


def _words(error: BaseException) -> str:
    kind = type(error).__name__
    text = ascii(str(error)[:80])[1:-1]
    return f"{kind} {text}" if text else kind


def _with_window(session: Session, window: Sourced) -> Session:
    return msgspec.structs.replace(session, window=window)
