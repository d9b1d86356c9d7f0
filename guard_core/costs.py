"""What one event and each of its parts costs, in every column of the ledger, and counting events one after the other.

Plain counts, one event at a time; the ledger makes its columns of them.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.columns import Columns, join_columns, narrow_columns
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
    part_text,
    utf8_bytes,
)
from guard_core.tokens import tokenizer
from guard_core.tokens.heuristic import part_costs
from guard_core.tokens.lexical import lexical_tokens

Ints = NDArray[np.int64]
# One entry per event. Tokens of the first three are ContextGuard's heuristic (bytes // 4 per field), split by what
# its profiles count or leave out, so that any profile is a sum of columns.
EVENT_COLUMNS = (
    "text_tokens",  # text, calls and results
    "inline_tokens",  # inline data
    "metadata_tokens",  # part metadata and server-side tool parts
    "chars",  # code points of all text
    "bytes",  # UTF-8 bytes of all text
    "media_bytes",  # raw bytes of inline media
    "reasoning_bytes",  # of `bytes`: reasoning text
    "call_bytes",  # of `bytes`: tool calls
    "result_bytes",  # of `bytes`: tool results
    "opaque_bytes",  # signed or encrypted reasoning, not in `bytes`
    "flags",  # bits below
    "request_bytes",  # UTF-8 bytes of the first non-empty text part
    "fallback_bytes",  # what the mechanical summary takes from it
    "transcript_bytes",  # what the summariser's prompt shows of it
    "lexical_tokens",  # about the tokens of all text, by classes of bytes
    "tokenizer_tokens",  # tokens of all text, by the tokenizer of the session's model; 0 where that is not known
    "tool",  # which tool's result it holds (the first, where there are several): tool_key of its name, 0: none
    "time_ms",  # milliseconds since the epoch (UTC), -1: not recorded
)
# One row per part of an event, in the log's order: what the estimators of other agents are made of, so that none of
# them reads a text. The text of a call is its arguments as compact JSON; a picture has no text.
PART_COLUMNS = (
    "event",  # index of its event
    "kind",  # one of the kinds below
    "tool",  # tool_key of the name of the tool that is called or answers, 0: none
    "name_chars",  # code points of that name
    "id_chars",  # code points of the id of a call or of the call that a result answers
    "chars",  # code points of its text
    "bytes",  # UTF-8 bytes of its text; of a picture its raw bytes
    "utf16",  # UTF-16 code units of its text, which is what JavaScript's `length` counts
    "non_ascii",  # of `chars`: outside ASCII
    "wide",  # of `chars`: Han, kana and hangul
    "json_chars",  # code points of its text as a JSON string, with quotation marks and escapes
    "repr_chars",  # code points of its text, of a call of its arguments, as Python's `repr` writes it
    "lines",  # lines of its text, as Python's `splitlines` parts it
    "separators",  # of a call: commas and colons between its arguments, which many writers follow with a space
    "heuristic",  # ContextGuard's tokens of it (bytes // 4 per field), inline data and metadata left out
    "digest",  # of a call's arguments or of a result: 16 bits of the CRC-32 of its text; 0 for all others
    "answers",  # row of the call that a result answers, -1: none or not known
)
_NO_SIZES = ("kind", "tool", "name_chars", "id_chars", "digest")
DIGEST_BITS = 0xFFFF  # enough to distinguish texts of one size, and a fourth of what all bits would take to store
TEXT, REASONING, CALL, RESULT, MEDIA, OTHER = range(6)
_WIDE = re.compile(
    "[\u1100-\u11ff\u3000-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
PACKED_ROWS = 4_096  # counted one by one, then packed
USER, MODEL, SYSTEM = 1, 2, 4
HAS_TEXT, HAS_CALL, HAS_RESULT, HAS_MEDIA, HAS_REASONING = 8, 16, 32, 64, 128
STARTS_TURN, IS_ERROR, STARTS_WITH_MARKER = 256, 512, 1024
IN_PAIR = 2048  # a cut just before this event would separate a tool call from its result
IS_BLANK = 4096  # its texts are blanks alone
SAID = MODEL | HAS_RESULT | STARTS_TURN  # an event with none of these is a reminder: the agent put it into the log
_ROLE_FLAG = {Role.USER: USER, Role.MODEL: MODEL, Role.SYSTEM: SYSTEM}
_KIND: dict[type[Part], int] = {
    TextPart: TEXT,
    ReasoningPart: REASONING,
    ToolCallPart: CALL,
    ToolResultPart: RESULT,
    MediaPart: MEDIA,
    OtherPart: OTHER,
}
# By kind; a text part has its flag only if it has text.
_KIND_FLAG = {TEXT: 0, REASONING: HAS_REASONING, CALL: HAS_CALL, RESULT: HAS_RESULT, MEDIA: HAS_MEDIA, OTHER: 0}


def tool_key(name: str) -> int:
    """A tool's name as a number, the same in every session."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


