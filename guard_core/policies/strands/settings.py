"""The settings of Strands' conversation managers, with their sources."""

from __future__ import annotations

import msgspec

from guard_core.policies.settings import COUNT, SHARE, SWITCH, Setting

_SOURCE = "strands-agents 1.62.0, agent/conversation_manager"


class SlidingSettings(msgspec.Struct, frozen=True):
    """Of the sliding window."""

    window_size: int = 40
    should_truncate_results: bool = True
    per_turn: int = 0
    pin_first: int = 0
    proactive: bool = False
    compression_threshold: float = 0.7
    tool_tokens: int = 0


class StrandsSummarizingSettings(msgspec.Struct, frozen=True):
    """Of the summarizing manager."""

    summary_ratio: float = 0.3
    preserve_recent_messages: int = 10
    pin_first: int = 0
    proactive: bool = False
    compression_threshold: float = 0.7
    tool_tokens: int = 0


SHARED = (
    Setting(
        "pin_first",
        "Messages pinned",
        COUNT,
        0,
        "number of first messages that are never removed",
        _SOURCE,
        unit="messages",
    ),
    Setting("proactive", "Act before a call", SWITCH, False, "acts at the share below, before a refusal", _SOURCE),
    Setting(
        "compression_threshold",
        "Share of the window",
        SHARE,
        0.7,
        "projected share of the window at which it acts before a call",
        _SOURCE,
        needs="proactive",
    ),
    Setting(
        "tool_tokens",
        "Tool definitions",
        COUNT,
        0,
        "tokens of the tool definitions, for estimates without a count; 0: estimated from the recorded ones",
        _SOURCE,
        unit="tokens",
    ),
)
SLIDING_SETTINGS = (
    Setting(
        "window_size",
        "Messages kept",
        COUNT,
        40,
        "above this number of messages the oldest are dropped",
        _SOURCE,
        unit="messages",
        main=True,
        sweep=(10, 20, 40),
    ),
    Setting(
        "should_truncate_results",
        "Cut results",
        SWITCH,
        True,
        "when a request is refused, first cuts the results of the oldest message to 200 + 200 characters",
        _SOURCE,
    ),
    Setting(
        "per_turn",
        "Calls between checks",
        COUNT,
        0,
        "also checks before every this many calls; 0: only after turns",
        _SOURCE,
        unit="calls",
    ),
    *SHARED,
)
SUMMARIZING_SETTINGS = (
    Setting(
        "summary_ratio",
        "Share summarised",
        SHARE,
        0.3,
        "share of the messages that is summarised, 0.1 to 0.8",
        _SOURCE,
        main=True,
        sweep=(0.3, 0.5, 0.8),
    ),
    Setting(
        "preserve_recent_messages",
        "Messages kept",
        COUNT,
        10,
        "newest messages that stay",
        _SOURCE,
        unit="messages",
        main=True,
        sweep=(4, 10),
    ),
    *SHARED,
)
