"""Claude Code: the window less what is reserved for the answer less 13,000, by version.

Source of the rules: versions 2.1.14 to 2.1.330, run against a scripted provider without remote feature flags
(own_rules.md, section 2). From 2.1.153 on there is a threshold only where a window was set; without one it compacts
when the provider refuses a request; models for which later versions have one of their own take it as a window that is
set (`claude_code_limits.own_window`). Old tool results can be cleared before a call (`microcompact`, off: no measured
version did it, and what is known of it is secondary, specification of policies section 7). What is attached again after
a compaction (files, reminders, skills) is in no recording: a replay adds what its first prompts after compactions had
on average.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.claude_code_limits import CAPPED, MAX_OUTPUT, REFUSAL, WHOLE, reserve_of, threshold_of, window_set
from guard_core.costs import CALL, MEDIA, MODEL, OTHER, RESULT, tool_key
from guard_core.forms import Replaced
from guard_core.forms.edits import tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.cuts import last_marked
from guard_core.policies.pieces.message_columns import Bools, events_in_form
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_limit
from guard_core.policies.settings import COUNT, NUMBER, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT

FRAMES = {WHOLE: 533, CAPPED: 533, REFUSAL: 944}  # characters around a summary; runs of 2.1.14 and 2.1.330
PICTURE, FIRST_PICTURE = 2_000, 1_334  # tokens of a picture of any size; runs of 2.1.44 to 2.1.330, of 2.1.14 to 2.1.34
REFUSALS = 3  # compactions of a turn after refusals; ours: no measured run needed a second one
# Of microcompact, tokens and results (secondary: specification of policies, section 7).
MICRO_LEFT, MICRO_LEAST, MICRO_KEPT = 40_000, 20_000, 3
MICRO_TOOLS = ("Read", "Bash", "Grep", "Glob", "WebFetch", "WebSearch", "Edit", "Write")
MICRO_FORM = Replaced(text="[old tool result cleared]", over=40).name  # our words
_SOURCE = "measured, own_rules.md section 2"


def rounded_messages(
    ledger: Ledger, form: str = "", *, picture: int = PICTURE, in_answers: bool = False, per_token: int = 4
) -> Ints:
    """round(UTF-16 units / `per_token`) of each text, tool result and reminder, and `picture` tokens of each picture,
    summed per event. `in_answers`: of an answer, too, what it holds behind its first part (texts, thoughts, tool
    calls)."""
    parts = ledger.parts
    kind, event = parts["kind"], parts["event"]
    units = parts["utf16"] + np.where(kind == CALL, parts["name_chars"], 0)
    tokens = np.where(kind == MEDIA, picture, np.where(kind == OTHER, 0, (2 * units + per_token) // (2 * per_token)))
    answers = (ledger.events["flags"][event] & MODEL) > 0
    is_first = np.diff(event, prepend=-1) > 0
    return ledger.by_event(np.where(answers & (is_first | (not in_answers)), 0, tokens))


def rounded_messages_at_first(ledger: Ledger, form: str = "") -> Ints:
    """The same as the first versions estimate pictures."""
    return rounded_messages(ledger, form, picture=FIRST_PICTURE)


def rounded_messages_and_calls(ledger: Ledger, form: str = "") -> Ints:
    """The same, with what an answer holds behind its first part."""
    return rounded_messages(ledger, form, in_answers=True)


def rounded_thirds(ledger: Ledger, form: str = "") -> Ints:
    """The same for later models, whose tokens are estimated at three characters each."""
    return rounded_messages(ledger, form, in_answers=True, per_token=3)


class ClaudeCodeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens; 0 where a variable is not set."""

    profile: str
    max_output: int
    auto_compact_window: int
    autocompact_pct: float
    kept_rounds: int
    kept_rounds_refused: int
    microcompact: bool
    summary_budget: int

    @property
    def reserve(self) -> int:
        """Tokens kept free for the answer."""
        return reserve_of(self.profile, self.max_output)

    def limit(self, window: int) -> tuple[str, int] | None:
        """The threshold as an expression and in tokens; None where there is none."""
        if self.profile == REFUSAL and not self.auto_compact_window:
            return None
        if self.profile != WHOLE and self.auto_compact_window:
            window = window_set(window, self.auto_compact_window)
        return threshold_of(window, self.reserve, self.autocompact_pct or None)


class ClaudeCodeMemory(CountedMemory, frozen=True):
    """`cleared`: events of the log whose results are cleared or were summarised."""

    cleared: int = 0


