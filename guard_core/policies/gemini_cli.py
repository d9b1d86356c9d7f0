"""Gemini CLI: half of the limit in prompt tokens; keeps the last 30 % of the conversation, from a text of the user on.

Source of the rules: version 0.61.0, run against a scripted provider, and the specification of policies, section 7. It
looks before it sends, when neither the user's message nor the results of the last calls are in its history. Sizes are
those of the messages as JSON, whose frames are taken as fixed. What opens the chat (`<session_context>`) stays before
the summary; messages of the user's role in a row are one message. Before a call old results are masked, one by one,
also of calls in parallel. What 0.61 does besides is of the source (revision 5411f113), not measured: at a compaction
the larger results are cut to their ends, and one whose history has more tokens than the last prompt is taken back,
after which only the cutting is tried.

Not modelled: the second call that checks the summary, and that a masked result of a shell command keeps its exit code
and its error. What is written around a cut or masked result is a text of ours, of about the original's length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import CALL, HAS_CALL, HAS_RESULT, MEDIA, MODEL, RESULT, SAID, TEXT, USER, tool_key
from guard_core.forms import CutToEnds
from guard_core.forms.base import PartColumns
from guard_core.forms.edits import place_in_event, tools_of
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.message_columns import Bools, MessageColumns, events_in_form, list_messages
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import INFLATED, NOTHING_TO_COMPACT, Head
from guard_core.views import Segment, Span, Synthetic, View

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
PICTURE_TOKENS, OTHER_CHARS_UNITS = 3_000, 6  # a character outside ASCII is 1.5 tokens, six quarters (section 7)
LONG_TEXT = 100_000  # characters of which more are a quarter of a token each (tokenCalculation.ts of 0.61.0)
RESPONSE = len('{"output":}')  # characters of JSON around the text of a result
RESULT_BUDGET = 50_000  # tokens of results that a compaction leaves whole, newest first (section 7)
CUT_CHARS, HEAD_SHARE = 40_000, 0.2  # characters that an older result is cut to, and the share of its head (section 7)
SUMMARY_ROOM = 20_000  # tokens of the window; the summariser is given whole results where so many are left (5411f113)
MASK_PROTECTED, MASK_LEAST = 50_000, 30_000  # tokens of results: the newest stay, fewer are not masked (section 7)
MASK_HEAD, MASK_TAIL, MASK_OVER = 250, 250, 700  # characters; the last is ours: a shorter result would not get smaller
NEVER_MASKED = ("activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode")  # tools (revision 5411f113)
# The words of both are ours; the original's have the path of the file with the whole result.
CUT = CutToEnds(
    head=int(CUT_CHARS * HEAD_SHARE),
    tail=CUT_CHARS - int(CUT_CHARS * HEAD_SHARE),
    over=CUT_CHARS,
    marker="\n\n[characters left out; the whole result is in a file]" + " " * 120 + "\n\n",
)
MASKED = CutToEnds(
    head=MASK_HEAD,
    tail=MASK_TAIL,
    over=MASK_OVER,
    marker="\n[masked; the whole result is in a file]" + " " * 150 + "\n",
)
_SPEC = "specification of policies section 7"


class GeminiCliSettings(msgspec.Struct, frozen=True):
    """Shares of the limit and of the history; tokens."""

    profile: str
    compression_threshold: float
    preserve: float
    result_budget: int
    masking: bool
    inflation_check: bool
    summary_budget: int


class GeminiCliMemory(CountedMemory, frozen=True):
    """`inflated`: a compaction was taken back. `masked_parts`: of the first so many parts of the log the results are
    masked or were removed."""

    inflated: bool = False
    masked_parts: int = 0


class GeminiCli(CountedPolicy):
    """The policy; see the module."""

    settings: GeminiCliSettings
    name = "gemini-cli"
    agent = "gemini-cli"
    state_type = GeminiCliMemory

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_CALL, Point.BEFORE_TURN)

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(output=False)

    def threshold(self, window: int) -> int:
        return math.ceil(self.settings.compression_threshold * window)

    def rule(self, window: int) -> str:
        return f"{self.settings.compression_threshold * 100:g} % of {window:,}"

    def plan(self, history: CompactableHistory) -> Plan | int:
        """What opens the chat, a summary, the model's answer to it, and the end of the history; after a compaction that
        was taken back, the history with its old results cut."""
        view = self._with_cut_results(history)
        masked = history.state.masked_parts
        if history.state.inflated:
            fewer = TOKENS.view(history.ledger, view) < history.state.tokens
            is_cut = fewer and view != history.view
            return Plan(view, remembers={"masked_parts": masked}) if is_cut else NOTHING_TO_COMPACT
        messages = list_messages(history.ledger, view)
        cut = split_point(messages, 1 - self.settings.preserve)
        if not cut:
            return NOTHING_TO_COMPACT
        given = history.messages.between(0, cut)
        if TOKENS.view(history.ledger, given) >= history.check.window - SUMMARY_ROOM:
            given = messages.between(0, cut)
        summary = SummaryMessage((Ask(given, self.settings.summary_budget),))
        answer = Synthetic("acknowledgement", ACKNOWLEDGEMENT)
        kept = messages.between(cut, len(messages))
        at = messages.event_at(cut, history.stop)
        removed = int(_parts_before(history.ledger, np.array(at)))
        opens = messages.event[0] == 0 and messages.is_said[0] and not messages.flags[0] & SAID
        context = messages.between(0, 1) if opens else ()
        return Plan((*context, summary, answer, *kept), cut=(at,) * 3, remembers={"masked_parts": max(masked, removed)})

    def _with_cut_results(self, history: CompactableHistory) -> View:
        """The history with results cut to their ends, but for the newest within the budget."""
        ledger, view, left = history.ledger, history.view, self.settings.result_budget
        if not left:
            return view
        results, cut_tokens, cut = _results(ledger), CUT_CHARS // 4, dict[int, list[int]]()
        held = _held_results(results, view)[::-1]
        newer, counted = prefix_sums(results.tokens[held]), 0
        for place in np.flatnonzero(results.chars[held] > CUT_CHARS).tolist():
            number, before = held.item(place), newer.item(place)
            tokens, left = results.tokens.item(number), max(left - (before - counted), 0)
            is_cut, counted = tokens > left, before + tokens
            left = max(left - (cut_tokens if is_cut else tokens), 0)
            if is_cut:
                cut.setdefault(results.event.item(number), []).append(results.place.item(number))
        for event, which in cut.items():
            view = events_in_form(ledger, view, event, event + 1, msgspec.structs.replace(CUT, which=(*which,)).name)
        return view

    def refuses(self, history: CompactableHistory, after: View) -> tuple[int, Mapping[str, Any]]:
        """A history that is larger than the last prompt is not taken."""
        tokens = history.state.tokens
        if not self.settings.inflation_check or TOKENS.view(history.ledger, after) <= tokens:
            return super().refuses(history, after)
        return INFLATED, {"inflated": True}

    def gate(self, ledger: Ledger, rows: Ints, stop: Ints, state: GeminiCliMemory) -> Ints:
        """Where the history has no text of the user behind its first message and ends without an answer, it has no
        place to be cut."""
        if state.inflated:
            return super().gate(ledger, rows, stop, state)
        return np.where(_has_split_point(ledger, Head(state.head, state.kept_from), stop), 0, NOTHING_TO_COMPACT)

    # ---- old results that are masked before a call

    def clears(self, ledger: Ledger, rows: Ints, stop: Ints, state: GeminiCliMemory, window: int) -> Bools:
        if not self.settings.masking:
            return super().clears(ledger, rows, stop, state, window)
        prefix, end = _maskable_prefix(ledger), _masked_end(ledger, stop)
        return np.asarray(prefix[end] - prefix[np.minimum(state.masked_parts, end)] >= MASK_LEAST)

    def clear(self, history: CompactableHistory) -> Plan:
        """The results before the newest ones, each as its first and last characters."""
        ledger, parts, start = history.ledger, history.ledger.parts, history.state.masked_parts
        stop = int(_masked_end(ledger, np.array([history.stop]))[0])
        events, results = parts["event"], parts["kind"] == RESULT
        begin = events.item(start)
        split = events.item(stop) if stop < len(events) else ledger.event_count  # its parts from `stop` on stay
        view = history.view
        if _parts_before(ledger, np.array(begin)) < start:  # some of its results are masked already
            view = tuple(_as_it_is(item, begin) for item in view)
        is_kept = (results & _is_exempt(ledger))[start:stop]
        for event in (*np.unique(events[start:stop][is_kept]).tolist(), split):
            view = events_in_form(ledger, view, begin, min(event, split), MASKED.name)
            begin = event + 1
        which = place_in_event(parts, RESULT)[:stop][(results & ~_is_exempt(ledger) & (events == split))[:stop]]
        if len(which):
            form = msgspec.structs.replace(MASKED, which=tuple(which.tolist()))
            view = events_in_form(ledger, view, split, split + 1, form.name)
        return Plan(view, remembers={"masked_parts": stop})


def _masked_end(ledger: Ledger, stop: Ints) -> Ints:
    """Where the log has so many events, the parts before which results may be masked: all but those of the newest
    message, back to the result with which they are more than is protected."""
    prefix = _maskable_prefix(ledger)
    last = prefix[_parts_before(ledger, np.maximum(stop - 1, 0))]
    return np.asarray(np.searchsorted(prefix, last - MASK_PROTECTED, side="left"))


def _as_it_is(item: Segment, event: int) -> Segment:
    """A segment of a view, without its form where it is this event alone."""
    return Span(event, event + 1) if isinstance(item, Span) and (item.start, item.stop) == (event, event + 1) else item


def _parts_before(ledger: Ledger, events: Ints) -> Ints:
    """How many parts of the log are before some events."""
    return np.asarray(np.searchsorted(ledger.parts["event"], events, side="left"))


def _maskable_prefix(ledger: Ledger) -> Ints:
    """Prefix sums over the parts of the log: tokens of results that may be masked."""
    if "gemini maskable" not in ledger.derived:
        own = (ledger.parts["kind"] == RESULT) & ~_is_exempt(ledger)
        ledger.derived["gemini maskable"] = prefix_sums(np.where(own, _part_tokens(ledger), 0))
    prefix: Ints = ledger.derived["gemini maskable"]
    return prefix


def _is_exempt(ledger: Ledger) -> Bools:
    """Which parts are of tools whose results are never masked."""
    return np.isin(tools_of(ledger.parts), [tool_key(name) for name in NEVER_MASKED])


class _Results(NamedTuple):
    """The tool results of a log, in its order: the event of each and its place among the results of that, its
    characters and Gemini CLI's estimate of its tokens."""

    event: Ints
    place: Ints
    chars: Ints
    tokens: Ints


