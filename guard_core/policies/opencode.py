"""OpenCode: at the window less the model's output it summarises, keeps a tail of turns, and may clear old results.

Source of the rules: specification of policies, section 3; session/compaction.ts of sst/opencode at 31e22f65; a recorded
run of 1.18.33. `1.18` keeps a tail and looks after each step; `before-1.0` (November 2025) looks before each call,
keeps nothing, and clears old tool results at the end of a turn; `v2` estimates what was added since the last count and
puts the tail into the summary's message as text. After a compaction a question stands before the summary and a request
to continue behind it.

Not here: caps of tools, the request for a summary that extends the live one, pictures replaced by placeholders.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.costs import CALL, MEDIA, RESULT, tool_key
from guard_core.events import Role
from guard_core.forms import CutToEnds, Replaced
from guard_core.forms.edits import tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.cuts import crossing, last_legal, next_legal
from guard_core.policies.pieces.estimates import TokenEstimate, part_chars
from guard_core.policies.pieces.looks import PolicyLooks
from guard_core.policies.pieces.message_columns import Bools, MessageColumns, events_in_form, in_form, list_messages
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, SIZE, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Segment, Synthetic, View

MOST_OUTPUT = 32_000  # tokens; the most that is taken off for the model's output (section 3.1)
MOST_RESERVED = 20_000  # tokens (section 3.2)
LEAST_TAIL, MOST_TAIL, TAIL_SHARE = 2_000, 15_000, 0.25  # tokens, tokens, of what is usable (section 3.2)
PRUNE_TURNS = 2  # newest turns whose results are never cleared (section 3.1)
SHOWN_CHARS = 2_000  # of a tool result to the summariser, and in a tail as text (sections 3.2 and 3.3)
QUESTION = Synthetic("question before the summary", 22)  # bytes: recorded run of 1.18.33, like the next
CONTINUE = Synthetic("request to continue", 100)
LOST_STEPS = "the steps since the user's last message are neither summarised nor sent"
AS_TEXT = "the newest messages are sent as text, within the message of the summary"
CHARS_PER_TOKEN = 4  # section 3.2
MESSAGE_CHARS, PART_CHARS = len('{"role":"user","content":[]},'), len('{"type":"text","text":""},') - len('""')
CALL_CHARS = len('{"type":"tool-call","toolCallId":"","toolName":"","input":},')
RESULT_CHARS = len('{"type":"tool-result","toolCallId":"","toolName":"","output":{"type":"text","value":}},')
SHOWN = CutToEnds(head=SHOWN_CHARS, over=SHOWN_CHARS, marker="\n[cut]").name
NEW, OLD, RESERVING, V2 = "1.18", "before-1.0", "reserving", "v2"
NOT_CLEARED = "skill"  # the tool whose results are never cleared (section 3.2)
CLEARED = Replaced(text="[old tool output was cleared out]", excluded=(NOT_CLEARED,)).name  # our words
_SPEC = "specification of policies, section"


class OpenCodeSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens unless the name says otherwise. `reserved` and `keep` are "auto" or tokens."""

    profile: str
    max_output: int
    input_limit: int
    reserved: str
    keep: str
    tail_turns: int
    prune: bool
    prune_protect: int
    prune_minimum: int
    stall_share: float
    summary_budget: int

    @property
    def output(self) -> int:
        """What is taken off for the model's output."""
        return min(self.max_output, MOST_OUTPUT) or MOST_OUTPUT

    def reserve(self, window: int) -> int:
        """Tokens that are reserved beside."""
        return min(MOST_RESERVED, self.output) if self.reserved == "auto" else tokens_of(self.reserved, window)

    def usable(self, window: int) -> int:
        """Tokens at which it fires."""
        return usable(window, self.output, self.input_limit, self.reserve(window), self.profile)

    def tail_budget(self, window: int) -> int:
        """Tokens of the newest messages that stay."""
        if self.keep != "auto":
            return tokens_of(self.keep, window)
        if self.profile == V2:
            return MOST_TAIL
        return min(MOST_TAIL, max(LEAST_TAIL, int(TAIL_SHARE * self.usable(window))))


def usable(window: int, output: int, input_limit: int, reserve: int, profile: str = NEW) -> int:
    """Tokens of a window that a conversation may fill: a model's input limit (0: none) less the reserve, else the
    window less the output, and less the reserve in one revision of the source."""
    if profile == V2:
        rest = window - max(output, reserve)
        return min(input_limit - reserve, rest) if input_limit else rest
    if input_limit and profile != OLD:
        return input_limit - reserve
    return window - output - (reserve if profile == RESERVING else 0)


