"""OTLP requests in protobuf, as OpenTelemetry's own library writes them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.otlp.protobuf import logs_request_of, request_of
from guard_core.recordings.formats.otlp.spans import logged_events, spans_of

VALUES = st.recursive(
    st.one_of(
        st.text().map(lambda text: AnyValue(string_value=text)),
        st.booleans().map(lambda flag: AnyValue(bool_value=flag)),
        st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
        st.floats(allow_nan=False).map(lambda number: AnyValue(double_value=number)),
        st.binary().map(lambda data: AnyValue(bytes_value=data)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda some: AnyValue(array_value=ArrayValue(values=some))),
        st.dictionaries(st.text(), inner, max_size=3).map(
            lambda some: AnyValue(
                kvlist_value=KeyValueList(values=[KeyValue(key=key, value=value) for key, value in some.items()])
            )
        ),
    ),
    max_leaves=6,
)


def request(*values: AnyValue) -> ExportTraceServiceRequest:
    attributes = [KeyValue(key=f"gen_ai.{number}", value=value) for number, value in enumerate(values)]
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="chat", start_time_unix_nano=10**18, attributes=attributes)
    span.events.add(name="event", time_unix_nano=7, attributes=attributes)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])


@given(st.lists(VALUES, max_size=4))
def test_a_request_reads_as_the_one_in_json(values):
    message = request(*values)
    (mine,) = spans_of(request_of(message.SerializeToString()))
    (theirs,) = spans_of(MessageToDict(message))
    assert mine.attributes == theirs.attributes
    assert (mine.name, mine.start, mine.events) == (theirs.name, theirs.start, theirs.events)
    assert (mine.trace, mine.id) == ((b"t" * 16).hex(), (b"s" * 8).hex())


@given(VALUES)
def test_log_records_read_as_those_in_json(body):
    names = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "event_name": "gen_ai.choice"}
    record = LogRecord(body=body, attributes=[KeyValue(key="gen_ai.system", value=body)], time_unix_nano=7, **names)
    message = ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])])
    (mine,) = logged_events(logs_request_of(message.SerializeToString()))
    (theirs,) = logged_events(MessageToDict(message))
    assert (mine.name, mine.attributes) == (theirs.name, theirs.attributes)
    assert (mine.trace, mine.span) == ((b"t" * 16).hex(), (b"s" * 8).hex())


@given(st.binary(max_size=60))
def test_bytes_that_are_no_request_are_refused_or_read(data):
    with suppress(DamagedRecording):
        request_of(data)


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_request_that_stops_early_is_refused(cut):
    data = request(AnyValue(string_value="text of some length")).SerializeToString()
    with pytest.raises(DamagedRecording):
        request_of(data[:-cut])


def test_values_without_end_are_refused():
    value = b""
    for _ in range(200):  # deeper than the library writes: an array (field 5 of a value) of a value (its field 1)
        value = field(5, field(1, value))
    data = value
    for number in (2, 9, 2, 2, 1):  # value of an attribute of a span of a scope of a resource of the request
        data = field(number, data)
    with pytest.raises(DamagedRecording, match="nested deeper"):
        request_of(data)


def field(number: int, data: bytes) -> bytes:
    size = len(data)
    return bytes([number << 3 | 2, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + data
