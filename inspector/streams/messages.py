"""What a client sends, as JSON or as lines: read strictly, each line in one form, whatever it was sent in.

    {"first": 12, "lines": [{"index": 3, "events": {…}}, …], "ended": false}

The lines are those of this project's own export (`guard_core.recordings.formats.native`): a header, then one for each
event, call and compaction. As lines (NDJSON) the same, with `first` and `ended` beside them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.native.growing import LINE_LIMITS, NativeLine, kept
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.strict_json import JsonProblem, decode
from inspector.streams.machine import LineBatch

MOST_LINES = 1_000  # of a batch
MOST_BYTES = 32 * 2**20  # of a batch
HIGHEST = 10**9  # number of a line
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
KEYS = {"first", "lines", "ended"}


class BadMessage(Exception):
    """What was sent makes no sense. `index` is the place of a line in its batch, from 0."""

    def __init__(self, sentence: str, index: int | None = None) -> None:
        super().__init__(sentence)
        self.index = index


class StreamMessage(NamedTuple):
    """A batch, what its lines hold, and whether the agent has ended with it."""

    batch: LineBatch
    entries: tuple[NativeLine, ...]
    ended: bool = False


def check_name(name: str) -> str:
    """The name that a client gave its stream. Raises BadMessage."""
    if NAME.fullmatch(name) is None:
        raise BadMessage("the id of a stream has 1 to 100 letters, digits and . _ : -, the first a letter or digit")
    return name


def from_json(body: bytes) -> StreamMessage:
    """A message that is one JSON object. Raises BadMessage."""
    value = _decoded(body, None)
    if not isinstance(value, dict) or not value.keys() <= KEYS or "first" not in value:
        raise BadMessage('a message is an object with "first", "lines" and optionally "ended"')
    lines, ended = value.get("lines", []), value.get("ended", False)
    if not isinstance(lines, list) or not isinstance(ended, bool):
        raise BadMessage('"lines" is a list of objects, "ended" true or false')
    return _message(value["first"], lines, ended=ended)


def from_lines(body: bytes, first: object, *, ended: bool = False) -> StreamMessage:
    """A message that is lines. Raises BadMessage."""
    lines = [line for line in body.split(b"\n") if line.strip(b" \t\r")]
    _check_count(len(lines))
    return _message(first, [_decoded(line, index) for index, line in enumerate(lines)], ended=ended)


def _message(first: object, lines: list[Any], *, ended: bool) -> StreamMessage:
    if isinstance(first, float) and first.is_integer():
        first = int(first)  # JSON Schema counts 12.0 as an integer, too
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= HIGHEST:
        raise BadMessage(f'"first" is the number of the first line, from 0 to {HIGHEST:,}')
    _check_count(len(lines))
    ordered = msgspec.to_builtins(lines, order="deterministic")  # keys in one order, as lines are stored and read again
    taken = [_kept(line, index) for index, line in enumerate(ordered)]
    batch = LineBatch(first, tuple(msgspec.json.encode(line) for line, _ in taken))
    return StreamMessage(batch, tuple(entry for _, entry in taken), ended)


def _kept(line: Any, index: int) -> tuple[JSON, NativeLine]:
    if not isinstance(line, dict):
        raise BadMessage(f"line {index} of the batch is not a JSON object", index)
    try:
        return kept(line)
    except DamagedRecording as error:
        raise BadMessage(f"line {index} of the batch: {error.reason}", index) from error


def _check_count(count: int) -> None:
    if count > MOST_LINES:
        raise BadMessage(f"a batch of {count:,} lines; at most {MOST_LINES:,} are accepted at once")


def _decoded(raw: bytes, index: int | None) -> Any:
    place = "the body" if index is None else f"line {index} of the batch"
    if len(raw) > MOST_BYTES:
        raise BadMessage(f"{place} has {len(raw):,} bytes; at most {MOST_BYTES:,} are accepted at once", index)
    try:
        return decode(raw, LINE_LIMITS).value
    except JsonProblem as problem:
        where = "" if problem.offset is None else f" at byte {problem.offset:,}"
        raise BadMessage(f"{place} cannot be read as JSON{where}: {problem.reason}", index) from None
