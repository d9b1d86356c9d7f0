"""Semantic Kernel's history reducers: the last messages, without or with a summary of those before.

Source of the rules: semantic-kernel 1.45.0 (Python), `contents/history_reducer/`, and scripted runs of it. The list
that is left is the history from then on. Both count messages, never tokens, and keep the first system message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL
from guard_core.errors import SummaryFailed
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.compared import MESSAGES
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, failed
from guard_core.policies.pieces.message_columns import between
from guard_core.policies.pieces.messages import ONE, ROLE_OF, SYSTEM_ROLE, TOOL, USER, MessageCosts, roles_of
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.policies.settings import (
    BEGINS_WITH_ANSWER,
    COUNT,
    SWITCH,
    KnownProblem,
    PolicyKind,
    RecordedRuns,
    Setting,
)
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Head
from guard_core.views import Span, Synthetic, View

SUMMARY = "summary"  # kind of the inserted message
_SOURCE = "semantic-kernel 1.45.0, history_reducer"


class MessageRows(NamedTuple):
    """The messages of a list in columns: role, whether it has a call or result, whether it is a summary of before."""

    roles: Ints
    tools: NDArray[np.bool_]
    summaries: NDArray[np.bool_]


def rows_of(ledger: Ledger, view: View) -> MessageRows:
    """The messages of a view."""
    roles = roles_of(ledger)
    columns: list[tuple[Ints, NDArray[np.bool_], NDArray[np.bool_]]] = []
    for segment in view:
        if isinstance(segment, Span):
            own = slice(segment.start, segment.stop)
            tools = _in_tools(ledger, own)
            columns.append((roles[own], tools, np.zeros(len(tools), dtype=np.bool_)))
        else:
            assert isinstance(segment, Synthetic)
            columns.append((np.array([ROLE_OF[segment.role]]), np.array([False]), np.array([segment.kind == SUMMARY])))
    return MessageRows(*map(np.concatenate, zip(*columns, strict=True)))


def _in_tools(ledger: Ledger, events: slice) -> NDArray[np.bool_]:
    """Which events have a call or are a result."""
    return np.asarray((roles_of(ledger)[events] == TOOL) | ((ledger.events["flags"][events] & HAS_CALL) > 0))


class ReducerSettings(msgspec.Struct, frozen=True):
    """Of both reducers."""

    target_count: int = 10
    threshold_count: int = 0


class SemanticKernelSummarizationSettings(ReducerSettings, frozen=True):
    """Of the one that summarises."""

    use_single_summary: bool = True
    include_function_content_in_summary: bool = False
    fail_on_error: bool = True
    summary_budget: int = 4_000


class _Reducer(StagedPolicy):
    """What both share."""

    settings: ReducerSettings

    @property
    def compares(self) -> str:
        return MESSAGES

    def costs(self) -> MessageCosts:
        return ONE

    def limit(self, window: int) -> int:
        return self.settings.target_count + self.settings.threshold_count

    def cut(self, rows: MessageRows, offset: int, system: int) -> int | None:
        """The first message that stays; None where none goes. `offset`: messages at the beginning that are not looked
        at; `system`: the place of the system message, -1: there is none."""
        count, target = len(rows.roles), self.settings.target_count
        if 0 <= system < count - target:
            target -= 1
            if target <= 0:
                return count
        earliest = count - self.settings.threshold_count - target
        if earliest <= offset:
            return None
        place = count - target
        while place >= offset and rows.roles[place] != SYSTEM_ROLE and rows.tools[place]:
            if place - 1 < offset or not rows.tools[place - 1]:
                break
            place -= 1
        users = np.flatnonzero(rows.roles[max(earliest, 0) : place + 1] == USER)
        return max(earliest, 0) + int(users[-1]) if len(users) else place

    def cut_of_log(self, ledger: Ledger, kept: int, at: int) -> int | None:
        """As `cut`, of the log from event `kept` to `at` behind messages that are not looked at: the first event that
        stays."""
        earliest = at - self.settings.threshold_count - self.settings.target_count
        if earliest <= kept:
            return None
        places = _places(ledger)
        event = max(places.begins[at - self.settings.target_count], kept)
        user = places.users[event]
        return user if user >= earliest else event


class _PairPlaces(NamedTuple):
    """Of every event of a log the first of the calls and results that it follows in a row (itself, where it is none of
    them), and the last message of the user up to it (-1: none); and the runs of events that are none, where they start
    and stop. `has_system`: are there messages of the system."""

    begins: list[int]
    users: list[int]
    starts: list[int]
    stops: list[int]
    has_system: bool


def _places(ledger: Ledger) -> _PairPlaces:
    if "semantic-kernel places" not in ledger.derived:
        roles, events = roles_of(ledger), np.arange(ledger.event_count)
        tools = _in_tools(ledger, slice(None))
        begins = np.maximum.accumulate(np.where(tools & np.append(False, tools[:-1])[: len(tools)], 0, events))
        users = np.maximum.accumulate(np.where(roles == USER, events, -1))
        edges = np.flatnonzero(np.diff(np.concatenate([[False], ~tools, [False]])))
        starts, stops = edges[::2].tolist(), edges[1::2].tolist()
        has_system = bool((roles == SYSTEM_ROLE).any())
        places = _PairPlaces(begins.tolist(), users.tolist(), starts, stops, has_system)
        ledger.derived["semantic-kernel places"] = places
    known: _PairPlaces = ledger.derived["semantic-kernel places"]
    return known


def _with_system(view: View, system: int, head: View, cut: int) -> View:
    """A list that begins with the system message where the cut took it."""
    return normal((*between(view, system, system + 1), *head)) if 0 <= system < cut else head


class SemanticKernelTruncation(_Reducer):
    """ChatHistoryTruncationReducer."""

    name: ClassVar[str] = "semantic-kernel-truncation"

    def walks(self, ledger: Ledger, state: Any) -> bool:
        return not state.head and not _places(ledger).has_system

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int:
        cut = self.cut_of_log(asked.ledger, head.kept_from, asked.at.item(row))
        return NOTHING_TO_COMPACT if cut is None else Act(Head((), cut), state)

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        rows = rows_of(request.ledger, request.view)
        system = _first(rows.roles == SYSTEM_ROLE)
        cut = self.cut(rows, 0, system)
        if cut is None:
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        return ListOutcome(_with_system(request.view, system, between(request.view, cut, len(rows.roles)), cut), state)


class SemanticKernelSummarization(_Reducer):
    """ChatHistorySummarizationReducer."""

    name: ClassVar[str] = "semantic-kernel-summarization"
    settings: SemanticKernelSummarizationSettings

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """Before the log there is one summary at most."""
        is_plain = len(state.head) <= 1 and all(getattr(each, "kind", "") == SUMMARY for each in state.head)
        return self.settings.use_single_summary and is_plain and not _places(ledger).has_system

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int:
        ledger = asked.ledger
        cut = self.cut_of_log(ledger, head.kept_from, asked.at.item(row))
        if cut is None:
            return NOTHING_TO_COMPACT
        spans = [Span(head.kept_from, cut)] if head.kept_from < cut else []
        if not self.settings.include_function_content_in_summary:
            # Only events that have no call and are no result.
            _, _, starts, stops, _ = _places(ledger)
            runs = range(bisect_right(stops, head.kept_from), bisect_left(starts, cut))
            spans = [Span(max(starts[run], head.kept_from), min(stops[run], cut)) for run in runs]
        given = (*head.view, *spans)
        if not given:
            return NOTHING_TO_COMPACT
        budget = self.settings.summary_budget
        summary, state, asked_for = asked.summarised(row, given, self.estimator(ledger), state, budget)
        message = Synthetic(SUMMARY, summary.bytes, summary.text, Role.MODEL)
        return Act(Head((message,), cut), state, (asked_for,))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        rows, view = rows_of(request.ledger, request.view), request.view
        system = _first((rows.roles == SYSTEM_ROLE) & ~rows.summaries)
        begin = _first(~rows.summaries)
        begin = max(begin, 0)  # where all are summaries
        cut = self.cut(rows, begin, system)
        if cut is None:
            return ListOutcome(view, state, held=NOTHING_TO_COMPACT)
        given = self._given(view, rows, 0 if self.settings.use_single_summary else begin, cut)
        if not given:
            return ListOutcome(view, state, held=NOTHING_TO_COMPACT)
        try:
            summary, state = request.summarise(state, given, self.settings.summary_budget)
        except SummaryFailed as error:
            outcome = failed(request, state, given, error)
            return outcome if self.settings.fail_on_error else outcome._replace(error="", held=SUMMARISER_FAILED)
        message = Synthetic(SUMMARY, summary.bytes, summary.text, Role.MODEL)
        before = () if self.settings.use_single_summary else between(view, 0, begin)
        after = _with_system(view, system, (*before, message, *between(view, cut, len(rows.roles))), cut)
        return ListOutcome(normal(after), state, (request.passed(given, after, summary_bytes=summary.bytes),))

    def _given(self, view: View, rows: MessageRows, start: int, stop: int) -> View:
        """What the summariser is given: no system message, and no message with a call or result unless they are
        included."""
        left_out = rows.roles == SYSTEM_ROLE
        if not self.settings.include_function_content_in_summary:
            left_out = left_out | rows.tools
        chosen = np.flatnonzero(~left_out[start:stop]) + start
        if not len(chosen):
            return ()
        ends = np.flatnonzero(np.diff(np.append(chosen, -2)) != 1)  # of runs of neighbours
        firsts = np.append(0, ends[:-1] + 1)
        runs = [
            between(view, int(chosen[first]), int(chosen[last]) + 1) for first, last in zip(firsts, ends, strict=True)
        ]
        return normal(tuple(segment for run in runs for segment in run)) if len(chosen) else ()


def _first(marked: NDArray[np.bool_]) -> int:
    """The first marked place, -1: none."""
    places = np.flatnonzero(marked)
    return int(places[0]) if len(places) else -1


COUNTS = (
    Setting(
        "target_count",
        "Messages kept",
        COUNT,
        10,
        "messages after a reduction, the system message included; the library has no default",
        _SOURCE,
        unit="messages",
        least=1,
        most=1_000_000,
        main=True,
        sweep=(10, 30, 100),
    ),
    Setting(
        "threshold_count",
        "Messages more",
        COUNT,
        0,
        "reduces when there are more messages than both together, and searches this far back for a user message",
        _SOURCE,
        unit="messages",
        most=1_000_000,
        main=True,
    ),
)
TRUNCATION = PolicyKind(
    SemanticKernelTruncation.name,
    "Semantic Kernel (truncation)",
    "Keeps the system message and the last messages.",
    lambda **values: SemanticKernelTruncation(ReducerSettings(**values)),
    COUNTS,
    summarises=False,
    judged_by=RecordedRuns("semantic-kernel", "truncation"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "The user's newest message is lost",
            "The tail is counted in messages, so a long turn pushes its own question out: 86 of 503 steps at 10.",
            "measured, specification of new policies section 3",
        ),
    ),
)
SUMMARIZATION = PolicyKind(
    SemanticKernelSummarization.name,
    "Semantic Kernel (summarization)",
    "Keeps the system message, a summary of what is removed, and the last messages.",
    lambda **values: SemanticKernelSummarization(SemanticKernelSummarizationSettings(**values)),
    (
        *COUNTS,
        Setting("use_single_summary", "One summary", SWITCH, True, "summarises earlier summaries, too", _SOURCE),
        Setting(
            "include_function_content_in_summary",
            "Calls and results",
            SWITCH,
            False,
            "gives the summariser messages with calls or results, too",
            _SOURCE,
        ),
        Setting("fail_on_error", "Raise errors", SWITCH, True, "an error of the summariser ends the run", _SOURCE),
        summary_budget("the library"),
    ),
    judged_by=RecordedRuns("semantic-kernel", "summarization"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "Calls and results vanish",
            "By default the summariser is not given them, so what they contained is in no summary.",
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "Summaries of summaries",
            "In a long tool turn the cut cannot move, and every step summarises only the earlier summary.",
            "measured, specification of new policies section 3",
        ),
    ),
)
KINDS = (TRUNCATION, SUMMARIZATION)
