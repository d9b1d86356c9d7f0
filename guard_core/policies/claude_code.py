"""Claude Code: the window less what is reserved for the answer less 13,000, by version.

Source of the rules: versions 2.1.14 to 2.1.330, run against a scripted provider without remote feature flags
(own_rules.md, section 2). From 2.1.154 on there is a threshold only where a window was set; without one it compacts
when the provider refuses a request. What is attached again after a compaction (files, reminders, skills) is in no
recording: a replay adds what its first prompts after compactions had on average.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.costs import RESULT, SYSTEM, TEXT, USER
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import Counter
from guard_core.policies.pieces.cuts import last_marked
from guard_core.policies.pieces.plans import Ask, History, Plan, SummaryMessage
from guard_core.policies.settings import COUNT, NUMBER, KnownProblem, PolicyKind, Profile, Setting

WHOLE, CAPPED, REFUSAL = "until-2.1.19", "2.1.21-2.1.152", "from-2.1.154"
MARGIN = 13_000  # tokens below the reserve; measured in every version with a threshold
MAX_OUTPUT = 32_000  # tokens; measured for Opus 4.5
MOST_RESERVED = 20_000  # tokens; measured from 2.1.21 on
FRAMES = {WHOLE: 533, CAPPED: 533, REFUSAL: 944}  # characters around a summary; runs of 2.1.14 and 2.1.330
REFUSALS = 3  # compactions of a turn after refusals; ours: no measured run needed a second one
_SOURCE = "measured, own_rules.md section 2"


def threshold_of(window: int, reserve: int, percent: float | None = None) -> tuple[str, int]:
    """The threshold as an expression, and in tokens. `percent`: CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, which only lowers."""
    default = window - reserve - MARGIN
    text = f"{window:,} − {reserve:,} (max output) − {MARGIN:,}"
    if percent is None:
        return text, default
    share = int(percent / 100 * (window - reserve))
    return f"min({text}, {percent:g} % of ({window:,} − {reserve:,}))", min(default, share)


def rounded_results(ledger: Ledger, form: str = "") -> Ints:
    """round(UTF-16 units / 4) of each tool result, summed per event."""
    parts = ledger.parts
    return ledger.by_event(np.where(parts["kind"] == RESULT, (parts["utf16"] + 2) // 4, 0))


def rounded_results_and_reminders(ledger: Ledger, form: str = "") -> Ints:
    """The same, and of the texts that the agent's software added by itself."""
    parts, flags = ledger.parts, ledger.events["flags"]
    added = ((flags & SYSTEM) > 0) & ((flags & USER) == 0)
    texts = np.where((parts["kind"] == TEXT) & added[parts["event"]], (parts["utf16"] + 2) // 4, 0)
    return rounded_results(ledger) + ledger.by_event(texts)


class ClaudeCodeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens; 0 where a variable is not set."""

    profile: str
    max_output: int
    auto_compact_window: int
    autocompact_pct: float
    kept_rounds: int
    kept_rounds_refused: int
    summary_budget: int

    @property
    def reserve(self) -> int:
        """Tokens kept free for the answer."""
        return self.max_output if self.profile == WHOLE else min(self.max_output, MOST_RESERVED)

    def limit(self, window: int) -> tuple[str, int] | None:
        """The threshold as an expression and in tokens; None where there is none."""
        if self.profile == REFUSAL:
            if not self.auto_compact_window:
                return None
            window = min(window, self.auto_compact_window)
        return threshold_of(window, self.reserve, self.autocompact_pct or None)


class ClaudeCode(CountedPolicy):
    """The policy; see the module."""

    settings: ClaudeCodeSettings
    name = "claude-code"
    agent = "claude-code"

    @property
    def counter(self) -> Counter:
        if self.settings.profile == REFUSAL:
            words = "round(characters / 4) of each tool result and reminder"
            return Counter(pending=rounded_results_and_reminders, pending_words=words)
        # Until 2.1.25 the output tokens are those of the answer's beginning, where the provider says 1.
        begun = 1 if self.settings.profile == WHOLE else None
        words = "round(characters / 4) of each tool result"
        return Counter(output_as=begun, pending=rounded_results, pending_words=words)

    @property
    def most_refusals(self) -> int:
        return REFUSALS if self.settings.profile == REFUSAL else 0

    def threshold(self, window: int) -> int | None:
        limit = self.settings.limit(window)
        return None if limit is None else limit[1]

    def rule(self, window: int) -> str:
        limit = self.settings.limit(window)
        return "" if limit is None else limit[0]

    def plan(self, history: History) -> Plan:
        """A summary, then the newest tool rounds: none of them in old versions, more after a refusal."""
        messages = history.messages
        refused = history.point is Point.ON_OVERFLOW
        rounds = self.settings.kept_rounds_refused if refused else self.settings.kept_rounds
        cut = last_marked(messages.has_calls, rounds)
        asks = (Ask(messages.between(0, cut), self.settings.summary_budget),)
        summary = SummaryMessage(asks, frame=FRAMES[self.settings.profile])
        return Plan((summary, *messages.between(cut, len(messages))), cut=(messages.event_at(cut, history.stop),) * 3)


KIND = PolicyKind(
    "claude-code",
    "Claude Code",
    "Compacts at the window less the answer's reserve less 13,000; from 2.1.154 on only where a window is set, else "
    "after the provider's refusal. Keeps a summary and at most the newest tool rounds.",
    lambda **values: ClaudeCode(ClaudeCodeSettings(**values)),
    (
        Setting(
            "auto_compact_window",
            "Window that is set",
            COUNT,
            0,
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW or autoCompactWindow; 0: not set, so that only a refusal compacts",
            _SOURCE,
            unit="tokens",
            not_in=(WHOLE, CAPPED),
            main=True,
            sweep=(0, 100_000, 150_000, 200_000),
        ),
        Setting(
            "autocompact_pct",
            "Percentage",
            NUMBER,
            0.0,
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, which can only lower the threshold; 0: not set",
            _SOURCE,
            unit="%",
            most=100,
            main=True,
            sweep=(0, 50, 70, 80),
        ),
        Setting(
            "max_output",
            "Max output",
            COUNT,
            MAX_OUTPUT,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS; from 2.1.21 on at most 20,000 of them are reserved",
            _SOURCE,
            unit="tokens",
            main=True,
        ),
        Setting(
            "kept_rounds",
            "Tool rounds kept",
            COUNT,
            1,
            "newest tool calls, with all that follows, that stay after a compaction at the threshold",
            f"{_SOURCE}; not measured for 2.1.21 to 2.1.152",
            profiles={WHOLE: 0, CAPPED: 0},
        ),
        Setting(
            "kept_rounds_refused",
            "Tool rounds kept after a refusal",
            COUNT,
            4,
            "the same after the provider refused a request",
            _SOURCE,
            not_in=(WHOLE, CAPPED),
        ),
        Setting(
            "summary_budget",
            "Summary budget",
            COUNT,
            20_000,
            "most output tokens of the summariser",
            "max_tokens of its request, measured in 2.1.14",
            unit="tokens",
            least=1,
        ),
    ),
    (
        Profile(
            REFUSAL, "from 2.1.154 (May 2026): a threshold only where a window is set, else the provider's refusal"
        ),
        Profile(CAPPED, "2.1.21 to 2.1.152: at most 20,000 tokens are reserved for the answer"),
        Profile(WHOLE, "2.1.14 to 2.1.19: all of the model's maximum output is reserved"),
    ),
    known_problems=(
        KnownProblem(
            "A percentage alone never acts",
            "From 2.1.154 on the percentage has an effect only where a window is set.",
            "measured; anthropics/claude-code issues 31806, 56666, 64773",
        ),
        KnownProblem(
            "Instructions disappear",
            "The whole conversation becomes one summary; rules that the summary leaves out are gone.",
            "anthropics/claude-code issues 3841, 4017, 19471, 19736",
        ),
        KnownProblem(
            "The request for the summary is refused as well",
            "It holds the same conversation, and may not fit the window either.",
            "anthropics/claude-code issue 28728",
        ),
    ),
)
