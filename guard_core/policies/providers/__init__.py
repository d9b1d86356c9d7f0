"""What providers do with a request before the model reads it, or for the client: edits and compactions.

Source of the rules: specification of policies, section 7, and of new policies, section 1, from the providers' public
documentation; not measured by running. A provider counts the request that it is given. Not here: edits of Anthropic's
API that are triggered by a number of tool uses, or that clear the arguments of some tools only.
"""

from __future__ import annotations

from guard_core.policies.providers.clear_thinking import ClearThinking, ClearThinkingSettings
from guard_core.policies.providers.clear_tool_uses import ClearToolUses, ClearToolUsesSettings
from guard_core.policies.settings import COUNT, SWITCH, TEXT, KnownProblem, PolicyKind, Setting

_EDITING = "Anthropic, context editing (beta context-management-2025-06-27); specification of policies section 7"
_CACHE = "The provider's cache holds a request only up to the first block that was cleared since."
CLEAR_TOOL_USES = PolicyKind(
    ClearToolUses.name,
    "Anthropic API (clear tool uses)",
    "The provider replaces the results of all but the newest tool uses in each request above a number of tokens.",
    lambda **values: ClearToolUses(ClearToolUsesSettings(**values)),
    (
        Setting(
            "trigger",
            "Trigger",
            COUNT,
            100_000,
            "it clears where the request as the client sends it has more input tokens",
            _EDITING,
            unit="tokens",
            main=True,
            sweep=(50_000, 100_000, 150_000),
        ),
        Setting(
            "keep",
            "Tool uses kept",
            COUNT,
            3,
            "newest tool uses whose results stay, of all tools",
            _EDITING,
            unit="tool uses",
            main=True,
            sweep=(3, 10, 30),
        ),
        Setting(
            "clear_at_least",
            "Clear at least",
            COUNT,
            0,
            "nothing is cleared where that would save fewer tokens; 0: not set",
            _EDITING,
            unit="tokens",
            main=True,
        ),
        Setting(
            "exclude_tools",
            "Tools left alone",
            TEXT,
            "",
            "names of tools whose results are never cleared, with commas between",
            _EDITING,
        ),
        Setting("clear_tool_inputs", "Clear arguments", SWITCH, False, "of the same tool uses, too", _EDITING),
    ),
    summarises=False,
    known_problems=(KnownProblem("The cache is lost from the edit on", _CACHE, _EDITING),),
)
CLEAR_THINKING = PolicyKind(
    ClearThinking.name,
    "Anthropic API (clear thinking)",
    "The provider takes thinking out of each request, but for the newest turns that have some.",
    lambda **values: ClearThinking(ClearThinkingSettings(**values)),
    (
        Setting(
            "keep",
            "Turns kept",
            COUNT,
            1,
            "newest turns with thinking that keep it; to keep all is to send requests as they are",
            _EDITING,
            unit="turns",
            least=1,
            main=True,
            sweep=(1, 2, 5),
        ),
    ),
    summarises=False,
    known_problems=(KnownProblem("The cache is lost from the edit on", _CACHE, _EDITING),),
)
KINDS = (CLEAR_TOOL_USES, CLEAR_THINKING)
