"""Langfuse: a trace with its observations (API, download of the page), several, or a list of observations.

An observation of type GENERATION is a call of a model. `usageDetails` counts tokens by kind, each in one of them only;
before there were kinds, `usage` did, and before that `promptTokens`. Input and output may be JSON as text; lists are
newest first. Exports to a bucket have the same names with underscores. A trace's `sessionId` names the conversation.
Source: https://api.reference.langfuse.com and https://langfuse.com/docs/api-and-data-platform/features.
"""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.recordings.formats.openai import completions
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import words

KINDS = words("GENERATION SPAN EVENT AGENT TOOL CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL")
# What only an observation has beside its kind, its trace and its time.
_OWN = words(
    "modelParameters model_parameters parentObservationId parent_observation_id completionStartTime"
    " completion_start_time usageDetails usage_details statusMessage status_message"
)
_UNITS = ("inputUsage", "input_usage", "promptTokens", "prompt_tokens")  # the prompt's tokens, where no kinds are
# Units of what counts tokens. Others are CHARACTERS, MILLISECONDS, SECONDS, IMAGES, REQUESTS (`ModelUsageUnit`).
_OF_TOKENS = frozenset({"", "TOKENS"})
_ANSWERED = ("outputUsage", "output_usage", "completionTokens", "completion_tokens")


def is_record(value: JSON) -> bool:
    """Is it an observation, or a trace with some?"""
    return is_observation(value) or any(map(is_observation, fields.objects(value.get("observations"))))


def is_observation(value: JSON) -> bool:
    """Is it one observation, by its kind, its place and what only observations have?"""
    placed = _text(value, "traceId", "trace_id") and _text(value, "startTime", "start_time")
    return fields.text(value, "type") in KINDS and bool(placed) and any(key in value for key in _OWN)


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The spans of one observation, or of a trace."""
    if is_observation(value):
        yield _span(value, {}, line)
        return
    trace = fields.mapping(value, "trace") or value
    yield from (_span(item, trace, line) for item in fields.objects(value.get("observations")) if is_observation(item))


def _span(value: JSON, trace: JSON, line: int | None) -> TraceSpan:
    session = _text(trace, "sessionId", "session_id") or _text(value, "sessionId", "session_id")
    failed = fields.text(value, "level") == "ERROR"
    return TraceSpan(
        trace=_text(value, "traceId", "trace_id"),
        id=fields.text(value, "id"),
        parent=_text(value, "parentObservationId", "parent_observation_id"),
        name=fields.text(value, "name"),
        start=fields.timestamp(value, "startTime" if "startTime" in value else "start_time"),
        attributes={**_attributes(value), **({spans.CONVERSATION: session} if session else {})},
        service=fields.text(trace, "name"),
        line=line,
        status=_text(value, "statusMessage", "status_message") if failed else "",
    )


def _attributes(value: JSON) -> JSON:
    kind, name, output = fields.text(value, "type"), fields.text(value, "name"), fields.decoded(value.get("output"))
    if kind == "TOOL":
        return spans.tool_run(name, output)
    if kind == "AGENT":
        return spans.agent_run(name)
    if kind != "GENERATION":
        return spans.other(kind)
    parameters = fields.decoded(value.get("modelParameters", value.get("model_parameters")))
    request = fields.decoded(value.get("input"))
    if isinstance(request, list):
        request = {"messages": request}
    if isinstance(request, str) and request:
        request = {"messages": [{"role": "user", "content": request}]}
    if isinstance(parameters, dict) and isinstance(request, dict):
        request = {**{key: parameters[key] for key in ("tools", "functions") if key in parameters}, **request}
    model = _text(value, "model", "provided_model_name")
    return spans.model_call(request, output, model=model, counts=counts_of(value))


def counts_of(value: JSON) -> JSON:
    """The counts of an observation, as fields of ModelCall; empty where it has none, or counts something else."""
    usage = fields.mapping(value, "usage")
    if (_text(usage, "unit") or _text(value, "unit")) not in _OF_TOKENS:
        return {}
    details = fields.decoded(value.get("usageDetails", value.get("usage_details")))
    if counts := completions.usage_of({"usageDetails": details, "usage": value.get("usage")}):
        return counts
    prompt = next((count for place in (value, usage) if (count := fields.first_tokens(place, *_UNITS, "input"))), None)
    answered = (fields.first_tokens(place, *_ANSWERED, "output") for place in (value, usage))
    if prompt is None:
        return {}
    return {"prompt_tokens": prompt, "output_tokens": next((count for count in answered if count is not None), None)}


def _text(value: JSON, *keys: str) -> str:
    return next((text for key in keys if (text := fields.text(value, key))), "")
