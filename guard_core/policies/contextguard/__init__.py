"""ContextGuard: the strategies `threshold` and `sliding_window` in the profiles tail, early, current and fixed."""

from __future__ import annotations

from typing import Any

from guard_core.policies.contextguard.recent_tail import RecentTail
from guard_core.policies.contextguard.settings import MENDS, PROFILES, Settings, profile_settings
from guard_core.policies.contextguard.sliding_window import SlidingWindow
from guard_core.policies.contextguard.threshold import Threshold

__all__ = ["MENDS", "PROFILES", "RecentTail", "Settings", "SlidingWindow", "Threshold", "sliding", "threshold"]


def threshold(**settings: Any) -> Threshold | RecentTail:
    """The threshold strategy; `tail` is its first form."""
    made = profile_settings(**settings)
    return RecentTail(made) if made.profile == "tail" else Threshold(made)


def sliding(**settings: Any) -> SlidingWindow:
    """The sliding window."""
    return SlidingWindow(profile_settings(sliding=True, **settings))
