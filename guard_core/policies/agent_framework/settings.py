"""The settings of Agent Framework's strategies, as data."""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.errors import SettingError
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, SWITCH, TEXT, Setting, Value

SOURCE = "agent-framework-core 1.23.0, _compaction.py"
TARGET, THRESHOLD, INPUT_TOKENS = 4, 2, 8_000  # 1.23.0: defaults of the summarization strategy
EVICTION, TRUNCATION = 0.5, 0.8  # 1.23.0: shares of the input budget
INNER = ("sliding", "tools", "summary")
_MOST = 10_000_000


class ListSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of all strategies."""

    id_prefix: str = "msg_"


class TruncationSettings(ListSettings, frozen=True, kw_only=True):
    """Of TruncationStrategy."""

    max_n: int
    compact_to: int
    tokens: bool
    preserve_system: bool
    preserve_first_user_group: bool


class SlidingWindowSettings(ListSettings, frozen=True, kw_only=True):
    """Of SlidingWindowStrategy."""

    keep_last_groups: int
    preserve_system: bool


class ToolGroupSettings(ListSettings, frozen=True, kw_only=True):
    """Of SelectiveToolCallCompactionStrategy and ToolResultCompactionStrategy."""

    keep_last_tool_call_groups: int


class AgentFrameworkSummarizationSettings(ListSettings, frozen=True, kw_only=True):
    """Of SummarizationStrategy."""

    target_count: int
    threshold: int
    max_summary_input_tokens: int
    summary_budget: int


class ContextWindowSettings(ToolGroupSettings, frozen=True, kw_only=True):
    """Of ContextWindowCompactionStrategy; `max_context_window_tokens` is 0 where the window counts."""

    max_context_window_tokens: int
    max_output_tokens: int
    tool_eviction_threshold: float
    truncation_threshold: float
    preserve_first_user_group: bool

    def __post_init__(self) -> None:
        """Raises SettingError for what the library refuses."""
        if self.truncation_threshold < self.tool_eviction_threshold:
            raise SettingError("truncation_threshold is at least tool_eviction_threshold")
        window, kept_free = self.max_context_window_tokens, self.max_output_tokens
        if window and int((window - kept_free) * self.tool_eviction_threshold) < 1:
            raise SettingError(f"a window of {window:,} tokens less {kept_free:,} for the answer leaves no tokens")


class TokenBudgetSettings(AgentFrameworkSummarizationSettings, frozen=True, kw_only=True):
    """Of TokenBudgetComposedStrategy; `token_budget` is 0 where the window counts."""

    token_budget: int
    keep_last_tool_call_groups: int
    inner: str
    early_stop: bool


def inner_strategies(text: str) -> tuple[tuple[str, int], ...]:
    """The strategies that a text names, joined by +, each with the number behind its name (0: none). Raises
    SettingError."""
    strategies = []
    for item in filter(None, (item.strip() for item in text.split("+"))):
        name = item.rstrip("0123456789")
        number = item[len(name) :]
        if name not in INNER or len(number) > len(str(_MOST)) or (name == "sliding") != bool(int(number or 0)):
            raise SettingError(f"{item[:40]!r} is not a strategy; known are sliding with a number, tools and summary")
        strategies.append((name, int(number or 0)))
    return tuple(strategies)


def token_budget(values: dict[str, Any]) -> TokenBudgetSettings:
    """The settings of a token budget. Raises SettingError where its strategies are none."""
    inner_strategies(str(values["inner"]))
    return TokenBudgetSettings(**values)


def count(name: str, label: str, default: int, text: str, unit: str, least: int = 1, *, main: bool = True) -> Setting:
    """A number of something."""
    return Setting(name, label, COUNT, default, text, SOURCE, unit=unit, least=least, most=_MOST, main=main)


def _switch(name: str, label: str, text: str, *, default: bool) -> Setting:
    return Setting(name, label, SWITCH, default, text, SOURCE)


def _share(name: str, label: str, default: Value, text: str) -> Setting:
    return Setting(name, label, SHARE, default, text, SOURCE, least=0.000001, main=True)


ID_PREFIX = Setting(
    "id_prefix",
    "Ids of messages",
    TEXT,
    "msg_",
    "prefix of message ids, followed by a number; ids are part of what is counted",
    SOURCE,
)
SYSTEM = _switch("preserve_system", "Keep the system's", "system messages stay", default=True)
FIRST_USER = _switch("preserve_first_user_group", "Keep the task", "the user's first message stays", default=False)
BUDGET = summary_budget("the library")
TRUNCATION_SETTINGS = (
    count("max_n", "Limit", 100_000, "truncates above this; the library has no default", "tokens or messages"),
    count(
        "compact_to",
        "Target",
        50_000,
        "truncates down to this, at most the limit; the library has no default",
        "tokens or messages",
    ),
    _switch("tokens", "Count tokens", "counts tokens; off: counts messages", default=True),
    SYSTEM,
    FIRST_USER,
    ID_PREFIX,
)
SLIDING_WINDOW_SETTINGS = (
    count(
        "keep_last_groups",
        "Groups kept",
        20,
        "number of groups at the end that stay; the library has no default",
        "groups",
    ),
    SYSTEM,
    ID_PREFIX,
)


def tool_groups(default: int, text: str = "number of tool groups at the end that stay unchanged") -> Setting:
    """How many tool groups stay."""
    return count("keep_last_tool_call_groups", "Tool groups kept", default, text, "groups", 0)


SUMMARIZATION_SETTINGS = (
    count("target_count", "Messages kept", TARGET, "messages that stay, rounded up to whole groups", "messages"),
    count("threshold", "Messages more", THRESHOLD, "acts above the target plus this many messages", "messages", 0),
    count(
        "max_summary_input_tokens",
        "Summariser's input",
        INPUT_TOKENS,
        "maximum input of the summariser, including its instructions; 0: no limit",
        "tokens",
        0,
    ),
    BUDGET,
)
CONTEXT_WINDOW_SETTINGS = (
    count("max_context_window_tokens", "Window", 0, "the model's window; 0: the session's", "tokens", 0),
    count("max_output_tokens", "Answer", 16_384, "kept free for the answer; the library has no default", "tokens", 0),
    _share(
        "tool_eviction_threshold",
        "Collapse tools over",
        EVICTION,
        "share of the window minus the answer; above it, tool groups are collapsed",
    ),
    _share(
        "truncation_threshold",
        "Truncate over",
        TRUNCATION,
        "share of the window minus the answer; above it, groups are removed, down to the other share",
    ),
    tool_groups(4),
    FIRST_USER,
    ID_PREFIX,
)
TOKEN_BUDGET_SETTINGS = (
    count("token_budget", "Budget", 0, "maximum tokens of a request; 0: the window", "tokens", 0),
    Setting(
        "inner",
        "Strategies",
        TEXT,
        "tools+summary",
        "what is tried first, in order, joined by +: sliding with a number of groups, tools, summary",
        SOURCE,
        main=True,
    ),
    _switch("early_stop", "Stop when it fits", "stops trying strategies once the request fits", default=True),
    tool_groups(1),
    *SUMMARIZATION_SETTINGS,
    ID_PREFIX,
)
