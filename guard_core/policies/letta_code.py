"""Letta Code: above the window less a reserve, the oldest messages become a summary, a tenth more of them until little
enough is left.

Source of the rules: the program 0.34.12 on its own machine (`--backend local`; contextCompactionThreshold,
estimateLocalContextTokens, planLocalSlidingWindowCompaction), and runs of it. It looks before every call, on the last
answer's total and its estimate of what came since. Not here: an answer that alone reaches the threshold is compacted
before the results of its calls are there; before the first count system prompt and tools are estimated, too; the modes
in which the agent summarises by itself.
"""

from __future__ import annotations

from math import floor

import msgspec
import numpy as np

from guard_core.policies.pi import ESTIMATE, message_tokens
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import sliding_share, summary_budget
from guard_core.policies.settings import CHOICE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT

RESERVE, SMALL_SHARE = 16_384, 0.2  # tokens; of the window, where that is less
SLIDING_SHARE, STEP = 0.3, 0.1  # of the messages that go; what is added to it before each round
LEAST_MESSAGES = 4  # of a history of which some can stay
FRAME_BYTES = 423  # of the JSON around a summary: runs
REFUSALS = 3  # compactions for one request that the provider refuses
SLIDING, ALL = "sliding_window", "all"
_SOURCE = "the program 0.34.12"


def reserve_of(window: int) -> int:
    """What Letta Code keeps free of a window, in tokens."""
    return min(RESERVE, max(1, int(window * SMALL_SHARE)))


class LettaCodeSettings(msgspec.Struct, frozen=True):
    """A mode; a share of the messages; tokens."""

    profile: str
    mode: str
    sliding_window_percentage: float
    summary_budget: int


class LettaCode(CountedPolicy):
    """The policy; see the module."""

    settings: LettaCodeSettings
    name = "letta-code"
    relation = ">"

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(pending=message_tokens, pending_words="ceil(characters / 4) of each message since")

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int:
        return window - reserve_of(window)

    def rule(self, window: int) -> str:
        return f"{window:,} - {reserve_of(window):,} (reserve)"

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary of the oldest messages, and the others from an answer on; of all where no round leaves little
        enough."""
        messages = history.messages
        if not len(messages):
            return NOTHING_TO_COMPACT
        cut = self._cut(history) if self.settings.mode == SLIDING else len(messages)
        summary = SummaryMessage((Ask(messages.between(0, cut), self.settings.summary_budget),), frame=FRAME_BYTES)
        event = messages.event_at(cut, history.stop)
        return Plan((summary, *messages.between(cut, len(messages))), cut=(event,) * 3)

    def _cut(self, history: CompactableHistory) -> int:
        """The answer from which on messages stay; their number where there is none that leaves little enough."""
        messages = history.messages
        count, tokens = len(messages), ESTIMATE.tokens(messages)
        answers = np.flatnonzero(messages.is_model)
        answers = answers[(answers > 0) & (answers < count - 1)]
        share, left, cut = self.settings.sliding_window_percentage, history.check.window, 0
        goal = (1 - share) * history.check.window
        while left >= goal and share < 1 and count >= LEAST_MESSAGES:
            share += STEP
            before = answers[answers <= floor(share * count + 0.5)]
            if len(before):
                cut = int(before[-1])
                left = int(tokens[cut:].sum())
        return cut if cut and share < 1 else count


KIND = PolicyKind(
    "letta-code",
    "Letta Code",
    (
        "Above the window less a reserve, summarises the oldest 40 % of the messages, and another tenth at a time "
        "until less than 70 % of the window is used."
    ),
    lambda **values: LettaCode(LettaCodeSettings(**values)),
    (
        Setting(
            "mode",
            "Mode",
            CHOICE,
            SLIDING,
            "keep the newest messages beside the summary, or nothing",
            f"{_SOURCE}, setting compaction_settings.mode",
            choices=(SLIDING, ALL),
            main=True,
        ),
        sliding_share(SLIDING_SHARE, f"{_SOURCE}, planLocalSlidingWindowCompaction"),
        summary_budget(),
    ),
    (Profile("0.34", "0.34.12, as run"),),
    known_problems=(
        KnownProblem(
            "Compacts again and again",
            (
                "The target counts the messages alone: system prompt and tools are not in it. If they fill most of the "
                "window, what is left is soon over the threshold, and each call compacts again."
            ),
            "runs of 0.34.12: 25,000 tokens of system prompt and tools in a window of 40,000",
        ),
    ),
)
