"""The names under which Kimi Code writes counts of tokens and tool calls."""

from __future__ import annotations

from guard_core.recordings.reading.known_names import Names, words

NAMES = Names(
    usage=words("usage"),
    counts=words("inputOther output inputCacheRead inputCacheCreation"),
    beside=words(
        "tokens tokenCount tokensBefore tokensAfter summaryOutputTokens maxTokens tokensUsed tokenBudget contextTokens"
    ),
    holders=words("budgetLimits result"),
    tools=words(
        "tool.call tool.result toolCalls function tools event result llm.tools_snapshot tools.set_active_tools"
        " tools.reset_active_tools tools.register_user_tool tools.unregister_user_tool tools.update_store"
        " mcp.tools_discovered user_tool interaction.request"
    ),
    kinds=words("tool.call tool.result"),
    passed_over=words("display args value request response info extras task origin disclosure"),
)
