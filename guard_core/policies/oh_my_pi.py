"""oh-my-pi, a descendant of pi that keeps more of the window free and also compacts within a turn.

Source of the rules: the program 18.2.3 (pi-agent-core, compaction.ts) and runs of it with windows of 60,000 and 200,000
tokens. A share of the window or a number of tokens takes the place of the reserve. What stays is what the budget has
room for, where `pi` keeps the message with which it is reached.
Not here: its own estimate of the messages, which counts where it is more than the last answer's total; a summary that
is written while the conversation continues; the methods of providers.
"""

from __future__ import annotations

from guard_core.policies.base import Point
from guard_core.policies.pi import CURRENT, ESTIMATE, NONE, RESERVE, Pi, PiSettings
from guard_core.policies.pieces.cuts import crossing, last_legal, next_legal
from guard_core.policies.pieces.message_columns import Bools
from guard_core.policies.pieces.plans import CompactableHistory
from guard_core.policies.pieces.shared_settings import keep_recent, reserve_tokens
from guard_core.policies.settings import COUNT, NUMBER, KnownProblem, PolicyKind, Setting

SHARE = 0.15  # of the window that is kept free at least
LEAST_PERCENT, MOST_PERCENT = 1.0, 99.0  # of the window: a share that was set counts as one of these
_SOURCE = "the program 18.2.3, compaction.ts"


def reserve_of(window: int, size: int = RESERVE) -> int:
    """What is kept free of a window, in tokens, where `size` tokens are to be: at least 15 %, and just these where the
    default or the whole window would be taken."""
    share = max(1, int(window * SHARE))
    most = window - share if size == RESERVE else window
    return share if max(share, size) >= most else max(share, size)


def percent_of(window: int, percent: float) -> tuple[str, int]:
    """The threshold where a share of the window was set, as an expression and in tokens."""
    percent = min(MOST_PERCENT, max(LEAST_PERCENT, percent))
    return f"{percent:g} % of {window:,}", int(percent / 100 * window)


class OhMyPiSettings(PiSettings, frozen=True):
    """Sizes in tokens; a share in per cent and a threshold in tokens are 0 where they are not set."""

    threshold_percent: float
    threshold_tokens: int


class OhMyPi(Pi):
    """The policy; see the module."""

    settings: OhMyPiSettings
    name = "oh-my-pi"
    agent = "oh-my-pi"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.END_OF_TURN, Point.AFTER_RESULTS)

    def threshold(self, window: int) -> int:
        if self.settings.threshold_tokens:
            return min(self.settings.threshold_tokens, window - 1)
        if self.settings.threshold_percent:
            return percent_of(window, self.settings.threshold_percent)[1]
        return window - reserve_of(window, self.settings.reserve_tokens)

    def cut(self, history: CompactableHistory, legal: Bools, first: int) -> int:
        """The oldest place from which the messages are within the budget, or else the newest place (18.2.3:
        findCutPoint). The budget is in the provider's tokens: fewer of its own where the last prompt had more than it
        estimates of the messages (prepareCompaction)."""
        tokens, state, budget = ESTIMATE.tokens(history.messages), history.state, self.settings.keep_recent_tokens
        estimated = int(tokens[first:].sum())
        if state.as_of >= 0 and 0 < estimated < state.tokens:
            budget = int(max(1, budget * estimated // state.tokens))
        cut = next_legal(legal, crossing(tokens, budget, start=first) + 1)
        return last_legal(legal, len(legal) - 1) if cut == len(legal) else cut

    def rule(self, window: int) -> str:
        if self.settings.threshold_tokens:
            return f"{self.threshold(window):,}"
        if self.settings.threshold_percent:
            return percent_of(window, self.settings.threshold_percent)[0]
        return f"{window:,} - {reserve_of(window, self.settings.reserve_tokens):,}"


KIND = PolicyKind(
    OhMyPi.name,
    "oh-my-pi",
    "Compacts as pi does, but within turns, too, and with at least 15 % of the window kept free.",
    lambda **values: OhMyPi(OhMyPiSettings(profile=CURRENT, output_cap=0, pending=NONE, recover=True, **values)),
    (
        reserve_tokens(
            RESERVE, "tokens of the window kept free, at least 15 % of it", _SOURCE, (16_384, 40_000, 65_536)
        ),
        keep_recent(_SOURCE),
        Setting(
            "threshold_percent",
            "Share of the window",
            NUMBER,
            0.0,
            "compacts above this share of the window, from 1 to 99 %; 0: above the window minus the reserve",
            _SOURCE,
            unit="%",
            most=100,
        ),
        Setting(
            "threshold_tokens",
            "Threshold",
            COUNT,
            0,
            "compacts above this number of tokens, whatever share or reserve is set; 0: by these",
            _SOURCE,
            unit="tokens",
        ),
    ),
    known_problems=(
        KnownProblem(
            "New results are not counted",
            "Within a turn it compares the last answer's total; the results that came since are not in it.",
            "runs of 18.2.3",
        ),
    ),
)
