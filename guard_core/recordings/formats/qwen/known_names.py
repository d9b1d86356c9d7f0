"""The names under which Qwen Code writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words(
        "usageMetadata tokens promptTokensDetails cacheTokensDetails candidatesTokensDetails toolUsePromptTokensDetails"
    ),
    counts=words(
        "promptTokenCount candidatesTokenCount totalTokenCount cachedContentTokenCount thoughtsTokenCount tokenCount"
        " toolUsePromptTokenCount cacheCreationTokenCount"
    )
    | words("input output cached thoughts tool total"),  # in the chats of one JSON value
    beside=words(
        "input_token_count output_token_count cached_content_token_count thoughts_token_count total_token_count"
        " tool_token_count originalTokenCount newTokenCount"
    ),
    holders=words("uiEvent info"),
    windows=words("contextWindowSize"),
    tools=words("functionCall functionResponse tool_result toolCalls tools"),
    kinds=words("functionCall functionResponse"),
    passed_over=words("toolCallResult snapshot snapshots outputHistoryItems function_args goalContext backgroundTask"),
)