CallPlace = tuple[int, int]  # index of the event, row of the part


class OpenCalls(msgspec.Struct, frozen=True):
    """Tool calls without a result so far: those of one id, or of one name where they have no id (`by`)."""

    by: str  # "id" or "name"
    key: str
    places: tuple[CallPlace, ...]


class CounterState(msgspec.Struct, frozen=True):
    """What a counter must know to count on: how much it has counted, the calls that wait for a result, and the
    tokenizer that it counts text by (one of `tokenizer.ENCODINGS`, "" for none)."""

    events: int = 0
    parts: int = 0
    open_calls: tuple[OpenCalls, ...] = ()
    encoding: str = ""


class EventCounter:
    """Counts events one after the other, in order, so that not all of them need be in memory.

    With the `state` of another counter it counts on from there, and has the rows of what it counted itself. One that
    begins counts text by a tokenizer, too, where its state names one (`CounterState(encoding=…)`).
    """

    def __init__(self, state: CounterState = CounterState()) -> None:  # noqa: B008
        self.count, self.encoding = state.events, state.encoding
        self._first_part = state.parts
        self._values = _PackedRows(EVENT_COLUMNS)
        self._parts = _PackedRows(PART_COLUMNS)
        self._open_calls: dict[tuple[str, str], list[list[CallPlace]]] = {}
        for item in state.open_calls:
            for place in item.places:
                _wait(self._open_calls, (item.by, item.key), place)

    def add(self, event: Event) -> None:
        """Count one event."""
        columns, rows = _count(event)
        if self.encoding:
            columns["tokenizer_tokens"] = sum(tokenizer.count(map(part_text, event.parts), self.encoding))
        self._values.add(columns.values())
        for part, row in zip(event.parts, rows, strict=True):
            answers = -1
            if isinstance(part, ToolCallPart):
                key = ("id", part.id) if part.id else ("name", part.name)
                _wait(self._open_calls, key, (self.count, self._part_count))
            elif isinstance(part, ToolResultPart):
                call = _take_call(self._open_calls, part)
                if call is not None:
                    answers = call[1]
            self._parts.add((self.count, *row, answers))
        self.count += 1

    @property
    def state(self) -> CounterState:
        """What another counter needs to count on."""
        waiting = tuple(OpenCalls(by, key, tuple(chain(*places))) for (by, key), places in self._open_calls.items())
        return CounterState(self.count, self._part_count, waiting, self.encoding)

    @property
    def _part_count(self) -> int:
        return self._first_part + self._parts.count

    def columns(self) -> Columns:
        """The columns of EVENT_COLUMNS; IN_PAIR is missing in the flags, since a later event may still set it."""
        return self._values.columns()

    def parts(self) -> Columns:
        """What was added so far, by the names of PART_COLUMNS."""
        return self._parts.columns()


