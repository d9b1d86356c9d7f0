"""Claude Code: the window less what is reserved for the answer less 13,000, by version.

Source of the rules: versions 2.1.14 to 2.1.332, run against a scripted provider without remote feature flags
(own_rules.md, section 2). From 2.1.153 on there is a threshold only where a window was set; without one it compacts
when the provider refuses a request; models for which later versions have one of their own take it as a window that is
set (`claude_code_limits.own_window`). Old tool results can be cleared before a call (`microcompact`, off: no version
that was run did it, public recordings of 2.1.17 have it, and what is known of it is secondary, specification of
policies section 7). What is attached again after a compaction (files, reminders, skills) is in no recording: a replay
adds what its first prompts after compactions had on average.

After a refusal it keeps so many of the newest answers that a request for the summary of the rest fits. It takes the
size of the refused request and the limit from the provider's words, which a replay does not have: here they are the
modelled count and the window. With a provider that names neither, the last answer alone is kept, which
`kept_rounds_refused` can say. A request for a summary that is refused, too, is not modelled.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.claude_code_limits import (
    CAPPED,
    MAX_OUTPUT,
    REFUSAL,
    SCALED,
    UNLIMITED,
    WHOLE,
    reserve_of,
    threshold_of,
    window_set,
)
from guard_core.costs import CALL, MEDIA, MODEL, OTHER, RESULT, tool_key
from guard_core.estimation.estimators import Heuristic
from guard_core.forms import Replaced
from guard_core.forms.edits import tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter, outputs_as_of, since_answer, sum_of
from guard_core.policies.pieces.cuts import last_marked
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.message_columns import Bools, events_in_form
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_limit
from guard_core.policies.settings import COUNT, NUMBER, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT

# Characters around a summary; runs of 2.1.14 and 2.1.330.
FRAMES = {WHOLE: 533, CAPPED: 533, REFUSAL: 944, SCALED: 944}
PICTURE, FIRST_PICTURE = 2_000, 1_334  # tokens of a picture of any size; runs of 2.1.44 to 2.1.330, of 2.1.14 to 2.1.34
REFUSALS = 3  # compactions of a turn after refusals; ours: no measured run needed a second one
# Tokens by its own estimate, of 6,361 characters that ask for a summary and of 28,409 of system prompt; run headless:
# 2.1.332, 2.1.330 has as many. It leaves its tools out.
SUMMARY_PROMPT, SYSTEM_PROMPT = 1_590, 7_102
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
    event = ledger.parts["event"]
    answers = (ledger.events["flags"][event] & MODEL) > 0
    is_first = np.diff(event, prepend=-1) > 0
    tokens = _rounded_parts(ledger, picture, per_token)
    return ledger.by_event(np.where(answers & (is_first | (not in_answers)), 0, tokens))


def _rounded_parts(ledger: Ledger, picture: int = PICTURE, per_token: int = 4) -> Ints:
    """The same tokens of each part, also of answers."""
    parts = ledger.parts
    units = parts["utf16"] + np.where(parts["kind"] == CALL, parts["name_chars"], 0)
    texts = np.where(parts["kind"] == OTHER, 0, (2 * units + per_token) // (2 * per_token))
    return np.where(parts["kind"] == MEDIA, picture, texts)


MESSAGES = TokenEstimate(
    "claude-code messages",
    "round(characters / 4) of each text, call and result",
    lambda ledger, _: ledger.by_event(_rounded_parts(ledger)),
    lambda size: (2 * size + 4) // 8,
)


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
        if self.profile in UNLIMITED and not self.auto_compact_window:
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
        return REFUSALS if self.settings.profile in UNLIMITED else 0

    def threshold(self, window: int) -> int | None:
        limit = self.settings.limit(window)
        return None if limit is None else limit[1]

    def rule(self, window: int) -> str:
        limit = self.settings.limit(window)
        return "" if limit is None else limit[0]

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary, then the newest answers and what follows them: none in old versions, more after a refusal. At a
        threshold nothing where no other answer is before those, after a refusal nothing before the first answer."""
        messages = history.messages
        is_model = messages.is_model
        rounds, answers = self.settings.kept_rounds, np.count_nonzero(is_model)
        if history.point is Point.ON_OVERFLOW:
            if not answers:
                return NOTHING_TO_COMPACT
            rounds = self.settings.kept_rounds_refused
            cut = last_marked(is_model, rounds) if rounds else self._cut_after_refusal(history)
        else:
            if 0 < answers <= rounds:
                return NOTHING_TO_COMPACT
            cut = last_marked(is_model, rounds)
        asks = (Ask(messages.between(0, cut), self.settings.summary_budget),)
        summary = SummaryMessage(asks, frame=FRAMES[self.settings.profile])
        at = messages.event_at(cut, history.stop)
        remembers = {"cleared": max(history.state.cleared, at)}
        return Plan((summary, *messages.between(cut, len(messages))), cut=(at,) * 3, remembers=remembers)

    def _cut_after_refusal(self, history: CompactableHistory) -> int:
        """The first message that is kept after a refusal: the newest answer before which no more is to be summarised
        than there is room for, with one answer at least; if no cut leaves so little, that in the middle. Behind the
        first answer all is summarised but for what the user wrote since."""
        messages = history.messages
        answers = np.flatnonzero(messages.is_model)
        if len(answers) == 1:
            waiting = np.flatnonzero(messages.is_user[answers[0] :])
            return int(answers[0] + waiting[0]) if len(waiting) else len(messages)
        tokens = MESSAGES.tokens(messages)
        cuts, before = answers[1:], np.cumsum(tokens) - tokens
        fitting = cuts[before[cuts] <= self._room(history, int(tokens.sum()))]
        return int(fitting[-1]) if len(fitting) else int(answers[max((len(answers) - 1) // 2, 1)])

    def _room(self, history: CompactableHistory, total: int) -> float:
        """The most tokens of messages, by its estimate, of which it asks a summary after a refusal. To 2.1.309 the rest
        has at least the tokens by which the request was too large; later the request for the summary is to fit, an
        estimated token counted as so many as made the refused request of the `total`, but not of the system prompt."""
        window, sent = history.check.window, _refused_size(history, self.estimator(history.ledger))
        if self.settings.profile == REFUSAL:
            return total - (sent - window)
        return total * (window - SYSTEM_PROMPT) / max(sent - SYSTEM_PROMPT, 1) - SUMMARY_PROMPT

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


def _refused_size(history: CompactableHistory, costs: Heuristic) -> int:
    """The prompt tokens of a request that was refused, as modelled: more than the window, and for each byte added since
    the last counted answer no more than one."""
    check, ledger, state = history.check, history.ledger, history.state
    assert check.usage is not None
    tokens = check.usage.one(check.step, history.view, costs.request(history.view)).tokens
    if state.as_of >= 0:
        as_of = np.array([state.as_of])
        added = sum_of(ledger.prefix("bytes"), *since_answer(ledger, as_of, np.array([history.stop])))
        tokens = min(tokens, state.tokens + int(outputs_as_of(ledger, as_of)[0] + added[0]))
    return max(tokens, check.window)


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
            0,
            (
                "the same when the provider refused a request; 0: as many as make up for what was too much, from "
                "2.1.310 on also for the words that ask for the summary; 1 for a provider whose refusal has no numbers"
            ),
            "2.1.154 to 2.1.332, run",
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
            SCALED,
            "from 2.1.310: a threshold only if a window is set, otherwise the provider's refusal; the summarised part "
            "then leaves room for the words that ask for a summary",
        ),
        Profile(
            REFUSAL,
            "2.1.153 (May 2026) to 2.1.309: the same without that room",
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
