"""The names under which Codex CLI writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

_COUNTS = words(
    "input_tokens cached_input_tokens cache_write_input_tokens output_tokens reasoning_output_tokens total_tokens"
)
NAMES = Names(
    usage=words("last_token_usage total_token_usage thread_token_usage turn_token_usage usage token_usage"),
    counts=_COUNTS,
    beside=words("input_tokens output_tokens tokensUsed"),
    holders=words("msg"),
    windows=words("model_context_window"),
    totals=True,  # what `codex exec` prints has those of a turn
    tools=words(
        "payload item items McpToolCall DynamicToolCall CollabAgentToolCall custom_tool_call custom_tool_call_output"
        " function function_call function_call_output function_group mcp_tool_call dynamic_tools invocation tools"
        " additional_tools namespace"
    )
    | words("tool_search_call tool_search_output mcp_tool_call_begin mcp_tool_call_end view_image_tool_call"),
    # of patches, whose keys are paths of files; notes on a message, which is read itself; hashes of tools; copies
    # of what a compaction replaced, which are not sent (0.171.0, run); and what a server of MCP says of a result to its
    # client alone (`_meta`: modelcontextprotocol.io, "General fields"), as Codex's browser does ("codex/toolSurface")
    passed_over=words("_meta changes internal_chat_message_metadata_passthrough top_level_tools guardian_history"),
    tool_endings=("_tool_call", "_tool_call_request", "_tool_call_response", "_tool_call_begin", "_tool_call_end"),
)