def tokens_of(size: str, window: int) -> int:
    """A size as set: tokens, or a share of the window such as 5%."""
    return int(window * float(size[:-1]) / 100) if size.endswith("%") else int(size)


class OpenCodeMemory(CountedMemory, frozen=True):
    """What it remembers; results of events before `cleared` are not looked at again."""

    cleared: int = 0


class OpenCode(CountedPolicy):
    """The policy; see the module."""

    settings: OpenCodeSettings
    name = "opencode"
    agent = "opencode"
    state_type = OpenCodeMemory

    @property
    def is_old(self) -> bool:
        return self.settings.profile == OLD

    @property
    def is_v2(self) -> bool:
        return self.settings.profile == V2

    @property
    def relation(self) -> str:
        return ">" if self.is_old else ">="

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.BEFORE_CALL,) if self.is_old or self.is_v2 else (Point.AFTER_RESULTS, Point.END_OF_TURN)

    @property
    def counter(self) -> UsageCounter:
        if self.is_v2:
            return UsageCounter(pending=_message_tokens, pending_words="characters / 4 of the messages since, as JSON")
        return UsageCounter(leaves_out="cache_write_tokens") if self.is_old else UsageCounter()

    @property
    def most_refusals(self) -> int:
        return 0 if self.is_old else 3  # ours: it tries without end, a replay as often as this

    @property
    def stall_share(self) -> float:
        return self.settings.stall_share or super().stall_share

    def threshold(self, window: int) -> int | None:
        return self.settings.usable(window) if window else None

    def rule(self, window: int) -> str:
        item, reserve = self.settings, self.settings.reserve(window)
        if item.profile == V2:
            rest = f"{window:,} - max({item.output:,}, {reserve:,})"
            return f"min({item.input_limit:,} - {reserve:,}, {rest})" if item.input_limit else rest
        if item.input_limit and not self.is_old:
            return f"{item.input_limit:,} (input limit) - {reserve:,}"
        rest = f"{window:,} - {item.output:,} (output)"
        return f"{rest} - {reserve:,} (reserved)" if item.profile == RESERVING else rest

    # ---- what a compaction leaves

    def plan(self, history: CompactableHistory) -> Plan | int:
        messages, window = history.messages, history.check.window
        # The last summary and the question before it are not summarised: it is continued, but for the oldest version.
        summaries = 0 if self.is_old else 1 if self.is_v2 else 2
        first = summaries if messages.is_written[:summaries].all() and len(messages) > summaries else 0
        stop, again = self._replayed(messages, first) if history.point is Point.ON_OVERFLOW else (len(messages), ())
        tail = self._tail(messages, first, stop, window)
        if tail <= first:
            return NOTHING_TO_COMPACT
        given, recent = messages.between(first, tail), messages.between(tail, stop)
        given = given if self.is_old else in_form(history.ledger, given, SHOWN)
        summary = SummaryMessage((Ask(given, self.settings.summary_budget),), Role.MODEL)
        items: tuple[Segment | SummaryMessage, ...]
        if self.is_v2:
            text = MESSAGES.view(history.ledger, in_form(history.ledger, recent, SHOWN)) * CHARS_PER_TOKEN
            items = (summary._replace(role=Role.USER, frame=text), *again)
        else:
            items = (QUESTION, summary, *recent, *(again or (CONTINUE,)))
        event = history.stop if tail == stop else int(messages.event[tail])
        lost = again and int(messages.event[stop]) + 1 < history.stop
        notes = (LOST_STEPS,) if lost else (AS_TEXT,) if self.is_v2 and recent else ()
        return Plan(items, (event, event, event), notes, remembers={"cleared": history.stop})

    def _replayed(self, messages: MessageColumns, first: int) -> tuple[int, View]:
        """After a refusal: what is before the user's last message is summarised, and that message is sent again. Where
        nothing of the user is before it, everything is summarised."""
        users = np.flatnonzero(messages.is_user[first:] | messages.is_written[first:]) + first
        if len(users) < 2:
            return len(messages), ()
        last = int(users[-1])
        return last, messages.between(last, last + 1)

    def _tail(self, messages: MessageColumns, first: int, stop: int, window: int) -> int:
        """The first message of the tail: whole turns from the newest on while they fit the budget; of the first that
        does not, its end from the first message on with which it fits. `stop` where there is none."""
        if self.is_old:
            return stop
        sums = np.append(0, np.cumsum(MESSAGES.tokens(messages)))
        starts = np.flatnonzero((messages.is_user | messages.is_written)[first:stop]) + first
        if self.is_v2:
            return self._tail_as_text(messages, first, starts, window)
        if self.settings.tail_turns:
            starts = starts[-self.settings.tail_turns :]
        left, tail, end = self.settings.tail_budget(window), stop, stop
        for start in starts[::-1].tolist():
            size = int(sums[end] - sums[start])
            if size > left:
                fits = int(np.searchsorted(sums, sums[end] - left))
                split = next_legal(~messages.has_results[:end], max(start + 1, fits))
                tail = split if left > 0 and split < end else tail
                break
            tail, end, left = start, start, left - size
        return stop if tail == first else tail

    def _tail_as_text(self, messages: MessageColumns, first: int, starts: Ints, window: int) -> int:
        """The first message of a tail that is sent as text: the newest messages within the budget, at least one, back
        to a message of the user (not where that is the first); where all of them fit, the last turn or answer."""
        shown = in_form(messages.ledger, messages.view, SHOWN)
        tokens = MESSAGES.tokens(list_messages(messages.ledger, shown))
        reached = crossing(tokens, self.settings.tail_budget(window), start=first)
        legal, cut = ~messages.has_results, len(messages) - 1
        cut = last_legal(legal, cut) if reached < first else min(reached + 1, cut)
        before = starts[(starts <= cut) & (starts > first)]
        return int(before[-1]) if len(before) else next_legal(legal, cut)

    # ---- what is cleared at the end of a turn

    @property
    def tidies(self) -> bool:
        return self.settings.prune

    def tidied(self, ledger: Ledger, looks: PolicyLooks, state: OpenCodeMemory) -> Bools:
        if not self.settings.prune:
            return super().tidied(ledger, looks, state)
        last = self._last_cleared(ledger, looks.turn_end)
        prefix = _result_prefix(ledger)
        size = prefix[last + 1] - prefix[np.minimum(state.cleared, last + 1)]
        return looks.begins & (size > self.settings.prune_minimum)

    def _last_cleared(self, ledger: Ledger, stop: Ints) -> Ints:
        """The newest event that would be cleared, where the log has so many events: the one with which the results
        before the newest two turns are more than is protected; -1 where there is none."""
        starts = ledger.turn_starts
        turns = np.searchsorted(starts, stop)
        prefix = _result_prefix(ledger)
        begin = np.where(turns >= PRUNE_TURNS, np.append(starts, (0,) * PRUNE_TURNS)[turns - PRUNE_TURNS], 0)
        return np.searchsorted(prefix, prefix[begin] - self.settings.prune_protect) - 1

    def tidy(self, history: CompactableHistory) -> Plan:
        last = int(self._last_cleared(history.ledger, np.array([history.stop]))[0])
        begin = min(history.state.cleared, last + 1)
        items = events_in_form(history.ledger, history.view, begin, last + 1, CLEARED)
        return Plan(items, remembers={"cleared": last + 1})


