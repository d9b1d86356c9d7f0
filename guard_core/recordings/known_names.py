"""The names under which each format writes counts of tokens and tool calls, so that others are noticed.

A name is here because a reader reads it, or because what it counts is known and is no part of a prompt.
"""

from __future__ import annotations

import msgspec

from guard_core.recordings.formats.otlp.kinds import CACHED_KEYS, PROMPT_KEYS, WRITTEN_KEYS

Words = frozenset[str]


class Names(msgspec.Struct, frozen=True):
    """What one format writes.

    usage: keys whose objects hold counts of tokens, at any depth. counts: the names of counts in those. rests: those of
    them that are a whole less the cached tokens, which some providers make less than nothing. beside: names
    of counts that stand elsewhere; holders: keys of the objects that they stand in, below the top. tools: keys and
    kinds of tool calls, results and definitions; kinds: those of them that are always parts; tool_endings: how further
    kinds end. passed_over: keys of what the reader leaves out on purpose, whatever is in it. totals: its files count
    the tokens of a session, not of calls.
    """

    usage: Words = frozenset()
    counts: Words = frozenset()
    rests: Words = frozenset()
    beside: Words = frozenset()
    holders: Words = frozenset()
    tools: Words = frozenset()
    kinds: Words = frozenset()
    tool_endings: tuple[str, ...] = ("\n",)  # no kind ends so
    passed_over: Words = frozenset()
    totals: bool = False


def _words(text: str) -> Words:
    return frozenset(text.split())


_ANTHROPIC_COUNTS = _words(
    "input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens thinking_tokens"
    " ephemeral_5m_input_tokens ephemeral_1h_input_tokens cache_missed_input_tokens web_search_requests"
)
_ANTHROPIC_USAGE = _words("usage cache_creation iterations output_tokens_details server_tool_use cache_miss_reason")
_ANTHROPIC_TOOLS = _words("tool_use tool_result tools content content_block server_tool_use")
_ANTHROPIC_KINDS = _words("tool_use tool_result")
_ANTHROPIC_ENDINGS = ("_tool_result", "_tool_use", "_tool_result_error")
_RESPONSES = _words("response response_body responseBody response_obj completion output result message body")
_CHAT_COUNTS = _words(
    "prompt_tokens completion_tokens total_tokens input_tokens output_tokens cached_tokens reasoning_tokens"
    " cache_creation_tokens cache_creation_input_tokens cache_read_input_tokens audio_tokens image_tokens text_tokens"
    " video_tokens accepted_prediction_tokens rejected_prediction_tokens prompt_cache_hit_tokens"
    " prompt_cache_miss_tokens cached_prompt_text_tokens citation_tokens reasoning_output_tokens cache_write_tokens"
    " prompt_text_tokens prompt_image_tokens prompt_audio_tokens ephemeral_5m_input_tokens ephemeral_1h_input_tokens"
)
_CHAT_USAGE = _words(
    "usage metrics prompt_tokens_details completion_tokens_details input_tokens_details output_tokens_details"
    " cache_creation cache_creation_token_details server_tool_use token_usage"
)
_CHAT_TOOLS = _words("tool_calls tool_call function function_call tools functions tool_choice custom tool")
_RESPONSES_TOOLS = _words(
    "function function_call function_call_output tools tool_choice input output item items mcp_list_tools"
)
_PROMPT_KEYS = frozenset((*PROMPT_KEYS, *CACHED_KEYS, *WRITTEN_KEYS))
_CODEX_COUNTS = _words(
    "input_tokens cached_input_tokens cache_write_input_tokens output_tokens reasoning_output_tokens total_tokens"
)

