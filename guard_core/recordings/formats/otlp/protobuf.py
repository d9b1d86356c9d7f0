"""OTLP requests in protobuf's binary form, as the objects of OTLP/JSON, which the reader of traces takes.

The messages and their numbers: https://github.com/open-telemetry/opentelemetry-proto (v1 of each).
The wire: https://protobuf.dev/programming-guides/encoding/. Fields that are not listed here are passed over.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from guard_core.errors import DamagedRecording

DEPTH = 128  # of messages in messages, as for JSON
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
LONGEST_VARINT = 70  # bits that are looked at; ten bytes


class _Field(NamedTuple):
    name: str
    read: Callable[[Any], Any] | str  # a function of the raw value, or the name of a message
    repeated: bool = False


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


def _whole(raw: int) -> int:
    return raw


def _signed(raw: int) -> str:
    return str(raw - 2**64 if raw >= 2**63 else raw)


def _double(raw: int) -> float | str:
    """Numbers that JSON does not have are written as protobuf's own JSON writes them."""
    value: float = struct.unpack("<d", raw.to_bytes(8, "little"))[0]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


_ATTRIBUTES = _Field("attributes", "KeyValue", repeated=True)
_MESSAGES: dict[str, dict[int, _Field]] = {
    "Request": {1: _Field("resourceSpans", "ResourceSpans", repeated=True)},
    "ResourceSpans": {1: _Field("resource", "Resource"), 2: _Field("scopeSpans", "ScopeSpans", repeated=True)},
    "Resource": {1: _ATTRIBUTES},
    "ScopeSpans": {1: _Field("scope", "Scope"), 2: _Field("spans", "Span", repeated=True)},
    "Scope": {1: _Field("name", _text), 2: _Field("version", _text)},
    "Span": {
        1: _Field("traceId", bytes.hex),
        2: _Field("spanId", bytes.hex),
        4: _Field("parentSpanId", bytes.hex),
        5: _Field("name", _text),
        6: _Field("kind", _whole),
        7: _Field("startTimeUnixNano", str),
        8: _Field("endTimeUnixNano", str),
        9: _ATTRIBUTES,
        10: _Field("droppedAttributesCount", _whole),
        11: _Field("events", "Event", repeated=True),
        15: _Field("status", "Status"),
    },
    "Event": {1: _Field("timeUnixNano", str), 2: _Field("name", _text), 3: _ATTRIBUTES},
    "Status": {2: _Field("message", _text), 3: _Field("code", _whole)},
    "KeyValue": {1: _Field("key", _text), 2: _Field("value", "AnyValue")},
    "AnyValue": {
        1: _Field("stringValue", _text),
        2: _Field("boolValue", bool),
        3: _Field("intValue", _signed),
        4: _Field("doubleValue", _double),
        5: _Field("arrayValue", "ArrayValue"),
        6: _Field("kvlistValue", "KeyValueList"),
        7: _Field("bytesValue", _base64),
    },
    "ArrayValue": {1: _Field("values", "AnyValue", repeated=True)},
    "KeyValueList": {1: _Field("values", "KeyValue", repeated=True)},
}
_SCALAR_WIRE = {_text: BYTES, bytes.hex: BYTES, _base64: BYTES, _whole: VARINT, bool: VARINT, _signed: VARINT}
_SCALAR_WIRE |= {_double: FIXED64, str: FIXED64}


def request_of(data: bytes) -> dict[str, Any]:
    """An ExportTraceServiceRequest as OTLP/JSON has it. Raises DamagedRecording."""
    try:
        return _message(memoryview(data), "Request", DEPTH)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DamagedRecording("the bytes are not an OTLP request in protobuf") from error


def _message(data: memoryview, kind: str, depth: int) -> dict[str, Any]:
    if not depth:
        raise DamagedRecording(f"values nested deeper than {DEPTH}")
    values: dict[str, Any] = {}
    for number, wire, raw in _fields(data):
        field = _MESSAGES[kind].get(number)
        if field is None:
            continue
        expected = BYTES if isinstance(field.read, str) else _SCALAR_WIRE[field.read]
        if wire != expected:
            raise DamagedRecording(f"the field {field.name} has the wire type {wire}, not {expected}")
        if isinstance(field.read, str):
            value: Any = _message(raw, field.read, depth - 1)
        else:
            value = field.read(bytes(raw) if isinstance(raw, memoryview) else raw)
        if field.repeated:
            values.setdefault(field.name, []).append(value)
        else:
            values[field.name] = value
    return values


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and raw value of every field: an integer, or bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        if wire == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, wire, value
            continue
        if wire == BYTES:
            size, place = _varint(data, place)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise DamagedRecording(f"a field of the wire type {wire}, which protobuf does not use any more")
        if place + size > len(data):
            raise DamagedRecording("the bytes stop in the middle of a field")
        raw = data[place : place + size]
        place += size
        yield tag >> 3, wire, raw if wire == BYTES else int.from_bytes(raw, "little")


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), place
        shift += 7
        if shift >= LONGEST_VARINT:
            raise DamagedRecording("a number of more than ten bytes")
