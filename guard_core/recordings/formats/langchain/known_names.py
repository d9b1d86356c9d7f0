"""The names under which LangChain writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import (
    ANTHROPIC_COUNTS,
    ANTHROPIC_ENDINGS,
    ANTHROPIC_KINDS,
    ANTHROPIC_TOOLS,
    ANTHROPIC_USAGE,
    CHAT_COUNTS,
    CHAT_TOOLS,
    CHAT_USAGE,
    RESPONSES_TOOLS,
    Names,
    words,
)

NAMES = Names(
    usage=CHAT_USAGE | ANTHROPIC_USAGE | words("usage_metadata input_token_details output_token_details"),
    counts=CHAT_COUNTS | ANTHROPIC_COUNTS | words("cache_read cache_creation reasoning audio"),
    tools=CHAT_TOOLS
    | ANTHROPIC_TOOLS
    | RESPONSES_TOOLS
    | words("invalid_tool_calls tool_call_chunks invocation_params input"),
    kinds=ANTHROPIC_KINDS | {"tool_call"},
    tool_endings=(*ANTHROPIC_ENDINGS, "_call", "_call_output"),
    passed_over=words("serialized runtime ls_invocation_params"),
)
