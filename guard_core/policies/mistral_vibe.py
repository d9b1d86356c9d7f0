"""Mistral Vibe: a threshold of its own, or 80 % of a window that is declared, or 200,000 tokens.

Source of the rules: version 3.0.2, run against a scripted provider, and the specification of new policies, section 2
(2.18.4). The count is that of the last answer alone; what was added since is not in it. Not modelled: the oldest round
goes, at most three times, where the request for the summary overflows; Vibe's own estimate of the request, which counts
where it is more than that count; and 3.0.3, which adds what came since and has another default.
"""

from __future__ import annotations

import msgspec

from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.plans import Ask, History, Plan, SummaryMessage
from guard_core.policies.pieces.requests import newest_requests
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.views import Synthetic

DEFAULT_THRESHOLD = 200_000  # tokens, where neither threshold nor window is declared; DEFAULT_AUTO_COMPACT_THRESHOLD
DECLARED_SHARE = 0.8  # of a window that is declared; measured in 3.0.2: 262,144 -> 209,715
USER_BUDGET = 20_000  # tokens of the person's messages that stay
CONTEXT, FRAME = 228, 118  # characters: a note before the messages, and around the summary; runs of 3.0.2
CURRENT, OLDER = "3.0", "2.18"
_SOURCE = "measured in 3.0.2, specification of new policies section 2"


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
        if own and (own < window or not declared):
            return f"{own:,}, set", own
        if declared:
            return f"{self.share * 100:g} % of {window:,}", int(self.share * window)
        return f"{DEFAULT_THRESHOLD:,}, the default", DEFAULT_THRESHOLD


class MistralVibe(CountedPolicy):
    """The policy; see the module."""

    settings: MistralVibeSettings
    name = "mistral-vibe"
    agent = "mistral-vibe"
    looks = (Point.AFTER_RESULTS, Point.BEFORE_TURN)

    def threshold(self, window: int) -> int:
        return self.settings.limit(window)[1]

    def rule(self, window: int) -> str:
        return self.settings.limit(window)[0]

    def plan(self, history: History) -> Plan:
        """A note, the person's newest messages within a budget, and a summary of all."""
        users = newest_requests(history.ledger, history.stop, self.settings.user_budget)
        summary = SummaryMessage((Ask(history.view, self.settings.summary_budget),), frame=FRAME)
        return Plan((Synthetic("note", CONTEXT), *users, summary), cut=(history.stop,) * 3)


KIND = PolicyKind(
    "mistral-vibe",
    "Mistral Vibe",
    "Compacts at its own threshold, at 80 % of a declared window, or at 200,000 tokens; keeps the user's messages.",
    lambda **values: MistralVibe(MistralVibeSettings(**values)),
    (
        Setting(
            "auto_compact_threshold",
            "Threshold",
            COUNT,
            0,
            "auto_compact_threshold; 0: not set. Ignored unless it is below a declared window",
            _SOURCE,
            unit="tokens",
            main=True,
            profiles={OLDER: DEFAULT_THRESHOLD},
            sweep=(0, 100_000, 150_000, 168_000),
        ),
        Setting(
            "window_declared",
            "Window declared",
            SWITCH,
            True,
            "max_context_length is set for the model; otherwise the threshold is 200,000",
            _SOURCE,
            main=True,
            not_in=(OLDER,),
            profiles={OLDER: False},
        ),
        Setting("share", "Share", SHARE, DECLARED_SHARE, "share of a declared window", _SOURCE, not_in=(OLDER,)),
        Setting(
            "user_budget",
            "User messages",
            COUNT,
            USER_BUDGET,
            "budget for the user's newest messages, which stay",
            _SOURCE,
            unit="tokens",
        ),
        summary_budget(),
    ),
    (
        Profile(CURRENT, "3.0.2: 80 % of a declared window"),
        Profile(OLDER, "2.18.4: the same threshold for every window"),
    ),
    known_problems=(
        KnownProblem(
            "Large results go unnoticed",
            "To 3.0.2 the count is that of the last answer, without results that came since, unless Vibe's own "
            "estimate of the whole request, a quarter of its bytes, is more.",
            "measured in 2.26.1 and 3.0.2; 3.0.3 adds them",
        ),
    ),
)
