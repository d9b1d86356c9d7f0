"""The names under which pi writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage"),
    counts=words("input output cacheRead cacheWrite totalTokens reasoning cacheWrite1h"),
    rests=words("input"),
    beside=words(
        "tokensBefore tokensAfter estimatedTokensAfter context_tokens_before context_tokens_after promptTokens"
        " nonMessageTokens"
    ),
    windows=words("context_window"),
    tools=words(
        "toolCall tools toolResult toolResults content tool_execution_start tool_execution_update"
        " tool_execution_end toolsAdded toolsRemoved frozenToolResults prunedToolResults data"
    ),
    kinds=words("toolCall"),
    passed_over=words("details cost partialResult result assistantMessageEvent toolResults"),
)
