"""Roo Code: near the end of the window, or at a share of it, the conversation becomes a summary.

Source of the rules: specification of policies, section 7 (revisions 0cc04f43 and 04fc2a02); not measured by running.
Profile `fresh-start` hides everything but the summary, `keep-3` keeps the first message and the last three. Where the
summary fails, or what it leaves is not smaller, half of the messages behind the first are hidden, and a note says so.
What the last message adds is estimated here with bytes // 4; Roo counts it with a tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from guard_core.costs import RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.cuts import last_messages
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import INFLATED, NOTHING_TO_COMPACT
from guard_core.views import Synthetic, View

BUFFER = 0.1  # of the window, kept free
RESERVED = 8_192  # tokens for the answer, where the model names no other
KEPT = 3  # last messages
FRESH, KEEP = "fresh-start", "keep-3"
BYTES_PER_TOKEN = 4  # ours
NOTE = 100  # bytes of the note; ours: the wording is not known
_SPEC = "specification of policies section 7"


def allowed_of(window: int, reserved: int) -> int:
    """The most tokens before it compacts; 0, so that it always does, where the reserve is larger than what is free."""
    return max(0, math.floor((1 - BUFFER) * window) - reserved)


def hidden_of(messages: int) -> int:
    """How many of some messages are hidden where there is no summary."""
    return max(messages - 1, 0) // 2 // 2 * 2


def _text_tokens(ledger: Ledger, form: str = "") -> Ints:
    """Tokens of the texts and results of each event, each part rounded down, whatever its form."""
    parts = ledger.parts
    own = (parts["kind"] == TEXT) | (parts["kind"] == RESULT)
    return ledger.by_event(own * (parts["bytes"] // BYTES_PER_TOKEN))


class RooSettings(msgspec.Struct, frozen=True):
    """`share` of the window; sizes in tokens."""

    profile: str
    share: float
    reserved: int
    summary_budget: int


class Roo(CountedPolicy):
    """The policy; see the module."""

    settings: RooSettings
    name = "roo"
    agent = "roo"

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(pending=_text_tokens, pending_words="bytes // 4 of what was added since")

    def threshold(self, window: int) -> int:
        """It compacts above what is allowed, or from a share on."""
        return min(allowed_of(window, self.settings.reserved) + 1, math.ceil(self.settings.share * window))

    def rule(self, window: int) -> str:
        share = f"{self.settings.share * 100:g} % of {window:,}"
        return f"min(90 % of {window:,} − {self.settings.reserved:,} + 1, {share})"

    def plan(self, history: CompactableHistory) -> Plan | int:
        messages = history.messages
        keeps = self.settings.profile == KEEP
        first, cut = (1, last_messages(len(messages), KEPT)) if keeps else (0, len(messages))
        while cut > first and messages.has_results[min(cut, len(messages) - 1)] and keeps:
            cut -= 1  # a result stays with its call
        if cut <= first:
            return NOTHING_TO_COMPACT
        given: View = messages.between(first, cut)
        tail = messages.between(cut, len(messages))
        summary = SummaryMessage((Ask(given, self.settings.summary_budget),))
        event = messages.event_at(cut, history.stop)
        return Plan((*messages.between(0, first), summary, *tail), cut=(event,) * 3)

    def refuses(self, history: CompactableHistory, after: View) -> tuple[int, Mapping[str, Any]]:
        """A summary that leaves as much as there was is not taken."""
        costs = self.estimator(history.ledger)
        grows = costs.contents(after) >= costs.contents(history.view)
        return (INFLATED, {}) if grows else super().refuses(history, after)

    def instead(self, history: CompactableHistory) -> Plan | None:
        """Half of the messages behind the first are hidden, an even number of them, with the results of their calls."""
        messages = history.messages
        stop = 1 + hidden_of(len(messages))
        while 1 < stop < len(messages) and messages.has_results[stop]:
            stop += 1
        if stop == 1:
            return None
        note = Synthetic("note of hidden messages", NOTE)
        items = (*messages.between(0, 1), note, *messages.between(stop, len(messages)))
        return Plan(items, cut=(messages.event_at(stop, history.stop),) * 3)


KIND = PolicyKind(
    "roo",
    "Roo Code",
    (
        "Compacts above 90 % of the window minus the reserve for the answer; keeps a summary and, in older "
        "versions, a few messages."
    ),
    lambda **values: Roo(RooSettings(**values)),
    (
        Setting(
            "share",
            "Share of the window",
            SHARE,
            1.0,
            "also compacts from this share of the window on; at 100 % only the other rule applies",
            _SPEC,
            least=0.05,
            main=True,
            sweep=(1.0, 0.8, 0.5),
        ),
        Setting(
            "reserved",
            "Reserved",
            COUNT,
            RESERVED,
            "subtracted from 90 % of the window, for the answer",
            _SPEC,
            unit="tokens",
            main=True,
        ),
        summary_budget(),
    ),
    (
        Profile(FRESH, "newer: hides all earlier messages; a summary remains"),
        Profile(KEEP, "older: keeps the first message and the last three"),
    ),
    known_problems=(
        KnownProblem(
            "The setting has no effect by default",
            "The share is 100 % by default, so only 90 % of the window minus the reserve counts.",
            "revision b867ec9, " + _SPEC,
        ),
    ),
)
