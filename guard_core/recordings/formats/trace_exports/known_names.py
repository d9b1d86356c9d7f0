"""The names under which services write counts of tokens and tool calls in the traces that they export."""

from __future__ import annotations

from guard_core.recordings.formats.otlp.kinds import CACHED_KEYS, OUTPUT_KEYS, PROMPT_KEYS, WRITTEN_KEYS
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
    usage=CHAT_USAGE | ANTHROPIC_USAGE | words("usageDetails usage_details usage"),
    counts=CHAT_COUNTS
    | ANTHROPIC_COUNTS
    | words(
        "input output total requests cached_input_tokens cache_write_input_tokens promptTokens completionTokens"
        " totalTokens input_cached_tokens input_cache_read input_cache_creation input_cache_read_input_tokens"
        " input_cache_creation_input_tokens output_reasoning_tokens prompt_cached_tokens prompt_cache_creation_tokens"
        " completion_reasoning_tokens tokens"
    ),
    beside=words(
        "promptTokens completionTokens totalTokens inputUsage outputUsage totalUsage input_usage output_usage"
        " total_usage prompt_tokens completion_tokens total_tokens tokens"
    ).union(PROMPT_KEYS, CACHED_KEYS, WRITTEN_KEYS, OUTPUT_KEYS),  # these of any-agent
    holders=words("metrics data"),
    tools=CHAT_TOOLS
    | ANTHROPIC_TOOLS
    | RESPONSES_TOOLS
    | words("TOOL tool trace data observations span_data parts tool_call_response"),
    kinds=ANTHROPIC_KINDS,
    tool_endings=(*ANTHROPIC_ENDINGS, "_call", "_call_output"),
    passed_over=words(
        "attributes summary costDetails cost_details inputs metadata model_config span_attributes mcp_data"
    ),
)
