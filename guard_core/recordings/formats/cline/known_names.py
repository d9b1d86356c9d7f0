"""The names under which Cline and Roo Code write counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import ANTHROPIC_TOOLS, Names, words

NAMES = Names(
    usage=words("metrics tokens"),
    counts=words(
        "prompt completion cached inputTokens outputTokens cacheReadTokens cacheWriteTokens tokensIn tokensOut"
    ),
    beside=words(
        "tokensIn tokensOut cacheWrites cacheReads tokensBefore prevContextTokens newContextTokens contextTokens"
    ),
    tools=ANTHROPIC_TOOLS | {"tool"},
)
