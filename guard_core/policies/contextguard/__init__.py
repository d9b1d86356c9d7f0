"""ContextGuard: the strategies `threshold` and `sliding_window` in the profiles current, tail, early and fixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.events import Event
from guard_core.policies.base import Policy
from guard_core.policies.contextguard.recent_tail import RecentTail
from guard_core.policies.contextguard.settings import (
    MENDS,
    PROFILES,
    PUBLISHED_PROFILES,
    Settings,
    checked,
    published,
)
from guard_core.policies.contextguard.sliding_window import GuardSlidingWindow
from guard_core.policies.contextguard.threshold import Threshold
from guard_core.policies.settings import PolicyKind, SummariserPrompt
from guard_core.summaries.rendering import system_prompt, user_prompt

__all__ = [
    "MENDS",
    "PROFILES",
    "SLIDING",
    "STRATEGIES",
    "THRESHOLD",
    "GuardSlidingWindow",
    "RecentTail",
    "Settings",
    "Threshold",
]


def _threshold(**values: Any) -> Threshold | RecentTail:
    """The threshold strategy; `tail` is its first form."""
    settings = checked(Settings(**values))
    return RecentTail(settings) if settings.profile == "tail" else Threshold(settings)


def _run_lanes(*args: Any) -> Any:
    """Imported when it is called: lanes need the replay, which needs policies."""
    from guard_core.policies.contextguard.lanes import run_lanes

    return run_lanes(*args)


def _prompt(policy: Policy, window: int, messages: Iterable[Event]) -> SummariserPrompt:
    return SummariserPrompt(system_prompt(policy.settings.limits(window).words), user_prompt(messages))


THRESHOLD = PolicyKind(
    "contextguard",
    "ContextGuard",
    "Summarises everything once the calibrated estimate of the request reaches the window less a buffer.",
    _threshold,
    published(sliding=False),
    PUBLISHED_PROFILES,
    _run_lanes,
    prompt=_prompt,
)
SLIDING = PolicyKind(
    "contextguard-sliding",
    "ContextGuard (sliding window)",
    "Summarises the oldest messages once too many follow the watermark.",
    lambda **values: GuardSlidingWindow(checked(Settings(**values))),
    published(sliding=True),
    PUBLISHED_PROFILES,
    prompt=_prompt,
)
# The policies by what the original calls its strategies in a constructor.
STRATEGIES = {"threshold": THRESHOLD.name, "sliding": SLIDING.name}
