"""Kilo Code: OpenCode's rule, and an optional share of the window.

Sources: `7.7` is the program 7.7.9 (its functions `isOverflow`, `shouldCompact` and `measure`) and runs of it;
`reserving` is overflow.ts at 030412ea by the specification of new policies, section 2, not measured: it takes the
reserve off a window without an input limit, too. With a share it compares what the next request is projected at, 1.3
times an estimate of what was added, and never right after a tool result. 7.7.9 adds 1.3 times its estimate of system
prompt and tools besides, though the provider's count has them already: `fixed_part`. What a compaction keeps is
OpenCode's (guard_core.policies.opencode). Not modelled: with a share 7.7.9 also compacts between steps, at the
window minus output; until the next prompt it sends of the tail only what belongs to the current turn; and after three
compactions in one turn it ends that turn with an error in place of a fourth (7.7.2 and 7.7.9, run).
"""

from __future__ import annotations

import math

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies import opencode
from guard_core.policies.base import Point
from guard_core.policies.opencode import RESERVING, OpenCode, OpenCodeSettings
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.settings import COUNT, NUMBER, PolicyKind, Profile, Setting

MEASURED = "7.7"
PROJECTED_TENTHS = 13  # of the estimate of what was added, in tenths
_OTHERS = ("max_output", "input_limit", "reserved", "keep", "tail_turns", "prune", "prune_protect", "prune_minimum")
_SOURCE = "specification of new policies section 2"


def _projected(ledger: Ledger, form: str = "") -> Ints:
    """1.3 times OpenCode's estimate of each event."""
    estimate = np.diff(opencode.MESSAGES.prefix(ledger, form))
    return np.asarray(estimate * PROJECTED_TENTHS // 10)


class KiloSettings(OpenCodeSettings, frozen=True):
    """Those of OpenCode, a share of the window in per cent (0: none), and the estimate of system prompt and tools in
    tokens."""

    threshold_percent: float = 0.0
    fixed_part: int = 0


class Kilo(OpenCode):
    """The policy; see the module."""

    settings: KiloSettings
    name = "kilo"
    agent = "kilo"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.END_OF_TURN,) if self.settings.threshold_percent else super().looks

    @property
    def counter(self) -> UsageCounter:
        if not self.settings.threshold_percent:
            return super().counter
        return UsageCounter(pending=_projected, pending_words="1.3 x characters / 4 of the messages since, as JSON")

    @property
    def added(self) -> int:
        """Tokens that are added to every projected request."""
        return math.ceil(self.settings.fixed_part * PROJECTED_TENTHS / 10)

    def threshold(self, window: int) -> int | None:
        usable = super().threshold(window)
        share = math.floor(window * self.settings.threshold_percent / 100)
        return usable if usable is None or not share else min(usable, share) - self.added

    def rule(self, window: int) -> str:
        usable, percent = super().rule(window), self.settings.threshold_percent
        if not percent:
            return usable
        added = f" - {self.added:,} (system prompt and tools)" if self.added else ""
        return f"min({usable}, {percent:g} % of {window:,}){added}"


def _build(**values: object) -> Kilo:
    """`stall_share` is a setting of OpenCode that Kilo does not have."""
    return Kilo(KiloSettings(stall_share=0.0, **values))  # type: ignore[arg-type]


KIND = PolicyKind(
    "kilo",
    "Kilo Code",
    (
        "Compacts at the window minus the model's output, or at a share of the window; keeps a tail of turns "
        "as OpenCode does."
    ),
    _build,
    (
        Setting(
            "threshold_percent",
            "Share of the window",
            NUMBER,
            0.0,
            "compacts at this share of the window, before a turn; 0: at the window minus the model's output",
            _SOURCE,
            unit="%",
            most=100,
            main=True,
            sweep=(0, 80, 60),
        ),
        Setting(
            "fixed_part",
            "System prompt and tools",
            COUNT,
            0,
            "characters / 4 of system prompt and tools as JSON, which a projected count includes once more; "
            "only with a share",
            "the program 7.7.9, function measure",
            unit="tokens",
        ),
        *(setting for setting in opencode.KIND.settings if setting.name in (*_OTHERS, "summary_budget")),
    ),
    (
        Profile(MEASURED, "as run in 7.7.9: subtracts the reserve from an input limit only"),
        Profile(RESERVING, "revision 030412ea: subtracts the reserve also from a window without an input limit"),
    ),
    known_problems=opencode.KIND.known_problems,
)
