"""Kimi Code: 85 % of the window, or 50,000 tokens below it; keeps the person's messages and a summary.

Source of the rules: version 2.1.0, run against a scripted provider, and the specification of new policies, section 2.
Of a result it estimates the output alone, without the note that its tools put around it; what is pending before a call
is in its recordings. After a refused request it takes 85 % of its estimate of that request for the window, where that
is smaller, until its process ends (2.1.0, observeContextOverflow). Not modelled: a compaction that is given up because
messages other than the person's came meanwhile, a refused request for a summary, from which it learns likewise, and
clearing of old results, which is off.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_RESULT, MEDIA, MODEL, REASONING, RESULT, STARTS_TURN, TEXT, USER
from guard_core.forms import CutToEnds
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.base import Point
from guard_core.policies.kimi_cli import limit_words, lower_limit
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.explaining import explain
from guard_core.policies.pieces.message_columns import between
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.requests import requests_before
from guard_core.policies.pieces.shared_settings import summary_budget, trigger_reserve, trigger_share
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, Setting
from guard_core.trace import Term, Trace
from guard_core.views import Span, Synthetic, View, content_count

# triggerRatio and reservedContextSize of compaction/strategy.ts, the latter in tokens
SHARE_OF_WINDOW, RESERVED = 0.85, 50_000
HEAD, TAIL = 2_000, 18_000  # tokens of the person's messages that stay where all of them are more than 20,000
ELISION = 345  # characters of the note between the two, beside the number in it; 2.1.0
FRAME = 2_953  # characters around a summary; runs of 2.1.0
REFUSALS = 3  # attempts of a turn after refusals
CHARS_PER_TOKEN = 4  # of ASCII; any other character is a token
LEARNED_SHARE = 0.85  # of a refused request: OVERFLOW_CONTEXT_SAFETY_RATIO, fullCompaction of 2.1.0
MEDIA_TOKENS = 2_000  # of a picture: MEDIA_TOKEN_ESTIMATE of 2.1.0
_SOURCE = "measured, specification of new policies section 2"


def text_tokens(ledger: Ledger, form: str = "") -> Ints:
    """The estimate of each event's texts and tool results, and a token for the role of each message; of reminders that
    come after the check nothing."""
    parts = ledger.parts
    kind, others = parts["kind"], parts["non_ascii"]
    tokens = -(-(parts["chars"] - others) // CHARS_PER_TOKEN) + others + 1
    counted = ledger.by_event(np.where((kind == RESULT) | (kind == TEXT), tokens, 0))
    estimated = np.where(late_reminders(ledger), 0, counted)
    return _without_notes(ledger, estimated) if ledger.agent == KimiCode.agent else estimated


def _without_notes(ledger: Ledger, tokens: Ints) -> Ints:
    """The estimates of events without the notes around results: what a recording of Kimi Code has pending at a check
    less than is estimated of the events since the last answer is taken from the last result among them."""
    steps, prefix, own = ledger.steps, prefix_sums(tokens), tokens.copy()
    is_result = (ledger.events["flags"] & HAS_RESULT) > 0
    results = np.maximum.accumulate(np.where(is_result, np.arange(len(tokens)), -1))
    same_epoch = np.flatnonzero(np.diff(steps["epoch"]) == 0) + 1
    checks = [(step, steps["at"].item(step), steps["pending_tokens"].item(step)) for step in same_epoch.tolist()]
    firsts = np.searchsorted(steps["at"], [base.at for base in ledger.bases]).tolist()
    checks += [(step, base.at, base.pending_tokens) for step, base in zip(firsts, ledger.bases, strict=True) if step]
    for step, stop, pending in checks:
        begin = max(steps["response"].item(step - 1) + 1, steps["at"].item(step - 1))
        last = results.item(stop - 1) if stop > begin else -1
        if pending >= 0 and last >= begin and steps["prompt_tokens"].item(step - 1) > 0:
            own[last] = max(own.item(last) + pending - prefix.item(stop) + prefix.item(begin), 0)
    return own


def late_reminders(ledger: Ledger) -> NDArray[np.bool_]:
    """Which events are reminders that the agent adds to the request of a step after it has looked at the size of the
    context: those behind results or an answer. Those behind the person's message are in the context by then, but for
    those that a recording has behind a compaction."""
    if "late reminders" not in ledger.derived:  # once for a ledger: each compaction asks for them
        flags, own = ledger.events["flags"], np.arange(ledger.event_count)
        is_reminder = (flags & (USER | HAS_RESULT | STARTS_TURN)) == USER
        before = np.maximum.accumulate(np.where(is_reminder, -1, own))
        compacted = np.array([0, *(base.at for base in ledger.bases)])
        follows = before < compacted[np.searchsorted(compacted, own, side="right") - 1]
        is_late = is_reminder & (before >= 0) & (follows | ((flags[before] & STARTS_TURN) == 0))
        ledger.derived["late reminders"] = is_late
    known: NDArray[np.bool_] = ledger.derived["late reminders"]
    return known


def sent_tokens(ledger: Ledger, form: str = "") -> Ints:
    """The estimate of each event as part of a request: text_tokens, and reasoning, calls with their arguments as a JSON
    string, and pictures; the role of an answer is 3 tokens."""
    parts = ledger.parts
    kind, others = parts["kind"], parts["non_ascii"]
    tokens = -(-(parts["chars"] - others) // CHARS_PER_TOKEN) + others
    arguments = parts["json_chars"] + parts["separators"] - others
    called = -(-parts["name_chars"] // CHARS_PER_TOKEN) - (-arguments // CHARS_PER_TOKEN) + others
    sizes = np.select(
        [kind == RESULT, (kind == TEXT) | (kind == REASONING), kind == CALL, kind == MEDIA],
        [tokens + 1, tokens, called, MEDIA_TOKENS],
        0,
    )
    speaks = ledger.by_event(np.isin(kind, (TEXT, REASONING, CALL, MEDIA)).astype(np.int64)) > 0
    role = np.where(ledger.events["flags"] & MODEL, 3, 1)
    return np.asarray(ledger.by_event(sizes) + np.where(speaks, role, 0))


def sent_prefix(ledger: Ledger) -> Ints:
    """Prefix sums of the same over the log."""
    return ledger.prefix_by("kimi-code sent", sent_tokens)


def fixed_tokens(ledger: Ledger) -> int | None:
    """Its estimate of system prompt and tools; None where the recording lacks one of them."""
    if not (ledger.system_recorded and ledger.tools_recorded):
        return None
    return -(-ledger.system_chars // CHARS_PER_TOKEN) + ledger.tools_tokens


def assumed_fixed_tokens(ledger: Ledger) -> int:
    """The same; where the recording lacks one of them, what the first count has more than is estimated of the messages
    of its request."""
    known = fixed_tokens(ledger)
    counted = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    if known is not None or not len(counted):
        return known or 0
    prompt, at = (ledger.steps[name].item(counted[0]) for name in ("prompt_tokens", "at"))
    return max(prompt - sent_prefix(ledger).item(at), 0)


def learned_window(refused: int) -> int:
    """The window in tokens that it learns from a refused request of so many estimated tokens."""
    return max(int(LEARNED_SHARE * refused), 1)


class KimiCodeMemory(CountedMemory, frozen=True):
    """`learned` is the smallest window that refused requests have taught, 0: none."""

    learned: int = 0


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
    state_type = KimiCodeMemory

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(
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

    def window_used(self, state: Any, window: int) -> int:
        return min(state.learned, window) if state.learned else window

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        threshold, rule = int(trace.columns["threshold"][step]), self.rule(trace.window)
        if threshold != self.threshold(trace.window):
            rule = f"of a window of {LEARNED_SHARE * 100:g} % of a refused request, by its estimate"
        return explain(trace, step, self.counter, self.uncounted, self.relation, rule)

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.BEFORE_CALL,)

    def plan(self, history: CompactableHistory) -> Plan:
        """The person's messages, the first and the last of them where they are too many, a summary of all, and the
        reminders that are only added then."""
        ledger, head, tail = history.ledger, self.settings.head, self.settings.tail
        stop = history.stop
        is_late = late_reminders(ledger)
        while stop and is_late.item(stop - 1):
            stop -= 1
        late = history.stop - stop
        given = between(history.view, 0, content_count(history.view) - late) if late else history.view
        asks = (Ask(given, self.settings.summary_budget),)
        items = (*_requests(ledger, stop, head, tail), SummaryMessage(asks, frame=FRAME), Span(stop, history.stop))
        learned = self._learned(history) if history.point is Point.ON_OVERFLOW else history.state.learned
        return Plan(items, cut=(stop,) * 3, remembers={"learned": learned})

    def _learned(self, history: CompactableHistory) -> int:
        """The window that the refused request teaches, where that is smaller than the one it goes by."""
        ledger, prefix = history.ledger, sent_prefix(history.ledger)
        refused = assumed_fixed_tokens(ledger)
        for segment in history.view:
            if isinstance(segment, Span):
                refused += prefix.item(segment.stop) - prefix.item(segment.start)
            elif isinstance(segment, Synthetic):
                refused += -(-segment.bytes // CHARS_PER_TOKEN) + 1
        current = self.window_used(history.state, history.check.window)
        return learned_window(refused) if learned_window(refused) < current else history.state.learned


def _requests(ledger: Ledger, stop: int, head: int, tail: int) -> View:
    """The person's messages before an event; where they have more tokens than both budgets, the oldest and the newest
    within one budget each, with a note between them. Of the newest that does not fit the end stays, of the oldest the
    beginning, which may be of the same message (2.1.0, selectCompactionUserMessages)."""
    events, sizes = requests_before(ledger, stop), ledger.prefix_by("kimi-code requests", _request_tokens)
    total = sizes.item(stop)
    if total <= head + tail:
        return tuple(Span(event, event + 1) for event in events)
    newest, left, cut = list[Span](), tail, 0
    while left > 0:
        event = events.pop()
        tokens = sizes.item(event + 1) - sizes.item(event)
        if tokens > left:
            cut = _chars_of(ledger, event, left)
            newest.append(Span(event, event + 1, CutToEnds(what="text", tail=cut).name))
            events.append(event)  # its beginning
            break
        newest.append(Span(event, event + 1))
        left -= tokens
    oldest, left = list[Span](), head
    for event in events:
        tokens = sizes.item(event + 1) - sizes.item(event)
        lost = _text_chars(ledger, event) - cut if cut and event == events[-1] else 0
        if tokens > left or lost:
            most = _chars_of(ledger, event, left)
            chars = min(most, lost) if lost else most
            oldest += [Span(event, event + 1, CutToEnds(what="text", head=chars).name)] if chars else []
            break
        oldest.append(Span(event, event + 1))
        left -= tokens
    note = Synthetic("elision", ELISION + len(str(total - head - tail)))
    return (*oldest, note, *reversed(newest))


def _request_tokens(ledger: Ledger) -> Ints:
    """The estimate of each of the person's messages, 0 of all others."""
    return np.where((ledger.events["flags"] & STARTS_TURN) > 0, text_tokens(ledger), 0)


def _text_chars(ledger: Ledger, event: int, column: str = "chars") -> int:
    rows = slice(*ledger.part_starts[event : event + 2].tolist())
    return int(ledger.parts[column][rows][ledger.parts["kind"][rows] == TEXT].sum())


def _chars_of(ledger: Ledger, event: int, tokens: int) -> int:
    """How many characters of an event's text have so many tokens, where those outside ASCII lie evenly in it."""
    chars, others = (_text_chars(ledger, event, name) for name in ("chars", "non_ascii"))
    quarters = chars - others + others * CHARS_PER_TOKEN  # of a token, in all of them
    return max(tokens, 0) * CHARS_PER_TOKEN * chars // max(quarters, 1)


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