class _PackedRows:
    """Rows of whole numbers that grow; most of them are small, so all but the newest are packed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, self.count = names, 0
        self._newest = array("q")
        self._packed: list[Columns] = []  # each column as narrow as it may be

    def add(self, row: Iterable[int]) -> None:
        self._newest.extend(row)
        self.count += 1
        if self.count % PACKED_ROWS == 0:
            self._packed.append(self._narrow())
            self._newest = array("q")

    def columns(self) -> Columns:
        """All rows, by column."""
        return join_columns([*self._packed, *([self._narrow()] if self._newest else [])], self.names)

    def _narrow(self) -> Columns:
        return narrow_columns(np.array(self._newest, dtype=np.int64).reshape(-1, len(self.names)), self.names)


def _wait(open_calls: dict[tuple[str, str], list[list[CallPlace]]], key: tuple[str, str], place: CallPlace) -> None:
    """Add a call that waits for its result. Those of one event, or without an id, are answered in their order. Of
    events with calls of one id the newest is answered first, for an id is used again after calls that never were."""
    waiting = open_calls.setdefault(key, [[]])
    if key[0] == "id" and waiting[-1] and waiting[-1][-1][0] != place[0]:
        waiting.append([])
    waiting[-1].append(place)


def _take_call(open_calls: dict[tuple[str, str], list[list[CallPlace]]], result: ToolResultPart) -> CallPlace | None:
    """The open call that a result answers."""
    for key in (("id", result.call_id), ("name", result.name)):
        if waiting := open_calls.get(key):
            call = waiting[-1].pop(0)
            if not waiting[-1]:
                waiting.pop()
            if not waiting:
                del open_calls[key]
            return call
    return None


def event_columns(event: Event) -> dict[str, int]:
    """The cost of one event in every column of EVENT_COLUMNS, in their order; a tokenizer is not asked."""
    return _count(event)[0]


def _count(event: Event) -> tuple[dict[str, int], list[tuple[int, ...]]]:
    """All columns of an event, and those of its parts but for `event` and `answers`, in one pass."""
    flags = _event_flags(event)
    text_tokens = inline_tokens = metadata_tokens = 0
    chars = media = opaque = lexical = tool = request = fallback = transcript = 0
    sizes = [0] * len(_KIND_FLAG)  # bytes by kind
    role_bytes = len(event.role.value) + 2
    rows = []
    for part in event.parts:
        text = part_text(part)
        data = text.encode("utf-8", "surrogatepass")
        size = len(data)
        kind = _KIND[type(part)]
        chars += len(text)
        sizes[kind] += size
        lexical += lexical_tokens(text, data)
        heuristic, inline, metadata = part_costs(part)
        text_tokens, inline_tokens = text_tokens + heuristic, inline_tokens + inline
        metadata_tokens += metadata
        flags |= _KIND_FLAG[kind]
        name, own = "", text
        if isinstance(part, TextPart):
            flags |= HAS_TEXT if text else 0
        elif isinstance(part, ReasoningPart):
            opaque += part.opaque_bytes
        elif isinstance(part, ToolCallPart):
            name, own = part.name, text[len(part.name) + 1 :]
            data = data[utf8_bytes(name) + 1 :]
        elif isinstance(part, ToolResultPart):
            name = part.name
            tool = tool or tool_key(name)
            flags |= IS_ERROR if part.is_error else 0
        elif isinstance(part, MediaPart):
            media += part.size
        request = request or (size if kind in (TEXT, REASONING) else 0)
        shortened, shown = _summary_bytes(kind, size, name, role_bytes)
        fallback, transcript = fallback + shortened, transcript + shown
        digest = zlib.crc32(data) & DIGEST_BITS if kind in (CALL, RESULT) else 0
        rows.append((kind, tool_key(name) if name else 0, len(name), *_sizes(part, own, data), heuristic, digest))
    columns = {
        "text_tokens": text_tokens,
        "inline_tokens": inline_tokens,
        "metadata_tokens": metadata_tokens,
        "chars": chars,
        "bytes": sum(sizes),
        "media_bytes": media,
        "reasoning_bytes": sizes[REASONING],
        "call_bytes": sizes[CALL],
        "result_bytes": sizes[RESULT],
        "opaque_bytes": opaque,
        "flags": flags,
        "request_bytes": request,
        "fallback_bytes": fallback,
        "transcript_bytes": transcript,
        "lexical_tokens": lexical,
        "tokenizer_tokens": 0,
        "tool": tool,
        "time_ms": -1 if event.timestamp is None else _milliseconds(event.timestamp),
    }
    return columns, rows


def _summary_bytes(kind: int, size: int, name: str, role_bytes: int) -> tuple[int, int]:
    """What the mechanical summary and the summariser's prompt take of a part whose text has `size` bytes, in bytes."""
    if kind in (TEXT, REASONING) and size:
        return role_bytes + min(size, 200) + (3 if size > 200 else 0) + 1, role_bytes + size + 1
    if kind == CALL:
        return 0, role_bytes + len("[called tool: ]") + utf8_bytes(name) + 1
    if kind == RESULT:
        return 0, role_bytes + len("[tool  returned a result]") + utf8_bytes(name) + 1
    return 0, 0


