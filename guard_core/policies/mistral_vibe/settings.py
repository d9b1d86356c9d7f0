"""Settings of Mistral Vibe's policy, and the thresholds that they give, by version."""

from __future__ import annotations

import math

import msgspec

DEFAULT_THRESHOLD = 200_000  # tokens, where neither threshold nor window is declared; DEFAULT_AUTO_COMPACT_THRESHOLD
DECLARED_SHARE = 0.8  # of a window that is declared; measured in 3.0.2: 262,144 -> 209,715
USER_BUDGET = 20_000  # tokens of the person's messages that stay
BOUNDED, CURRENT, OLDER = "3.0.3", "3.0", "2.18"
# 3.0.3, mistralai_vibe_local_harness/vibe/completion_profile/bounds.py; tokens: what the default leaves of the window,
# and its cap; the least threshold, a share of the window between two bounds; what the highest leaves of the window.
GAP, CAP = 60_000, 256_000
LEAST, LEAST_SHARE, LEAST_CAP = 10_000, 1 / 2, 50_000
HEADROOM_SHARE, HEADROOM_CAP = 1 / 4, 24_000


class MistralVibeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens; `auto_compact_threshold` is 0 where it is not set."""

    profile: str
    auto_compact_threshold: int
    window_declared: bool
    share: float
    user_budget: int
    summary_budget: int

    def limit(self, window: int) -> tuple[str, int]:
        """The threshold as an expression and in tokens."""
        own, declared = self.auto_compact_threshold, self.window_declared and self.profile != OLDER
        if self.profile == BOUNDED:
            return (f"{own:,}, set", own) if own else bounded_limit(window)
        if own and (own < window or not declared):
            return f"{own:,}, set", own
        if declared:
            return f"{self.share * 100:g} % of {window:,}", int(self.share * window)
        return f"{DEFAULT_THRESHOLD:,}, the default", DEFAULT_THRESHOLD


def default_threshold(window: int) -> int:
    """The threshold of 3.0.3 for a context length, in tokens."""
    least = max(min(LEAST_CAP, math.floor(window * LEAST_SHARE)), LEAST)
    most = window - min(HEADROOM_CAP, math.ceil(window * HEADROOM_SHARE))
    return max(least, min(CAP, window - GAP, most))


def bounded_limit(window: int) -> tuple[str, int]:
    """The same with what it is made of, as an expression."""
    threshold = default_threshold(window)
    usual = f"min({CAP:,}, {window:,} − {GAP:,})"
    return (usual if threshold == min(CAP, window - GAP) else f"{threshold:,}, a bound for {window:,}"), threshold
