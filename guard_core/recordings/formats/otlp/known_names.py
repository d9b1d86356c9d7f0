"""The names under which instrumentations write counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.formats.otlp.kinds import (
    CACHED_KEYS,
    CLAUDE_KEYS,
    OUTPUT_KEYS,
    PART_KEYS,
    PROMPT_KEYS,
    WRITTEN_KEYS,
)
from guard_core.recordings.reading.known_names import Names, words

_KEYS = frozenset((*PROMPT_KEYS, *CACHED_KEYS, *WRITTEN_KEYS, *PART_KEYS, *OUTPUT_KEYS, *CLAUDE_KEYS))
NAMES = Names(
    beside=_KEYS | {f"attributes.{key}" for key in (*_KEYS, "llm.token_count.total")},
    tools=words("parts tool_call tool_call_response"),
    passed_over=words("attributes"),  # whose names are looked at span by span
)
