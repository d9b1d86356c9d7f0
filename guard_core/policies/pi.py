"""pi: above the window less a reserve it keeps the newest messages within a budget, and may split a turn in two.

Source of the rules: specification of policies, section 2; packages/coding-agent/src/core/compaction/compaction.ts of
earendil-works/pi at 2e5a972a; recorded runs of 0.73.1, 0.74.2 and 1.6.0. `current` looks when a turn has ended, never
within one; `0.85` (0.85.1 to 1.6.0) before every call, with an estimate of what was added since the last answer; `seed`
(10a1e1ef, December 2025) after every answer. The three proposals made for `seed` are settings: `output_cap`, `pending`
and `recover`.

Not here: tools' own caps of 2,000 lines, the lists of files that are appended to a summary, the estimate of an answer
that ended in an error, and that of a context of which 0.85 knows no count.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.costs import MEDIA, RESULT
from guard_core.forms import CutToEnds
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter, outputs_of
from guard_core.policies.pieces.cuts import crossing, last_legal, next_legal
from guard_core.policies.pieces.estimates import TokenEstimate, part_chars, rounded_up
from guard_core.policies.pieces.message_columns import Bools, in_form
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage, fitting
from guard_core.policies.pieces.shared_settings import keep_recent, reserve_tokens
from guard_core.policies.settings import CHOICE, COUNT, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT, Head

RESERVE = 16_384  # reserveTokens (section 2.1)
SUMMARY_SHARE, PREFIX_SHARE = 0.8, 0.5  # of the reserve: budgets of the two summaries (section 2.3)
IMAGE_CHARS = 4_800  # of a picture (section 2.3)
FRAME_BYTES = 107  # of the fixed text around a summary: recorded run of 0.74.2
SPLIT_BYTES = 39  # of the heading between the two summaries: the same run
SHOWN_CHARS = 2_000  # of a tool result to the summariser (section 2.3)
CAP_NOTICE = "[output cut at its maximum]"  # ours; the proposal gives no wording
NO_HISTORY_BYTES = len("No prior history.")  # section 2.3
SHOWN = CutToEnds(head=SHOWN_CHARS, over=SHOWN_CHARS, marker="[cut]").name  # pi says how much was cut
SEED, CURRENT, WITHIN_TURNS = "seed", "current", "0.85"
NONE, LARGEST, SUM = "none", "largest", "sum"
_SPEC = "specification of policies, section"


class PiSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens unless the name says otherwise."""

    profile: str
    reserve_tokens: int
    keep_recent_tokens: int
    output_cap: int
    pending: str
    recover: bool


class PiMemory(CountedMemory, frozen=True):
    """What it remembers; `since` is the first step after the last compaction."""

    since: int = 0


