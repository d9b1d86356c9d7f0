"""inspect_ai's compaction: `edit` clears old tool results, `trim` drops the oldest messages, `summary` replaces all
but the first ones, `native` has the provider do so, and `auto` is `native` where the provider can, else `summary`.

Source of the rules: specification of policies, section 7; version 0.3.285, its modules `model/_compaction` and
`model/_trim.py` and scripted runs of it. Before each call the library counts its list: the last count of the provider
and an estimate of the messages since, or, without one, an estimate of all. Over the threshold the strategy is applied,
and up to three times more while the result is still over it; what is over it even then ends the sample with an error.

What a provider's own compaction leaves is known, and its size modelled; that Anthropic's needs 50,000 tokens is checked
by the library's estimate of the list. Of OpenAI's answer the user's messages are taken to stay.

Estimates here are characters // 4; the library asks the provider, or counts with tiktoken and adds a tenth. Not here:
the memory tool and its warning, tool uses that run at the provider, citations, a threshold that is the whole number 1
(one token), and results in another order than their calls, of which `edit` without inputs removes the wrong ones or
fails (0.3.285; Inspect itself keeps the order).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.policies.inspect_ai.edit import InspectEdit
from guard_core.policies.inspect_ai.native import InspectAuto, InspectNative
from guard_core.policies.inspect_ai.settings import (
    AUTO_SETTINGS,
    EDIT_SETTINGS,
    NATIVE_SETTINGS,
    SUMMARY_SETTINGS,
    TRIM_SETTINGS,
    AutoSettings,
    EditSettings,
    InspectAISummarySettings,
    InspectAITrimSettings,
    NativeSettings,
)
from guard_core.policies.inspect_ai.summary import InspectSummary
from guard_core.policies.inspect_ai.trim import InspectTrim
from guard_core.policies.settings import KnownProblem, PolicyKind, RecordedRuns

WINDOW = 128_000  # of the scripted model of the recorded runs
MOST_TURNS = 1_000_000  # more than a script has messages
ONE_TOKEN = 1.5  # a threshold of one token as ours, which is cut to a whole number


def inspect_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. The runs have no memory tool, so that `memory` warns nobody; all
    turns with reasoning stay where so many are kept that no run has them. A threshold of 1 without a fraction is one
    token; ours up to 1 is a share of the window, and above it the fraction has no effect."""
    given = {name: value for name, value in parameters.items() if name != "memory"}
    if isinstance(given.get("threshold"), int) and given["threshold"] == 1:
        given["threshold"] = ONE_TOKEN
    if given.get("keep_thinking_turns") == "all":
        given["keep_thinking_turns"] = MOST_TURNS
    return given


EDIT = PolicyKind(
    InspectEdit.name,
    "Inspect AI (edit)",
    "Replaces the results of all but the newest tool calls once the request exceeds a share of the window.",
    lambda **values: InspectEdit(EditSettings(**values)),
    EDIT_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("inspect_ai", "edit", window=WINDOW, settings_of=inspect_settings),
)
TRIM = PolicyKind(
    InspectTrim.name,
    "Inspect AI (trim)",
    "Drops the oldest messages after the first user message once the request exceeds a share of the window.",
    lambda **values: InspectTrim(InspectAITrimSettings(**values)),
    TRIM_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("inspect_ai", "trim", window=WINDOW, settings_of=inspect_settings),
)
SUMMARY = PolicyKind(
    InspectSummary.name,
    "Inspect AI (summary)",
    "Replaces everything after the first user message with a summary once the request exceeds a share of the window.",
    lambda **values: InspectSummary(InspectAISummarySettings(**values)),
    SUMMARY_SETTINGS,
    judged_by=RecordedRuns("inspect_ai", "summary", window=WINDOW, settings_of=inspect_settings),
)
NATIVE = PolicyKind(
    InspectNative.name,
    "Inspect AI (native)",
    "Lets the provider replace the messages with a block of its own once the request exceeds a share of the window.",
    lambda **values: InspectNative(NativeSettings(**values)),
    NATIVE_SETTINGS,
    judged_by=RecordedRuns("inspect_ai", "native", window=WINDOW, settings_of=inspect_settings),
    known_problems=(
        KnownProblem(
            "Anthropic compacts nothing below 50,000 tokens",
            "With a lower threshold, or if the block is still over the threshold, the run ends with an error.",
            "inspect_ai 0.3.285, model/_providers/anthropic.py",
        ),
    ),
)
AUTO = PolicyKind(
    InspectAuto.name,
    "Inspect AI (auto)",
    "Compacts as native where the provider can, and else as summary, once the request exceeds a share of the window.",
    lambda **values: InspectAuto(AutoSettings(**values)),
    AUTO_SETTINGS,
    judged_by=RecordedRuns("inspect_ai", "auto", window=WINDOW, settings_of=inspect_settings),
)
KINDS = (EDIT, TRIM, SUMMARY, NATIVE, AUTO)
