"""W&B Weave: calls as its API and its page export them, one per line or in an array.

A call of a traced SDK has the request in `inputs` and the response in `output`; calls of functions around it repeat
sums of usage in `summary`. Tokens are those of the response.
Source: https://weave-docs.wandb.ai/reference/service-api (`/calls/stream_query`).
"""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.recordings.formats import anthropic_messages
from guard_core.recordings.formats.openai import completions, responses
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

_SENT = ("messages", "input", "contents")  # what a request of a model's API has


def is_record(value: JSON) -> bool:
    """Is it a call of an operation?"""
    return "op_name" in value and "trace_id" in value and isinstance(value.get("inputs"), dict)


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The span of a call."""
    yield TraceSpan(
        trace=fields.text(value, "trace_id"),
        id=fields.text(value, "id"),
        parent=fields.text(value, "parent_id"),
        name=_name(value),
        start=fields.timestamp(value, "started_at"),
        attributes=_attributes(value),
        line=line,
        status=fields.text(value, "exception"),
    )


def _name(value: JSON) -> str:
    """The operation's own name: `weave:///entity/project/op/NAME:version`."""
    return fields.text(value, "op_name").rpartition("/")[2].partition(":")[0]


def _attributes(value: JSON) -> JSON:
    request, response = fields.mapping(value, "inputs"), value.get("output")
    is_call = any(isinstance(request.get(key), list) for key in _SENT)
    has_text = any(fields.text(request, key) for key in _SENT) and bool(fields.mapping(response, "usage"))
    if not is_call and not has_text:
        return spans.other(_name(value))
    model = fields.text(response, "model") or fields.text(request, "model")
    counts = _counts(response) if isinstance(response, dict) else {}
    return spans.model_call(request, response, model=model, counts=counts)


def _counts(response: JSON) -> JSON:
    """The counts of a response, in the words of the API that made it."""
    usage = fields.mapping(response, "usage")
    if fields.text(response, "type") == "message":
        return anthropic_messages.usage_of(usage)
    if fields.text(response, "object") == "response":
        call = responses.response_call(response)
        names = ("prompt_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
        return {name: getattr(call, name) for name in names}
    return completions.usage_of(usage)