def _results(ledger: Ledger) -> _Results:
    """The results of the log in columns, remembered with the ledger: every cut asks for them."""
    if "gemini results" not in ledger.derived:
        parts = ledger.parts
        rows = np.flatnonzero(parts["kind"] == RESULT)
        columns = (parts["event"], place_in_event(parts, RESULT), parts["chars"], _text_tokens(parts))
        ledger.derived["gemini results"] = _Results(*(column[rows] for column in columns))
    known: _Results = ledger.derived["gemini results"]
    return known


def _held_results(results: _Results, view: View) -> Ints:
    """The places among the results of a log of those that a view has as they are, in the log's order."""
    spans = [(item.start, item.stop) for item in view if isinstance(item, Span) and not item.form]
    edges = results.event.searchsorted(np.array(spans, dtype=np.int64).reshape(-1, 2)).tolist()
    return np.unique(np.concatenate([np.arange(0), *(np.arange(first, stop) for first, stop in edges)]))


def _response_chars(ledger: Ledger, parts: PartColumns) -> Ints:
    """Characters of what a tool answered as JSON, for each part that is a result: its text in chats of Gemini CLI."""
    return parts["chars"] if ledger.agent == "gemini-cli" else parts["json_chars"] + RESPONSE


def _text_tokens(parts: PartColumns) -> Ints:
    """Gemini CLI's estimate of the text of each part: a quarter of its ASCII characters, 1.5 of each other one."""
    others = np.where(parts["chars"] > LONG_TEXT, 0, parts["non_ascii"])
    return np.asarray((parts["chars"] + others * (OTHER_CHARS_UNITS - 1)) // 4)


def _part_tokens(ledger: Ledger, form: str = "") -> Ints:
    """Gemini CLI's estimate of each part: of a text as above, of a call or a result a quarter of its JSON."""
    parts = ledger.parts_in(form)
    kind, names = parts["kind"], parts["name_chars"]
    tokens = np.where(kind == MEDIA, PICTURE_TOKENS, _text_tokens(parts))
    tokens = np.where(kind == RESULT, (names + _response_chars(ledger, parts)) // 4, tokens)
    return np.asarray(np.where(kind == CALL, (parts["chars"] + PART[CALL] - len(",") + names + ID) // 4, tokens))


TOKENS = TokenEstimate(
    "gemini tokens",
    "a quarter of ASCII characters, 1.5 of each other one; of calls and results a quarter of their JSON",
    lambda ledger, form: ledger.by_event(_part_tokens(ledger, form)),
    lambda size: size // 4,
)


def split_point(messages: MessageColumns, share: float) -> int:
    """The first message that stays: the first text of the user before which there is at least `share` of the
    characters; none, where the history ends with a finished answer; else the last text of the user. Messages in the
    user's role in a row are one, which is a text if none of them has results."""
    sizes = _json_chars(messages)
    before = np.cumsum(sizes) - sizes
    begins = messages.is_said & np.append(True, ~messages.is_said)[:-1]
    rows = np.cumsum(begins)
    texts = begins & ~np.isin(rows, rows[messages.has_results])
    places = np.flatnonzero(texts & (before >= share * int(sizes.sum())))
    if len(places):
        return int(places[0])
    if len(messages) and messages.is_model[-1] and not messages.has_calls[-1]:
        return len(messages)
    starts = np.flatnonzero(texts)
    return int(starts[-1]) if len(starts) else 0


class _SpokenRows(NamedTuple):
    """The rows of a log: each begins with a message in the user's role behind one in another, and `starts` are those.
    `results` is the first message with results in each row that has one."""

    starts: Ints
    results: Ints


def _rows(ledger: Ledger) -> _SpokenRows:
    """The rows of the log, remembered with the ledger."""
    if "gemini rows" not in ledger.derived:
        messages = list_messages(ledger, (Span(0, ledger.event_count),))
        begins = messages.is_said & np.append(True, ~messages.is_said)[:-1]
        answered = np.flatnonzero(messages.has_results)
        _, first = np.unique(np.cumsum(begins)[answered], return_index=True)
        ledger.derived["gemini rows"] = _SpokenRows(np.flatnonzero(begins), answered[first])
    known: _SpokenRows = ledger.derived["gemini rows"]
    return known


def _has_split_point(ledger: Ledger, head: Head, stops: Ints) -> Bools:
    """May `split_point` give a message in histories that begin with a head and end before some events of the log: has
    one of them a text of the user behind its first message, or an answer at its end."""
    begun, kept_from, rows = list_messages(ledger, head.view), head.kept_from, _rows(ledger)
    texts = begun.is_said & np.append(True, ~begun.is_said)[:-1] & ~begun.has_results
    if texts[1:].any():  # it may go on with results behind the head
        return np.ones(len(stops), dtype=np.bool_)
    flags = ledger.events["flags"]
    answers = ((flags & MODEL) > 0) & ((flags & HAS_CALL) == 0)
    follows = stops > kept_from
    ends = np.append(answers, False)[np.where(follows, stops - 1, -1)]
    if len(begun):
        ends |= ~follows & begun.is_model[-1] & ~begun.has_calls[-1]
    place = rows.starts.searchsorted(kept_from, side="right")  # the first row that begins behind `kept_from`
    begin = rows.starts.item(place) if place < len(rows.starts) else ledger.event_count
    without_results = rows.starts.searchsorted(stops) - place
    without_results -= rows.results.searchsorted(stops) - rows.results.searchsorted(begin)
    has_text = (stops > begin) & (without_results > 0)
    if len(begun) and not begun.is_said[-1] and kept_from < begin and flags.item(kept_from) & USER:
        answered = np.flatnonzero((flags[kept_from:begin] & HAS_RESULT) > 0)
        has_text |= follows & (stops <= (kept_from + answered.item(0) if len(answered) else ledger.event_count))
    return np.asarray(has_text | ends | (stops < kept_from))


def _json_chars(messages: MessageColumns) -> Ints:
    """Characters of each message as JSON."""
    rows = [np.zeros(0, dtype=np.int64)]
    for segment in messages.view:
        if isinstance(segment, Span):
            rows.append(np.diff(char_prefix(messages.ledger, segment.form)[segment.start : segment.stop + 1]))
        else:
            assert isinstance(segment, Synthetic)
            rows.append(np.array([MESSAGE + PART[TEXT] + segment.bytes]))
    return np.concatenate(rows)


def char_prefix(ledger: Ledger, form: str) -> Ints:
    """Prefix sums of each event's characters as JSON, in a form."""

    def column(ledger: Ledger) -> Ints:
        parts = ledger.parts_in(form)
        kind, named = parts["kind"], parts["name_chars"] + ID
        sizes = parts["json_chars"] + PART[TEXT]
        sizes = np.where(kind == CALL, parts["chars"] + PART[CALL] + named, sizes)
        response = _response_chars(ledger, parts) - RESPONSE
        sizes = np.where(kind == RESULT, response + PART[RESULT] + named, sizes)
        return ledger.by_event(sizes) + MESSAGE

    return ledger.prefix_by(f"gemini characters {form}", column)


KIND = PolicyKind(
    "gemini-cli",
    "Gemini CLI",
    "Compacts at half of the model's limit, by prompt tokens; keeps the last 30 %, from a user message on.",
    lambda **values: GeminiCli(GeminiCliSettings(**values)),
    (
        Setting(
            "compression_threshold",
            "Share of the limit",
            SHARE,
            0.5,
            "compacts once the prompt of the last call reaches this share of the window",
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
            "share of the history's characters that is kept, from the next user message on",
            _SPEC,
            main=True,
            sweep=(0.3, 0.5, 0.1),
        ),
        Setting(
            "result_budget",
            "Results kept whole",
            COUNT,
            RESULT_BUDGET,
            (
                "a compaction cuts results of more than 40,000 characters to their ends if they are older "
                "than the newest results within this budget; 0: none"
            ),
            _SPEC,
            unit="tokens",
            profiles={EARLIER: 0},
        ),
        Setting(
            "masking",
            "Masking",
            SWITCH,
            True,
            (
                "before a call, masks results older than the newest 50,000 tokens of them, if those have at "
                "least 30,000 tokens"
            ),
            _SPEC,
            profiles={EARLIER: False},
        ),
        Setting(
            "inflation_check",
            "Inflation check",
            SWITCH,
            True,
            "discards a compaction that leaves more tokens than the last prompt had, and tries no other",
            _SPEC,
        ),
        summary_budget("Gemini CLI"),
    ),
    (
        Profile(CURRENT, "0.61: half of the limit"),
        Profile(EARLIER, "November 2025: 70 % of the limit"),
    ),
    known_problems=(
        KnownProblem(
            "A long first turn is not compacted",
            "Until the turn ends there is no user message at which the history could be cut.",
            "measured in 0.61.0",
        ),
        KnownProblem(
            "The summary makes the context larger",
            "A summary may be larger than what it replaces; it is then discarded, and no other is made.",
            "google-gemini/gemini-cli issues 15225, 3574",
        ),
    ),
)
