"""What a span is - a call of a model, a tool, something around them - and which numbers it carries.

Every instrumentation has names of its own for the same attribute; the first that is there is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from guard_core.events import ToolResultPart
from guard_core.recordings.formats.openai import completions
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.reading import fields

MODEL_OPERATIONS = frozenset({"chat", "generate_content", "text_completion", "completion", "message"})
PROMPT_KEYS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
)
CACHED_KEYS = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens",
)
WRITTEN_KEYS = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
)
# Counts of parts of the prompt that say nothing more: of what was not cached, and of what was in another spelling.
PART_KEYS = ("ai.usage.inputTokenDetails.noCacheTokens", "llm.token_count.prompt_details.cache_input")
# Of Pydantic AI: details and sums of counts that are given elsewhere, and what its cache should hold.
REPEATED = ("gen_ai.usage.details.", "gen_ai.aggregated_usage.", "pydantic_ai.cache.")
OUTPUT_KEYS: tuple[str, ...] = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
OUTPUT_KEYS += ("llm.usage.completion_tokens",)
LIMIT_KEYS = ("gen_ai.request.max_tokens", "ai.settings.maxOutputTokens", "ai.settings.maxTokens")  # of an answer
MODEL_KEYS: tuple[str, ...] = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model")
MODEL_KEYS += ("langfuse.observation.model.name",)
# What SDKs of their own say that a span is, and how they name a call of a model.
OWN_KINDS = {
    "langfuse.observation.type": frozenset({"GENERATION"}),
    "mlflow.spanType": frozenset({"CHAT_MODEL", "LLM"}),
    "span.type": frozenset({"LLM_REQUEST"}),  # Claude Code
}
# Attributes whose JSON holds the counts of a call: Langfuse, by kinds that add up; MLflow, whose input has the cached.
LANGFUSE_USAGE, MLFLOW_USAGE = USAGE_KEYS = ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage")
# Claude Code's own counts, in which the input is without what was cached.
CLAUDE_KEYS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens", "output_tokens")
CONVERSATION_KEYS = (
    "gen_ai.conversation.id",
    "session.id",
    "gcp.vertex.agent.session_id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
RESPONSE_ID_KEYS = ("gen_ai.response.id", "llm.response.id", "ai.response.id")
# In OpenInference's output.value, the whole response: its own id, or that of a provider within what LangChain keeps.
RESPONSE_ID = re.compile(
    r'\s*\{\s*"id"\s*:\s*"([^"]{1,200})"|.*?"id"\s*:\s*"((?:chatcmpl-|msg_)[^"]{1,200})"', re.DOTALL
)
RESULT_KEYS: tuple[str, ...] = (
    "gen_ai.tool.call.result",
    "output.value",
    "gcp.vertex.agent.tool_response",
    "traceloop.entity.output",
)
RESULT_KEYS += ("ai.toolCall.result",)
CALL_ID_KEYS = ("gen_ai.tool.call.id", "tool_call.id", "tool.call_id", "ai.toolCall.id")
TOOL_NAME_KEYS = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name")
_GOOGLE_USAGE = {
    "prompt_token_count": PROMPT_KEYS[0],
    "cached_content_token_count": CACHED_KEYS[0],
    "candidates_token_count": OUTPUT_KEYS[0],
}
_OWN_MODELS = frozenset().union(*OWN_KINDS.values())
_ADK_RESULT = "tool_response ["  # ADK up to 1.0; the one without a name repeats several, merged
AGENT_KEYS = ("gen_ai.agent.name", "agent.name")
MARKS: tuple[str, ...] = ("ai.", "gen_ai.", "llm.", "openinference.", "gcp.vertex.agent.", "traceloop.")
MARKS += ("langfuse.", "mlflow.")


def response_id(span: TraceSpan) -> str:
    """The provider's id of the answer; "" where no attribute has it."""
    if name := first(span.attributes, RESPONSE_ID_KEYS):
        return name
    answer = span.attributes.get("output.value")
    matched = RESPONSE_ID.match(answer) if isinstance(answer, str) else None
    return matched[1] or matched[2] if matched else ""


def uncountable(span: TraceSpan) -> str | None:
    """What a span gives for its prompt tokens where that is not a count of tokens; None where all is well."""
    if fields.first_tokens(span.attributes, *PROMPT_KEYS) is not None:
        return None
    given = next((key for key in PROMPT_KEYS if span.attributes.get(key) is not None), None)
    return None if given is None else f"{given} is {str(span.attributes[given])[:40]!a}, which is not a count of tokens"


def kind_of(span: TraceSpan) -> str:
    """The word for what a span is, by whichever convention names it; at most 40 characters."""
    kind = span.attributes.get("openinference.span.kind") or span.attributes.get("gen_ai.operation.name")
    return str(kind or span.attributes.get("traceloop.span.kind") or "other")[:40]


