"""The settings of inspect_ai's strategies, with their sources."""

from __future__ import annotations

import msgspec

from guard_core.policies.pieces.shared_settings import SUMMARY_TOKENS, summary_budget
from guard_core.policies.settings import CHOICE, COUNT, NUMBER, SHARE, SWITCH, TEXT, Setting

ANTHROPIC, OPENAI, NO_PROVIDER = "anthropic", "openai", "none"  # who compacts; "none": the provider of the model cannot
_SPEC = "specification of policies, section 7; inspect_ai 0.3.285"


class EditSettings(msgspec.Struct, frozen=True):
    """Of the strategy `edit`."""

    threshold: float = 0.9
    keep_tool_uses: int = 3
    keep_tool_inputs: bool = True
    keep_thinking_turns: int = 1
    exclude_tools: str = ""


class InspectAITrimSettings(msgspec.Struct, frozen=True):
    """Of the strategy `trim`."""

    threshold: float = 0.9
    preserve: float = 0.8


class InspectAISummarySettings(msgspec.Struct, frozen=True):
    """Of the strategy `summary`."""

    threshold: float = 0.9


class NativeSettings(msgspec.Struct, frozen=True):
    """Of the strategy `native`."""

    threshold: float = 0.9
    provider: str = ANTHROPIC
    summary_budget: int = SUMMARY_TOKENS


class AutoSettings(NativeSettings, frozen=True):
    """Of the strategy `auto`."""

    provider: str = NO_PROVIDER


THRESHOLD = Setting(
    "threshold",
    "Threshold",
    NUMBER,
    0.9,
    "up to 1: share of the window, above 1: tokens; requests above it are compacted",
    _SPEC,
    most=10_000_000,
    main=True,
    sweep=(0.5, 0.7, 0.9),
)
EDIT_SETTINGS = (
    THRESHOLD,
    Setting(
        "keep_tool_uses",
        "Tool calls kept",
        COUNT,
        3,
        "newest tool calls whose results stay",
        _SPEC,
        unit="tool calls",
        main=True,
        sweep=(1, 3, 10),
    ),
    Setting(
        "keep_tool_inputs", "Keep arguments", SWITCH, True, "off: removes the calls, too, and leaves a note", _SPEC
    ),
    Setting(
        "keep_thinking_turns",
        "Answers with reasoning",
        COUNT,
        1,
        "newest answers whose reasoning stays",
        _SPEC,
        unit="answers",
    ),
    Setting("exclude_tools", "Tools left alone", TEXT, "", "names of tools, separated by commas", _SPEC),
)
TRIM_SETTINGS = (
    THRESHOLD,
    Setting(
        "preserve",
        "Share kept",
        SHARE,
        0.8,
        "share of the messages after the first user message that stays",
        _SPEC,
        main=True,
        sweep=(0.5, 0.8),
    ),
)
SUMMARY_SETTINGS = (THRESHOLD,)


def _provider(default: str, otherwise: str) -> Setting:
    return Setting(
        "provider",
        "Provider",
        CHOICE,
        default,
        f"whose model it is: Anthropic's and OpenAI's compact by themselves; with any other {otherwise}",
        "inspect_ai 0.3.285, model/_providers",
        choices=(ANTHROPIC, OPENAI, NO_PROVIDER),
        main=True,
        sweep=(ANTHROPIC, OPENAI),
    )


_BLOCK_SIZE = summary_budget("the library", label="Size of the block")
NATIVE_SETTINGS = (THRESHOLD, _provider(ANTHROPIC, "the run ends with an error"), _BLOCK_SIZE)
AUTO_SETTINGS = (THRESHOLD, _provider(NO_PROVIDER, "the list is summarised"), _BLOCK_SIZE)
