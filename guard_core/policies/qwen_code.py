"""Qwen Code: 85 % of the window, or 33,000 tokens below it; keeps a summary and the tool call that is under way.

Source of the rules: version 0.24.4, run against a scripted provider (850,000; 167,000; 98,072), and the specification
of new policies, section 2. What is pending was fitted to results of one size. Not modelled: compactions for 20 pictures
from tools, files and reminders that are attached again (their size is that of the recording), and that it stops trying
after three failures.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from guard_core.costs import MEDIA, MODEL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.cuts import last_marked
from guard_core.policies.pieces.estimates import at_ends
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_limit, trigger_reserve, trigger_share
from guard_core.policies.settings import KnownProblem, PolicyKind
from guard_core.views import Synthetic

SHARE_OF_WINDOW = 0.85  # DEFAULT_PCT in chatCompressionService.ts
MOST_OUTPUT = 20_000  # tokens of the summariser: COMPACT_MAX_OUTPUT_TOKENS
BUFFER = 13_000  # tokens to spare: AUTOCOMPACT_BUFFER
RESERVED = MOST_OUTPUT + BUFFER
# packages/core/src/services/compactionInputSlimming.ts: characters of a picture or document (1,600 tokens of four), and
# those around each result.
PICTURE_CHARS, RESULT_CHARS = 6_400, 64
FRAME, ACKNOWLEDGEMENT = 169, 42  # characters around a summary, and of the answer behind it; runs of 0.24.4
_SOURCE = "measured in 0.24.4, specification of new policies section 2"


def threshold_of(window: int, share: float = SHARE_OF_WINDOW, reserved: int = RESERVED) -> int:
    """The smallest count at which it compacts; a window that is smaller than what is reserved has the share alone."""
    part, rest = math.ceil(share * window), window - reserved
    return min(part, rest) if rest > 0 else part


def sent_together(ledger: Ledger, form: str = "") -> Ints:
    """All that waits between two answers is one message, of which ceil(characters / 4) is counted: of texts,
    of results with 64 more each, and 6,400 a picture."""
    parts = ledger.parts
    sizes = np.where(parts["kind"] == TEXT, parts["utf16"], 0)
    sizes = np.where(parts["kind"] == RESULT, parts["utf16"] + RESULT_CHARS, sizes)
    sizes = np.where(parts["kind"] == MEDIA, PICTURE_CHARS, sizes)
    waits = (ledger.events["flags"] & MODEL) == 0
    return at_ends(np.where(waits, ledger.by_event(sizes), 0), waits, lambda chars: -(-chars // 4))


class QwenCodeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    share: float
    reserved: int
    summary_budget: int


class QwenCode(CountedPolicy):
    """The policy; see the module."""

    settings: QwenCodeSettings
    name = "qwen-code"
    agent = "qwen-code"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_RESULTS, Point.BEFORE_TURN)

    @property
    def counter(self) -> UsageCounter:
        words = "ceil(characters / 4) of what was added since, 64 more a result"
        return UsageCounter(pending=sent_together, pending_words=words)

    def threshold(self, window: int) -> int:
        return threshold_of(window, self.settings.share, self.settings.reserved)

    def rule(self, window: int) -> str:
        part = f"{self.settings.share * 100:g} % of {window:,}"
        return f"min({part}, {window:,} − {self.settings.reserved:,})" if window > self.settings.reserved else part

    def plan(self, history: CompactableHistory) -> Plan:
        """A summary of all, an answer to it, and the tool call that is under way with its results."""
        messages = history.messages
        cut = last_marked(messages.has_calls, 1) if history.within_turn else len(messages)
        summary = SummaryMessage((Ask(history.view, self.settings.summary_budget),), frame=FRAME)
        answer = Synthetic("acknowledgement", ACKNOWLEDGEMENT)
        tail = messages.between(cut, len(messages))
        return Plan((summary, answer, *tail), cut=(messages.event_at(cut, history.stop),) * 3)


KIND = PolicyKind(
    "qwen-code",
    "Qwen Code",
    "Compacts at 85 % of the window, or 33,000 tokens below it; keeps a summary and the tool call in progress.",
    lambda **values: QwenCode(QwenCodeSettings(**values)),
    (
        trigger_share(SHARE_OF_WINDOW, _SOURCE),
        trigger_reserve(
            RESERVED, "compacts once no more than this is left of the window", _SOURCE, (33_000, 50_000, 20_000)
        ),
        summary_limit(MOST_OUTPUT, _SOURCE),
    ),
    known_problems=(
        KnownProblem(
            "Nothing of the conversation stays verbatim",
            "Even the user's newest message survives only in the summary.",
            "measured in 0.24.4",
        ),
    ),
)
