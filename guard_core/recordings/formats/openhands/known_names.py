"""The names under which OpenHands writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import CHAT_COUNTS, CHAT_TOOLS, CHAT_USAGE, Names, words

NAMES = Names(
    usage=CHAT_USAGE | words("accumulated_token_usage token_usages usage_to_metrics llm_metrics"),
    counts=CHAT_COUNTS | words("per_turn_token cache_read_tokens"),
    windows=words("context_window"),
    tools=CHAT_TOOLS | words("tool_call_metadata"),
    passed_over=words("extras test_result"),
)
