"""Crush: keeps a buffer of the window free, and then summarises the whole conversation.

Source of the rules: specification of policies, section 5 (agent.go at 37f36e93), not measured by running. It looks
after each step, when the results of its tools are there, and at the end of a turn, on the counts of the last call
alone. Within a turn the user's request is sent again behind the summary, in a sentence around it.

Not here: the reminder of open todos before the summary, the detection of repeated calls.
"""

from __future__ import annotations

import msgspec

from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.estimates import HEURISTIC, TokenEstimate
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.summaries.continuation import REQUEST_AGAIN
from guard_core.views import Synthetic

LARGE_WINDOW, LARGE_BUFFER, SMALL_SHARE = 200_000, 20_000, 0.2  # tokens, tokens, of the window (section 5)
USED_SHARE = 0.8  # of the window, before 27 October 2025 (section 5)
RESUME_FRAME_BYTES = 94  # of the sentence around the request that is sent again: agent.go
CURRENT, STALE, SHARE_OF_WINDOW = "current", "stale", "80-percent"
_SPEC = "specification of policies, section 5"


def buffer_of(window: int, large: int = LARGE_BUFFER, share: float = SMALL_SHARE) -> int:
    """What Crush keeps free of a window, in tokens: exactly 200,000 is a small one."""
    return large if window > LARGE_WINDOW else int(share * window)


class CrushSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    profile: str
    large_buffer: int
    small_share: float
    summary_budget: int


class Crush(CountedPolicy):
    """The policy; see the module."""

    settings: CrushSettings
    name = "crush"
    agent = "crush"

    @property
    def uncounted(self) -> TokenEstimate | None:
        return HEURISTIC if self.settings.profile == CURRENT else None

    @property
    def relation(self) -> str:
        return ">" if self.settings.profile == SHARE_OF_WINDOW else ">="

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_RESULTS, Point.END_OF_TURN)

    @property
    def counter(self) -> UsageCounter:
        if self.settings.profile == CURRENT:
            return UsageCounter(leaves_out="cache_write_tokens")
        return UsageCounter(leaves_out="cached_tokens", at_turn_start=True)

    def threshold(self, window: int) -> int | None:
        if not window:
            return None
        if self.settings.profile == SHARE_OF_WINDOW:
            return int(window * USED_SHARE)
        return window - buffer_of(window, self.settings.large_buffer, self.settings.small_share)

    def rule(self, window: int) -> str:
        if self.settings.profile == SHARE_OF_WINDOW:
            return f"{window:,} x {USED_SHARE:g}"
        buffer = buffer_of(window, self.settings.large_buffer, self.settings.small_share)
        return f"{window:,} - {buffer:,} (buffer)"

    def plan(self, history: CompactableHistory) -> Plan:
        """A summary of everything, as a message of the user; within a turn the user's request once more."""
        summary = SummaryMessage((Ask(history.view, self.settings.summary_budget),))
        if not history.within_turn:
            return Plan((summary,))
        request = Synthetic(REQUEST_AGAIN, RESUME_FRAME_BYTES + history.check.request_bytes)
        return Plan((summary, request))


KIND = PolicyKind(
    "crush",
    "Crush",
    "Compacts when less than a buffer of the window is left after a step; a summary replaces everything.",
    lambda **values: Crush(CrushSettings(**values)),
    (
        Setting(
            "large_buffer",
            "Buffer",
            COUNT,
            LARGE_BUFFER,
            "tokens kept free of a window above 200,000",
            _SPEC,
            unit="tokens",
            not_in=(SHARE_OF_WINDOW,),
            main=True,
            sweep=(10_000, 20_000, 40_000, 80_000),
        ),
        Setting(
            "small_share",
            "Small window share",
            SHARE,
            SMALL_SHARE,
            "share kept free of a window of at most 200,000 tokens",
            _SPEC,
            not_in=(SHARE_OF_WINDOW,),
            main=True,
        ),
        summary_budget("Crush"),
    ),
    (
        Profile(CURRENT, "2026: counts of the last step, without tokens written to the cache"),
        Profile(
            STALE, "November 2025 to January 2026: within a turn, the counts from its beginning, without cache reads"
        ),
        Profile(SHARE_OF_WINDOW, "before 27 October 2025: above 80 % of the window, otherwise like stale"),
    ),
    known_problems=(
        KnownProblem(
            "A large result goes unnoticed",
            (
                "The results of the step just taken are not counted. A refused request leaves the counts "
                "unchanged, so it never compacts."
            ),
            "charmbracelet/crush issue 3620",
        ),
        KnownProblem(
            "The wrong request is repeated",
            "What is sent again as the initial request is actually the latest one.",
            "charmbracelet/crush issue 3867",
        ),
        KnownProblem(
            "Cache writes are not counted",
            "If a provider reports tokens written to its cache, it compacts late or never.",
            "charmbracelet/crush pull request 3841",
        ),
    ),
)
