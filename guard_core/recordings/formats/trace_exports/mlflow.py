"""MLflow: a trace as `Trace.to_json` writes it (`info` and `data.spans`), or its spans alone.

Attributes are JSON as text. From 3.0 on spans are named as OTLP's, in snake case and with ids in base64; before, they
have a `context` and times in nanoseconds under `start_time`. `input_tokens` includes cached ones, of Anthropic's
models, too.
Source: mlflow-tracing 3.17, `mlflow/entities/span.py` and `mlflow/tracing/constant.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields, normalise
from guard_core.recordings.reading.fields import JSON

_KIND, _REQUEST, _RESPONSE = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_USAGE, _MODEL, _SESSION = "mlflow.chat.tokenUsage", "mlflow.llm.model", "mlflow.trace.session"
_TOOLS = "mlflow.chat.tools"
_MODELS = frozenset({"CHAT_MODEL", "LLM"})


def is_record(value: JSON) -> bool:
    """Is it a trace, its data, or one of its spans?"""
    return _is_span(value) or any(map(_is_span, fields.objects(_listed(value))))


def _listed(value: JSON) -> Any:
    return fields.mapping(value, "data").get("spans", value.get("spans"))


def _is_span(value: JSON) -> bool:
    return _KIND in fields.mapping(value, "attributes") and "name" in value


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The spans of a trace, or the one."""
    info = fields.mapping(value, "info")
    metadata = fields.mapping(info, "trace_metadata") or fields.mapping(info, "request_metadata")
    session = fields.text(metadata, _SESSION)
    for item in [value] if _is_span(value) else fields.objects(_listed(value)):
        if _is_span(item):
            yield _span(item, {spans.CONVERSATION: session} if session else {}, line)


def _span(value: JSON, about: JSON, line: int | None) -> TraceSpan:
    context, status = fields.mapping(value, "context"), value.get("status")
    start = value.get("start_time_unix_nano", value.get("start_time"))
    words = fields.text(status, "message") or fields.text(value, "status_message")
    return TraceSpan(
        trace=fields.text(value, "trace_id") or fields.text(context, "trace_id"),
        id=fields.text(value, "span_id") or fields.text(context, "span_id"),
        parent=fields.text(value, "parent_span_id") or fields.text(value, "parent_id"),
        name=fields.text(value, "name"),
        start=normalise.seconds(start / 1e9) if isinstance(start, int | float) else None,
        attributes={**_attributes(fields.text(value, "name"), fields.mapping(value, "attributes")), **about},
        line=line,
        status=words,
    )


def _attributes(name: str, written: JSON) -> JSON:
    kind = str(fields.decoded(written.get(_KIND)) or "").upper()
    response = fields.decoded(written.get(_RESPONSE))
    if kind == "TOOL":
        return spans.tool_run(name, response)
    if kind == "AGENT":
        return spans.agent_run(name)
    if kind not in _MODELS:
        return spans.other(kind)
    request, usage = fields.decoded(written.get(_REQUEST)), fields.decoded(written.get(_USAGE))
    counts = {
        "prompt_tokens": fields.tokens(usage, "input_tokens"),
        "cached_tokens": fields.tokens(usage, "cache_read_input_tokens"),
        "cache_write_tokens": fields.tokens(usage, "cache_creation_input_tokens"),
        "output_tokens": fields.tokens(usage, "output_tokens"),
    }
    tools = fields.decoded(written.get(_TOOLS))
    if isinstance(tools, list) and isinstance(request, dict):
        request = {"tools": tools, **request}
    model = fields.decoded(written.get(_MODEL)) or fields.text(request, "model")
    return spans.model_call(request, response, model=model if isinstance(model, str) else "", counts=counts)