class Pi(CountedPolicy):
    """The policy; see the module."""

    settings: PiSettings
    name = "pi"
    agent = "pi"
    state_type = PiMemory

    @property
    def is_seed(self) -> bool:
        return self.settings.profile == SEED

    @property
    def is_within_turns(self) -> bool:
        return self.settings.profile == WITHIN_TURNS

    @property
    def relation(self) -> str:
        return ">"

    @property
    def looks(self) -> tuple[Point, ...]:
        if self.is_within_turns:
            return (Point.BEFORE_TURN, Point.AFTER_RESULTS)
        first = Point.AFTER_CALL if self.is_seed else Point.END_OF_TURN
        return (first,) if self.settings.pending == NONE else (first, Point.AFTER_RESULTS)

    @property
    def counter(self) -> UsageCounter:
        if self.is_within_turns:
            return UsageCounter(pending=message_tokens, pending_words="ceil(characters / 4) of each message since")
        if self.settings.pending == NONE:
            return UsageCounter()
        largest = self.settings.pending == LARGEST
        words = f"{'largest' if largest else 'sum'} of ceil(characters / 4) of the tool results"
        return UsageCounter(pending=_result_tokens, largest=largest, pending_words=words)

    @property
    def form(self) -> str:
        cap = self.settings.output_cap
        return CutToEnds(head=cap, over=cap, marker=CAP_NOTICE).name if cap else ""

    @property
    def most_refusals(self) -> int:
        return int(self.settings.recover)

    def threshold(self, window: int) -> int:
        return window - self.settings.reserve_tokens

    def rule(self, window: int) -> str:
        return f"{window:,} - {self.settings.reserve_tokens:,}"

    def plan(self, history: CompactableHistory) -> Plan | int:
        return self._kept_from_user(history) if self.is_seed else self._split(history)

    def cut(self, history: CompactableHistory, legal: Bools, first: int) -> int:
        """The first of the newest messages that stay: at or behind the one at which their sum reaches the budget.
        `first`: the first message that is no summary; `legal`: where a cut is allowed."""
        size = len(legal)
        reached = crossing(ESTIMATE.tokens(history.messages), self.settings.keep_recent_tokens - 1, start=first)
        cut = next_legal(legal, max(reached, first))
        if self.is_within_turns and reached >= first and cut == size:
            cut = last_legal(legal, size - 1)  # the call whose results alone reach the budget
        return next_legal(legal, first) if reached < first or cut == size else cut  # or everything is kept

    def _split(self, history: CompactableHistory) -> Plan | int:
        """The newest messages from the cut on. Where that lies within a turn, the turn's beginning is summarised
        apart."""
        messages = history.messages
        first = int(messages.is_written.sum())  # an earlier summary is not sent as a message, but as what is continued
        legal = ~messages.has_results
        cut = self.cut(history, legal, first)
        if not first < cut < len(messages):
            return NOTHING_TO_COMPACT
        begins_turn = legal & ~messages.is_model
        turn = last_legal(begins_turn[first:], cut - first) + first
        turn = turn if begins_turn[turn] and turn < cut else cut
        past, prefix = (
            in_form(history.ledger, messages.between(*part), SHOWN) for part in ((first, turn), (turn, cut))
        )
        asks = [Ask(past, int(SUMMARY_SHARE * self.settings.reserve_tokens))] if past else []
        asks += [Ask(prefix, int(PREFIX_SHARE * self.settings.reserve_tokens))] if prefix else []
        earlier = history.state.summary_bytes if first and self.is_within_turns else FRAME_BYTES + NO_HISTORY_BYTES
        frame = (FRAME_BYTES if past else earlier) + (SPLIT_BYTES if prefix else 0)
        goes = first and not past and not self.is_within_turns
        notes = ("the earlier summary goes: the turn that is split is all there is before the cut",) if goes else ()
        items = (SummaryMessage(tuple(asks), frame=frame), *messages.between(cut, len(messages)))
        event = int(messages.event[cut])
        return Plan(items, (event, event, event), notes, 0, {"since": history.check.step})

    def _kept_from_user(self, history: CompactableHistory) -> Plan | int:
        """What follows the last message of the user at or before the oldest answer whose count is within the budget of
        the newest one's."""
        messages = history.messages
        boundary = self._oldest_within(history)
        users = np.flatnonzero(messages.is_user & (messages.event <= boundary))
        if boundary < 0 or not len(users) or not users[-1]:
            return NOTHING_TO_COMPACT
        cut = int(users[-1])
        given, dropped = messages.between(0, cut), 0
        if self.settings.recover:
            given, dropped = fitting(history, given)
        ask = Ask(given, int(SUMMARY_SHARE * self.settings.reserve_tokens))
        items = (SummaryMessage((ask,), frame=FRAME_BYTES), *messages.between(cut, len(messages)))
        event = int(messages.event[cut])
        return Plan(items, (event, event, event), (), dropped, {"since": history.check.step})

    def _oldest_within(self, history: CompactableHistory) -> int:
        """The event of the answer behind the newest one that counts at least the budget less than the last; -1: none.

        Counts since a compaction only grow, so that half of the calls can be left out at each look."""
        check, state = history.check, history.state
        if check.usage is None or state.as_of < 0:
            return -1
        steps, outputs = check.ledger.steps, outputs_of(check.ledger)
        head, costs = Head(state.head, state.kept_from, self.form), self.estimator(check.ledger)
        newest = state.tokens + int(outputs[state.as_of])

        def is_far(step: int) -> bool:
            assert check.usage is not None
            view = head.at(check.ledger, int(steps["at"][step]))
            used = check.usage.one(step, view, costs.request(view)).tokens + int(outputs[step])
            return bool(newest - used >= self.settings.keep_recent_tokens)

        low, high = state.since - 1, state.as_of  # the newest that is far lies from `low` on and before `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_far(middle) else (low, middle)
        return int(steps["response"][high]) if low >= state.since else -1


