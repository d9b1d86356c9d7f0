"""Spans of OTLP JSON lines without their messages: what distinguishes calls of a model, and what they cost.

Attributes that are not looked at, the prompts above all, are passed over without being built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from guard_core.recordings.formats.otlp import kinds as trace_kinds
from guard_core.recordings.formats.otlp.spans import TraceSpan, spans_of
from guard_core.recordings.reading import looks
from guard_core.recordings.reading.source import ByteSource

_REQUEST = "gcp.vertex.agent.llm_request"  # looked at for being there, and not empty
_LOOKED_AT = frozenset(
    {
        *trace_kinds.PROMPT_KEYS,
        *trace_kinds.CACHED_KEYS,
        *trace_kinds.WRITTEN_KEYS,
        *trace_kinds.MODEL_KEYS,
        *trace_kinds.RESPONSE_ID_KEYS,
        *trace_kinds.OWN_KINDS,
        *trace_kinds.USAGE_KEYS,
        *trace_kinds.CLAUDE_KEYS,
        "openinference.span.kind",
        "traceloop.span.kind",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.system",
        "llm.provider",
        "llm.request.type",
        "ai.operationId",
        "gcp.vertex.agent.llm_response",
        "output.value",
    }
)


class _Attribute(msgspec.Struct, gc=False):
    key: str = ""
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Span(msgspec.Struct, gc=False):
    """One span in OTLP's spelling."""

    traceId: Any = None  # noqa: N815 - the file's own spelling
    spanId: Any = None  # noqa: N815
    parentSpanId: Any = None  # noqa: N815
    name: Any = None
    startTimeUnixNano: Any = None  # noqa: N815
    attributes: list[_Attribute] | None = None


class _Scope(msgspec.Struct, gc=False):
    scope: Any = None
    spans: list[_Span] = []


class _Resource(msgspec.Struct, gc=False):
    scopeSpans: list[_Scope] = []  # noqa: N815


class _Export(_Span, gc=False):
    """One line: an export with its resources, or a span alone."""

    resourceSpans: list[_Resource] = []  # noqa: N815


def spans(source: ByteSource) -> Iterator[TraceSpan]:
    """Every span of the file, with the attributes that are looked at."""
    for line in looks.lines_of(source, _Export):
        for resource in line.resourceSpans:
            scopes = [{"scope": scope.scope, "spans": [*map(_slim, scope.spans)]} for scope in resource.scopeSpans]
            yield from spans_of({"scopeSpans": scopes})
        if line.spanId is not None:
            yield from spans_of(_slim(line))


def _slim(span: _Span) -> dict[str, Any]:
    """A span as it was written, less what is not looked at."""
    slim: dict[str, Any] = {name: getattr(span, name) for name in _Span.__struct_fields__}
    return {
        **slim,
        "attributes": [
            attribute for each in span.attributes or () if (attribute := _attribute_for_look(each)) is not None
        ],
    }


def _attribute_for_look(attribute: _Attribute) -> dict[str, Any] | None:
    if attribute.key in _LOOKED_AT:
        return {"key": attribute.key, "value": looks.value_of(attribute.value)}
    if attribute.key == _REQUEST:
        value = bytes(attribute.value)
        return {"key": attribute.key, "value": {"stringValue": "{}" if b'"{}"' in value[:60] else "{…}"}}
    return None
