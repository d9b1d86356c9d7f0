"""What providers do with a request before the model reads it, or for the client: edits and compactions.

Source of the rules: specification of policies, section 7, and of new policies, section 1, from the providers' public
documentation; not measured by running. A provider counts the request that it is given. Not here: edits of Anthropic's
API that are triggered by a number of tool uses, or that clear the arguments of some tools only.
"""

from __future__ import annotations

from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.providers.clear_thinking import ClearThinking, ClearThinkingSettings
from guard_core.policies.providers.clear_tool_uses import ClearToolUses, ClearToolUsesSettings
from guard_core.policies.providers.compaction import (
    BACKGROUND,
    EXPLICIT,
    ON_DEMAND,
    SERVER,
    THRESHOLD,
    AnthropicCompaction,
    AnthropicSettings,
    OpenAiCompaction,
    OpenAiSettings,
)
from guard_core.policies.settings import COUNT, SWITCH, TEXT, KnownProblem, PolicyKind, Profile, Setting

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
_COMPACTION = "Anthropic, compaction; specification of new policies section 1"
_BUDGET = summary_budget()
ANTHROPIC_COMPACTION = PolicyKind(
    AnthropicCompaction.name,
    "Anthropic API (compaction)",
    "The provider turns all messages of a request that reaches the trigger into one readable block.",
    lambda **values: AnthropicCompaction(AnthropicSettings(**values)),
    (
        Setting(
            "trigger",
            "Trigger",
            COUNT,
            150_000,
            "it compacts where a request has as many input tokens; at least 50,000 where the provider watches it",
            f"{_COMPACTION}; on demand and in the background the client's own, this default is ours",
            unit="tokens",
            main=True,
            sweep=(50_000, 100_000, 150_000),
        ),
        Setting(
            "arrives_after",
            "Arrives after",
            COUNT,
            1,
            "model calls between the one at which the block is begun and the one that has it",
            "ours: it depends on how long the calls last",
            unit="calls",
            least=1,
            not_in=(THRESHOLD, ON_DEMAND),
        ),
        _BUDGET,
    ),
    (
        Profile(THRESHOLD, "compact_20260112: within the request that reaches the trigger"),
        Profile(ON_DEMAND, "compact-2026-09-04: the client asks for the block just before that request"),
        Profile(BACKGROUND, "compact-2026-09-04: the client goes on, and uses the block when it is there"),
    ),
    known_problems=(
        KnownProblem(
            "Nothing of the conversation stays verbatim",
            "The newest message of the user and results that the model has not read are in the block alone, but for "
            "what came after it was begun in the background.",
            _COMPACTION,
        ),
    ),
)
_OPENAI = "OpenAI, Responses API; specification of policies section 7"
OPENAI_COMPACTION = PolicyKind(
    OpenAiCompaction.name,
    "OpenAI API (compaction)",
    "The provider turns the messages of a request above a threshold into one encrypted item, modelled as a size.",
    lambda **values: OpenAiCompaction(OpenAiSettings(**values)),
    (
        Setting(
            "compact_threshold",
            "Threshold",
            COUNT,
            200_000,
            "it compacts where a request has more tokens; the API has no default",
            f"{_OPENAI}; the default is ours",
            unit="tokens",
            least=1,
            main=True,
            sweep=(100_000, 200_000, 300_000),
        ),
        _BUDGET,
    ),
    (
        Profile(SERVER, "context_management with a compact_threshold: all messages become the item"),
        Profile(EXPLICIT, "/responses/compact, called above the threshold: messages of the user stay before the item"),
    ),
    known_problems=(
        KnownProblem(
            "What it keeps cannot be seen",
            "The item is encrypted: it can neither be read nor sent to another provider. Its size here is that of the "
            "summaries that are set.",
            _OPENAI,
        ),
    ),
)
KINDS = (CLEAR_TOOL_USES, CLEAR_THINKING, ANTHROPIC_COMPACTION, OPENAI_COMPACTION)
