"""The names under which ADK writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words(
        "usageMetadata usage_metadata cacheTokensDetails cache_tokens_details promptTokensDetails"
        " prompt_tokens_details candidatesTokensDetails candidates_tokens_details toolUsePromptTokensDetails"
        " tool_use_prompt_tokens_details"
    ),
    counts=words(
        "promptTokenCount candidatesTokenCount thoughtsTokenCount cachedContentTokenCount totalTokenCount"
        " toolUsePromptTokenCount tokenCount prompt_token_count candidates_token_count thoughts_token_count"
        " cached_content_token_count total_token_count tool_use_prompt_token_count token_count"
    ),
    beside=words(  # a database may have a column for them
        "promptTokenCount candidatesTokenCount thoughtsTokenCount cachedContentTokenCount totalTokenCount"
        " toolUsePromptTokenCount prompt_token_count candidates_token_count thoughts_token_count"
        " cached_content_token_count total_token_count tool_use_prompt_token_count"
    ),
    tools=words("functionCall functionResponse function_call function_response toolCall toolResponse"),
    # What is asked of the user is kept by the ids of calls, "toolu_1" among them, and artifacts by the names of files.
    passed_over=words(
        "state stateDelta state_delta customMetadata custom_metadata groundingMetadata artifactDelta artifact_delta"
        " requestedToolConfirmations requested_tool_confirmations requestedAuthConfigs requested_auth_configs"
    ),
)
