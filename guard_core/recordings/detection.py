"""Which format a source has, by its content alone; what it is in words where it has none that is known."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from guard_core.errors import DamagedRecording, RecordingError, UnknownFormat
from guard_core.recordings import other_agents
from guard_core.recordings.base import RecordingFormat
from guard_core.recordings.reading import fields, sqlite_source, strict_json
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.registry import FORMATS

_LOOKED_AT = 20  # objects, to say whose they are
# Whose ZIP archives are read.
_ARCHIVES = (
    "Inspect's .eval, exports of ChatGPT and Claude.ai, and sessions of Cline's SDK, Kimi, Mistral Vibe and OpenHands"
)
_COMMENTS = re.compile(rb"(?:\s*(?:(?://|#)[^\n]*\n|/\*.*?\*/))+", re.DOTALL)
_BETWEEN = re.compile(r"[ \t\r\n,]*")
# What a reader may raise on content that was not foreseen; raised as a damaged recording, never as a traceback.
UNFORESEEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def detect(source: ByteSource) -> RecordingFormat:
    """The first format that recognises the content. Raises UnknownFormat with what was seen, or DamagedRecording."""
    agent = ""
    with suppress(RecordingError, *UNFORESEEN):  # the format that would read it reports the damage
        agent = other_agents.agent_of(source)
    if agent:
        raise UnknownFormat(f"this was written by {agent}, whose sessions cannot be imported yet")
    first, then = _first_match, _behind_damaged_head
    heads = source.head_lines(2) if source.shape is SourceShape.LINES else []
    if len(heads) == 1 and heads[0].number > 1:  # a value behind damage, whose one good line looks like one of a log
        first, then = then, first
    if format_ := first(source) or then(source):
        return format_
    if source.shape is SourceShape.JSON:
        _check_value(source)
    _check_single_line(source)
    raise _unknown(source)


def _first_match(source: ByteSource) -> RecordingFormat | None:
    for format_ in FORMATS:
        try:
            if format_.matches(source):
                return format_
        except (RecordingError, *UNFORESEEN):
            continue
    return None


def _behind_damaged_head(source: ByteSource) -> RecordingFormat | None:
    """The format of what follows a comment or one damaged line at the beginning, which a lenient reading leaves out."""
    size, problem = _damaged_head(source) if source.size <= source.limits.line_bytes else (0, None)
    if problem is None:
        return None
    with ByteSource.open(source.without_head(size), limits=source.limits) as rest:
        format_ = _first_match(rest)
    if format_ is not None:
        source.drop_head(size, problem)
    return format_


def _damaged_head(source: ByteSource) -> tuple[int, strict_json.JsonProblem | None]:
    """Bytes of comments at the beginning of text, or of its first line, and why they are not JSON; None where it is."""
    if source.shape in (SourceShape.SQLITE, SourceShape.ZIP, SourceShape.EMPTY):
        return 0, None
    if source.shape is SourceShape.JSON:
        with suppress(RecordingError):
            source.json_head(allow_nan=True)
            return 0, None  # a good value: its first line is no damage
    first = source.head(source.limits.head_bytes)
    if comments := _COMMENTS.match(first):
        return comments.end(), strict_json.JsonProblem("a comment, which JSON does not have", 0)
    line, newline, _ = first.partition(b"\n")
    try:
        strict_json.decode(line, source.limits)
    except strict_json.JsonProblem as problem:
        return len(line + newline), problem if newline else None
    return 0, None


def _check_value(source: ByteSource) -> None:
    """Raise what is damaged in a JSON value. Several values one after the other are named as such."""
    try:
        source.json_head(allow_nan=True)
    except RecordingError as error:
        if _are_arrays(source):
            return  # one on each line: no damage, and nothing that is known
        several = "trailing characters" in error.reason and len(_values(source)) > 1
        if not several or not (whose := _elsewhere(source)):
            raise
        reason = f"{error.reason}: values one after the other; {whose}"
        raise DamagedRecording(reason, line=error.line, column=error.column) from error


def _are_arrays(source: ByteSource) -> bool:
    """Is each of the first two lines an array by itself, and none of messages or records."""
    lines = source.head(source.limits.head_bytes).split(b"\n", 2)[:2]
    if not all(line.lstrip().startswith(b"[") for line in lines):
        return False
    try:
        values = [strict_json.decode(line, source.limits).value for line in lines]
    except strict_json.JsonProblem:
        return False
    return len(values) == 2 and not any(value and isinstance(value[0], dict) for value in values)


def _check_single_line(source: ByteSource) -> None:
    """Raise what is damaged in a file of one line: a JSON value that stops a strict reading looks like a line."""
    heads = source.head_lines(2) if source.shape is SourceShape.LINES else []
    if len(heads) != 1:
        return
    try:
        source.json_head(allow_nan=True)
    except RecordingError as error:
        if error.line is not None and error.line >= heads[0].number:
            raise


def _unknown(source: ByteSource) -> UnknownFormat:
    if source.shape is SourceShape.SQLITE and (reason := sqlite_source.why_unreadable(source)):
        return UnknownFormat(f"this is a SQLite database with no table that can be read: {reason}")
    seen = f"this is {_seen(source)}, which no known format writes"
    if whose := _elsewhere(source):
        return UnknownFormat(f"{seen}; {whose}")
    known = ", ".join(dict.fromkeys(format_.label for format_ in FORMATS))
    return UnknownFormat(f"{seen}. Known are: {known}", line=1 if source.shape is SourceShape.TEXT else None)


def _elsewhere(source: ByteSource) -> str:
    """The format that has such objects in an array instead of lines, or the other way round, and what to do."""
    values = _values(source)
    lined = source.shape is not SourceShape.LINES
    how = "one per line: jq -c writes them so" if lined else "in one array: jq -s writes it"
    try:
        again = "\n".join(map(json.dumps, values)) if lined else json.dumps(values)
        with ByteSource.open(again.encode()) as other:
            format_ = _first_match(other)
    except (RecordingError, RecursionError):
        return ""
    return f"{format_.label} has such objects {how}" if format_ else ""


def _values(source: ByteSource) -> list[Any]:
    """The first objects of the file: of its lines, of its array (a good one), or one after the other."""
    if source.shape is SourceShape.LINES:
        return [line.obj for line in source.head_lines(_LOOKED_AT)]
    values: list[Any] = []
    if source.shape is SourceShape.JSON:
        with suppress(RecordingError):
            value = source.json_head(allow_nan=True)
            return list(fields.objects(value[:_LOOKED_AT])) if isinstance(value, list) else []
        text = source.head(source.limits.head_bytes).decode("utf-8-sig", "replace")
        at = 0
        with suppress(ValueError, RecursionError):
            while len(values) < _LOOKED_AT:
                value, at = json.JSONDecoder().raw_decode(text, _BETWEEN.match(text, at).end())  # type: ignore[union-attr]
                values.append(value)
    return [value for value in values if isinstance(value, dict)]


def _seen(source: ByteSource) -> str:
    """What the content looks like, in words; its own text is cut and escaped."""
    match source.shape:
        case SourceShape.EMPTY:
            return "an empty file"
        case SourceShape.SQLITE:
            names = sqlite_source.tables(source)
            content = f"the tables {_keys(dict.fromkeys(names))}" if names else "no table that can be read"
            missing = sqlite_source.is_wal_missing(source)
            rest = " and without its -wal file, which may hold the rest" if missing else ""
            return f"a SQLite database with {content}{rest}"
        case SourceShape.ZIP:
            if source.is_folder:
                return "a folder without a session that is kept in several files (name a file in it)"
            return f"a ZIP archive (only {_ARCHIVES} are read; unpack others)"
        case SourceShape.TEXT:
            return f"text that begins with {source.head(60).decode('utf-8', 'replace')[:40]!a}"
        case SourceShape.LINES:
            return f"JSON Lines whose objects have the keys {_keys(source.head_lines(1)[0].obj)}"
        case SourceShape.JSON:
            return "JSON Lines whose lines are arrays" if _are_arrays(source) else _value(source)


def _value(source: ByteSource) -> str:
    value = source.json_head(allow_nan=True)
    if isinstance(value, dict):
        return f"a JSON object with the keys {_keys(value)}"
    if not isinstance(value, list):
        return "a single JSON value"
    return f"a JSON array of {sum(1 for _ in source.elements(allow_nan=True))} items"


def _keys(value: dict[str, object]) -> str:
    names = [ascii(key[:40])[1:-1] for key in list(value)[:8]]
    return ", ".join(names) + (", …" if len(value) > 8 else "") or "(none)"
