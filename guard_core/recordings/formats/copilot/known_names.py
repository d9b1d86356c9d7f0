"""The names under which Copilot CLI writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage compactionTokensUsed"),
    # Besides tokens of a call: how many tools it had, and the part of the prompt that defines them.
    counts=words(
        "input output cachedInput inputTokens outputTokens cacheReadTokens cacheWriteTokens reasoningTokens"
        " availableToolCount toolTokenCount numToolCalls customToolCallCount unmatchedToolResultCount"
        " orphanToolCallCount"
    ),
    beside=words(
        "conversationTokens currentTokens inputTokens outputTokens systemTokens toolDefinitionsTokens"
        " cacheReadTokens cacheWriteTokens reasoningTokens preCompactionTokens postCompactionTokens tokensRemoved"
        " preTruncationTokensInMessages postTruncationTokensInMessages tokensRemovedDuringTruncation"
        " lastCallInputTokens lastCallOutputTokens totalTokens"
    ),
    holders=words("data"),
    windows=words("tokenLimit maxPromptTokens"),
    tools=words(
        "toolRequests function tools data tool.execution_start tool.execution_complete tool.user_requested"
        " tool.execution_progress tool.execution_partial_result shellToolInfo serverTools"
    ),
    # Besides payloads of tools: sums of runs, of agents, as they are billed, and ids of what was billed.
    passed_over=words(
        "toolTelemetry toolMetrics toolCounts result modelMetrics agentMetrics tokenDetails copilotUsage accounting"
        " usageAccountingWatermarks"
    ),
)