class ClaudeCode(CountedPolicy):
    """The policy; see the module."""

    settings: ClaudeCodeSettings
    name = "claude-code"
    agent = "claude-code"
    state_type = ClaudeCodeMemory

    @property
    def counter(self) -> UsageCounter:
        words = "round(characters / 4) of each message since"
        if self.settings.profile != WHOLE:
            return UsageCounter(pending=rounded_messages, pending_words=words)
        # Until 2.1.25 the output tokens are those of the answer's beginning, where the provider says 1.
        return UsageCounter(output_as=1, pending=rounded_messages_at_first, pending_words=words)

    @property
    def most_refusals(self) -> int:
        return REFUSALS if self.settings.profile == REFUSAL else 0

    def threshold(self, window: int) -> int | None:
        limit = self.settings.limit(window)
        return None if limit is None else limit[1]

    def rule(self, window: int) -> str:
        limit = self.settings.limit(window)
        return "" if limit is None else limit[0]

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary, then the newest answers and what follows them: none of them in old versions, more after a refusal.
        At a threshold nothing where no other answer is before those."""
        messages = history.messages
        refused = history.point is Point.ON_OVERFLOW
        rounds = self.settings.kept_rounds_refused if refused else self.settings.kept_rounds
        if not refused and 0 < np.count_nonzero(messages.is_model) <= rounds:
            return NOTHING_TO_COMPACT
        cut = last_marked(messages.is_model, rounds)
        asks = (Ask(messages.between(0, cut), self.settings.summary_budget),)
        summary = SummaryMessage(asks, frame=FRAMES[self.settings.profile])
        at = messages.event_at(cut, history.stop)
        remembers = {"cleared": max(history.state.cleared, at)}
        return Plan((summary, *messages.between(cut, len(messages))), cut=(at,) * 3, remembers=remembers)

    # ---- old results that are cleared before a call

    def clears(self, ledger: Ledger, rows: Ints, stop: Ints, state: ClaudeCodeMemory, window: int) -> Bools:
        if not self.settings.microcompact:
            return super().clears(ledger, rows, stop, state, window)
        tokens = _cleared_prefix(ledger)
        end = self._cleared_end(ledger, stop)
        return np.asarray(tokens[end] - tokens[np.minimum(state.cleared, end)] >= MICRO_LEAST)

    def _cleared_end(self, ledger: Ledger, stop: Ints) -> Ints:
        """The events before which results are cleared: until so many tokens of results are left, never the newest
        three."""
        tokens = _cleared_prefix(ledger)
        count = ledger.prefix_by("claude results cleared", lambda item: (np.diff(_cleared_prefix(item)) > 0) * 1)
        enough = np.searchsorted(tokens, tokens[stop] - MICRO_LEFT, side="left")
        newest = np.searchsorted(count, count[stop] - MICRO_KEPT, side="right") - 1
        return np.asarray(np.maximum(np.minimum(enough, newest), 0))

    def clear(self, history: CompactableHistory) -> Plan:
        stop = int(self._cleared_end(history.ledger, np.array([history.stop]))[0])
        view = events_in_form(history.ledger, history.view, history.state.cleared, stop, MICRO_FORM)
        return Plan(view, remembers={"cleared": stop})


def _cleared_prefix(ledger: Ledger) -> Ints:
    """Prefix sums of the tokens of the results that may be cleared."""

    def column(ledger: Ledger) -> Ints:
        tools = np.isin(tools_of(ledger.parts), [tool_key(name) for name in MICRO_TOOLS])
        return ledger.by_event(np.where((ledger.parts["kind"] == RESULT) & tools, ledger.parts["utf16"] // 4, 0))

    return ledger.prefix_by("claude results that may be cleared", column)


KIND = PolicyKind(
    "claude-code",
    "Claude Code",
    (
        "Compacts at the window minus the reserve for the answer minus 13,000; from 2.1.153 on only if a "
        "window is set, otherwise after the provider refuses a request. Keeps a summary and at most the "
        "newest answers with what follows them."
    ),
    lambda **values: ClaudeCode(ClaudeCodeSettings(**values)),
    (
        Setting(
            "auto_compact_window",
            "Auto-compact window",
            COUNT,
            0,
            (
                "CLAUDE_CODE_AUTO_COMPACT_WINDOW (from 2.1.81 on) or autoCompactWindow; values below 100,000 "
                "count as 100,000; 0: not set, so that from 2.1.153 on only a refusal triggers a compaction"
            ),
            _SOURCE,
            unit="tokens",
            not_in=(WHOLE,),
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
            "Answers kept",
            COUNT,
            1,
            (
                "how many of the newest answers stay, with everything after them, when the threshold triggered the "
                "compaction; it is not made where no other answer is before them"
            ),
            f"{_SOURCE}; not measured for 2.1.21 to 2.1.152",
            profiles={WHOLE: 0, CAPPED: 0},
        ),
        Setting(
            "kept_rounds_refused",
            "Answers kept after a refusal",
            COUNT,
            4,
            "the same when the provider refused a request",
            _SOURCE,
            not_in=(WHOLE, CAPPED),
        ),
        Setting(
            "microcompact",
            "Microcompact",
            SWITCH,
            False,
            "clears old results except the newest 3 until 40,000 tokens of results remain, if that saves 20,000",
            "secondary, specification of policies section 7; in no measured version",
        ),
        summary_limit(20_000, "max_tokens of its request, measured in 2.1.14"),
    ),
    (
        Profile(
            REFUSAL, "from 2.1.153 (May 2026): a threshold only if a window is set, otherwise the provider's refusal"
        ),
        Profile(CAPPED, "2.1.21 to 2.1.152: reserves at most 20,000 tokens for the answer"),
        Profile(WHOLE, "2.1.14 to 2.1.19: reserves the model's whole maximum output"),
    ),
    known_problems=(
        KnownProblem(
            "The percentage has no effect by itself",
            "From 2.1.153 on the percentage matters only if a window is set.",
            "measured; anthropics/claude-code issues 31806, 56666, 64773",
        ),
        KnownProblem(
            "An autoCompactWindow below 100,000",
            (
                "Here it counts as 100,000, as CLAUDE_CODE_AUTO_COMPACT_WINDOW does (2.1.100, 2.1.152, 2.1.200, "
                "2.1.330). In the settings of Claude Code (autoCompactWindow) such a value has no effect (2.1.332)."
            ),
            "measured",
        ),
        KnownProblem(
            "Instructions disappear",
            "The whole conversation becomes one summary; rules that the summary omits are gone.",
            "anthropics/claude-code issues 3841, 4017, 19471, 19736",
        ),
        KnownProblem(
            "The summary request is refused, too",
            "It contains the same conversation and may not fit the window either.",
            "anthropics/claude-code issue 28728",
        ),
    ),
)
