"""The names under which Hermes writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    beside=words("input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens token_count"),
    tools=words("tool_calls function tools tool"),
)
