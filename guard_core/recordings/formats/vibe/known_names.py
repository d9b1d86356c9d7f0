"""The names under which Mistral Vibe writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage contextUsage tokenUsage"),
    counts=words(
        "input_tokens cached_input_tokens output_tokens total_tokens inputTokens cachedInputTokens outputTokens"
        " totalTokens"
    ),
    beside=words("token_threshold max_output_tokens model_visible_output_tokens auto_compact_threshold"),
    holders=words("compaction large_output config models"),
    tools=words(
        "tool tools tool_call tool_calls function tool_catalog messages message content parts result call tool_result"
        " tool_call_id tools_available request input command"
    ),
    kinds=words("tool_call"),
    tool_endings=("_tool_call", "tool_succeeded", "tool_failed"),
    passed_over=words(
        "checkpoint_capabilities checkpoint_plugins transition_shape display detail state output structured_content"
        " arguments value experiments tool_groups stats tool_grants image_cost"
    ),
)
