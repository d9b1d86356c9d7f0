"""LangChain: its middlewares for context editing (`ClearToolUsesEdit`) and for summarization, and `trim_messages`.

Source of the rules: specification of policies, section 7, and langchain 1.4.7, `agents/middleware/context_editing.py`
and `summarization.py`, langchain-core 1.7.2, `messages/utils.py`, with scripted runs of all. Clearing and trimming edit
each request anew; the list that an agent keeps stays whole. Counts are `count_tokens_approximately`: characters / 4,
rounded up for each message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.policies.langchain.clear_tool_uses import LangChainClearToolUses
from guard_core.policies.langchain.context_sizes import written
from guard_core.policies.langchain.settings import (
    CLEAR_SETTINGS,
    SUMMARIZATION_SETTINGS,
    TRIM_SETTINGS,
    LangChainClearSettings,
    LangChainSummarizationSettings,
    LangChainTrimSettings,
)
from guard_core.policies.langchain.summarization import LangChainSummarization
from guard_core.policies.langchain.trim_messages import LangChainTrimMessages
from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns

CLEAR = PolicyKind(
    LangChainClearToolUses.name,
    "LangChain (clear tool uses)",
    "In each request above a number of tokens, replaces the results of all but the newest tool calls.",
    lambda **values: LangChainClearToolUses(LangChainClearSettings(**values)),
    CLEAR_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("langchain", "clear_tool_uses"),
)
TRIM = PolicyKind(
    LangChainTrimMessages.name,
    "LangChain (trim messages)",
    "Sends as many of the newest (or oldest) messages as fit within a number of tokens or messages.",
    lambda **values: LangChainTrimMessages(LangChainTrimSettings(**values)),
    TRIM_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("langchain-core", "trim_messages"),
    parts_pairs="the cut may fall between a call and its result unless `start_on` (or `end_on`) names other messages",
    known_problems=(BEGINS_WITH_ANSWER,),
)


def trimmed_to(tokens: Any) -> Any:
    """The library's limit for what the summariser is given as our setting: of 0 tokens or fewer, which no message fits,
    as of 1; without a limit 0."""
    return 0 if tokens is None else max(tokens, 1)


def summarization_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. Whether a system message is in its list is a matter of the list,
    not of a setting. Without a trigger the library never acts."""
    given = {name: value for name, value in parameters.items() if name != "system_in_state"}
    sizes: dict[str, Any] = {"trigger": written(given.get("trigger"))}
    if "keep" in given:
        sizes["keep"] = written(given["keep"])
    if "trim_tokens_to_summarize" in given:
        sizes["trim_tokens_to_summarize"] = trimmed_to(given["trim_tokens_to_summarize"])
    return {**given, **sizes}


SUMMARIZATION = PolicyKind(
    LangChainSummarization.name,
    "LangChain (summarization)",
    "Replaces all but the newest messages with a summary.",
    lambda **values: LangChainSummarization(LangChainSummarizationSettings(**values)),
    SUMMARIZATION_SETTINGS,
    judged_by=RecordedRuns(
        "langchain", "summarization_middleware", settings_of=summarization_settings, strips_summaries=True
    ),
    known_problems=(
        KnownProblem(
            "History is lost without a summary",
            (
                "The summariser gets the last 4,000 tokens, from a user message on. If none fits, no model is "
                "asked, and a fixed sentence replaces all old messages, including the earlier summary: 11 of "
                "165 compactions at 4,000 tokens and 20 messages."
            ),
            "measured, specification of policies section 7",
        ),
    ),
)
KINDS = (SUMMARIZATION, CLEAR, TRIM)
