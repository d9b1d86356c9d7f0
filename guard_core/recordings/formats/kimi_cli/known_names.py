"""The names under which Kimi CLI writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("token_usage"),
    counts=words("input_other output input_cache_read input_cache_creation"),
    beside=words("token_count context_tokens"),
    windows=words("max_context_tokens"),
    holders=words("payload"),
    tools=words(
        "message payload event tool_calls ToolCall ToolResult ToolCallPart function tool tools ToolCallRequest"
        " HookTriggered"
    ),
    kinds=words("ToolCall ToolResult"),
    passed_over=words("display extras mcp_status"),
)
