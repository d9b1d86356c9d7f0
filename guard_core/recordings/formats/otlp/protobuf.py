"""OTLP requests in protobuf's binary form, as the objects of OTLP/JSON, which the reader of traces takes.

The messages and their numbers: https://github.com/open-telemetry/opentelemetry-proto (v1 of each).
The wire: https://protobuf.dev/programming-guides/encoding/. Fields that are not listed here are passed over.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from guard_core.errors import DamagedRecording

DEPTH = 128  # of messages in messages, as for JSON
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
LONGEST_VARINT = 70  # bits that are looked at; ten bytes


class _Field(NamedTuple):
    name: str
    read: Callable[[Any], Any] | str  # a function of the raw value, or the name of a message
    repeated: bool
    wire: int


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


_SCALAR_WIRE = {_text: BYTES, bytes.hex: BYTES, _base64: BYTES, _whole: VARINT, bool: VARINT, _signed: VARINT}
_SCALAR_WIRE |= {_double: FIXED64, str: FIXED64}


def _field(name: str, read: Callable[[Any], Any] | str, *, repeated: bool = False) -> _Field:
    return _Field(name, read, repeated, BYTES if isinstance(read, str) else _SCALAR_WIRE[read])


_ATTRIBUTES = _field("attributes", "KeyValue", repeated=True)
_MESSAGES: dict[str, dict[int, _Field]] = {
    "Request": {1: _field("resourceSpans", "ResourceSpans", repeated=True)},
    "LogsRequest": {1: _field("resourceLogs", "ResourceLogs", repeated=True)},
    "ResourceLogs": {1: _field("resource", "Resource"), 2: _field("scopeLogs", "ScopeLogs", repeated=True)},
    "ScopeLogs": {1: _field("scope", "Scope"), 2: _field("logRecords", "LogRecord", repeated=True)},
    "LogRecord": {
        1: _field("timeUnixNano", str),
        5: _field("body", "AnyValue"),
        6: _ATTRIBUTES,
        9: _field("traceId", bytes.hex),
        10: _field("spanId", bytes.hex),
        11: _field("observedTimeUnixNano", str),
        12: _field("eventName", _text),
    },
    "ResourceSpans": {1: _field("resource", "Resource"), 2: _field("scopeSpans", "ScopeSpans", repeated=True)},
    "Resource": {1: _ATTRIBUTES},
    "ScopeSpans": {1: _field("scope", "Scope"), 2: _field("spans", "Span", repeated=True)},
    "Scope": {1: _field("name", _text), 2: _field("version", _text)},
    "Span": {
        1: _field("traceId", bytes.hex),
        2: _field("spanId", bytes.hex),
        4: _field("parentSpanId", bytes.hex),
        5: _field("name", _text),
        6: _field("kind", _whole),
        7: _field("startTimeUnixNano", str),
        8: _field("endTimeUnixNano", str),
        9: _ATTRIBUTES,
        10: _field("droppedAttributesCount", _whole),
        11: _field("events", "Event", repeated=True),
        15: _field("status", "Status"),
    },
    "Event": {1: _field("timeUnixNano", str), 2: _field("name", _text), 3: _ATTRIBUTES},
    "Status": {2: _field("message", _text), 3: _field("code", _whole)},
    "KeyValue": {1: _field("key", _text), 2: _field("value", "AnyValue")},
    "AnyValue": {
        1: _field("stringValue", _text),
        2: _field("boolValue", bool),
        3: _field("intValue", _signed),
        4: _field("doubleValue", _double),
        5: _field("arrayValue", "ArrayValue"),
        6: _field("kvlistValue", "KeyValueList"),
        7: _field("bytesValue", _base64),
    },
    "ArrayValue": {1: _field("values", "AnyValue", repeated=True)},
    "KeyValueList": {1: _field("values", "KeyValue", repeated=True)},
}


def request_of(data: bytes) -> dict[str, Any]:
    """An ExportTraceServiceRequest as OTLP/JSON has it. Raises DamagedRecording."""
    return _request(data, "Request")


def logs_request_of(data: bytes) -> dict[str, Any]:
    """An ExportLogsServiceRequest as OTLP/JSON has it. Raises DamagedRecording."""
    return _request(data, "LogsRequest")


def _request(data: bytes, kind: str) -> dict[str, Any]:
    try:
        return _message(data, 0, len(data), _MESSAGES[kind], DEPTH)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DamagedRecording("the bytes are not an OTLP request in protobuf") from error


def _message(data: bytes, place: int, stop: int, fields: dict[int, _Field], depth: int) -> dict[str, Any]:
    """The message that `data` has from `place` to `stop`. In one loop: an export has thousands of small messages."""
    if not depth:
        raise DamagedRecording(f"values nested deeper than {DEPTH}")
    values: dict[str, Any] = {}
    while place < stop:
        tag, place = _varint(data, place)
        wire = tag & 7
        number, place, end = _extent(data, place, wire)
        if end > stop:
            raise DamagedRecording("the bytes stop in the middle of a field")
        field = fields.get(tag >> 3)
        if field is not None:
            name, read, is_repeated, expected = field
            if wire != expected:
                raise DamagedRecording(f"the field {name} has the wire type {wire}, not {expected}")
            if isinstance(read, str):
                value: Any = _message(data, place, end, _MESSAGES[read], depth - 1)
            else:
                value = read(data[place:end] if wire == BYTES else number)
            if is_repeated:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        place = end
    return values


def _extent(data: bytes, place: int, wire: int) -> tuple[int, int, int]:
    """The number that a field of a wire type holds (0 of bytes), where its value begins, and where it ends."""
    if wire == BYTES:
        size, place = _varint(data, place)
        return 0, place, place + size
    if wire == VARINT:
        number, end = _varint(data, place)
        return number, place, end
    if wire in (FIXED64, FIXED32):
        end = place + (8 if wire == FIXED64 else 4)
        return int.from_bytes(data[place:end], "little"), place, end
    raise DamagedRecording(f"a field of the wire type {wire}, which protobuf does not use any more")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    value = data[place]
    place += 1
    if value < 0x80:
        return value, place
    value, shift = value & 0x7F, 7
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), place
        shift += 7
        if shift >= LONGEST_VARINT:
            raise DamagedRecording("a number of more than ten bytes")
