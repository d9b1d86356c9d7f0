"""The names under which Gemini CLI writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("tokens usageMetadata"),
    counts=words("input output cached thoughts tool total prompt candidates"),
    beside=words("total_tokens input_tokens output_tokens"),
    holders=words("stats"),
    tools=words("toolCalls functionCall functionResponse tools tool_use tool_result"),
    passed_over=words("error"),  # its kinds may be named for tools: invalid_tool_params, mcp_tool_error
    totals=True,  # what is printed has those of a run
)
