"""The OpenAI Agents SDK: traces and spans as its processors export them, one per line, in an array or under `data`.

A `generation` span has the messages of a call of Chat Completions, its answer and its usage; a `response` span, of a
call of the Responses API, has the id of the response and (from 0.13 on) its usage, no message. A `custom` span named
task or turn repeats usage as sums. `group_id` of a trace names the conversation. `input_tokens` includes cached ones.
Source: openai-agents 0.24, `agents/tracing` (`span_data.py`, `spans.py`, `traces.py`), measured by running it.
"""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

SPAN, TRACE = "trace.span", "trace"  # what `object` says
_CALLS = frozenset({"generation", "response"})


def is_record(value: JSON) -> bool:
    """Is it a trace, or a span with its data?"""
    kind = value.get("object")
    return (kind == SPAN and isinstance(value.get("span_data"), dict)) or (kind == TRACE and "workflow_name" in value)


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The span of a record; a trace becomes one, too, which names the conversation of those in it."""
    if value.get("object") == TRACE:
        group, name = fields.text(value, "group_id"), fields.text(value, "workflow_name")
        about = {spans.CONVERSATION: group} if group else {}
        yield TraceSpan(fields.text(value, "id"), "", "", name, 0.0, {**spans.other("trace"), **about}, line=line)
        return
    data = fields.mapping(value, "span_data")
    yield TraceSpan(
        trace=fields.text(value, "trace_id"),
        id=fields.text(value, "id"),
        parent=fields.text(value, "parent_id"),
        name=fields.text(data, "name") or fields.text(data, "type"),
        start=fields.timestamp(value, "started_at"),
        attributes=_attributes(data),
        line=line,
        status=_words(value.get("error")),
    )


def _attributes(data: JSON) -> JSON:
    kind, name = fields.text(data, "type"), fields.text(data, "name")
    if kind == "function":
        return spans.tool_run(name, data.get("output"))
    if kind == "agent":
        return spans.agent_run(name)
    if kind not in _CALLS:
        return spans.other(f"{name} " * (kind == "custom") + (kind or "other"))
    usage = fields.mapping(data, "usage")
    details = fields.mapping(usage, "input_tokens_details")
    counts = {
        "prompt_tokens": fields.first_tokens(usage, "input_tokens", "prompt_tokens"),
        "cached_tokens": fields.tokens(details, "cached_tokens"),
        "cache_write_tokens": fields.tokens(details, "cache_write_tokens"),
        "output_tokens": fields.first_tokens(usage, "output_tokens", "completion_tokens"),
    }
    answer = next(fields.objects(data.get("output")), None)
    call = spans.model_call({"messages": data.get("input")}, answer, model=fields.text(data, "model"), counts=counts)
    response = fields.text(data, "response_id")
    return {**call, "gen_ai.response.id": response} if response else call


def _words(error: object) -> str:
    """What an error says: its message, and the exception's words within its data."""
    if not isinstance(error, dict):
        return ""
    inner = error.get("data")
    words = (error.get("message"), *(inner.values() if isinstance(inner, dict) else ()))
    return "\n".join(word for word in words if isinstance(word, str))
