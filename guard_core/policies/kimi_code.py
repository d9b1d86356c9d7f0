"""Kimi Code: 85 % of the window, or 50,000 tokens below it; keeps the person's messages and a summary.

Source of the rules: version 2.1.0, run against a scripted provider, and the specification of new policies, section 2.
Of a result it estimates the output alone, without the note that its tools put around it, which a replay cannot tell
from it. Not modelled: a compaction that is given up because messages other than the person's came meanwhile, the
window that it learns from refusals, and clearing of old results, which is off.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from guard_core.costs import RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.kimi_cli import limit_words, lower_limit
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import Counter
from guard_core.policies.pieces.plans import Ask, History, Plan, SummaryMessage
from guard_core.policies.pieces.requests import newest_requests, oldest_requests, requests_tokens
from guard_core.policies.pieces.shared_settings import summary_budget, trigger_reserve, trigger_share
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, Setting
from guard_core.views import Segment, Synthetic

# triggerRatio and reservedContextSize of compaction/strategy.ts, the latter in tokens
SHARE_OF_WINDOW, RESERVED = 0.85, 50_000
HEAD, TAIL = 2_000, 18_000  # tokens of the person's messages that stay where all of them are more than 20,000
ELISION = 60  # bytes; ours: the mark between the two, whose wording is not known
FRAME = 2_953  # characters around a summary; runs of 2.1.0
REFUSALS = 3  # attempts of a turn after refusals
CHARS_PER_TOKEN = 4  # of ASCII; any other character is a token
_SOURCE = "measured, specification of new policies section 2"


def text_tokens(ledger: Ledger, form: str = "") -> Ints:
    """The estimate of each event's texts and tool results, and a token for the role of each message."""
    parts = ledger.parts
    kind, others = parts["kind"], parts["non_ascii"]
    tokens = -(-(parts["chars"] - others) // CHARS_PER_TOKEN) + others + 1
    return ledger.by_event(np.where((kind == RESULT) | (kind == TEXT), tokens, 0))


class KimiCodeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    share: float
    reserved: int
    head: int
    tail: int
    summary_budget: int


class KimiCode(CountedPolicy):
    """The policy; see the module."""

    settings: KimiCodeSettings
    name = "kimi-code"
    agent = "kimi-code"

    @property
    def counter(self) -> Counter:
        return Counter(
            pending=text_tokens, pending_words="ceil(ASCII characters / 4), all others, and 1 for each message since"
        )

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int:
        if self.settings.reserved >= window:
            return math.ceil(self.settings.share * window)
        return lower_limit(window, self.settings.share, self.settings.reserved)

    def rule(self, window: int) -> str:
        if self.settings.reserved >= window:
            return f"{self.settings.share * 100:g} % of {window:,}"
        return limit_words(window, self.settings.share, self.settings.reserved)

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.BEFORE_CALL,)

    def plan(self, history: History) -> Plan:
        """The person's messages, the first and the last of them where they are too many, then a summary of all."""
        asks = (Ask(history.view, self.settings.summary_budget),)
        return Plan((*self._requests(history), SummaryMessage(asks, frame=FRAME)), cut=(history.stop,) * 3)

    def _requests(self, history: History) -> tuple[Segment, ...]:
        ledger, stop, head, tail = history.ledger, history.stop, self.settings.head, self.settings.tail
        if requests_tokens(ledger, stop) <= head + tail:
            return newest_requests(ledger, stop, head + tail)
        mark = Synthetic("elision", ELISION)
        return (*oldest_requests(ledger, stop, head), mark, *newest_requests(ledger, stop, tail))


KIND = PolicyKind(
    "kimi-code",
    "Kimi Code",
    "Compacts at 85 % of the window, or 50,000 tokens below it; keeps the user's messages and a summary.",
    lambda **values: KimiCode(KimiCodeSettings(**values)),
    (
        trigger_share(SHARE_OF_WINDOW, _SOURCE),
        trigger_reserve(
            RESERVED,
            (
                "reserved_context_size: compacts once no more than this is left of the window, if the window "
                "is larger than that"
            ),
            _SOURCE,
            (50_000, 20_000, 10_000),
        ),
        Setting(
            "head",
            "First messages kept",
            COUNT,
            HEAD,
            "if the user's messages do not all fit, how many tokens of the first ones stay",
            _SOURCE,
            unit="tokens",
        ),
        Setting(
            "tail",
            "Last messages kept",
            COUNT,
            TAIL,
            "if the user's messages do not all fit, how many tokens of the last ones stay",
            _SOURCE,
            unit="tokens",
        ),
        summary_budget(),
    ),
    known_problems=(
        KnownProblem(
            "The fixed part exceeds the threshold",
            "If the part that every request contains exceeds the threshold, every call compacts.",
            "MoonshotAI/kimi-code pull request 2498",
        ),
    ),
)
