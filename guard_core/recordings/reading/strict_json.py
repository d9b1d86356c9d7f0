"""JSON read strictly: nothing is accepted that a store or a page would refuse later.

msgspec parses; it already refuses bad UTF-8, control characters, NaN and malformed numbers. Checked here on top:
depth, digits, range of integers, keys per object, duplicate keys, and the two escapes that no store takes (NUL, lone
surrogates), which are mended instead. The ids of OpenTelemetry's spans may be numbers of 64 and 128 bits: those that
are too large for any other number are read as text. The common line pays for one parse, one walk and one pass over its
colons; the slow exact scan runs only where something looked wrong, to find the place.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from guard_core.recordings.reading.limits import Limits

MENDED_SHOWN = 100  # places kept per value; a line of 32 MiB could have five million
_DECODER = msgspec.json.Decoder()
_TRUNCATED = "Input data was truncated"
_BYTE = re.compile(r" \(byte (\d+)\)$")
# A string that never ends is one token too, so that the scan cannot mistake its content for structure.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
_TOKEN = re.compile(_STRING + rb"|[{}\[\]]|-?[0-9][0-9.eE+-]*|-?Infinity|NaN", re.DOTALL)
_DEPTHS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole surrogate pair stays
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(\\u0000)|\\.",
    re.DOTALL,
)
_NOT_FINITE = re.compile(_STRING + rb"|(-?\bInfinity\b|\bNaN\b)", re.DOTALL)
_COLON = re.compile(rb"\s*:")
_SPACED_KEY = re.compile(rb'"[ \t\n\r]+:')
_NUL = b"\\u0000"
_NEGATIVE_ZEROS = (b"-0.", b"-0e", b"-0E")  # how those begin that are no whole number
# An id of a span's context as a whole number that is too large: a trace's has 128 bits, a span's 64.
# Source: https://opentelemetry.io/docs/specs/otel/trace/api/#spancontext; Python's SDK has both as `int`.
_WIDE_ID = re.compile(rb'(?<!\\)"(?:trace_id|span_id)"\s*+:\s*+([0-9]{19,39})(?=\s*+[,}])')
_ID_NAMES = (b'trace_id"', b'span_id"')
_ID_BITS = 128
# What `codex exec --json` prints of a search has the id of its item and that of the provider as keys of one name: the
# fields of `WebSearchItem` are flattened into those of `ThreadItem` (codex-rs/exec/src/exec_events.rs).
_SEARCH = b'"type":"web_search","id":'
_SECOND_ID = re.compile(rb'("item":\{"id":"[^"\\]*","type":"web_search",)"id"(?=:)')
SECOND_ID = "ws"  # as long as the key that it replaces
_REFUSED = object()  # in the place of a value that was not read
# Bytes from which numpy finds separators sooner than the methods of bytes do. Ours, measured: a call of numpy costs as
# much as 6 kB of searching.
_LARGE = 8 * 1024
_BACKSLASH, _QUOTE, _COLON_BYTE = b'\\":'


class Mended(NamedTuple):
    """A place that was changed so that every store takes it. `offset` counts bytes from 0."""

    reason: str
    offset: int


class Decoded(NamedTuple):
    """A JSON value, what had to be mended in it (the first MENDED_SHOWN places), and how many places more."""

    value: Any
    mended: list[Mended]
    more: int = 0


class JsonProblem(Exception):
    """Why these bytes are not taken, and where: `offset` counts bytes from 0, None where there is no one place.

    `cut`: the bytes stop before the value does, and may be the beginning of a good one.
    """

    def __init__(self, reason: str, offset: int | None = None, *, limit: bool = False, cut: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        self.limit = limit
        self.cut = cut


def decode(raw: bytes, limits: Limits, *, allow_nan: bool = False, mend: bool = False) -> Decoded:
    """One JSON value. `allow_nan` reads NaN and Infinity as null; `mend` reads them so too, and keeps the last of
    duplicate keys, and notes both. Raises JsonProblem."""
    return _decode(_wide_ids_as_text(_with_one_id(raw), limits), limits, allow_nan=allow_nan, mend=mend)


def _decode(raw: bytes, limits: Limits, *, allow_nan: bool, mend: bool) -> Decoded:
    mended: list[Mended] = []
    more = 0
    if _NUL in raw or (value := _quickly(raw)) is _REFUSED:
        raw, mended, more = _mend_escapes(raw)
        value = _parse(raw, limits, mended, allow_nan=allow_nan, mend=mend)
    keys, negative_zero = _walk(raw, value, limits)
    is_quick = len(raw) >= _LARGE and "numpy" in sys.modules  # to load it costs more than it saves in reading one file
    # Cheap, and never equal where a key repeats: the text has a separator for each key, the value each key once.
    if (_separators_of_many(raw) if is_quick else _separators(raw)) != keys:
        problem = _repeated_key(raw, keys)
        if problem is not None:
            if not mend:
                raise problem
            mended.append(Mended(problem.reason, problem.offset or 0))
    return Decoded(_without_negative_zero(value) if negative_zero else value, mended, more)


def decode_again(raw: bytes, limits: Limits, *, allow_nan: bool = False, mend: bool = False) -> Any:
    """The value of bytes that were decoded with the same settings before, without looking for damage once more."""
    raw = _wide_ids_as_text(_with_one_id(raw), limits)
    is_changed = _NUL in raw or any(zero in raw for zero in _NEGATIVE_ZEROS)
    if is_changed or (value := _quickly(raw)) is _REFUSED:
        return decode(raw, limits, allow_nan=allow_nan, mend=mend).value
    return value


def _with_one_id(raw: bytes) -> bytes:
    """The same bytes with the second id of a search by another name."""
    return _SECOND_ID.sub(rb'\1"' + SECOND_ID.encode() + b'"', raw) if _SEARCH in raw else raw


def _wide_ids_as_text(raw: bytes, limits: Limits) -> bytes:
    """The same bytes with ids that are too large for a number as text, in hexadecimal digits as OpenTelemetry writes
    them; blanks keep every other place what it was."""
    if not any(name in raw for name in _ID_NAMES):
        return raw

    def as_text(match: re.Match[bytes]) -> bytes:
        number = int(match[1])
        if number < limits.integers or number.bit_length() > _ID_BITS:
            return match[0]
        before = match[0][: match.start(1) - match.start()]
        return before + f'"{number:x}"'.encode().ljust(len(match[1]))

    return _WIDE_ID.sub(as_text, raw)


def is_cut(error: msgspec.DecodeError) -> bool:
    """Does the parser say that the bytes stop before the value does?"""
    return str(error).startswith(_TRUNCATED)


def end_of(raw: bytes, at: int) -> int | None:
    """Where the value ends that begins at a place, by its brackets and texts alone: the parser refuses some values that
    are mended. None where its end is not in the bytes."""
    depth = 0
    for match in _TOKEN.finditer(raw, at):
        if match.start() > at and not depth:
            return None
        depth += _DEPTHS.get(match[0], 0)
        if depth <= 0:
            return match.end() if depth == 0 and match.end() < len(raw) else None
    return None


def is_deeper(raw: bytes, levels: int) -> bool:
    """Are more levels of arrays and objects within each other, by the brackets alone. How deep a value may be that the
    parser reads depends on the version of Python."""
    depth = 0
    if raw.count(b"[") + raw.count(b"{") > levels:
        for match in _TOKEN.finditer(raw):
            depth += _DEPTHS.get(match[0], 0)
            if depth > levels:
                return True
    return False


def _quickly(raw: bytes) -> Any:
    """The value, or _REFUSED where the parser refuses the bytes: lone surrogates are among what it refuses."""
    try:
        return _DECODER.decode(raw)
    except (RecursionError, UnicodeDecodeError, msgspec.DecodeError):
        return _REFUSED


def _mend_escapes(raw: bytes) -> tuple[bytes, list[Mended], int]:
    """NUL escapes as U+2400, escapes of lone surrogates as U+FFFD; offsets stay as they were."""
    mended: list[Mended] = []
    count = 0

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal count
        if not match[1] and not match[2]:
            return match[0]
        count += 1
        if count <= MENDED_SHOWN:
            reason = "a NUL character" if match[2] else "half of a surrogate pair, which is not a character"
            mended.append(Mended(reason, match.start()))
        return b"\\u2400" if match[2] else b"\\ufffd"

    raw = _ESCAPE.sub(replace, raw)
    return raw, mended, max(count - MENDED_SHOWN, 0)


def _parse(raw: bytes, limits: Limits, mended: list[Mended], *, allow_nan: bool, mend: bool) -> Any:
    try:
        return _DECODER.decode(raw)
    except RecursionError as error:
        raise _located(raw, limits) or _too_deep(limits, None) from error
    except msgspec.ValidationError as error:  # a number out of range
        raise _located(raw, limits) or JsonProblem("a number outside the range of numbers") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(raw) from error
    except msgspec.DecodeError as error:
        problem = _located(raw, limits) or _syntax(str(error), raw)
        if not problem.reason.startswith(("NaN", "Infinity")) or not (allow_nan or mend):
            raise problem from error
        if not allow_nan:
            mended.append(Mended(problem.reason, problem.offset or 0))
    finite = _NOT_FINITE.sub(lambda match: b"null" if match[1] else match[0], raw)
    return _parse(finite, limits, mended, allow_nan=False, mend=False)


def _walk(raw: bytes, root: Any, limits: Limits) -> tuple[int, bool]:  # noqa: C901, PLR0912 - one loop over every value
    """Keys in all and whether a negative zero is in the value; depth, keys and integers are checked level by level."""
    level: list[Any] = [root]
    end = limits.integers
    keys = depth = 0
    negative_zero = False
    while level := [value for value in level if type(value) is dict or type(value) is list]:
        depth += 1
        if depth > limits.depth:
            raise _located(raw, limits) or _too_deep(limits, None)
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys += len(container)
                if len(container) > limits.keys:
                    raise JsonProblem(f"an object with {len(container)} keys (limit {limits.keys})", 0, limit=True)
                values: Iterable[Any] = container.values()
            else:
                values = container
            for value in values:
                kind = type(value)
                if kind is str:  # most are
                    continue
                if kind is dict or kind is list:
                    below.append(value)
                elif kind is int:
                    if not -end <= value < end:
                        raise _located(raw, limits) or JsonProblem(_range_reason(str(value), limits))
                elif kind is float and value == 0.0 and math.copysign(1.0, value) < 0:
                    negative_zero = True
        level = below
    if type(root) is int and not -end <= root < end:
        raise JsonProblem(_range_reason(str(root), limits), 0)
    return keys, negative_zero


def _separators(raw: bytes) -> int | None:
    """How many keys a text has, those that are repeated counted again; None where only an exact scan can say."""
    if b"\t" in raw or b"\n" in raw or b"\r" in raw:  # perhaps between a key and its colon
        return None
    if b" :" in raw and _SPACED_KEY.search(raw):
        return None
    separators = raw.count(b'":')
    if b'\\":' in raw:
        if b'\\\\":' in raw:  # a key may end with a backslash
            return None
        separators -= raw.count(b'\\":')
    return separators


def _separators_of_many(raw: bytes) -> int | None:
    """The same of a long text, by what is before each colon. Where an index runs over the beginning, it finds the last
    byte, which is no backslash."""
    import numpy as np  # only where it is loaded already

    data = np.frombuffer(raw, dtype=np.uint8)
    colons = np.flatnonzero(data == _COLON_BYTE)
    before = data[colons - 1]
    if np.isin(before, np.frombuffer(b" \t\n\r", dtype=np.uint8)).any() and _SPACED_KEY.search(raw):
        return None
    quoted = colons[before == _QUOTE]
    escaped = quoted[data[quoted - 2] == _BACKSLASH]
    if (data[escaped - 3] == _BACKSLASH).any():
        return None
    return len(quoted) - len(escaped)


def _repeated_key(raw: bytes, keys: int) -> JsonProblem | None:
    """The first repeated key, found exactly: parse again and compare pairs with keys."""
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        names = {name for name, _ in items}
        if len(names) != len(items) and not repeated:
            seen: set[str] = set()
            repeated.append(next(name for name, _ in items if name in seen or seen.add(name)))  # type: ignore[func-returns-value]

    try:
        json.loads(raw, object_pairs_hook=pairs, parse_int=lambda _: 0, parse_float=lambda _: 0)
    except (ValueError, RecursionError):  # not reached for bytes that msgspec took; the scan below decides then
        return None
    if not repeated:
        return None
    name = repeated[0]
    return JsonProblem(f"the key {json.dumps(name[:80])} twice in one object", _second_key_offset(raw, name))


def _second_key_offset(raw: bytes, name: str) -> int:
    """Where the key is repeated in one object."""
    stack: list[set[bytes]] = []
    for match in _TOKEN.finditer(raw):
        token = match[0]
        if token in (b"{", b"["):
            stack.append(set())
        elif token in (b"}", b"]"):
            stack.pop()
        elif token[:1] == b'"' and _COLON.match(raw, match.end()) and _DECODER.decode(token) == name:
            if name.encode("utf-8", "replace") in stack[-1]:
                return match.start()
            stack[-1].add(name.encode("utf-8", "replace"))
    return 0


def _located(raw: bytes, limits: Limits) -> JsonProblem | None:
    """The first place that breaks a rule of ours, by an exact scan of the tokens."""
    depth = 0
    for match in _TOKEN.finditer(raw):
        token = match[0]
        first = token[:1]
        if first == b'"':
            continue
        if first in b"{[":
            depth += 1
            if depth > limits.depth:
                return _too_deep(limits, match.start())
        elif first in b"}]":
            depth -= 1
        elif token in (b"NaN", b"Infinity", b"-Infinity"):
            return JsonProblem(f"{token.decode().lstrip('-')}, which is not a JSON number", match.start())
        else:
            reason = _number_reason(token.decode("ascii"), limits)
            if reason:
                return JsonProblem(reason, match.start())
    return None


def _number_reason(token: str, limits: Limits) -> str:
    digits = token.lstrip("-")
    if digits.isdigit():
        if len(digits) > limits.digits or not -limits.integers <= int(token) < limits.integers:
            return _range_reason(token, limits)
        return ""
    try:
        return "" if math.isfinite(float(token)) else f"the number {token[:30]}, which is too large for a float"
    except ValueError:
        return ""  # malformed: the parser's own words are better


def _range_reason(token: str, limits: Limits) -> str:
    digits = len(token.lstrip("-"))
    if digits > limits.digits:
        return f"a number of {digits} digits (limit {limits.digits})"
    return f"the number {token}, which is outside the 64-bit range"


def _too_deep(limits: Limits, offset: int | None) -> JsonProblem:
    return JsonProblem(f"nesting deeper than {limits.depth} levels", offset, limit=True)


def _not_utf8(raw: bytes) -> JsonProblem:
    """The first byte that is not UTF-8. The decoder's own error has its place within the text that holds it."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return JsonProblem(f"the byte 0x{raw[error.start]:02x}, which is not UTF-8", error.start)
    return JsonProblem("text that is not UTF-8")  # pragma: no cover - the decoder just said so


def _syntax(message: str, raw: bytes) -> JsonProblem:
    if not raw.strip():
        return JsonProblem("nothing where a JSON value should be", 0)
    if message.startswith(_TRUNCATED):
        return JsonProblem("JSON that ends too early", len(raw.rstrip()), cut=True)
    position = _BYTE.search(message)
    offset = int(position[1]) if position else None
    words = _BYTE.sub("", message).removeprefix("JSON is malformed: ")
    cut = words == "invalid number" and offset == len(raw)  # `-`, `2.` or `1e` at the end
    return JsonProblem(f"not valid JSON: {words}", offset, cut=cut)


def _without_negative_zero(value: Any) -> Any:
    """-0.0 as 0.0: stores disagree about it."""
    if isinstance(value, dict):
        return {key: _without_negative_zero(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_negative_zero(item) for item in value]
    return 0.0 if isinstance(value, float) and value == 0.0 else value
