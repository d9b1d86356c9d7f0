"""The names under which OpenCode writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("tokens cache"),
    counts=words("input output reasoning total read write"),
    rests=words("input"),
    tools=words("tool tools tool_use"),
    passed_over=words("state metadata"),
)
