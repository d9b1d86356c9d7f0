"""Strands Agents' conversation managers: `sliding_window` drops the oldest messages, `summarizing` summarises them.

Source of the rules: specification of policies, section 7; strands-agents 1.62.0, `agent/conversation_manager`, and
scripted runs of it. Both act when the provider refuses a request and, with proactive compression, when the projected
tokens of a request reach a share of the window; the sliding window acts after every turn, too. A message of the library
holds all results of parallel calls, and consecutive messages of the user. An answer that has a text beside one of
blanks has only empty ones replaced. Not here: a summarising agent of one's own, pictures in tool results, reasoning in
estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns, Value
from guard_core.policies.strands.settings import (
    SLIDING_SETTINGS,
    SUMMARIZING_SETTINGS,
    SlidingSettings,
    StrandsSummarizingSettings,
)
from guard_core.policies.strands.sliding_window import StrandsSlidingWindow
from guard_core.policies.strands.summarizing import LEAST_RATIO, MOST_RATIO, StrandsSummarizing

# The runs offered tools whose definitions have so many tokens by the library's estimate; the provider refuses by
# characters / 4; what is `acted` there says only that a view changed.
_RUNS: dict[str, Value] = {"tool_tokens": 316}
_SOURCE = "specification of policies, section 7; measured by running strands-agents 1.62.0"


def strands_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings: `proactive_compression` is a switch, or has a threshold; a share
    outside the library's limits is the nearer one of them, and a number of messages below 0 is 0."""
    given = {name: value for name, value in parameters.items() if name != "proactive_compression"}
    if "summary_ratio" in given:
        given["summary_ratio"] = max(LEAST_RATIO, min(MOST_RATIO, given["summary_ratio"]))
    for name in ("pin_first", "preserve_recent_messages"):
        given |= {name: max(0, given[name] or 0)} if name in given else {}
    proactive = parameters.get("proactive_compression")
    if isinstance(proactive, Mapping):
        return {**given, "proactive": True, **proactive}
    return {**given, "proactive": bool(proactive)}


def _runs(strategy: str) -> RecordedRuns:
    return RecordedRuns("strands-agents", strategy, {}, _RUNS, judges_acted=False, settings_of=strands_settings)


SLIDING = PolicyKind(
    StrandsSlidingWindow.name,
    "Strands (sliding window)",
    "Drops the oldest messages after a turn that leaves too many, and when a request is refused.",
    lambda **values: StrandsSlidingWindow(SlidingSettings(**values)),
    SLIDING_SETTINGS,
    summarises=False,
    judged_by=_runs("sliding_window"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "Only the oldest results are cut",
            "A refused request has the results of its oldest message cut, once; later large results are never cut.",
            _SOURCE,
        ),
    ),
)
SUMMARIZING = PolicyKind(
    StrandsSummarizing.name,
    "Strands (summarizing)",
    "Summarises the oldest share of the messages when a request is refused.",
    lambda **values: StrandsSummarizing(StrandsSummarizingSettings(**values)),
    SUMMARIZING_SETTINGS,
    judged_by=_runs("summarizing"),
    known_problems=(
        KnownProblem(
            "The same summary again and again",
            "If the newest messages alone are too large, every retry summarises the one earlier summary again.",
            _SOURCE,
        ),
    ),
)
KINDS = (SLIDING, SUMMARIZING)
