"""What the records of every service become: a span with the attributes by which traces are read.

A request and its answer are kept whole, in whatever API's words they are (`otlp.content` knows these apart).
"""

from __future__ import annotations

from typing import Any

from guard_core.recordings.formats.otlp import kinds
from guard_core.recordings.reading.fields import JSON

CONVERSATION, AGENT = kinds.CONVERSATION_KEYS[0], kinds.AGENT_KEYS[0]
OPERATION, _MODEL = "gen_ai.operation.name", "gen_ai.request.model"
_COUNTS = {
    "prompt_tokens": kinds.PROMPT_KEYS[0],
    "cached_tokens": kinds.CACHED_KEYS[0],
    "cache_write_tokens": kinds.WRITTEN_KEYS[0],
    "output_tokens": kinds.OUTPUT_KEYS[0],
}


def model_call(request: Any, response: Any, *, model: str, counts: JSON) -> JSON:
    """The attributes of a call of a model. `counts`: fields of ModelCall, cached tokens within the prompt's."""
    tokens = {_COUNTS[name]: count for name, count in counts.items() if name in _COUNTS and count is not None}
    return {OPERATION: "chat", _MODEL: model, "request_data": request, "response_data": response, **tokens}


def tool_run(name: str, result: Any, call_id: str = "") -> JSON:
    """The attributes of the run of a tool."""
    keys = (kinds.TOOL_NAME_KEYS[0], kinds.RESULT_KEYS[0], kinds.CALL_ID_KEYS[0])
    return {OPERATION: "execute_tool", **dict(zip(keys, (name, result, call_id), strict=True))}


def agent_run(name: str) -> JSON:
    """The attributes of an agent's own span: calls within it are calls of their own."""
    return {OPERATION: "invoke_agent", AGENT: name}


def other(kind: str) -> JSON:
    """The attributes of a span that is none of these."""
    return {OPERATION: kind[:40].lower() or "other"}
