"""Spans of a trace in one shape, whatever exporter wrote them: OTLP/JSON, Jaeger, Phoenix and console exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from guard_core.recordings.reading import fields, normalise
from guard_core.recordings.reading.fields import JSON

_SCALARS = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
_SNAKE = {"string_value": "stringValue", "int_value": "intValue", "double_value": "doubleValue"}
_SNAKE |= {"bool_value": "boolValue", "bytes_value": "bytesValue", "array_value": "arrayValue"}
_SNAKE |= {"kvlist_value": "kvlistValue"}
_EXCEPTION = ("exception.type", "exception.message")  # attributes of such an event
_FAILURE = ("error.type", "error.message", "exception.message", "otel.status_description")
RESOURCES = ("resourceSpans", "resource_spans", "batches")
# What a program is called that was given no name, with or without the name of its process behind it
# (opentelemetry.io/docs/specs/semconv/resource/#service).
UNNAMED = "unknown_service"
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
LOGS = ("resourceLogs", "resource_logs")
LOG_SCOPES = {"scopeLogs": "logRecords", "scope_logs": "log_records"}  # and the lists of their records


class TraceSpan(msgspec.Struct, frozen=True):
    """One span. `attributes` has nested objects flattened to dotted keys, and the objects themselves, too."""

    trace: str
    id: str
    parent: str
    name: str
    start: float | None  # seconds since the epoch
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...] = ()
    dropped: int = 0  # attributes that the SDK left out
    scope: str = ""
    service: str = ""
    line: int | None = None
    damaged: list[str] = msgspec.field(default_factory=list)  # attributes whose inner JSON could not be read
    status: str = ""  # what the SDK says of a failure

    @property
    def error(self) -> str:
        """What the span says of a failure: by its status, by an exception, by its own attributes."""
        raised = [event.get(key) for name, event in self.events if name == "exception" for key in _EXCEPTION]
        words = [self.status, *raised, *(self.attributes.get(key) for key in _FAILURE)]
        return "\n".join(word for word in words if isinstance(word, str) and word)


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event of a span that newer SDKs send as a log record of its own."""

    trace: str
    span: str
    name: str
    attributes: dict[str, Any]


def logged_events(value: JSON) -> Iterator[LoggedEvent]:
    """The events of spans among the log records of one export (`resourceLogs`)."""
    for resource in (resource for key in LOGS for resource in fields.objects(value.get(key))):
        yield from (_logged_event(record) for *_, record in _log_records(resource))


def _log_records(resource: JSON) -> Iterator[tuple[str, str, JSON, JSON]]:
    """The log records of a resource: the names of the lists that have it, its scope, and the record."""
    for name, inner in LOG_SCOPES.items():
        for scope in fields.objects(resource.get(name)):
            for record in fields.objects(scope.get(inner)):
                yield name, inner, scope, record


def _logged_event(record: JSON) -> LoggedEvent:
    values = attributes(record.get("attributes"))
    name = record.get("eventName", record.get("event_name", values.get("event.name")))
    values["event.body"] = _any_value(record.get("body"))
    trace, span = record.get("traceId", record.get("trace_id")), record.get("spanId", record.get("span_id"))
    return LoggedEvent(_name(trace), _name(span), str(name or ""), values)


def spans_of(value: JSON, line: int | None = None) -> Iterator[TraceSpan]:
    """The spans in one JSON object: an export request, a resource's spans, a trace, or a single span."""
    for key in RESOURCES:
        for resource in fields.objects(value.get(key)):
            yield from spans_of(resource, line)
    if any(key in value for key in SCOPES):
        yield from _resource_spans(value, line)
    elif isinstance(value.get("trace"), dict):
        yield from spans_of(value["trace"], line)
    elif "operationName" in value and "spanID" in value:
        yield _jaeger(value, line)
    elif isinstance(value.get("data"), list) or isinstance(value.get("spans"), list):
        for item in fields.objects(value.get("data", value.get("spans"))):
            yield from spans_of(item, line)
    elif "spanId" in value and "traceId" in value:
        yield _otlp(value, "", "", line)
    elif is_flat_span(value):
        yield _flat(value, line)


