"""Kilo Code: OpenCode's rule with the reserve always taken off, and an optional share of the window.

Source of the rules: specification of new policies, section 2 (overflow.ts, revision 030412ea); not measured by running.
With a share it compares what the next request is projected at, 1.3 times an estimate of what was added, and never
right after a tool result. What a compaction keeps is OpenCode's (guard_core.policies.opencode). Not modelled: the
estimate of a system prompt or tools that have changed.
"""

from __future__ import annotations

import math

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies import opencode
from guard_core.policies.base import Point
from guard_core.policies.opencode import RESERVING, OpenCode, OpenCodeSettings
from guard_core.policies.pieces.counters import Counter
from guard_core.policies.settings import NUMBER, PolicyKind, Setting

PROJECTED_TENTHS = 13  # of the estimate of what was added, in tenths
_OTHERS = ("max_output", "input_limit", "reserved", "keep", "tail_turns", "prune", "prune_protect", "prune_minimum")
_SOURCE = "specification of new policies section 2"


def _projected(ledger: Ledger, form: str = "") -> Ints:
    """1.3 times OpenCode's estimate of each event."""
    estimate = np.diff(opencode.MESSAGES.prefix(ledger, form))
    return np.asarray(estimate * PROJECTED_TENTHS // 10)


class KiloSettings(OpenCodeSettings, frozen=True):
    """Those of OpenCode, and a share of the window in per cent (0: none)."""

    threshold_percent: float = 0.0


class Kilo(OpenCode):
    """The policy; see the module."""

    settings: KiloSettings
    name = "kilo"
    agent = "kilo"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.END_OF_TURN,) if self.settings.threshold_percent else super().looks

    @property
    def counter(self) -> Counter:
        if not self.settings.threshold_percent:
            return super().counter
        return Counter(pending=_projected, pending_words="1.3 x characters / 4 of the messages since, as JSON")

    def threshold(self, window: int) -> int | None:
        usable = super().threshold(window)
        share = math.floor(window * self.settings.threshold_percent / 100)
        return usable if usable is None or not share else min(usable, share)

    def rule(self, window: int) -> str:
        usable, percent = super().rule(window), self.settings.threshold_percent
        return f"min({usable}, {percent:g} % of {window:,})" if percent else usable


def _build(**values: object) -> Kilo:
    return Kilo(KiloSettings(profile=RESERVING, stall_share=0.0, **values))  # type: ignore[arg-type]


KIND = PolicyKind(
    "kilo",
    "Kilo Code",
    (
        "Compacts at the window minus output and reserve, or at a share of the window; keeps a tail of turns "
        "as OpenCode does."
    ),
    _build,
    (
        Setting(
            "threshold_percent",
            "Share of the window",
            NUMBER,
            0.0,
            "compacts at this share of the window, before a turn; 0: at the window minus output and reserve",
            _SOURCE,
            unit="%",
            most=100,
            main=True,
            sweep=(0, 80, 60),
        ),
        *(setting for setting in opencode.KIND.settings if setting.name in (*_OTHERS, "summary_budget")),
    ),
    known_problems=opencode.KIND.known_problems,
)
