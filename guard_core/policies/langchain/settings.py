"""The settings of LangChain's policies, with their sources."""

from __future__ import annotations

import msgspec

from guard_core.errors import SettingError
from guard_core.policies.langchain.context_sizes import size_of, trigger_of
from guard_core.policies.settings import CHOICE, COUNT, SWITCH, TEXT, Setting

_EDIT = "langchain 1.4.7, ClearToolUsesEdit"
_SUMMARIZATION = "langchain 1.4.7, SummarizationMiddleware"
_TRIM = "langchain-core 1.7.2, trim_messages"
_KINDS = "human, ai, tool, system; no message is of any other kind, user and assistant included"
ANTHROPIC = "anthropic-chat"
PLACEHOLDER = "[cleared]"  # DEFAULT_TOOL_PLACEHOLDER


class LangChainClearSettings(msgspec.Struct, frozen=True):
    """Of ClearToolUsesEdit."""

    trigger: int = 100_000
    keep: int = 3
    clear_at_least: int = 0
    clear_tool_inputs: bool = False
    exclude_tools: str = ""
    placeholder: str = PLACEHOLDER


class LangChainTrimSettings(msgspec.Struct, frozen=True):
    """Of trim_messages."""

    max_tokens: int = 100_000
    counter: str = "tokens"
    strategy: str = "last"
    start_on: str = ""
    end_on: str = ""
    include_system: bool = False
    allow_partial: bool = False

    def __post_init__(self) -> None:
        if self.strategy == "first" and (self.start_on or self.include_system):
            raise SettingError("start_on and include_system go with the strategy last only")


class LangChainSummarizationSettings(msgspec.Struct, frozen=True):
    """Of SummarizationMiddleware."""

    trigger: str = "fraction 0.8"
    keep: str = "messages 20"
    trim_tokens_to_summarize: int = 4_000
    model_kind: str = "other"

    def __post_init__(self) -> None:
        trigger_of(self.trigger)
        size_of(self.keep, "keep")


def kinds_named(text: str) -> frozenset[str]:
    """The kinds of messages that a setting names; a name that the library does not know is of no message."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())


CLEAR_SETTINGS = (
    Setting(
        "trigger",
        "Trigger",
        COUNT,
        100_000,
        "requests above this are edited; system prompt and tools are not counted",
        _EDIT,
        unit="tokens",
        main=True,
        sweep=(30_000, 100_000),
    ),
    Setting(
        "keep",
        "Results kept",
        COUNT,
        3,
        "newest tool results that stay",
        _EDIT,
        unit="tool results",
        main=True,
        sweep=(1, 3, 10),
    ),
    Setting(
        "clear_at_least",
        "Cleared at least",
        COUNT,
        0,
        "clearing stops once this much has been reclaimed; 0: clears all old results",
        _EDIT,
        unit="tokens",
    ),
    Setting("clear_tool_inputs", "Clear arguments", SWITCH, False, "clears the arguments of those calls, too", _EDIT),
    Setting("exclude_tools", "Tools left alone", TEXT, "", "names of tools, separated by commas", _EDIT),
    Setting(
        "placeholder", "Placeholder", TEXT, PLACEHOLDER, "text that replaces a cleared result", _EDIT, verbatim=True
    ),
)
TRIM_SETTINGS = (
    Setting(
        "max_tokens",
        "Limit",
        COUNT,
        100_000,
        "maximum tokens (or messages, see counter) of a request; the library has no default",
        _TRIM,
        main=True,
        sweep=(30_000, 100_000),
    ),
    Setting(
        "counter",
        "Counted in",
        CHOICE,
        "tokens",
        "tokens: characters / 4; messages: their number",
        _TRIM,
        choices=("tokens", "messages"),
    ),
    Setting(
        "strategy",
        "Messages kept",
        CHOICE,
        "last",
        "which messages stay: the newest or the oldest",
        _TRIM,
        choices=("last", "first"),
        main=True,
    ),
    Setting(
        "start_on", "Begins with", TEXT, "", f"kinds of messages that the kept ones may begin with: {_KINDS}", _TRIM
    ),
    Setting("end_on", "Ends with", TEXT, "", f"kinds of messages that the kept ones may end with: {_KINDS}", _TRIM),
    Setting("include_system", "Keep system message", SWITCH, False, "a leading system message stays", _TRIM),
    Setting(
        "allow_partial",
        "Part of a message",
        SWITCH,
        False,
        "keeps those lines that fit of a message that does not fit as a whole",
        _TRIM,
    ),
)
SUMMARIZATION_SETTINGS = (
    Setting(
        "trigger",
        "Trigger",
        TEXT,
        "fraction 0.8",
        (
            "summarises when these are reached: tokens 4000, messages 50, fraction 0.8 of the window, joined "
            "by and, or; the library sets none by default and then never acts"
        ),
        _SUMMARIZATION,
        main=True,
        sweep=("fraction 0.5", "fraction 0.8"),
    ),
    Setting(
        "keep",
        "Kept",
        TEXT,
        "messages 20",
        "newest messages that stay: messages 20, tokens 4000 or fraction 0.3 of the window",
        _SUMMARIZATION,
        main=True,
    ),
    Setting(
        "trim_tokens_to_summarize",
        "Given to the summariser",
        COUNT,
        4_000,
        "maximum tokens of the messages given to the summariser, the newest of them; 0: all",
        _SUMMARIZATION,
        unit="tokens",
        main=True,
        sweep=(0, 4_000),
    ),
    Setting(
        "model_kind",
        "Kind of model",
        CHOICE,
        "other",
        "chat models of Anthropic are estimated at 3.3 characters per token, others at 4",
        _SUMMARIZATION,
        choices=("other", ANTHROPIC),
    ),
)