class Placed(NamedTuple):
    """A span of a resource, or an event of one that was sent as a log record, and where the resource has it."""

    trace: str
    start: float
    attributes: dict[str, Any]
    value: JSON  # as it was written
    scope: JSON
    list_name: str  # of the resource's list with that scope
    inner_name: str  # of the scope's list


def placed_spans(resource: JSON) -> Iterator[Placed]:
    """The spans of one resource, with what is needed to write some of them apart (`resource_with`)."""
    for name in SCOPES:
        for scope in fields.objects(resource.get(name)):
            for value in fields.objects(scope.get("spans")):
                span = _otlp(value, "", "", None)
                yield Placed(span.trace, span.start or 0.0, span.attributes, value, scope, name, "spans")


def placed_events(resource: JSON) -> Iterator[Placed]:
    """The events of spans about a language model among the log records of one resource, likewise."""
    for name, inner, scope, record in _log_records(resource):
        event = _logged_event(record)
        if event.trace and event.span and event.name.startswith("gen_ai."):
            yield Placed(event.trace, 0.0, event.attributes, record, scope, name, inner)


def resource_with(resource: JSON, some: Iterable[Placed]) -> JSON:
    """The resource with some of its spans, or of its events, alone, in their order."""
    part: JSON = {name: value for name, value in resource.items() if name not in (*SCOPES, *LOG_SCOPES)}
    last: JSON | None = None
    for item in some:
        scopes = part.setdefault(item.list_name, [])
        if item.scope is not last:
            last = item.scope
            scopes.append({**last, item.inner_name: []})
        scopes[-1][item.inner_name].append(item.value)
    return part


def is_flat_span(value: JSON) -> bool:
    """A span as Phoenix or the console exporter writes it."""
    context = fields.mapping(value, "context")
    named = "trace_id" in context or "context.trace_id" in value or ("trace_id" in value and "span_id" in value)
    return named and ("attributes" in value or any(key.startswith("attributes.") for key in value))


