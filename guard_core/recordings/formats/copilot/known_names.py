"""The names under which Copilot CLI writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage compactionTokensUsed"),
    counts=words("input output cachedInput inputTokens outputTokens cacheReadTokens cacheWriteTokens reasoningTokens"),
    beside=words(
        "conversationTokens currentTokens inputTokens outputTokens systemTokens toolDefinitionsTokens"
        " cacheReadTokens cacheWriteTokens reasoningTokens preCompactionTokens postCompactionTokens tokensRemoved"
        " preTruncationTokensInMessages postTruncationTokensInMessages tokensRemovedDuringTruncation"
    ),
    holders=words("data"),
    windows=words("tokenLimit maxPromptTokens"),
    tools=words(
        "toolRequests function tools data tool.execution_start tool.execution_complete tool.user_requested"
        " tool.execution_progress tool.execution_partial_result"
    ),
    # Besides payloads of tools: sums of runs, of agents, and as they are billed.
    passed_over=words("toolTelemetry toolMetrics result modelMetrics agentMetrics tokenDetails copilotUsage"),
)
