"""Braintrust: rows of a project's logs or of an experiment, each a span.

A row of type `llm` is a call of a model: messages or items in `input`, the choices or the message in `output`, tools
and model in `metadata`. `metrics.prompt_tokens` includes cached tokens, of Anthropic's models, too (the SDK adds them
up); rows around a call repeat sums. A system prompt beside the messages, of Anthropic's API and Bedrock's, is written
behind them (`integrations/anthropic/tracing.py`). Times are `metrics.start`, in seconds.
Source: https://www.braintrust.dev/docs/reference/api and the SDK's `wrappers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON


def is_record(value: JSON) -> bool:
    """Is it a row of a log?"""
    return "root_span_id" in value and isinstance(value.get("span_attributes"), dict)


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The span of a row."""
    parents = [parent for parent in fields.items(value, "span_parents") if isinstance(parent, str)]
    metrics = fields.mapping(value, "metrics")
    start = fields.timestamp(metrics, "start")
    error = value.get("error")
    yield TraceSpan(
        trace=fields.text(value, "root_span_id"),
        id=fields.text(value, "span_id"),
        parent=parents[0] if parents else "",
        name=fields.text(fields.mapping(value, "span_attributes"), "name"),
        start=start if start is not None else fields.timestamp(value, "created"),
        attributes=_attributes(value, metrics),
        line=line,
        status=error if isinstance(error, str) else "",
    )


def _system_first(messages: Any) -> Any:
    """The messages of a request with the system prompt before them that was written behind them."""
    if not isinstance(messages, list) or len(messages) < 2:
        return messages
    is_behind = fields.text(messages[-1], "role") == "system" and fields.text(messages[0], "role") != "system"
    return [messages[-1], *messages[:-1]] if is_behind else messages


def _attributes(value: JSON, metrics: JSON) -> JSON:
    about, metadata = fields.mapping(value, "span_attributes"), fields.mapping(value, "metadata")
    kind, name = fields.text(about, "type"), fields.text(about, "name")
    if kind == "tool":
        return spans.tool_run(name, value.get("output"), fields.text(metadata, "tool_call_id"))
    if kind != "llm":
        return spans.other(kind)
    given = _system_first(value.get("input"))
    request = given if isinstance(given, dict) else {"messages": given}
    if isinstance(metadata.get("tools"), list):
        request = {"tools": metadata["tools"], **request}
    counts = {
        "prompt_tokens": fields.tokens(metrics, "prompt_tokens"),
        "cached_tokens": fields.tokens(metrics, "prompt_cached_tokens"),
        "cache_write_tokens": fields.tokens(metrics, "prompt_cache_creation_tokens"),
        "output_tokens": fields.tokens(metrics, "completion_tokens"),
    }
    output = value.get("output")
    is_choices = "message" in next(fields.objects(output), {})  # what a response has under the name of choices
    answer = {"choices": output} if is_choices else output
    return spans.model_call(request, answer, model=fields.text(metadata, "model"), counts=counts)