def _resource_spans(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    service = service_of(value)
    for key in SCOPES:
        for scope in fields.objects(value.get(key)):
            about = fields.mapping(scope, "scope") or fields.mapping(scope, "instrumentationLibrary")
            for span in fields.objects(scope.get("spans")):
                yield _otlp(span, fields.text(about, "name"), service, line)


def service_of(resource: JSON) -> str:
    """The name of the program that a resource is."""
    return str(attributes(fields.mapping(resource, "resource").get("attributes")).get("service.name", ""))


def named(service: str) -> str:
    """The name of a program, "" where it was given none."""
    return "" if service.partition(":")[0] == UNNAMED else service


def _otlp(span: JSON, scope: str, service: str, line: int | None) -> TraceSpan:
    def either(camel: str, snake: str) -> Any:
        return span.get(camel, span.get(snake))

    events = tuple(
        (fields.text(event, "name"), attributes(event.get("attributes")))
        for event in fields.objects(span.get("events"))
    )
    start = _integer(either("startTimeUnixNano", "start_time_unix_nano"))
    is_number = isinstance(start, int | float) and not isinstance(start, bool)
    return TraceSpan(
        trace=_name(either("traceId", "trace_id")),
        id=_name(either("spanId", "span_id")),
        parent=_name(either("parentSpanId", "parent_span_id")),
        name=fields.text(span, "name"),
        start=normalise.seconds(start / 1e9) if is_number else None,
        attributes=attributes(span.get("attributes")),
        events=events,
        dropped=fields.first_tokens(span, "droppedAttributesCount", "dropped_attributes_count") or 0,
        scope=scope,
        service=service,
        line=line,
        status=fields.text(fields.mapping(span, "status"), "message"),
    )


def _jaeger(span: JSON, line: int | None) -> TraceSpan:
    references = list(fields.objects(span.get("references")))
    parent = next((fields.text(item, "spanID") for item in references if item.get("refType") == "CHILD_OF"), "")
    start = span.get("startTime")
    logs = [_jaeger_tags(log.get("fields")) for log in fields.objects(span.get("logs"))]
    return TraceSpan(
        trace=fields.text(span, "traceID"),
        id=fields.text(span, "spanID"),
        parent=parent or fields.text(span, "parentSpanID"),
        name=fields.text(span, "operationName"),
        start=normalise.seconds(start / 1e6) if isinstance(start, int | float) else None,
        attributes=_jaeger_tags(span.get("tags")),
        events=tuple((str(log.get("event", "")), log) for log in logs),
        line=line,
    )


def _jaeger_tags(tags: Any) -> dict[str, Any]:
    return {fields.text(tag, "key"): tag.get("value") for tag in fields.objects(tags)}


def _flat(value: JSON, line: int | None) -> TraceSpan:
    context = fields.mapping(value, "context")
    flat: dict[str, Any] = {}
    own = value.get("attributes")
    _flatten("", own if isinstance(own, dict) else {}, flat)
    for key, item in value.items():
        if key.startswith("attributes."):
            _flatten(key.removeprefix("attributes."), item, flat)
    kind = fields.text(value, "span_kind")
    if kind and "openinference.span.kind" not in flat:
        flat["openinference.span.kind"] = kind
    events = tuple(
        (fields.text(event, "name"), attributes(event.get("attributes")))
        for event in fields.objects(value.get("events"))
    )
    return TraceSpan(
        trace=_name(context.get("trace_id") or value.get("context.trace_id") or value.get("trace_id")),
        id=_name(context.get("span_id") or value.get("context.span_id") or value.get("span_id")),
        parent=_name(value.get("parent_id") or value.get("parent_span_id")),
        name=fields.text(value, "name"),
        start=fields.timestamp(value, "start_time"),
        attributes=flat,
        events=events,
        dropped=fields.tokens(value, "dropped_attributes_count") or 0,
        line=line,
        status=fields.text(value, "status_message") or fields.text(fields.mapping(value, "status"), "description"),
    )


def attributes(value: Any) -> dict[str, Any]:
    """Attributes as a dictionary, from OTLP's list of keys and values or from an object."""
    flat: dict[str, Any] = {}
    if isinstance(value, dict):
        _flatten("", value, flat)
    for item in fields.objects(value):
        key = item.get("key")
        if isinstance(key, str):
            _flatten(key, _any_value(item.get("value")), flat)
    return flat


def _any_value(value: Any) -> Any:
    """The value inside OTLP's AnyValue."""
    if not isinstance(value, dict):
        return value
    value = {_SNAKE.get(key, key): item for key, item in value.items()}
    for key in _SCALARS:
        if key in value:
            return _integer(value[key]) if key == "intValue" else value[key]
    if "arrayValue" in value:
        return [_any_value(item) for item in fields.items(fields.mapping(value, "arrayValue"), "values")]
    if "kvlistValue" in value:
        pairs = fields.objects(fields.mapping(value, "kvlistValue").get("values"))
        return {fields.text(item, "key"): _any_value(item.get("value")) for item in pairs}
    return None


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and len(value) <= 20 and value.lstrip("-").isdecimal() else value


def _flatten(prefix: str, value: Any, flat: dict[str, Any]) -> None:
    """Put a value under its dotted key; what is inside objects and arrays of objects under longer keys, too."""
    if prefix:
        flat[prefix] = value
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(f"{prefix}.{key}" if prefix else str(key), item, flat)
    elif isinstance(value, list) and not prefix.startswith("gen_ai."):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                _flatten(f"{prefix}.{index}", item, flat)


def _name(value: Any) -> str:
    return value.removeprefix("0x") if isinstance(value, str) else ""
