"""The names under which OpenAI's APIs, and those modelled on them, write counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import (
    CHAT_COUNTS,
    CHAT_TOOLS,
    CHAT_USAGE,
    RESPONSES,
    RESPONSES_TOOLS,
    Names,
    words,
)

CHAT_COMPLETIONS = Names(
    usage=CHAT_USAGE | words("usageDetails usage_details"),
    counts=CHAT_COUNTS
    | words(
        "input output total promptTokens completionTokens totalTokens prompt_eval_count eval_count"
        " input_cached_tokens input_cache_read input_cache_creation input_cache_read_input_tokens"
        " input_cache_creation_input_tokens output_reasoning_tokens"
    ),
    beside=words(
        "prompt_tokens completion_tokens total_tokens input_tokens output_tokens promptTokens completionTokens"
        " totalTokens prompt_eval_count eval_count"
    ),
    holders=RESPONSES,
    tools=CHAT_TOOLS,
    passed_over=words("usage_object additional_usage_values"),  # LiteLLM repeats the counts of the response there
)
RESPONSES_API = Names(
    usage=CHAT_USAGE | {"turn_usage"},
    counts=CHAT_COUNTS,
    tools=RESPONSES_TOOLS | {"data"},  # of a page of the API
    tool_endings=("_call", "_call_output", "_search", "_search_preview", "_interpreter"),
)