def _event_flags(event: Event) -> int:
    """The flags of an event that do not follow from each of its parts by itself."""
    flags = _ROLE_FLAG[event.role] | (STARTS_TURN if event.starts_turn() else 0) | (IS_BLANK if is_blank(event) else 0)
    first = event.parts[0] if event.parts else None
    is_marked = isinstance(first, TextPart) and first.text.startswith("[Previous conversation summary]")
    return flags | (STARTS_WITH_MARKER if is_marked else 0)


def is_blank(event: Event) -> bool:
    """Has an event texts, of which each is empty or blanks alone."""
    texts = [part.text for part in event.parts if isinstance(part, TextPart)]
    return bool(texts) and all(not text or text.isspace() for text in texts)


def _milliseconds(seconds: float) -> int:
    """A time as a whole number; one outside the range of any clock counts as not recorded."""
    return int(seconds * 1000) if 0 <= seconds < 1e12 else -1


def _sizes(part: Part, text: str, data: bytes) -> tuple[int, ...]:
    """The columns from `id_chars` to `separators` of one part, whose own text is `text`, in UTF-8 `data`."""
    lengths = _lengths(text, data) if text else (0, part.size if isinstance(part, MediaPart) else 0, 0, 0, 0, 2)
    if isinstance(part, ToolCallPart):
        return len(part.id), *lengths, len(repr(part.arguments)), _lines(text), _separators(part.arguments)
    id_chars = len(part.call_id) if isinstance(part, ToolResultPart) else 0
    return id_chars, *lengths, len(repr(text)), _lines(text), 0


def _lines(text: str) -> int:
    return len(text.splitlines())


def _separators(value: Any) -> int:
    """Commas and colons between the items of a JSON value and of all that is in it."""
    if isinstance(value, Mapping):
        return max(2 * len(value) - 1, 0) + sum(map(_separators, value.values()))
    if isinstance(value, list | tuple):
        return max(len(value) - 1, 0) + sum(map(_separators, value))
    return 0


def text_sizes(text: str) -> dict[str, int]:
    """The columns of a text, from `chars` to `heuristic` as PART_COLUMNS has them."""
    return _part_sizes(TextPart(text))


def value_sizes(value: Any) -> dict[str, int]:
    """The same columns of a call's arguments."""
    return _part_sizes(ToolCallPart("", value))


def _part_sizes(part: Part) -> dict[str, int]:
    (row,) = _count(Event(Role.MODEL, (part,)))[1]
    own = dict(zip(PART_COLUMNS[1:-1], row, strict=True))
    return {name: value for name, value in own.items() if name not in _NO_SIZES}


def _lengths(text: str, data: bytes) -> Sequence[int]:
    """The lengths of a text, whose UTF-8 form is `data`, as PART_COLUMNS has them: from `chars` to `json_chars`."""
    chars, size = len(text), len(data)
    if chars == size:  # ASCII
        return chars, size, chars, 0, 0, len(msgspec.json.encode(text))
    try:
        json_chars = chars + len(msgspec.json.encode(text)) - size
    except UnicodeEncodeError:  # a lone surrogate, which JSON cannot hold, counts as one character
        plain = text.encode("utf-8", "replace").decode()
        json_chars = chars + len(msgspec.json.encode(plain)) - utf8_bytes(plain)
    non_ascii = chars - len(data.translate(None, _BEYOND_ASCII))
    astral = size - len(data.translate(None, _FOUR_BYTES))
    wide = len(_WIDE.findall(text)) if len(data.translate(None, _WIDE_LEADS)) < size else 0
    return chars, size, chars + astral, non_ascii, wide, json_chars


_BEYOND_ASCII = bytes(range(0x80, 0x100))
_FOUR_BYTES = bytes(range(0xF0, 0xF5))  # the first of four: beyond the basic plane
_WIDE_LEADS = bytes((0xE1, *range(0xE3, 0xF1)))  # the first bytes of everything in _WIDE


def inside_pairs(parts: Mapping[str, Ints], events: int) -> NDArray[np.bool_]:
    """For every event: is there a tool call before it whose result is in it or after it."""
    results = np.flatnonzero(parts["answers"] >= 0)
    depth = np.zeros(events + 1, dtype=np.int64)
    np.add.at(depth, parts["event"][parts["answers"][results]] + 1, 1)
    np.add.at(depth, parts["event"][results] + 1, -1)
    return np.asarray(np.cumsum(depth[:-1]) > 0)