def is_model(span: TraceSpan) -> bool:
    """Is the span a call of a language model."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    if kind is not None:
        return str(kind).upper() == "LLM"
    if "ai.operationId" in attributes:
        return str(attributes["ai.operationId"]).endswith((".doGenerate", ".doStream"))
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return str(operation) in MODEL_OPERATIONS
    if "llm.request.type" in attributes:
        return str(attributes["llm.request.type"]) in {"chat", "completion"}
    if "traceloop.span.kind" in attributes:
        return False
    # What an SDK of its own says that a span is; MLflow writes it as JSON.
    given = (attributes.get(key) for key in OWN_KINDS)
    if own := next((str(fields.decoded(kind)).upper() for kind in given if kind is not None), ""):
        return own in _OWN_MODELS
    if any(key in attributes for key in PROMPT_KEYS):
        return True
    return bool(attributes.get("gcp.vertex.agent.llm_request", "{}") != "{}")  # ADK's tool spans hold an empty one


def is_agent(span: TraceSpan) -> bool:
    """An agent's own span: model spans inside it are calls of their own, not a part of a call around it."""
    kinds = (span.attributes.get("openinference.span.kind"), span.attributes.get("traceloop.span.kind"))
    invoked = span.attributes.get("gen_ai.operation.name") == "invoke_agent" or span.name.startswith("agent_run")
    return invoked or "AGENT" in {str(kind).upper() for kind in kinds}


def is_tool(span: TraceSpan) -> bool:
    """Is the span the run of a tool; a merged span repeats others."""
    if "(merged" in span.name:
        return False
    attributes = span.attributes
    if attributes.get("ai.operationId") == "ai.toolCall" or span.name.startswith(_ADK_RESULT):
        return True
    kinds = (attributes.get("openinference.span.kind"), attributes.get("traceloop.span.kind"))
    return attributes.get("gen_ai.operation.name") == "execute_tool" or "TOOL" in {str(kind).upper() for kind in kinds}


def tool_result(span: TraceSpan) -> ToolResultPart:
    """What the tool of a span returned."""
    result = first_value(span.attributes, RESULT_KEYS)
    name = first(span.attributes, TOOL_NAME_KEYS) or span.name.removeprefix(_ADK_RESULT).removesuffix("]")
    return ToolResultPart(name, result, first(span.attributes, CALL_ID_KEYS))


def first_value(attributes: dict[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of these attributes that is there and not empty; None where none is."""
    return next((attributes[key] for key in keys if attributes.get(key) not in (None, "")), None)


def first(attributes: dict[str, Any], keys: Iterable[str]) -> str:
    """As `first_value`, where that is a text; "" otherwise."""
    value = first_value(attributes, keys)
    return value if isinstance(value, str) else ""


def scope_of(span: TraceSpan) -> tuple[str, str]:
    """The instrumentation that wrote a span, and the provider that was called."""
    provider = span.attributes.get("gen_ai.provider.name") or span.attributes.get("gen_ai.system")
    return span.scope, str(provider or span.attributes.get("llm.provider") or "")


def exclusive_scopes(calls: list[TraceSpan]) -> set[tuple[str, str]]:
    """The instrumentations that report cached tokens beside the input tokens instead of within them."""
    scopes = set()
    for span in calls:
        prompt = fields.first_tokens(span.attributes, *PROMPT_KEYS)
        cached = fields.first_tokens(span.attributes, *CACHED_KEYS) or 0
        written = fields.first_tokens(span.attributes, *WRITTEN_KEYS) or 0
        if prompt is not None and cached + written > prompt:
            scopes.add(scope_of(span))
    return scopes


def usage_of(span: TraceSpan, *, exclusive: bool) -> dict[str, int | None]:
    """The counts of a call, as fields of ModelCall; `exclusive`: cached tokens are apart from the input tokens."""
    counts = span.attributes
    if not any(key in counts for key in PROMPT_KEYS):
        if own := _own_usage(counts):
            return own
        # The usage inside a response of Google's API, under the names of attributes: ADK up to 1.0 has no others.
        usage = fields.mapping(fields.decoded(counts.get("gcp.vertex.agent.llm_response")), "usage_metadata")
        counts = {key: usage[name] for name, key in _GOOGLE_USAGE.items() if name in usage} or counts
    prompt = fields.first_tokens(counts, *PROMPT_KEYS)
    cached = fields.first_tokens(counts, *CACHED_KEYS)
    written = fields.first_tokens(counts, *WRITTEN_KEYS)
    if prompt is not None and exclusive:
        prompt += (cached or 0) + (written or 0)
    output = fields.first_tokens(counts, *OUTPUT_KEYS)
    return {"prompt_tokens": prompt, "cached_tokens": cached, "cache_write_tokens": written, "output_tokens": output}


def _own_usage(attributes: dict[str, Any]) -> dict[str, int | None]:
    """The counts under the names of an SDK of its own, as fields of ModelCall; empty where there are none."""
    if str(attributes.get("span.type")).upper() in OWN_KINDS["span.type"]:
        fresh, read, written, output = (fields.tokens(attributes, key) for key in CLAUDE_KEYS)
        prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
        counts = {"cached_tokens": read, "cache_write_tokens": written, "output_tokens": output}
        return {"prompt_tokens": prompt, **counts}
    by_kind, whole = (fields.decoded(attributes.get(key)) for key in (LANGFUSE_USAGE, MLFLOW_USAGE))
    if isinstance(by_kind, dict):
        counted = completions.usage_of({"usageDetails": by_kind})
    elif isinstance(whole, dict):
        counted = completions.usage_of(whole)
    else:
        return {}
    return {"prompt_tokens": None, "cached_tokens": None, "cache_write_tokens": None, "output_tokens": None, **counted}
