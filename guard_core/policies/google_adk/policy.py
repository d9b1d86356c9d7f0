"""When ADK compacts, what it covers, and what a request then holds."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, HAS_MEDIA, HAS_RESULT, MODEL
from guard_core.errors import SummaryFailed
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.google_adk.sizes import EMPTY_JSON, ESTIMATE, JSON, RELAYED, summary_json
from guard_core.policies.pieces.compared import TOKENS, TURNS
from guard_core.policies.pieces.groups import MessageGroup, groups_of
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListPolicy, ListRequest, Sizes, without
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    USER,
    ListMessage,
    MessageCosts,
    answered_by,
    calls_of,
    roles_of,
)
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.summaries.base import Summary
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Head, Pass
from guard_core.views import Segment, Span, Synthetic, View, common_length, followed, shared

RANGES = "adk view of ranges"  # in what is derived of a ledger: ranges that follow one another, and their view
_NO_RANGES: tuple[tuple[Any, ...], View] = ((), ())
OUTPUT_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit


class Covered(msgspec.Struct, frozen=True):
    """A range of the log that a summary covers: events `start` to `stop` (exclusive), and `with_error` the error of a
    call that failed there."""

    start: int
    stop: int
    summary: Synthetic
    with_error: bool = False


class AdkMemory(ListMemory, frozen=True, omit_defaults=True):
    """`covered` are the summaries that no later one replaced, in the order in which they were made; `last_end` is where
    the newest summary ends."""

    covered: tuple[Covered, ...] = ()
    last_end: int = 0


class EventRange(NamedTuple):
    """Events that a summary is to cover: `start` to `stop` (exclusive), and `with_error` the error of a call that
    failed there."""

    start: int
    stop: int
    with_error: bool = False


class _Next(NamedTuple):
    """A range that is to be covered, still without its summary, the other ranges that are `left` then, and what the
    summariser is given."""

    range: Covered
    left: tuple[Covered, ...]
    given: View


def without_words(ledger: Ledger) -> NDArray[np.bool_]:
    """The events without words, calls, results and pictures, which no request holds."""
    if "adk left out" not in ledger.derived:
        flags = ledger.events["flags"]
        is_empty = (ledger.events["chars"] == 0) & ((flags & (HAS_CALL | HAS_RESULT | HAS_MEDIA)) == 0)
        # Consecutive messages of the user are one event, which is sent whole where any of them says something; one
        # that comes after a call was not yet there.
        begins, at = _is_turn_start(ledger).copy(), ledger.steps["at"]
        begins[at[at < len(begins)]] = True
        users, turns = roles_of(ledger) == USER, np.cumsum(begins)
        words = np.bincount(turns[users], ~is_empty[users], minlength=int(turns[-1]) + 1 if len(turns) else 1)
        ledger.derived["adk left out"] = is_empty & ~(users & (words[turns] > 0))
    left_out: NDArray[np.bool_] = ledger.derived["adk left out"]
    return left_out


class AdkCompaction(ListPolicy):
    """The base of both."""

    relation: ClassVar[str] = ">="
    state_type: ClassVar[type] = AdkMemory
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.END_OF_TURN)

    def costs(self) -> MessageCosts:
        return ESTIMATE

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(super().over(counted, limit) & (counted > 0) & (limit > 0))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        done = ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        if self.settings.token_threshold and self._is_over_threshold(request, state):
            done = self._summarised(request, state, *_old_events(request, state, self.settings.event_retention_size))
        if done.passes or request.check.point is not Point.END_OF_TURN or not self.settings.compaction_interval:
            return done
        events = self._old_turns(request.ledger, request.check.at, state)
        return self._summarised(request, done.state, events, None)

    def _is_over_threshold(self, request: ListRequest, state: Any) -> bool:
        """Is the count above `token_threshold`. At the end of a turn with no count yet, ADK estimates what agents have
        relayed at four characters a token."""
        counted = request.counted
        if request.check.point is Point.END_OF_TURN and state.as_of < 0:
            counted = RELAYED.view(request.ledger, request.view) // 4
        return self.is_over(counted, self.settings.token_threshold)

    def left_out(self, ledger: Ledger) -> NDArray[np.bool_]:
        return without_words(ledger)

    def _old_turns(self, ledger: Ledger, at: int, state: Any) -> EventRange | None:
        """The turns that ended since the last summary, those that overlap before them; None while they are too few."""
        begins = _all_turn_starts(ledger)
        count = max(int(np.searchsorted(begins, at)), 1)
        new = int(np.searchsorted(begins[1:count], state.last_end, side="right")) - _leaves_error(ledger, state)
        if at <= state.last_end or count - new < self.settings.compaction_interval:
            return None
        overlapping = max(0, new - self.settings.overlap_size)
        first = int(begins[overlapping]) if overlapping else 0
        if _answered_until(ledger)[first:at].max() <= at:
            return EventRange(first, at)
        groups = groups_of(ledger, [ListMessage(event) for event in range(first, at)])
        return _range_of(_self_contained(ledger, groups, at))

    def _summarised(
        self, request: ListRequest, state: Any, events: EventRange | None, seed: Covered | None
    ) -> ListOutcome:
        """A range of events covered by a summary, with the earlier summary that it continues."""
        ledger, at = request.ledger, request.check.at
        new = _next(ledger, events, seed, state, at)
        if new is None:
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        try:
            summary, state = request.summarise(state, new.given, OUTPUT_TOKENS)
        except SummaryFailed:
            failed = msgspec.structs.replace(state, calls=state.calls + 1)
            return ListOutcome(request.view, failed, held=SUMMARISER_FAILED)
        after, state = self._covered(ledger, at, new, summary, state)
        record: Pass = request.passed(new.given, after, summary_bytes=summary.bytes, empty=not summary.bytes)
        return ListOutcome(after, state, (record,))

    def _covered(self, ledger: Ledger, at: int, new: _Next, summary: Summary, state: Any) -> tuple[View, Any]:
        """The list over `at` events once a range has its summary, and what is remembered then."""
        text = Synthetic("summary", summary.bytes, summary.text, Role.MODEL)
        covered = followed(new.left, len(new.left), (msgspec.structs.replace(new.range, summary=text),))
        stop = new.range.stop
        state = msgspec.structs.replace(
            state, covered=covered, last_end=stop, watermark=stop, summary_bytes=summary.bytes
        )
        return without(view_of_ranges(ledger, covered, at), self.left_out(ledger)), state


class AdkSlidingWindow(AdkCompaction, StagedPolicy):
    """By turns; see the package. Which ones follows from the log alone: what comes after the newest summary."""

    name: ClassVar[str] = "adk-sliding-window"

    def searched(self, window: int) -> tuple[MessageCosts, int]:
        return NEW_TURNS, self.settings.compaction_interval - 1

    def walks(self, ledger: Ledger, state: AdkMemory) -> bool:
        """It acts at nothing else, and no event of the log is left out of requests."""
        settings, starts = self.settings, _is_turn_start(ledger)
        by_turns = settings.compaction_interval > 0 and not settings.token_threshold
        is_begun = state.last_end > 0 or (len(starts) > 0 and bool(starts[0]))  # else turns are counted otherwise
        return by_turns and is_begun and not self.left_out(ledger).any()

    def more_than_log(self, ledger: Ledger, head: Head, state: AdkMemory, window: int) -> int:
        """Turns behind the newest summary, less those of the whole log."""
        return _turn_continues(ledger, state) - NEW_TURNS.prefix(ledger).item(min(state.last_end, ledger.event_count))

    def act(self, asked: ScanRequest, row: int, head: Head, state: AdkMemory) -> Act | int | None:
        ledger, end = asked.ledger, asked.looks.item(row)
        events = self._old_turns(ledger, end, state) if _is_answered(ledger).item(end) else None
        new = _next(ledger, events, None, state, end)
        if new is None:
            return NOTHING_TO_COMPACT
        costs = self.estimator(ledger)
        summary, asked_state, given = asked.summarised(row, new.given, costs, state, OUTPUT_TOKENS)
        if not summary.bytes:
            return None
        after, state = self._covered(ledger, end, new, summary, asked_state)
        return Act(self._head(shared(head.at(ledger, end), after), end), state, (given,))

    @property
    def compares(self) -> str:
        return TURNS

    def limit(self, window: int) -> int:
        return int(self.settings.compaction_interval)

    def counted(self, sizes: Sizes) -> Ints:
        return new_turns(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(counted < 0)

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        return np.asarray((new_turns(sizes) >= max(self.settings.compaction_interval, 1)) & has_answer(sizes))


class AdkTokenThreshold(AdkCompaction):
    """By tokens, and by turns where an interval is set; see the package."""

    name: ClassVar[str] = "adk-token-threshold"
    least_count: ClassVar[int] = 0  # `_latest_prompt_token_count` takes any that is not None (2.13.0)

    @property
    def compares(self) -> str:
        return TOKENS

    def limit(self, window: int) -> int:
        return int(self.settings.token_threshold)

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(np.where(sizes.as_of >= 0, sizes.last, sizes.whole // 4))

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        interval = self.settings.compaction_interval
        by_turns = np.asarray((new_turns(sizes) >= interval) & (interval > 0))
        ledger, head = sizes.ledger, sizes.head
        prefix = RELAYED.prefix(ledger)
        relayed = (RELAYED.view(ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from]) // 4
        by_tokens = self.over(np.where(sizes.as_of >= 0, sizes.last, relayed), self.limit(0))
        return np.asarray((by_tokens | by_turns) & has_answer(sizes))

    @property
    def acts_below(self) -> str:
        by_tokens = f"the estimate when the turn ended reached {self.settings.token_threshold:,} tokens"
        by_turns = f"at least {self.settings.compaction_interval:,} turns since the last summary"
        asked = ((self.settings.token_threshold, by_tokens), (self.settings.compaction_interval, by_turns))
        return ", or ".join(words for number, words in asked if number)


def _is_turn_start(ledger: Ledger) -> Ints:
    if "adk turn starts" not in ledger.derived:
        users = roles_of(ledger) == USER
        begins = users.copy()
        begins[1:] &= ~users[:-1]
        ledger.derived["adk turn starts"] = begins.astype(np.int64)
    starts: Ints = ledger.derived["adk turn starts"]
    return starts


NEW_TURNS = MessageCosts("adk turns", lambda ledger, parts: _is_turn_start(ledger), lambda message: 0)


def _all_turn_starts(ledger: Ledger) -> Ints:
    """The events with which turns begin; what precedes the first message of the user belongs to the first."""
    if "adk all turn starts" not in ledger.derived:
        ledger.derived["adk all turn starts"] = np.flatnonzero(_is_turn_start(ledger))
    starts: Ints = ledger.derived["adk all turn starts"]
    return starts


def new_turns(sizes: Sizes) -> Ints:
    """Turns that ended after the newest summary."""
    ledger, end = sizes.ledger, sizes.state.last_end
    prefix = ledger.prefix_by("adk turns", _is_turn_start)
    # a turn that began before the end of the newest summary and continues after it is new, too
    new = prefix[sizes.at] - prefix.item(min(end, ledger.event_count))
    if _turn_continues(ledger, sizes.state):
        new = new + (sizes.at > end)
    return np.asarray(new, dtype=np.int64)


def _turn_continues(ledger: Ledger, state: AdkMemory) -> bool:
    """Does a turn continue behind the newest summary, or leave an error there, which counts as a turn of its own."""
    end = state.last_end
    return end < ledger.event_count and (not _is_turn_start(ledger).item(end) or _leaves_error(ledger, state))


def has_answer(sizes: Sizes) -> NDArray[np.bool_]:
    """Did the turn end with a final answer."""
    return np.asarray(_is_answered(sizes.ledger)[sizes.at])


def _is_answered(ledger: Ledger) -> NDArray[np.bool_]:
    """Does a log of so many events end with a final answer."""
    if "adk answered" not in ledger.derived:
        flags = ledger.events["flags"]
        ledger.derived["adk answered"] = np.append(False, ((flags & MODEL) > 0) & ((flags & HAS_CALL) == 0))
    answered: NDArray[np.bool_] = ledger.derived["adk answered"]
    return answered


def _range_of(groups: list[MessageGroup]) -> EventRange | None:
    """The range from the first to the last of some events; None where there are none."""
    held = [group for group in groups if group.messages]
    if not held:
        return None
    return EventRange(held[0].first_event, held[-1].messages[-1].event + 1, not groups[-1].messages)


def _next(ledger: Ledger, events: EventRange | None, seed: Covered | None, state: AdkMemory, at: int) -> _Next | None:
    """The range that some events are covered by, with the earlier summary that it continues; None where there are none,
    or a summary would not be worth it."""
    if events is None:
        return None
    start, stop, with_error = events
    new = Covered(seed.start if seed else start, stop, Synthetic("summary", 0), with_error)
    known, covered = ledger.derived.get(RANGES, _NO_RANGES)[0], state.covered
    is_row = _follow_from(covered, common_length(known, covered))
    left = _not_in(new, covered) if is_row else _all_not_in(new, covered)
    if not _is_worth_it(ledger, covered, left, new, at, is_row=is_row):
        return None
    return _Next(new, left, (*((seed.summary,) if seed else ()), Span(start, stop)))


def view_of_ranges(ledger: Ledger, covered: tuple[Covered, ...], at: int) -> View:
    """The log without covered events, and each summary where its range ends."""
    known, view = ledger.derived.get(RANGES, _NO_RANGES)
    same = common_length(known, covered)
    if (covered and at < covered[-1].stop) or not _follow_from(covered, same):
        return _sorted_view(covered, at)
    size = len(view) - sum(len(_with_summary(known, place)) for place in range(same, len(known)))
    new = [segment for place in range(same, len(covered)) for segment in _with_summary(covered, place)]
    view = followed(view, size, new)
    ledger.derived[RANGES] = covered, view
    reach = covered[-1].stop if covered else 0
    return followed(view, len(view), (Span(reach, at),)) if reach < at else view


def _follow_from(covered: tuple[Covered, ...], same: int) -> bool:
    """Do ranges follow one another, of which the first `same` are known to."""
    return all(_follows(*pair) for pair in pairwise(covered[max(same - 1, 0) :]))


def _follows(one: Covered, other: Covered) -> bool:
    """Do two ranges begin and end one after the other."""
    return one.start <= other.start and one.stop < other.stop


def _behind(covered: tuple[Covered, ...], place: int, at: int) -> View:
    """What the view of ranges that follow one another has from one of them on."""
    segments = [segment for number in range(place, len(covered)) for segment in _with_summary(covered, number)]
    reach = covered[-1].stop if covered else 0
    return (*segments, Span(reach, at)) if reach < at else tuple(segments)


def _with_summary(covered: tuple[Covered, ...], place: int) -> View:
    """A summary with the events between its range and the one before."""
    item, reach = covered[place], covered[place - 1].stop if place else 0
    return (Span(reach, item.start), item.summary) if reach < item.start else (item.summary,)


def _sorted_view(covered: tuple[Covered, ...], at: int) -> View:
    """The same for ranges in any order."""
    order = sorted(range(len(covered)), key=lambda number: (covered[number].stop, number))
    ranges = sorted((item.start, item.stop) for item in covered)
    segments: list[tuple[float, int, Segment]] = [
        (covered[number].stop - 0.5, place, covered[number].summary) for place, number in enumerate(order)
    ]
    position = 0
    for start, stop in [*ranges, (at, at)]:
        if start > position:
            segments.append((position, 0, Span(position, min(start, at))))
        position = max(position, stop)
    segments.sort(key=lambda item: item[:2])
    return normal(tuple(segment for *_, segment in segments))


def _not_in(new: Covered, covered: tuple[Covered, ...]) -> tuple[Covered, ...]:
    """The ranges that a new one does not contain, of ranges that follow one another: of these it contains the last
    ones, and none that begins before it."""
    start, stop, size = new.start, new.stop, len(covered)
    while size and start <= covered[size - 1].start and covered[size - 1].stop <= stop:
        size -= 1
    if not size or covered[size - 1].start < start:
        left: tuple[Covered, ...] = covered[:size]
        return left
    return _all_not_in(new, covered)


def _all_not_in(new: Covered, covered: tuple[Covered, ...]) -> tuple[Covered, ...]:
    """The same of ranges in any order."""
    return tuple([item for item in covered if item.start < new.start or new.stop < item.stop])


def _is_worth_it(
    ledger: Ledger, covered: tuple[Covered, ...], left: tuple[Covered, ...], new: Covered, at: int, *, is_row: bool
) -> bool:
    """Would a summary without text, behind the ranges that are `left`, remove more than the newest summary has, as
    JSON; `is_row`: the covered ranges follow one another."""
    ranges, same = followed(left, len(left), (new,)), len(left)
    reaches = new.stop <= at and (not covered or covered[-1].stop <= at)
    if is_row and reaches and (not left or _follows(left[-1], new)) and common_length(covered, left) == same:
        before, after = _behind(covered, same, at), _behind(ranges, same, at)  # the same up to there
    else:
        before, after = view_of_ranges(ledger, covered, at), view_of_ranges(ledger, ranges, at)
    previous = summary_json(covered[-1].summary.bytes) if covered else 0
    return JSON.view(ledger, before) - JSON.view(ledger, after) + summary_json(0) - EMPTY_JSON > previous


def _old_events(request: ListRequest, state: Any, retained: int) -> tuple[EventRange | None, Covered | None]:
    """The events since the newest summary but for the newest, and that summary."""
    ledger, at = request.ledger, request.check.at
    latest = state.covered[-1] if state.covered else None
    groups = _with_errors(ledger, latest, at)
    if len(groups) <= retained:
        return None, None
    split = _split(ledger, groups, len(groups) - retained) if retained else len(groups)
    return _range_of(_self_contained(ledger, groups[:split], at)), latest


def _with_errors(ledger: Ledger, latest: Covered | None, at: int) -> list[MessageGroup]:
    """The events since the newest summary. A call that failed leaves an event with its error, a group without
    messages (measured by running 2.13.0)."""
    start = latest.stop if latest else 0
    groups = groups_of(ledger, [ListMessage(event) for event in range(start, at)])
    calls = _failed_calls(ledger)
    failed = calls[bisect_left(calls, start) : bisect_left(calls, at)]
    if latest and latest.with_error and failed and failed[0] == start:
        failed = failed[1:]
    for event in reversed(failed):
        later = (place for place, group in enumerate(groups) if group.messages and group.first_event >= event)
        place = next(later, len(groups))
        groups.insert(place, MessageGroup((), -1, False))
    return groups


def _failed_calls(ledger: Ledger) -> list[int]:
    """The events before which a call of the model had no answer."""
    if "adk failed calls" not in ledger.derived:
        at = ledger.steps["at"]
        at = at[(ledger.steps["response"] < 0) & (at < ledger.event_count)]
        ledger.derived["adk failed calls"] = np.unique(at[roles_of(ledger)[at] != ASSISTANT]).tolist()
    failed: list[int] = ledger.derived["adk failed calls"]
    return failed


def _leaves_error(ledger: Ledger, state: AdkMemory) -> bool:
    """Does a turn that the newest summary covers end with the error of a call, which it does not cover."""
    latest = state.covered[-1] if state.covered else None
    if latest is None or latest.with_error:
        return False
    calls = _failed_calls(ledger)
    place = bisect_left(calls, latest.stop)
    return place < len(calls) and calls[place] == latest.stop


def _split(ledger: Ledger, groups: list[MessageGroup], split: int) -> int:
    """The last place up to `split` behind which no result is without its call."""
    open_calls: set[int] = set()
    for place in range(len(groups) - 1, -1, -1):
        for message in groups[place].messages:
            open_calls.update(row for row in answered_by(ledger, message) if row >= 0)
            open_calls.difference_update(calls_of(ledger, message))
        if not open_calls and place <= split:
            return place
    return 0


def _self_contained(ledger: Ledger, groups: list[MessageGroup], at: int) -> list[MessageGroup]:
    """The longest beginning of some events in which every call has its result. Calls that are never answered do not
    count, but for those of the newest turn."""
    strict = _safe_length(ledger, groups, frozenset())
    if strict == len(groups):
        return groups
    begins = _all_turn_starts(ledger)
    count = int(np.searchsorted(begins, at))
    newest = int(begins[count - 1]) if count > 1 else 0
    if strict and _turn_of(ledger, groups[:strict]) != _turn_of(ledger, groups[: strict + 1]):
        return groups[:strict]
    answers, end = _first_answers(ledger), ledger.part_starts.item(at)
    old = (message for group in groups for message in group.messages if message.event < newest)
    dead = frozenset(row for message in old for row in calls_of(ledger, message) if answers.item(row) >= end)
    return groups[: max(strict, _safe_length(ledger, groups, dead))]


def _first_answers(ledger: Ledger) -> Ints:
    """Of every part of the log the first result that answers it; their number where none does."""
    if "adk first answers" not in ledger.derived:
        answered = ledger.parts["answers"]
        first, rows = np.full(len(answered), len(answered), dtype=np.int64), np.flatnonzero(answered >= 0)
        first[answered[rows[::-1]]] = rows[::-1]  # of several assignments to one place the last one counts
        ledger.derived["adk first answers"] = first
    answers: Ints = ledger.derived["adk first answers"]
    return answers


def _answered_until(ledger: Ledger) -> Ints:
    """For every event how long the log is at least when all of its calls have a result: longer than it ever gets where
    one never has, or has it in its own event; 0 for an event without calls."""
    if "adk answered until" not in ledger.derived:
        calls, event = np.flatnonzero(ledger.parts["kind"] == CALL), ledger.parts["event"]
        answer = np.append(event, ledger.event_count)[_first_answers(ledger)[calls]]
        ends = np.where(answer > event[calls], answer, ledger.event_count) + 1
        until = np.zeros(ledger.event_count, dtype=np.int64)
        np.maximum.at(until, event[calls], ends)
        ledger.derived["adk answered until"] = until
    answered: Ints = ledger.derived["adk answered until"]
    return answered


def _turn_of(ledger: Ledger, groups: list[MessageGroup]) -> int:
    """The turn of the last of some events; an error belongs to that of the event before it."""
    last = next((group.first_event for group in reversed(groups) if group.messages), -1)
    return int(ledger.prefix_by("adk turns", _is_turn_start)[last + 1])


def _safe_length(ledger: Ledger, groups: list[MessageGroup], dead: frozenset[int]) -> int:
    open_calls: set[int] = set()
    safe = 0
    for place, group in enumerate(groups):
        for message in group.messages:
            open_calls.difference_update(answered_by(ledger, message))
            open_calls.update(row for row in calls_of(ledger, message) if row not in dead)
        if not open_calls:
            safe = place + 1
    return safe
