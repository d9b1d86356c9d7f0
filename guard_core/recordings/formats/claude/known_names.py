"""The names under which Claude Code writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import (
    ANTHROPIC_COUNTS,
    ANTHROPIC_ENDINGS,
    ANTHROPIC_KINDS,
    ANTHROPIC_TOOLS,
    ANTHROPIC_USAGE,
    Names,
    words,
)

NAMES = Names(
    usage=ANTHROPIC_USAGE,
    counts=ANTHROPIC_COUNTS,
    beside=words("preTokens postTokens cumulativeDroppedTokens tokensSaved pre_tokens post_tokens tokens_saved"),
    tools=ANTHROPIC_TOOLS | words("deferred_tools_delta tools-used preCompactDiscoveredTools"),
    kinds=ANTHROPIC_KINDS,
    tool_endings=ANTHROPIC_ENDINGS,
    # The keys of trackedFileBackups are paths, "src/token.ts" among them.
    passed_over=words("attachment modelUsage progress rate_limit_info trackedFileBackups"),
)
