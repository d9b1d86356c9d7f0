"""oh-my-pi, a descendant of pi that keeps more of the window free and also compacts within a turn.

Source of the rules: the program 18.2.3 (pi-agent-core, compaction.ts) and runs of it with windows of 60,000 and 200,000
tokens; what stays is chosen as by `pi`. Not here: its own estimate of the messages, which counts where it is more than
the last answer's total; a summary that is made ahead; the methods of providers.
"""

from __future__ import annotations

from guard_core.policies.base import Point
from guard_core.policies.pi import CURRENT, NONE, RESERVE, Pi, PiSettings
from guard_core.policies.pieces.shared_settings import keep_recent, reserve_tokens
from guard_core.policies.settings import KnownProblem, PolicyKind

SHARE = 0.15  # of the window that is kept free at least
_SOURCE = "the program 18.2.3, compaction.ts"


def reserve_of(window: int, size: int = RESERVE) -> int:
    """What is kept free of a window, in tokens, where `size` tokens are to be: at least 15 %, and just these where the
    default or the whole window would be taken."""
    share = max(1, int(window * SHARE))
    most = window - share if size == RESERVE else window
    return share if max(share, size) >= most else max(share, size)


class OhMyPi(Pi):
    """The policy; see the module."""

    settings: PiSettings
    name = "oh-my-pi"
    agent = "oh-my-pi"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.END_OF_TURN, Point.AFTER_RESULTS)

    def threshold(self, window: int) -> int:
        return window - reserve_of(window, self.settings.reserve_tokens)

    def rule(self, window: int) -> str:
        return f"{window:,} - {reserve_of(window, self.settings.reserve_tokens):,}"


KIND = PolicyKind(
    OhMyPi.name,
    "oh-my-pi",
    "Compacts as pi does, but within turns, too, and with at least 15 % of the window kept free.",
    lambda **values: OhMyPi(PiSettings(profile=CURRENT, output_cap=0, pending=NONE, recover=True, **values)),
    (
        reserve_tokens(
            RESERVE, "tokens of the window kept free, at least 15 % of it", _SOURCE, (16_384, 40_000, 65_536)
        ),
        keep_recent(_SOURCE),
    ),
    known_problems=(
        KnownProblem(
            "New results are not counted",
            "Within a turn it compares the last answer's total; the results that came since are not in it.",
            "runs of 18.2.3",
        ),
    ),
)
