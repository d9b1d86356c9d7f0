"""The condenser of the OpenHands SDK: the middle of the history becomes a summary behind the first events.

Source of the rule: openhands-sdk 1.58.0, `context/condenser/llm_summarizing_condenser.py` and `context/view/`, and
scripted runs of it. Its list holds events: the system prompt, a message, each tool call, each result. Three reasons
lead to a condensation: more events than `max_size`, more tokens than the limit, and a request for one, which the agent
makes after the provider refused its request. Adjacent messages of the user are sent as one. Not here: the tokenizer of
the model, for which characters / 4 stand, as in the scripted runs, and pipelines of several condensers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_REASONING, RESULT, TEXT
from guard_core.errors import SettingError, SummaryFailed
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.base import Point
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import (
    SYSTEM_ROLE,
    ListMessage,
    MessageCosts,
    answered_by,
    calls_of,
    messages_of,
    role_of,
    view_of,
)
from guard_core.policies.settings import COUNT, SHARE, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.sessions import Provenance
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Column, Pass, Term, Trace
from guard_core.views import Synthetic

CHARS_PER_TOKEN = 4  # as in the scripted runs; the library asks litellm for a tokenizer
MOST_CONDENSATIONS = 4  # before one call, as in the scripted runs; the agent itself sets no limit
SUMMARY_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit
_SOURCE = "openhands-sdk 1.58.0, LLMSummarizingCondenser"
_NONE = "no condensation is possible here, though one is required"


def _part_chars(parts: dict[str, Ints]) -> Ints:
    """Characters of each part: texts, results, and of calls the tool's name and the arguments as JSON."""
    kind = parts["kind"]
    text = np.where((kind == TEXT) | (kind == RESULT), parts["chars"], 0)
    return np.asarray(np.where(kind == CALL, parts["name_chars"] + parts["chars"] + parts["separators"], text))


