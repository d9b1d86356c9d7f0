"""Letta: above the window, the oldest messages become a summary, a tenth more of them until little enough is left.

Source of the rules: specification of new policies, section 2, and letta/services/summarizer (compact.py,
summarizer_sliding_window.py, thresholds.py, 2026); not measured by running. What is left is estimated here by UTF-8
bytes // 4 with system prompt and tools. Not here: a summary that is clipped at 50,000 characters, approvals.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.estimation.estimators import Heuristic
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT

STANDARD, GPT_5 = "standard", "gpt-5"
SLIDING_SHARE = 0.3  # sliding_window_percentage
STEP = 0.10  # more messages go in each round; it is added before the first one, too
REFUSALS = 3  # compactions of a turn after refusals; ours
_SOURCE = "specification of new policies section 2"


class LettaSettings(msgspec.Struct, frozen=True):
    """Shares of the window and of the messages; tokens."""

    profile: str
    threshold: float
    sliding_window_percentage: float
    summary_budget: int


class Letta(CountedPolicy):
    """The policy; see the module."""

    settings: LettaSettings
    name = "letta"
    relation = ">"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_RESULTS, Point.END_OF_TURN)

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter()

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int:
        return int(window * self.settings.threshold)

    def rule(self, window: int) -> str:
        return f"{self.settings.threshold * 100:g} % of {window:,}"

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary of the oldest messages, and the others from an answer on; of all where no round leaves little
        enough. A system message at the beginning stays."""
        messages = history.messages
        system = int(len(messages) > 0 and bool(messages.is_system[0]))
        if len(messages) <= system:
            return NOTHING_TO_COMPACT
        cut = self._cut(history, 1 - system)
        cut = len(messages) if cut is None else cut
        summary = SummaryMessage((Ask(messages.between(system, cut), self.settings.summary_budget),))
        tail = messages.between(cut, len(messages))
        event = messages.event_at(cut, history.stop)
        return Plan((*messages.between(0, system), summary, *tail), cut=(event,) * 3)

    def _cut(self, history: CompactableHistory, unlisted: int) -> int | None:
        """The answer from which on messages stay; None where there is none that leaves little enough. `unlisted` is 1
        where the system message, which Letta counts among its messages, is not one of the list."""
        messages, costs = history.messages, Heuristic.of(history.ledger)
        count, answers = len(messages) + unlisted, np.flatnonzero(messages.is_model) + unlisted
        goal = (1 - self.settings.sliding_window_percentage) * history.check.window
        share, left, cut = self.settings.sliding_window_percentage, history.check.window, None
        while left >= goal and share < 1.0:
            share += STEP
            before = answers[(answers >= 1) & (answers <= round(share * count))]
            if len(before):
                cut = int(before[-1])
                left = costs.request(messages.between(cut - unlisted, len(messages)))
        if cut is None or share >= 1.0 or cut >= count - 1 or cut == unlisted:
            return None
        return cut - unlisted


KIND = PolicyKind(
    "letta",
    "Letta",
    (
        "Above the window, summarises the oldest 40 % of the messages, and another tenth at a time until at "
        "most 70 % of the window is used."
    ),
    lambda **values: Letta(LettaSettings(**values)),
    (
        Setting(
            "threshold",
            "Share of the window",
            SHARE,
            1.0,
            "compacts once the last request and its answer have more tokens than this share of the window",
            f"{_SOURCE}; thresholds.py",
            profiles={GPT_5: 0.9},
            main=True,
            sweep=(1.0, 0.9, 0.7),
        ),
        Setting(
            "sliding_window_percentage",
            "Share that goes",
            SHARE,
            SLIDING_SHARE,
            (
                "share of the messages summarised first, with a tenth added to it; the rest, as a share of "
                "the window, is the target"
            ),
            f"{_SOURCE}; summarizer_sliding_window.py",
            main=True,
            sweep=(0.3, 0.5),
        ),
        summary_budget(),
    ),
    (Profile(STANDARD, "most models: the whole window"), Profile(GPT_5, "models of the GPT-5 family: 90 % of it")),
    known_problems=(
        KnownProblem(
            "Summarises more than documented",
            (
                "The documentation says that 30 % of the messages are summarised; the first round takes 40 %, "
                "because a tenth is added first."
            ),
            _SOURCE,
        ),
    ),
)
