"""The names under which Inspect writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage input_tokens_details output_tokens_details"),
    counts=words(
        "input_tokens output_tokens total_tokens input_tokens_cache_read input_tokens_cache_write reasoning_tokens"
        " cached_tokens"
    ),
    beside=words("tokens_before tokens_after input_context_tokens"),
    tools=words("tool_calls tools function tool events tool_choice tool_use server_tool_use tool_result"),
    passed_over=words("store metadata call attachments stats config changes error model_usage role_usage"),
)
