"""Gemini CLI: half of the limit in prompt tokens; keeps the last 30 % of the conversation, from a text of the user on.

Source of the rules: version 0.61.0, run against a scripted provider, and the specification of policies, section 7. It
looks before it sends, when neither the user's message nor the results of the last calls are in its history. Sizes are
those of the messages as JSON, whose frames are taken as fixed. Not modelled: a second call that checks the summary,
old tool results that are cut to their ends, masking of tool outputs, and that a summary which makes the history longer
is thrown away.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from guard_core.costs import CALL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import Counter
from guard_core.policies.pieces.message_columns import Messages
from guard_core.policies.pieces.plans import Ask, History, Plan, SummaryMessage
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Span, Synthetic

CURRENT, EARLIER = "0.5", "0.7"  # profiles: the share of the limit, by which versions differ
KEPT_SHARE = 0.3  # of the history's characters
ACKNOWLEDGEMENT = 42  # characters of the model's answer behind a summary; runs of 0.61.0
# Characters of JSON around a message and its parts, without names and texts; the order of keys does not matter.
MESSAGE = len('{"role":"model","parts":[]},')
PART = {
    TEXT: len('{"text":},'),
    CALL: len('{"functionCall":{"id":"","name":"","args":}},'),
    RESULT: len('{"functionResponse":{"id":"","name":"","response":{"output":}}},'),
}
ID = 30  # characters of the id of a call; runs of 0.61.0
_SPEC = "specification of policies section 7"


class GeminiCliSettings(msgspec.Struct, frozen=True):
    """Shares of the limit and of the history; tokens."""

    profile: str
    compression_threshold: float
    preserve: float
    summary_budget: int


class GeminiCli(CountedPolicy):
    """The policy; see the module."""

    settings: GeminiCliSettings
    name = "gemini-cli"
    agent = "gemini-cli"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_CALL, Point.BEFORE_TURN)

    @property
    def counter(self) -> Counter:
        return Counter(output=False)

    def threshold(self, window: int) -> int:
        return math.ceil(self.settings.compression_threshold * window)

    def rule(self, window: int) -> str:
        return f"{self.settings.compression_threshold * 100:g} % of {window:,}"

    def plan(self, history: History) -> Plan | int:
        """A summary, the model's answer to it, and the end of the history."""
        messages = history.messages
        cut = split_point(messages, 1 - self.settings.preserve)
        if not cut:
            return NOTHING_TO_COMPACT
        summary = SummaryMessage((Ask(messages.between(0, cut), self.settings.summary_budget),))
        answer = Synthetic("acknowledgement", ACKNOWLEDGEMENT)
        kept = messages.between(cut, len(messages))
        return Plan((summary, answer, *kept), cut=(messages.event_at(cut, history.stop),) * 3)


def split_point(messages: Messages, share: float) -> int:
    """The first message that stays: the first text of the user before which there is at least `share` of the
    characters; none, where the history ends with a finished answer; else the last text of the user."""
    sizes = _json_chars(messages)
    before = np.cumsum(sizes) - sizes
    texts = messages.is_said & ~messages.has_results
    places = np.flatnonzero(texts & (before >= share * int(sizes.sum())))
    if len(places):
        return int(places[0])
    if len(messages) and messages.is_model[-1] and not messages.has_calls[-1]:
        return len(messages)
    starts = np.flatnonzero(texts)
    return int(starts[-1]) if len(starts) else 0


def _json_chars(messages: Messages) -> Ints:
    """Characters of each message as JSON."""
    prefix = messages.ledger.prefix_by("gemini characters", _event_chars)
    rows = [np.zeros(0, dtype=np.int64)]
    for segment in messages.view:
        if isinstance(segment, Span):
            rows.append(np.diff(prefix[segment.start : segment.stop + 1]))
        else:
            assert isinstance(segment, Synthetic)
            rows.append(np.array([MESSAGE + PART[TEXT] + segment.bytes]))
    return np.concatenate(rows)


def _event_chars(ledger: Ledger) -> Ints:
    parts = ledger.parts
    kind, named = parts["kind"], parts["name_chars"] + ID
    sizes = parts["json_chars"] + PART[TEXT]
    sizes = np.where(kind == CALL, parts["chars"] + PART[CALL] + named, sizes)
    sizes = np.where(kind == RESULT, parts["json_chars"] + PART[RESULT] + named, sizes)
    return ledger.by_event(sizes) + MESSAGE


KIND = PolicyKind(
    "gemini-cli",
    "Gemini CLI",
    "Compacts at half of the model's limit, counting prompt tokens; keeps the last 30 % from a user's text on.",
    lambda **values: GeminiCli(GeminiCliSettings(**values)),
    (
        Setting(
            "compression_threshold",
            "Share of the limit",
            SHARE,
            0.5,
            "it compacts where the prompt of the last call reaches this share of the window",
            "measured in 0.61.0; " + _SPEC,
            main=True,
            profiles={EARLIER: 0.7},
            sweep=(0.5, 0.7, 0.3, 0.2),
        ),
        Setting(
            "preserve",
            "Share kept",
            SHARE,
            KEPT_SHARE,
            "of the history's characters; the cut is at the next text of the user",
            _SPEC,
            main=True,
            sweep=(0.3, 0.5, 0.1),
        ),
        Setting(
            "summary_budget",
            "Summary budget",
            COUNT,
            4_000,
            "the size that a share of the summary budget refers to (Gemini CLI has no limit)",
            "ours",
            unit="tokens",
            least=1,
        ),
    ),
    (
        Profile(CURRENT, "0.61: half of the limit"),
        Profile(EARLIER, "November 2025: 70 % of the limit"),
    ),
    known_problems=(
        KnownProblem(
            "A long first turn is not compacted",
            "There is no text of the user to cut at before the turn ends.",
            "measured in 0.61.0",
        ),
        KnownProblem(
            "The summary makes the context larger",
            "A summary may hold more than what it takes the place of.",
            "google-gemini/gemini-cli issues 15225, 3574",
        ),
    ),
)
