"""What providers do with a request before the model reads it, or for the client: edits and compactions.

Source of the rules: specification of policies, section 7, and of new policies, section 1, from the providers' public
documentation; not measured by running. A provider counts the request that it is given. Not here: edits of Anthropic's
API that are triggered by a number of tool uses, or that clear the arguments of some tools only.
"""

from __future__ import annotations

from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.providers.clear_thinking import ClearThinking, ClearThinkingSettings
from guard_core.policies.providers.clear_tool_uses import ClearToolUsesSettings, ProviderClearToolUses
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
_CACHE = "The provider's cache covers a request only up to the first block cleared since."
CLEAR_TOOL_USES = PolicyKind(
    ProviderClearToolUses.name,
    "Anthropic API (clear tool uses)",
    "In each request above a number of tokens, the provider replaces the results of all but the newest tool uses.",
    lambda **values: ProviderClearToolUses(ClearToolUsesSettings(**values)),
    (
        Setting(
            "trigger",
            "Trigger",
            COUNT,
            100_000,
            "clears if the request, as the client sends it, has more input tokens than this",
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
            "newest tool uses, of all tools, whose results stay",
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
            "clears nothing if that would save fewer tokens than this; 0: not set",
            _EDITING,
            unit="tokens",
            main=True,
        ),
        Setting(
            "exclude_tools",
            "Tools left alone",
            TEXT,
            "",
            "names of tools whose results are never cleared, separated by commas",
            _EDITING,
        ),
        Setting(
            "clear_tool_inputs",
            "Clear arguments",
            SWITCH,
            False,
            "clears the arguments of the same tool uses, too",
            _EDITING,
        ),
    ),
    summarises=False,
    known_problems=(KnownProblem("Each edit invalidates the cache after it", _CACHE, _EDITING),),
)
CLEAR_THINKING = PolicyKind(
    ClearThinking.name,
    "Anthropic API (clear thinking)",
    "The provider removes thinking from each request, except in the newest turns that have some.",
    lambda **values: ClearThinking(ClearThinkingSettings(**values)),
    (
        Setting(
            "keep",
            "Turns kept",
            COUNT,
            1,
            "number of newest turns with thinking that keep it; keeping all leaves requests unchanged",
            _EDITING,
            unit="turns",
            least=1,
            main=True,
            sweep=(1, 2, 5),
        ),
    ),
    summarises=False,
    known_problems=(KnownProblem("Each edit invalidates the cache after it", _CACHE, _EDITING),),
)
_COMPACTION = "Anthropic, compaction; specification of new policies section 1"
_BUDGET = summary_budget()
ANTHROPIC_COMPACTION = PolicyKind(
    AnthropicCompaction.name,
    "Anthropic API (compaction)",
    "The provider replaces all messages of a request that reaches the trigger with one readable block.",
    lambda **values: AnthropicCompaction(AnthropicSettings(**values)),
    (
        Setting(
            "trigger",
            "Trigger",
            COUNT,
            150_000,
            "compacts a request with at least this many input tokens; at least 50,000 where the provider checks it",
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
            "model calls between the one that starts the block and the one that contains it",
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
        Profile(BACKGROUND, "compact-2026-09-04: the client continues, and uses the block once it has arrived"),
    ),
    known_problems=(
        KnownProblem(
            "Nothing of the conversation stays verbatim",
            (
                "The user's newest message and results the model has not read survive only in the block, "
                "except for what came after a background block was started."
            ),
            _COMPACTION,
        ),
    ),
)
_OPENAI = "OpenAI, Responses API; specification of policies section 7"
OPENAI_COMPACTION = PolicyKind(
    OpenAiCompaction.name,
    "OpenAI API (compaction)",
    "The provider replaces the messages of a request above a threshold with one encrypted item, modelled by its size.",
    lambda **values: OpenAiCompaction(OpenAiSettings(**values)),
    (
        Setting(
            "compact_threshold",
            "Threshold",
            COUNT,
            200_000,
            "compacts a request with more tokens than this; the API has no default",
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
        Profile(EXPLICIT, "/responses/compact, called above the threshold: user messages stay before the item"),
    ),
    known_problems=(
        KnownProblem(
            "What it keeps is not visible",
            "The item is encrypted: it can neither be read nor sent to another provider. Its size here is that of the "
            "summaries that are set.",
            _OPENAI,
        ),
    ),
)
KINDS = (CLEAR_TOOL_USES, CLEAR_THINKING, ANTHROPIC_COMPACTION, OPENAI_COMPACTION)
