"""OpenClaw, which runs pi's compaction with a larger reserve and tries again after a refusal.

Source of the rules: openclaw at 00a8aaea and its documentation, by reading, the specification of new policies, section
2 (a thread), and runs of 2026.9.6 (the threshold, and that nothing is compacted within a turn); pi's rules are those of
`pi`. Not here: the user's message, which counts before a turn; the cutting of tool results alone; a flush of the memory
before a compaction.
"""

from __future__ import annotations

from guard_core.policies.pi import CURRENT, NONE, RESERVE, Pi, PiSettings
from guard_core.policies.pieces.shared_settings import keep_recent, reserve_tokens
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, Setting

RESERVE_FLOOR = 20_000  # tokens; DEFAULT_PI_COMPACTION_RESERVE_TOKENS_FLOOR
MOST_SHARE = 0.25  # of the window that is reserved: MAX_COMPACTION_RESERVE_RATIO of 2026.9.6
ATTEMPTS = 3  # compactions after refusals; specification of new policies section 2
_SOURCE = "openclaw, agents/pi-settings"
_SPEC = "specification of new policies section 2"


def reserve_of(window: int, size: int) -> int:
    """What is kept free of a window, in tokens, where `size` tokens are to be."""
    return min(size, int(window * MOST_SHARE))


class OpenClawSettings(PiSettings, frozen=True):
    """Sizes in tokens; what is reserved is at least the floor."""

    reserve_tokens_floor: int
    overflow_attempts: int


class OpenClaw(Pi):
    """The policy; see the module."""

    settings: OpenClawSettings
    name = "openclaw"
    agent = "openclaw"

    def reserve(self, window: int) -> int:
        """What it keeps free of a window, in tokens."""
        return reserve_of(window, max(self.settings.reserve_tokens, self.settings.reserve_tokens_floor))

    @property
    def most_refusals(self) -> int:
        return self.settings.overflow_attempts

    def threshold(self, window: int) -> int:
        return window - self.reserve(window)

    def rule(self, window: int) -> str:
        return f"{window:,} - {self.reserve(window):,}"


KIND = PolicyKind(
    OpenClaw.name,
    "OpenClaw",
    "Compacts as pi does, with a larger reserve, and up to three times after a refusal.",
    lambda **values: OpenClaw(
        OpenClawSettings(profile=CURRENT, output_cap=0, pending=NONE, recover=values["overflow_attempts"] > 0, **values)
    ),
    (
        reserve_tokens(RESERVE, "tokens of the window kept free, as in pi", _SOURCE, (16_384, 40_000, 65_536)),
        Setting(
            "reserve_tokens_floor",
            "Least reserve",
            COUNT,
            RESERVE_FLOOR,
            "minimum number of tokens kept free, but at most a quarter of the window",
            f"{_SOURCE}, DEFAULT_PI_COMPACTION_RESERVE_TOKENS_FLOOR",
            unit="tokens",
        ),
        keep_recent(f"pi's default; {_SPEC}", others=" (25,000 according to some threads)"),
        Setting(
            "overflow_attempts",
            "Tries after a refusal",
            COUNT,
            ATTEMPTS,
            "maximum number of compactions in a turn after the provider refused a request as too large",
            _SPEC,
            unit="tries",
            most=100,
        ),
    ),
    known_problems=(
        KnownProblem(
            "Too late for the summary",
            (
                "In a long turn the request exceeds the window before the next check, and then the summariser "
                "has no room either."
            ),
            "a report of a session at 119 % of its window",
        ),
    ),
)