def _result_prefix(ledger: Ledger) -> Ints:
    """Prefix sums of the results that may be cleared: round(characters / 4) of each."""

    def column(ledger: Ledger) -> Ints:
        parts = ledger.parts
        counts = (parts["kind"] == RESULT) & (tools_of(parts) != tool_key(NOT_CLEARED))
        return ledger.by_event(np.where(counts, (parts["utf16"] + 2) // CHARS_PER_TOKEN, 0))

    return ledger.prefix_by("opencode results", column)


def _message_tokens(ledger: Ledger, form: str) -> Ints:
    """round(characters / 4) of each event's messages as JSON."""
    parts, kind = ledger.parts, ledger.parts["kind"]
    tool = parts["name_chars"] + parts["id_chars"]
    chars = part_chars(ledger, form, "json_chars") + PART_CHARS
    chars = np.where(kind == CALL, parts["chars"] + tool + CALL_CHARS, chars)
    chars = np.where(kind == RESULT, part_chars(ledger, form, "json_chars") + tool + RESULT_CHARS, chars)
    chars = np.where(kind == MEDIA, parts["bytes"] * 4 // 3, chars)  # as base64
    return np.asarray((ledger.by_event(chars) + MESSAGE_CHARS + 2) // CHARS_PER_TOKEN)


MESSAGES = TokenEstimate(
    "opencode",
    "characters / 4 of the messages as JSON",
    _message_tokens,
    lambda size: (size + MESSAGE_CHARS + PART_CHARS + 2) // CHARS_PER_TOKEN,
)

KIND = PolicyKind(
    "opencode",
    "OpenCode",
    "Compacts at the window minus the model's output; keeps a tail of turns, and can clear old tool results.",
    lambda **values: OpenCode(OpenCodeSettings(**values)),
    (
        Setting(
            "max_output",
            "Model's output",
            COUNT,
            MOST_OUTPUT,
            "the model's maximum output; at most 32,000 are subtracted (0: 32,000)",
            f"{_SPEC} 3.1",
            unit="tokens",
            main=True,
            sweep=(8_192, 16_384, 32_000),
        ),
        Setting(
            "input_limit",
            "Input limit",
            COUNT,
            0,
            "the model's input limit (0: none)",
            f"{_SPEC} 3.2",
            unit="tokens",
            not_in=(OLD,),
            main=True,
        ),
        Setting(
            "reserved",
            "Reserved",
            SIZE,
            "auto",
            "subtracted from an input limit: auto (the output, at most 20,000), tokens, or a share of the window",
            f"{_SPEC} 3.2; without an input limit it had no effect in a run of 1.18.33",
            unit="tokens",
            not_in=(OLD,),
        ),
        Setting(
            "keep",
            "Keep recent",
            SIZE,
            "auto",
            (
                "budget of the tail: auto (a quarter of the usable window, 2,000 to 15,000), tokens, or a "
                "share of the window"
            ),
            f"{_SPEC} 3.2 and 3.3",
            unit="tokens",
            not_in=(OLD,),
            main=True,
        ),
        Setting(
            "tail_turns",
            "Turns kept",
            COUNT,
            0,
            "maximum number of turns that stay (0: no limit)",
            f"{_SPEC} 3.2",
            unit="turns",
            not_in=(OLD, V2),
        ),
        Setting(
            "prune",
            "Clear results",
            SWITCH,
            False,
            "clear old tool results at the end of a turn",
            f"{_SPEC} 3.1 and 3.2",
            profiles={OLD: True},
        ),
        Setting(
            "prune_protect",
            "Results kept",
            COUNT,
            40_000,
            "results within this many tokens, counted backwards from the last two turns, are not cleared",
            f"{_SPEC} 3.1",
            unit="tokens",
            needs="prune",
        ),
        Setting(
            "prune_minimum",
            "Least cleared",
            COUNT,
            20_000,
            "results are cleared only if together they have more tokens than this",
            f"{_SPEC} 3.1",
            unit="tokens",
            needs="prune",
        ),
        Setting(
            "stall_share",
            "Stalled at",
            SHARE,
            0.0,
            (
                "a compaction that leaves at least this share of the request is the last of its turn (0: off; "
                "0.95 in one version)"
            ),
            "specification of new policies, section 1",
        ),
        summary_budget("OpenCode"),
    ),
    (
        Profile(
            NEW, "as run in 1.18.33: at an input limit minus the reserve, otherwise at the window minus the output"
        ),
        Profile(RESERVING, "revision 31e22f65: subtracts the reserve also from a window without an input limit"),
        Profile(V2, "core of version 2: estimates what was added, keeps the tail as text"),
        Profile(OLD, "November 2025: compares with >, keeps nothing, clears old results"),
    ),
    known_problems=(
        KnownProblem(
            "The results of the step are not counted",
            "The count of the last call includes neither the results that follow it nor a new message (except in v2).",
            "sst/opencode issue 10634",
        ),
        KnownProblem(
            "Compacts at every step",
            "If the window is hardly larger than the output, or too much is kept, every step compacts.",
            "sst/opencode issue 45368, pull request 48828",
        ),
        KnownProblem(
            "Clearing breaks the cached prefix",
            "A request with cleared results is shorter but may cost more, since its prefix is no longer in the cache.",
            "sst/opencode issue 32515",
        ),
        KnownProblem(
            "Steps are lost after a refusal",
            "The user's last message is sent again after the summary; the steps taken since are in neither.",
            "by reading session/compaction.ts at 31e22f65",
        ),
    ),
)
