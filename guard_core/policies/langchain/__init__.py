"""LangChain: `ClearToolUsesEdit` of the middleware for context editing, and `trim_messages` of langchain-core.

Source of the rules: specification of policies, section 7, and langchain 1.4.7, `agents/middleware/context_editing.py`,
langchain-core 1.7.2, `messages/utils.py`, with scripted runs of both. Both edit each request anew; the list that an
agent keeps stays whole. Counts are `count_tokens_approximately`: characters / 4, rounded up for each message.
"""

from __future__ import annotations

from guard_core.policies.langchain.clear_tool_uses import ClearToolUses
from guard_core.policies.langchain.settings import CLEAR_SETTINGS, TRIM_SETTINGS, ClearSettings, TrimSettings
from guard_core.policies.langchain.trim_messages import TrimMessages
from guard_core.policies.settings import PolicyKind, RecordedRuns

CLEAR = PolicyKind(
    ClearToolUses.name,
    "LangChain (clear tool uses)",
    "Replaces the results of all but the newest tool calls in each request over a number of tokens.",
    lambda **values: ClearToolUses(ClearSettings(**values)),
    CLEAR_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("langchain", "clear_tool_uses"),
)
TRIM = PolicyKind(
    TrimMessages.name,
    "LangChain (trim messages)",
    "Sends as many of the newest (or oldest) messages as fit a number of tokens or messages.",
    lambda **values: TrimMessages(TrimSettings(**values)),
    TRIM_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("langchain-core", "trim_messages"),
    parts_pairs="the cut falls between a call and its result unless `start_on` (or `end_on`) names other messages",
)
KINDS = (CLEAR, TRIM)