_CLAUDE_CODE = Names(
    usage=_ANTHROPIC_USAGE,
    counts=_ANTHROPIC_COUNTS,
    beside=_words("preTokens postTokens cumulativeDroppedTokens tokensSaved pre_tokens post_tokens tokens_saved"),
    tools=_ANTHROPIC_TOOLS | _words("deferred_tools_delta tools-used preCompactDiscoveredTools"),
    kinds=_ANTHROPIC_KINDS,
    tool_endings=_ANTHROPIC_ENDINGS,
    passed_over=_words("attachment modelUsage progress rate_limit_info"),
)
NAMES: dict[str, Names] = {
    "adk": Names(
        usage=_words(
            "usageMetadata usage_metadata cacheTokensDetails cache_tokens_details promptTokensDetails"
            " prompt_tokens_details candidatesTokensDetails candidates_tokens_details toolUsePromptTokensDetails"
            " tool_use_prompt_tokens_details"
        ),
        counts=_words(
            "promptTokenCount candidatesTokenCount thoughtsTokenCount cachedContentTokenCount totalTokenCount"
            " toolUsePromptTokenCount tokenCount prompt_token_count candidates_token_count thoughts_token_count"
            " cached_content_token_count total_token_count tool_use_prompt_token_count token_count"
        ),
        beside=_words(  # a database may have a column for them
            "promptTokenCount candidatesTokenCount thoughtsTokenCount cachedContentTokenCount totalTokenCount"
            " toolUsePromptTokenCount prompt_token_count candidates_token_count thoughts_token_count"
            " cached_content_token_count total_token_count tool_use_prompt_token_count"
        ),
        tools=_words("functionCall functionResponse function_call function_response toolCall toolResponse"),
        passed_over=_words("state stateDelta state_delta customMetadata custom_metadata groundingMetadata"),
    ),
    "anthropic-messages": Names(
        usage=_ANTHROPIC_USAGE | _CHAT_USAGE,
        counts=_ANTHROPIC_COUNTS | _CHAT_COUNTS,
        beside=_words("prompt_tokens input_tokens promptTokens cleared_input_tokens cleared_tool_uses"),
        holders=_RESPONSES,
        tools=_ANTHROPIC_TOOLS | _words("tool_choice"),
        kinds=_ANTHROPIC_KINDS,
        tool_endings=_ANTHROPIC_ENDINGS,
        passed_over=_words("context_management"),
    ),
    "atif": Names(
        usage=_words("metrics final_metrics"),
        counts=_words("prompt_tokens completion_tokens cached_tokens total_prompt_tokens total_completion_tokens"),
        beside=_words("tokens_before tokens_after"),
        tools=_words("tool_calls tool_definitions function tools"),
        passed_over=_words("extra"),
    ),
    "claude-code": _CLAUDE_CODE,
    "cline": Names(
        usage=_words("metrics tokens"),
        counts=_words(
            "prompt completion cached inputTokens outputTokens cacheReadTokens cacheWriteTokens tokensIn tokensOut"
        ),
        beside=_words(
            "tokensIn tokensOut cacheWrites cacheReads tokensBefore prevContextTokens newContextTokens contextTokens"
        ),
        tools=_ANTHROPIC_TOOLS | {"tool"},
    ),
    "codex": Names(
        usage=_words("last_token_usage total_token_usage thread_token_usage turn_token_usage usage token_usage"),
        counts=_CODEX_COUNTS,
        beside=_words("input_tokens output_tokens tokensUsed"),
        holders=_words("msg"),
        totals=True,  # what `codex exec` prints has those of a turn
        tools=_words(
            "payload item items McpToolCall custom_tool_call custom_tool_call_output function function_call"
            " function_call_output function_group mcp_tool_call dynamic_tools invocation tools"
        )
        | _words("tool_search_call tool_search_output mcp_tool_call_begin mcp_tool_call_end view_image_tool_call"),
        tool_endings=("_tool_call", "_tool_call_request", "_tool_call_response", "_tool_call_begin", "_tool_call_end"),
    ),
    "copilot-cli": Names(
        usage=_words("usage modelMetrics tokenDetails compactionTokensUsed"),
        counts=_words(
            "input output cachedInput inputTokens outputTokens cacheReadTokens cacheWriteTokens reasoningTokens"
        ),
        beside=_words(
            "conversationTokens currentTokens inputTokens outputTokens systemTokens toolDefinitionsTokens"
            " cacheReadTokens cacheWriteTokens reasoningTokens preCompactionTokens postCompactionTokens tokensRemoved"
            " preTruncationTokensInMessages postTruncationTokensInMessages tokensRemovedDuringTruncation"
        ),
        holders=_words("data"),
        tools=_words(
            "toolRequests function tools data tool.execution_start tool.execution_complete tool.user_requested"
            " tool.execution_progress tool.execution_partial_result"
        ),
        passed_over=_words("toolTelemetry toolMetrics result"),
    ),
    "crush": Names(
        beside=_words("prompt_tokens completion_tokens"),
        holders=_words("data"),
        tools=_words("tool_call tool_result tool_use function data"),
    ),
    "gemini-cli": Names(
        usage=_words("tokens usageMetadata"),
        counts=_words("input output cached thoughts tool total prompt candidates"),
        beside=_words("total_tokens input_tokens output_tokens"),
        holders=_words("stats"),
        tools=_words("toolCalls functionCall functionResponse tools tool_use tool_result"),
        totals=True,  # what is printed has those of a run
    ),
    "hermes": Names(
        beside=_words("input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens token_count"),
        tools=_words("tool_calls function tools tool"),
    ),
    "inspect": Names(
        usage=_words("usage input_tokens_details output_tokens_details"),
        counts=_words(
            "input_tokens output_tokens total_tokens input_tokens_cache_read input_tokens_cache_write reasoning_tokens"
            " cached_tokens"
        ),
        beside=_words("tokens_before tokens_after input_context_tokens"),
        tools=_words("tool_calls tools function tool events tool_choice tool_use server_tool_use tool_result"),
        passed_over=_words("store metadata call attachments stats config changes error model_usage role_usage"),
    ),
    "langchain": Names(
        usage=_CHAT_USAGE | _ANTHROPIC_USAGE | _words("usage_metadata input_token_details output_token_details"),
        counts=_CHAT_COUNTS | _ANTHROPIC_COUNTS | _words("cache_read cache_creation reasoning audio"),
        tools=_CHAT_TOOLS | _ANTHROPIC_TOOLS | _words("invalid_tool_calls tool_call_chunks invocation_params input"),
        kinds=_ANTHROPIC_KINDS | {"tool_call"},
        tool_endings=_ANTHROPIC_ENDINGS,
        passed_over=_words("serialized runtime"),
    ),
    "mini-swe-agent": Names(
        usage=_CHAT_USAGE,
        counts=_CHAT_COUNTS,
        tools=_CHAT_TOOLS | _words("actions output function_call_output"),
        passed_over=_words("config"),
    ),
    "openai-chat": Names(
        usage=_CHAT_USAGE | _words("usageDetails usage_details"),
        counts=_CHAT_COUNTS
        | _words(
            "input output total promptTokens completionTokens totalTokens prompt_eval_count eval_count"
            " input_cached_tokens input_cache_read input_cache_creation input_cache_read_input_tokens"
            " input_cache_creation_input_tokens output_reasoning_tokens"
        ),
        beside=_words(
            "prompt_tokens completion_tokens total_tokens input_tokens output_tokens promptTokens completionTokens"
            " totalTokens prompt_eval_count eval_count"
        ),
        holders=_RESPONSES,
        tools=_CHAT_TOOLS,
    ),
    "openai-responses": Names(
        usage=_CHAT_USAGE | {"turn_usage"},
        counts=_CHAT_COUNTS,
        tools=_RESPONSES_TOOLS,
        tool_endings=("_call", "_call_output", "_search", "_search_preview", "_interpreter"),
    ),
    "opencode": Names(
        usage=_words("tokens cache"),
        counts=_words("input output reasoning total read write"),
        rests=_words("input"),
        tools=_words("tool tools tool_use"),
        passed_over=_words("state metadata"),
    ),
    "openhands": Names(
        usage=_CHAT_USAGE | _words("accumulated_token_usage token_usages usage_to_metrics llm_metrics"),
        counts=_CHAT_COUNTS | _words("per_turn_token cache_read_tokens"),
        tools=_CHAT_TOOLS | _words("tool_call_metadata"),
        passed_over=_words("extras test_result"),
    ),
    "otel": Names(
        beside=_PROMPT_KEYS | {f"attributes.{key}" for key in _PROMPT_KEYS},
        tools=_words("parts tool_call tool_call_response"),
        passed_over=_words("attributes"),  # whose names are looked at span by span
    ),
    "pi": Names(
        usage=_words("usage"),
        counts=_words("input output cacheRead cacheWrite totalTokens reasoning cacheWrite1h"),
        rests=_words("input"),
        beside=_words("tokensBefore estimatedTokensAfter"),
        tools=_words(
            "toolCall tools toolResult toolResults content tool_execution_start tool_execution_update"
            " tool_execution_end toolsAdded toolsRemoved"
        ),
        kinds=_words("toolCall"),
        passed_over=_words("details cost partialResult result assistantMessageEvent toolResults"),
    ),
    "swe-agent": Names(
        usage=_words("model_stats"),
        counts=_words("tokens_sent tokens_received api_calls"),
        tools=_CHAT_TOOLS | _words("tool_call_ids"),
        passed_over=_words("replay_config environment state"),
        totals=True,
    ),
}