def sdk_events(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """How many events of the library each event of the log is: one for each of its calls or results."""
    several = np.isin(parts["kind"], (CALL, RESULT)).astype(np.int64)
    return np.asarray(np.maximum(ledger.by_event(several), 1))


COSTS = MessageCosts(
    "openhands characters",
    lambda ledger, parts: ledger.by_event(_part_chars(parts)),
    lambda message: message.bytes,
)
EVENTS = MessageCosts("openhands events", sdk_events, lambda message: 1)


class CondenserSettings(msgspec.Struct, frozen=True):
    """`max_tokens` is 0 where only the window limits tokens, `request_at` 0 where nothing asks but a refusal."""

    max_size: int = 240
    max_tokens: int = 0
    keep_first: int = 2
    minimum_progress: float = 0.1
    hard_context_reset_max_retries: int = 5
    tool_loops: bool = True
    request_at: int = 0


class OpenHandsHistory(NamedTuple):
    """A list as the library sees it: its `messages`; where each begins in the library's events, and where the last one
    ends (`starts`); the characters up to each of its events (`chars`); which of the starts are places where the list
    may be cut (`is_cut`)."""

    messages: list[ListMessage]
    starts: list[int]
    chars: list[int]
    is_cut: list[bool]

    @property
    def size(self) -> int:
        """Events of the library."""
        return self.starts[-1]

    @property
    def tokens(self) -> int:
        return self.chars[-1] // CHARS_PER_TOKEN

    def next_cut(self, place: int) -> int | None:
        """The message before which the list may be cut, at event `place` or later; None: there is none."""
        cuts = zip(self.starts, self.is_cut, strict=True)
        return next((index for index, (start, allowed) in enumerate(cuts) if allowed and start >= place), None)


class Condenser(ListPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "openhands"
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.ON_OVERFLOW)
    own_columns: ClassVar[tuple[Column, ...]] = (
        Column("sdk_events", "events of the library in its list", "events", none=-1, label="events"),
        Column("sdk_event_limit", "events over which it condenses", "events", none=-1, label="event limit"),
    )
    settings: CondenserSettings

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return min(self.settings.max_tokens or window, window)

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray((sizes.whole + sizes.ledger.system_chars) // CHARS_PER_TOKEN)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        requested = (counted > self.settings.request_at) & (self.settings.request_at > 0)
        return np.asarray((counted > limit) | (_event_counts(sizes) > self.settings.max_size) | requested)

    def noted(self, sizes: Sizes) -> dict[str, Ints]:
        events = _event_counts(sizes)
        return {"sdk_events": events, "sdk_event_limit": np.full_like(events, self.settings.max_size)}

    def reason(self, request: ListRequest) -> str:
        asked = _is_requested(request, self.settings)
        size = int(request.ledger.system_chars > 0) + EVENTS.view(request.ledger, request.view)
        reasons = (
            (asked, "a condensation was requested"),
            (request.counted > request.limit, f"{request.counted:,} tokens > limit {request.limit:,}"),
            (size > self.settings.max_size, f"{size:,} events > max_size {self.settings.max_size:,}"),
        )
        return ", ".join(words for applies, words in reasons if applies)

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        asked, done = _is_requested(request, self.settings), ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        for _ in range(MOST_CONDENSATIONS):
            history = _history(request.ledger, messages_of(done.view), self.settings.tool_loops)
            must = asked or history.tokens > request.limit
            if not must and history.size <= self.settings.max_size:
                break
            more = self._condensed(request, history, done, asked=asked)
            if more.held and must:
                more = self._reset(request, history, more)
            if more.error:
                return more
            if more.held:
                return more if not done.passes else done._replace(state=more.state)
            done, asked = more, False
        return done

    def _condensed(
        self, request: ListRequest, history: OpenHandsHistory, done: ListOutcome, *, asked: bool
    ) -> ListOutcome:
        """The list with some of its events summarised; held where that is not possible."""
        start = history.next_cut(self.settings.keep_first)
        stop = history.next_cut(history.size - self._suffix(request, history, asked=asked))
        nothing = done._replace(held=NOTHING_TO_COMPACT)
        if start is None or stop is None or stop <= start:
            return nothing
        forgotten = history.starts[stop] - history.starts[start]
        if forgotten < history.size * self.settings.minimum_progress:
            return nothing
        return _summarised(request, history, done, start, stop)

    def _suffix(self, request: ListRequest, history: OpenHandsHistory, *, asked: bool) -> int:
        """How many events stay at the end: the fewest that a reason asks for, before the cut moves to where it may be;
        below 0 where the first events alone are too many."""
        keep_first, suffixes = self.settings.keep_first, []
        if asked:
            suffixes.append(history.size // 2 - keep_first - 1)
        if history.size > self.settings.max_size:
            suffixes.append(self.settings.max_size // 2 - keep_first - 1)
        if history.tokens > request.limit:
            first = min(keep_first, history.size)
            base = history.chars[first] // CHARS_PER_TOKEN
            surplus = base + history.tokens - request.limit // 2
            behind = np.array(history.chars[first + 1 :], dtype=np.int64) // CHARS_PER_TOKEN
            removed = int(np.searchsorted(behind, surplus, side="right")) + 1
            suffixes.append(max(history.size - first - removed, 0))
        return min(suffixes)

    def _reset(self, request: ListRequest, history: OpenHandsHistory, held: ListOutcome) -> ListOutcome:
        """The list with all but a leading system prompt summarised, tried again while the summariser fails."""
        start = 0 if history.is_cut[0] else 1
        if start == len(history.messages):
            return held._replace(held=0, error=_NONE)
        for _ in range(self.settings.hard_context_reset_max_retries):
            done = _summarised(request, history, held._replace(held=0), start, len(history.messages))
            if not done.held:
                return done
            held = held._replace(state=done.state)
        return held._replace(held=0, error="the summariser failed at every try to summarise the whole history")

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        events, most = (int(trace.columns[name][step]) for name in ("sdk_events", "sdk_event_limit"))
        if events < 0:  # of recorded requests only tokens are known
            return super().explain(trace, step)
        sign = ">" if events > most else "<="
        term = Term("events", events, "events", Provenance.RECOMPUTED, step, f"{events:,} {sign} {most:,}")
        return (term, *super().explain(trace, step))


def _event_counts(sizes: Sizes) -> Ints:
    """The library's events in the list at some steps."""
    prefix, head = EVENTS.prefix(sizes.ledger), sizes.head
    system = int(sizes.ledger.system_chars > 0)
    return np.asarray(system + EVENTS.view(sizes.ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from])


def _is_requested(request: ListRequest, settings: CondenserSettings) -> bool:
    """Did the agent ask for a condensation."""
    return request.check.point is Point.ON_OVERFLOW or 0 < settings.request_at < request.counted


def _history(ledger: Ledger, messages: list[ListMessage], tool_loops: bool) -> OpenHandsHistory:
    """A list as the library sees it. A system prompt that no event of the log holds is its first event."""
    sizes = [ledger.system_chars] if ledger.system_chars else []
    # No summary comes before the system prompt.
    starts, is_cut = [len(sizes)], [not messages or role_of(ledger, messages[0]) != SYSTEM_ROLE]
    known: set[int] = set()
    waiting: set[int] = set()
    in_loop = False
    chars, begins = _event_chars(ledger)
    for message in messages:
        calls, answered = calls_of(ledger, message), answered_by(ledger, message)
        if tool_loops:
            thinks = bool(message.event >= 0 and calls and ledger.events["flags"][message.event] & HAS_REASONING)
            is_cut[-1] &= not in_loop or thinks or not (calls or answered)
            in_loop = thinks or (in_loop and bool(calls or answered))
        if message.inserted is not None:
            sizes.append(message.inserted.bytes)
        else:
            sizes += chars[begins[message.event] : begins[message.event + 1]]
        if calls:
            known.update(calls)
            waiting.update(calls)
        if answered:
            waiting.difference_update(known.intersection(answered))
        starts.append(len(sizes))
        is_cut.append(not waiting)
    return OpenHandsHistory(messages, starts, [0, *accumulate(sizes)], is_cut)


def _event_chars(ledger: Ledger) -> tuple[list[int], list[int]]:
    """Characters of each of the library's events that the log is, and where those of each event of the log begin. Texts
    before the first call or result are part of its event."""
    if "openhands events" not in ledger.derived:
        begins, events = EVENTS.prefix(ledger), ledger.parts["event"]
        several = prefix_sums(np.isin(ledger.parts["kind"], (CALL, RESULT)).astype(np.int64))
        place = np.maximum(several[1:] - several[ledger.part_starts[events]] - 1, 0)
        chars = np.zeros(begins[-1], dtype=np.int64)
        np.add.at(chars, begins[events] + place, _part_chars(ledger.parts))
        ledger.derived["openhands events"] = chars.tolist(), begins.tolist()
    lists: tuple[list[int], list[int]] = ledger.derived["openhands events"]
    return lists


def _summarised(
    request: ListRequest, history: OpenHandsHistory, done: ListOutcome, start: int, stop: int
) -> ListOutcome:
    """The list with a summary of some messages at their place; held where the summariser fails."""
    ledger, messages = request.ledger, history.messages
    given = view_of(ledger, messages[start:stop])
    try:
        summary, state = request.summarise(done.state, given, SUMMARY_TOKENS)
    except SummaryFailed:
        state = msgspec.structs.replace(done.state, calls=done.state.calls + 1)
        return done._replace(state=state, held=SUMMARISER_FAILED)
    inserted = ListMessage(inserted=Synthetic("summary", summary.bytes, summary.text))
    after = view_of(ledger, [*messages[:start], inserted, *messages[stop:]])
    summarising: Pass = request.passed(given, after, summary_bytes=summary.bytes)
    state = msgspec.structs.replace(state, summary_bytes=summary.bytes)
    return ListOutcome(after, state, (*done.passes, summarising))


def condenser_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. What is left of each event where a reset is tried again is not
    modelled: it begins and ends as the event does. Raises SettingError for a limit of 0 tokens: ours of 0 is none."""
    if parameters.get("max_tokens") == 0:
        raise SettingError("max_tokens of 0 is not modelled: every list is over it, and the library condenses each")
    return {name: value for name, value in parameters.items() if name != "hard_context_reset_context_scaling"}


KIND = PolicyKind(
    Condenser.name,
    "OpenHands",
    "Replaces the events in the middle with a summary once there are too many events or tokens, or after an overflow.",
    lambda **values: Condenser(CondenserSettings(**values)),
    (
        Setting(
            "max_size",
            "Most events",
            COUNT,
            240,
            "condenses above this number of events (each tool call and each result is one); the default agent sets 80",
            _SOURCE,
            unit="events",
            least=1,
            most=10_000_000,
            main=True,
            sweep=(80, 120, 240),
        ),
        Setting(
            "keep_first",
            "First events kept",
            COUNT,
            2,
            "events at the beginning that stay (the system prompt is one); the default agent sets 4",
            _SOURCE,
            unit="events",
            most=10_000_000,
            main=True,
        ),
        Setting(
            "max_tokens",
            "Token limit",
            COUNT,
            0,
            "condenses above this, down to half of it; 0: the context window",
            _SOURCE,
            unit="tokens",
            main=True,
        ),
        Setting(
            "minimum_progress",
            "Least progress",
            SHARE,
            0.1,
            "minimum share of the events that a condensation must remove",
            _SOURCE,
        ),
        Setting(
            "hard_context_reset_max_retries",
            "Tries of a reset",
            COUNT,
            5,
            "how often it tries to summarise the whole history when nothing else is possible",
            _SOURCE,
            unit="tries",
            least=1,
            most=100,
        ),
        Setting(
            "tool_loops",
            "Whole tool loops",
            SWITCH,
            True,
            "calls and results that follow a call with thinking are kept together, as Anthropic's models require",
            "software-agent-sdk 611629e6, context/view/properties/tool_loop_atomicity.py",
        ),
        Setting(
            "request_at",
            "Request at",
            COUNT,
            0,
            "the agent asks for a condensation above this; 0: only after the provider refused a request",
            "the scripted runs of openhands-sdk 1.58.0",
            unit="tokens",
        ),
    ),
    judged_by=RecordedRuns(
        "openhands-sdk",
        "llm_summarizing_condenser",
        window=10**12,
        settings_of=condenser_settings,
        joins_user_messages=True,
        writes_summaries=True,
    ),
    known_problems=(
        KnownProblem(
            "Unread results are summarised",
            (
                "A cut never separates calls from results. It therefore moves to the end of a step and may "
                "remove results that the model has not read."
            ),
            "measured, specification of policies section 7",
        ),
        KnownProblem(
            "Arguments are in no summary",
            "The summariser sees at most 500 characters of a text or result, and only the kind of a call.",
            "measured, specification of policies section 7",
        ),
        KnownProblem(
            "It asks again before every call",
            (
                "If the summariser fails and only the number of events is too large, every step asks again; "
                "above the token limit the run ends after six calls."
            ),
            "measured, specification of policies section 7",
        ),
    ),
)
