"""Kimi CLI: 85 % of the window, or 50,000 tokens below it, whichever is reached first; keeps the last two messages.

Source of the rules: version 1.40.0 and 1.52.0, run against a scripted provider (specification of policies, drift,
section 2). The summariser is given the texts of messages only: it never sees tool calls and their arguments.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from guard_core.costs import MODEL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.cuts import last_marked
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget, trigger_reserve, trigger_share
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Span, Synthetic

# compaction_trigger_ratio, reserved_context_size (tokens): src/kimi_cli/config.py; measured: 262,144 -> 212,144
SHARE_OF_WINDOW, RESERVED = 0.85, 50_000
CHARS_PER_TOKEN = 4  # floor of all that is added, measured
KEPT = 2  # messages of the person and the model that are never summarised: soul/compaction.py
FRAME = 84  # characters before a summary; runs of 1.40.0
_SOURCE = "measured, specification of new policies section 2"


def lower_limit(window: int, share: float, reserved: int) -> int:
    """The smallest count that reaches a share of the window, or the window less what is reserved."""
    return min(math.ceil(share * window), window - reserved)


def limit_words(window: int, share: float, reserved: int) -> str:
    """The same as an expression."""
    return f"min({share * 100:g} % of {window:,}, {window:,} − {reserved:,})"


def text_chars(ledger: Ledger, form: str = "") -> Ints:
    """Code points of the texts and tool results of each event."""
    parts = ledger.parts
    return ledger.by_event(np.where((parts["kind"] == TEXT) | (parts["kind"] == RESULT), parts["chars"], 0))


def added_chars(ledger: Ledger, form: str = "") -> Ints:
    """The same of what is not an answer: an answer is counted by the provider."""
    return np.asarray(np.where(ledger.events["flags"] & MODEL, 0, text_chars(ledger)))


TEXTS = TokenEstimate(
    "kimi-cli texts",
    "characters // 4 of the texts",
    lambda ledger, form: text_chars(ledger) // CHARS_PER_TOKEN,
    lambda size: size // CHARS_PER_TOKEN,
)


class KimiCliSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    share: float
    reserved: int
    kept: int
    summary_budget: int


class KimiCli(CountedPolicy):
    """The policy; see the module."""

    settings: KimiCliSettings
    name = "kimi-cli"
    agent = "kimi-cli"
    raises = True

    @property
    def uncounted(self) -> TokenEstimate | None:
        return TEXTS

    @property
    def counter(self) -> UsageCounter:
        words = "floor(characters / 4) of what was added since"
        return UsageCounter(pending=added_chars, pending_words=words, pending_units=CHARS_PER_TOKEN)

    def _uncounted(self, ledger: Ledger, head: Head, at: Ints, state: Any) -> Ints:
        """Before the first count and after a compaction the texts are estimated, what the compaction left as one; the
        system prompt is not."""
        prefix = ledger.prefix_by("kimi-cli characters", text_chars)
        written = sum(item.bytes for item in head.view if isinstance(item, Synthetic))
        spans = [item for item in head.view if isinstance(item, Span)]
        kept = sum(int(prefix[item.stop] - prefix[item.start]) for item in spans)
        then = max(state.compacted_at, head.kept_from)
        kept += int(prefix[then] - prefix[head.kept_from])
        since = np.maximum(prefix[at] - prefix[then], 0)
        return np.asarray((written + kept) // CHARS_PER_TOKEN + since // CHARS_PER_TOKEN)

    def threshold(self, window: int) -> int:
        return lower_limit(window, self.settings.share, self.settings.reserved)

    def rule(self, window: int) -> str:
        return limit_words(window, self.settings.share, self.settings.reserved)

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary, then the last messages of the person and the model with the results between and behind them."""
        messages = history.messages
        speakers = ~messages.has_results & ~messages.is_system
        if not self.settings.kept or int(speakers.sum()) < self.settings.kept:  # 0: it never compacts (1.52.0)
            return NOTHING_TO_COMPACT
        cut = last_marked(speakers, self.settings.kept)
        if not cut:
            return NOTHING_TO_COMPACT
        asks = (Ask(messages.between(0, cut), self.settings.summary_budget),)
        kept = messages.between(cut, len(messages))
        return Plan(
            (SummaryMessage(asks, frame=FRAME, takes_empty=True), *kept),
            cut=(messages.event_at(cut, history.stop),) * 3,
        )

    def unplanned(self, history: CompactableHistory) -> CountedMemory:
        """Where nothing is compacted, the estimate of all texts takes the place of the count, too (1.52.0)."""
        state: CountedMemory = msgspec.structs.replace(history.state, compacted_at=history.stop, tokens=0, as_of=-1)
        return state


# Names of the arguments of SimpleCompaction and should_auto_compact (kimi-cli 1.52.0).
_NAMES = {"max_preserved_messages": "kept", "trigger_ratio": "share", "reserved_context_size": "reserved"}
KIND = PolicyKind(
    "kimi-cli",
    "Kimi CLI",
    "Compacts at 85 % of the window, or 50,000 tokens below it; keeps a summary and the last two messages.",
    lambda **values: KimiCli(KimiCliSettings(**values)),
    (
        trigger_share(SHARE_OF_WINDOW, _SOURCE),
        trigger_reserve(
            RESERVED,
            "reserved_context_size: compacts once no more than this is left of the window",
            _SOURCE,
            (50_000, 20_000, 10_000),
        ),
        Setting(
            "kept",
            "Messages kept",
            COUNT,
            KEPT,
            "how many of the last messages of user and model stay; 0: all",
            _SOURCE,
        ),
        summary_budget("Kimi CLI"),
    ),
    judged_by=RecordedRuns("kimi-cli", "simple_compaction", names=_NAMES),
    known_problems=(
        KnownProblem(
            "A small window compacts before every call",
            "If the window is not larger than the reserve, every count is above the threshold.",
            "measured, 1.52.0",
        ),
        KnownProblem(
            "The summariser never sees tool calls",
            "It is given the text of messages; calls and their arguments are left out.",
            "measured, specification of new policies section 2",
        ),
    ),
)
