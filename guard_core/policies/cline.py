"""Cline: at a limit by window, on all tokens of the last request, messages in the middle are dropped without a summary.

Source of the rules: specification of policies, section 7 (ContextManager of Cline, revision 01cfde0d); not measured by
running. The first two messages always stay. Not modelled: a file that is read again replaced by a note before, which
may make dropping unnecessary, and the newer tool by which the model summarises its task itself.
"""

from __future__ import annotations

import msgspec

from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import outputs_of
from guard_core.policies.pieces.plans import CompactableHistory, Plan
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, Setting
from guard_core.trace import NOTHING_TO_COMPACT

RESERVES_BY_WINDOW = {64_000: 27_000, 128_000: 30_000, 200_000: 40_000}  # tokens
LARGE_RESERVE, SHARE = 40_000, 0.8  # of other windows: the larger of what they leave
FIRST = 2  # messages that always stay
REFUSALS = 3  # of a turn; ours: Cline asks the person after the first
_SPEC = "specification of policies section 7"


def limit_of(window: int) -> tuple[str, int]:
    """The limit of a window, as an expression and in tokens."""
    if reserve := RESERVES_BY_WINDOW.get(window):
        return f"{window:,} − {reserve:,}", window - reserve
    return f"max({window:,} − {LARGE_RESERVE:,}, 80 % of {window:,})", max(window - LARGE_RESERVE, int(SHARE * window))


class ClineSettings(msgspec.Struct, frozen=True):
    """`limit` in tokens; 0: that of the window."""

    limit: int


class Cline(CountedPolicy):
    """The policy; see the module."""

    settings: ClineSettings
    name = "cline"
    agent = "cline"

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int:
        return self.settings.limit or limit_of(window)[1]

    def rule(self, window: int) -> str:
        return f"{self.settings.limit:,}, set" if self.settings.limit else limit_of(window)[0]

    def plan(self, history: CompactableHistory) -> Plan | int:
        """Half of the messages behind the first two go; three quarters where half of the count is above the limit, or
        after a refusal. What goes ends with an answer."""
        messages = history.messages
        rest = len(messages) - FIRST
        # Tokens of the last request and its answer.
        as_of = history.state.as_of
        tokens = history.state.tokens + int(outputs_of(history.ledger)[as_of]) if as_of >= 0 else 0
        many = history.point is Point.ON_OVERFLOW or tokens / 2 > self.threshold(history.check.window)
        stop = FIRST + max(rest * 3 // 4 // 2 * 2 if many else rest // 4 * 2, 0)
        if stop > FIRST and not messages.is_model[stop - 1]:
            stop -= 1
        if stop <= FIRST:
            return NOTHING_TO_COMPACT
        kept = messages.between(stop, len(messages))
        return Plan((*messages.between(0, FIRST), *kept), cut=(messages.event_at(stop, history.stop),) * 3)


KIND = PolicyKind(
    "cline",
    "Cline",
    "Drops messages from the middle at a limit that depends on the window, without a summary; keeps the first two.",
    lambda **values: Cline(ClineSettings(**values)),
    (
        Setting(
            "limit",
            "Limit",
            COUNT,
            0,
            "limit on the tokens of the last request and its answer; 0: derived from the window (160,000 of 200,000)",
            _SPEC,
            unit="tokens",
            main=True,
            sweep=(0, 80_000, 120_000),
        ),
    ),
    summarises=False,
    parts_pairs="it may drop an answer with a call and keep the call's result",
    known_problems=(
        KnownProblem(
            "History lost without a summary",
            "Messages are dropped from the middle, and nothing says what they contained.",
            _SPEC,
        ),
    ),
)
