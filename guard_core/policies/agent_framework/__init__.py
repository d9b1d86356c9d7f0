"""The compaction strategies of Microsoft Agent Framework, applied before every model call.

Source of the rules: agent-framework-core 1.23.0 (Python), `_compaction.py`, and scripted runs of it. What a strategy
leaves out stays out. A group of messages (a call with its results is one) stays or goes whole, and tokens are those of
the library's own estimate, a quarter of the characters of each message as JSON. A result that comes after other
messages brings the rest of its group back if that was left out. Not here: a tokenizer of one's own, ids that a provider
gives, errors of tools, the number by which summaries move the ids of later messages; and of such results, that a second
note in place of a group brings the first one back, and that a group is taken apart when a result of a later call comes
late, too.
"""

from collections.abc import Mapping
from typing import Any

from guard_core.policies.agent_framework import policies as own
from guard_core.policies.agent_framework import settings as data
from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns

_MEASURED = "measured, specification of new policies section 3"
_LIBRARY, _COUNTED = "agent-framework", "list_tokens"
_IDS = {"id_prefix": "m"}  # the runs were made with ids m0, m1, ...


def framework_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. No list fits a budget of 0 tokens or less, nor one of 1, for a
    message has more; in ours 0 is the window."""
    given = dict(parameters)
    return given | {"token_budget": max(given["token_budget"], 1)} if "token_budget" in given else given


def _runs(strategy: str, **settings: str | int) -> RecordedRuns:
    return RecordedRuns(
        _LIBRARY,
        strategy,
        settings={**_IDS, **settings},
        tokens_column=_COUNTED,
        settings_of=framework_settings,
        strips_summaries=True,
    )


TRUNCATION = PolicyKind(
    own.AgentFrameworkTruncation.name,
    "Agent Framework (truncation)",
    "Removes the oldest groups of messages until the rest is few or short enough.",
    lambda **values: own.AgentFrameworkTruncation(data.TruncationSettings(**values)),
    data.TRUNCATION_SETTINGS,
    summarises=False,
    judged_by=_runs("truncation", tokens=False),
    known_problems=(BEGINS_WITH_ANSWER,),
)
SLIDING_WINDOW = PolicyKind(
    own.AgentFrameworkSlidingWindow.name,
    "Agent Framework (sliding window)",
    "Keeps system messages and the last groups of messages.",
    lambda **values: own.AgentFrameworkSlidingWindow(data.SlidingWindowSettings(**values)),
    data.SLIDING_WINDOW_SETTINGS,
    summarises=False,
    judged_by=_runs("sliding_window"),
    known_problems=(BEGINS_WITH_ANSWER,),
)
SELECTIVE_TOOL_CALL = PolicyKind(
    own.SelectiveToolCall.name,
    "Agent Framework (selective tool calls)",
    "Removes all tool calls with their results except the last ones.",
    lambda **values: own.SelectiveToolCall(data.ToolGroupSettings(**values)),
    (data.tool_groups(1), data.ID_PREFIX),
    summarises=False,
    judged_by=_runs("selective_tool_call"),
)
TOOL_RESULT = PolicyKind(
    own.ToolResult.name,
    "Agent Framework (tool results)",
    (
        "Replaces all tool calls except the last with a message that contains at most 4,096 characters of "
        "what the tools returned."
    ),
    lambda **values: own.ToolResult(data.ToolGroupSettings(**values)),
    (data.tool_groups(1), data.ID_PREFIX),
    summarises=False,
    judged_by=_runs("tool_result"),
)
SUMMARIZATION = PolicyKind(
    own.AgentFrameworkSummarization.name,
    "Agent Framework (summarization)",
    "Replaces the oldest groups of messages with a summary when there are too many messages.",
    lambda **values: own.AgentFrameworkSummarization(data.AgentFrameworkSummarizationSettings(**values)),
    (*data.SUMMARIZATION_SETTINGS, data.ID_PREFIX),
    judged_by=_runs("summarization"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "A group too large for the summariser stays forever",
            "It is skipped, and only the earlier summary is summarised again: a call at every step with no effect.",
            _MEASURED,
        ),
        KnownProblem(
            "The user's newest message is lost",
            "At the defaults, 188 of 503 steps lack the user's newest message, and 464 call the summariser.",
            _MEASURED,
        ),
    ),
)
CONTEXT_WINDOW = PolicyKind(
    own.ContextWindow.name,
    "Agent Framework (context window)",
    (
        "Collapses older tool groups above half of the window minus the answer, and removes groups above four "
        "fifths of it."
    ),
    lambda **values: own.ContextWindow(data.ContextWindowSettings(**values)),
    data.CONTEXT_WINDOW_SETTINGS,
    summarises=False,
    judged_by=_runs("context_window"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "The user's task is removed first",
            "The oldest groups are removed, and the first of them is the task unless it is set to stay.",
            _MEASURED,
        ),
    ),
)
TOKEN_BUDGET = PolicyKind(
    own.TokenBudget.name,
    "Agent Framework (token budget)",
    "Above a token budget, tries strategies in order, then removes the oldest groups, and system messages last.",
    lambda **values: own.TokenBudget(data.token_budget(values)),
    data.TOKEN_BUDGET_SETTINGS,
    judged_by=_runs("token_budget", keep_last_tool_call_groups=2, target_count=6),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "System instructions are removed",
            "If they do not fit beside the newest group, they are removed, too.",
            data.SOURCE,
        ),
    ),
)
KINDS = (TRUNCATION, SLIDING_WINDOW, SELECTIVE_TOOL_CALL, TOOL_RESULT, SUMMARIZATION, CONTEXT_WINDOW, TOKEN_BUDGET)