def _result_tokens(ledger: Ledger, form: str) -> Ints:
    """ceil(characters / 4) of the results of each event."""
    results = np.where(ledger.parts["kind"] == RESULT, part_chars(ledger, form, "utf16"), 0)
    return rounded_up(ledger.by_event(results))


def message_tokens(ledger: Ledger, form: str = "") -> Ints:
    """ceil(characters / 4) of each event's message, as pi counts them."""
    # UTF-16 units as pi counts them: texts, thinking, names and arguments of calls.
    kind = ledger.parts["kind"]
    chars = part_chars(ledger, form, "utf16") + np.where(kind == RESULT, 0, ledger.parts["name_chars"])
    return rounded_up(ledger.by_event(np.where(kind == MEDIA, IMAGE_CHARS, chars)))


ESTIMATE = TokenEstimate("pi", "ceil(characters / 4)", message_tokens, lambda size: -(-size // 4))

KIND = PolicyKind(
    "pi",
    "pi",
    "Compacts above the window minus a reserve at the end of a turn; keeps the newest messages within a budget.",
    lambda **values: Pi(PiSettings(**values)),
    (
        reserve_tokens(RESERVE, "tokens of the window kept free", f"{_SPEC} 2.1", (8_192, 16_384, 32_768, 65_536)),
        keep_recent(f"{_SPEC} 2.1"),
        Setting(
            "pending",
            "Estimate results",
            CHOICE,
            NONE,
            (
                "also checks between steps, with an estimate of the largest tool result since the last count, "
                "or of all of them"
            ),
            f"{_SPEC} 2.2, phase 2 (its text compares each result by itself: largest)",
            choices=(NONE, LARGEST, SUM),
            not_in=(WITHIN_TURNS,),
        ),
        Setting(
            "recover",
            "Recover",
            SWITCH,
            True,
            "compacts once per turn after the provider refused a request as too large",
            f"{_SPEC} 2.3; for the seed 2.2, phase 3",
            profiles={SEED: False},
        ),
        Setting(
            "output_cap",
            "Output cap",
            COUNT,
            0,
            "maximum size of each tool output when it is recorded (0: no limit; the first proposal is 30,000)",
            f"{_SPEC} 2.2, phase 1",
            unit="characters",
        ),
    ),
    (
        Profile(CURRENT, "mid-2026: checks at the end of a turn, may split a turn"),
        Profile(WITHIN_TURNS, "0.85.1 to 1.6.0: checks before every call, with an estimate of what was added"),
        Profile(SEED, "December 2025: checks after every answer, cuts only at user messages"),
    ),
    known_problems=(
        KnownProblem(
            "No check within a turn",
            "A turn of many calls may exceed the window before pi checks again; from 0.85 on it checks within turns.",
            "pi issues 128, 2871, 3660, 6879, 8833",
        ),
        KnownProblem(
            "Compacts in vain",
            (
                "If the newest tool results alone reach the budget, nothing after them is a possible cut, and "
                "nothing happens; from 0.85 on it cuts before their call."
            ),
            "earendil-works/pi issue 9740",
        ),
        KnownProblem(
            "The earlier summary is lost",
            (
                "If nothing but the split turn has happened since the last compaction, its summary replaces "
                "the earlier one; 1.6.0 keeps both."
            ),
            "by reading compaction.ts at 2e5a972a",
        ),
    ),
)
