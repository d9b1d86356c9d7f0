"""When ADK compacts, what it covers, and what a request then holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL, HAS_MEDIA, HAS_RESULT, MODEL
from guard_core.errors import SummaryFailed
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.google_adk.sizes import EMPTY_JSON, ESTIMATE, JSON, RELAYED, summary_json
from guard_core.policies.pieces.groups import Group, groups_of
from guard_core.policies.pieces.lists import TOKENS, TURNS, ListMemory, ListPolicy, Outcome, Request, Sizes, without
from guard_core.policies.pieces.messages import USER, Costs, Message, answered_by, calls_of, roles_of
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Pass
from guard_core.usage import normal
from guard_core.views import Segment, Span, Synthetic, View

OUTPUT_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit


class Covered(msgspec.Struct, frozen=True):
    """A range of the log that a summary covers: events `start` to `stop` (exclusive)."""

    start: int
    stop: int
    summary: Synthetic

    def contains(self, other: Covered) -> bool:
        return self.start <= other.start and other.stop <= self.stop


class AdkMemory(ListMemory, frozen=True, omit_defaults=True):
    """`covered` are the summaries that no later one replaced, in the order in which they were made; `last_end` is where
    the newest summary ends."""

    covered: tuple[Covered, ...] = ()
    last_end: int = 0


class AdkCompaction(ListPolicy):
    """The base of both."""

    state_type: ClassVar[type] = AdkMemory
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.END_OF_TURN)

    def costs(self) -> Costs:
        return ESTIMATE

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray((counted >= limit) & (counted > 0) & (limit > 0))

    def compact(self, request: Request, state: Any) -> Outcome:
        done = Outcome(request.view, state, held=NOTHING_TO_COMPACT)
        if self.settings.token_threshold and self._is_over_threshold(request, state):
            done = self._summarised(request, state, *_old_events(request, state, self.settings.event_retention_size))
        if done.passes or request.check.point is not Point.END_OF_TURN or not self.settings.compaction_interval:
            return done
        return self._summarised(request, done.state, *self._old_turns(request, state))

    def _is_over_threshold(self, request: Request, state: Any) -> bool:
        counted = request.counted
        if request.check.point is Point.END_OF_TURN and state.as_of < 0:
            counted = RELAYED.view(request.ledger, request.view) // 4
        return bool(self.over(np.array([counted]), self.settings.token_threshold)[0])

    def left_out(self, ledger: Ledger) -> NDArray[np.bool_]:
        flags = ledger.events["flags"]
        return np.asarray((ledger.events["chars"] == 0) & ((flags & (HAS_CALL | HAS_RESULT | HAS_MEDIA)) == 0))

    def _old_turns(self, request: Request, state: Any) -> tuple[list[Group], Covered | None]:
        """The turns that ended since the last summary, those that overlap before them; none while they are too few."""
        ledger, at = request.ledger, request.check.at
        begins = [*turn_starts(ledger, at), at]
        turns = list(pairwise(begins))
        new = [number for number, (_, stop) in enumerate(turns) if stop > state.last_end]
        if len(new) < self.settings.compaction_interval:
            return [], None
        first = turns[max(0, new[0] - self.settings.overlap_size)][0]
        groups = groups_of(ledger, [Message(event) for event in range(first, at)])
        return _self_contained(ledger, groups, at), None

    def _summarised(self, request: Request, state: Any, groups: list[Group], seed: Covered | None) -> Outcome:
        """A range of events covered by a summary, with the earlier summary that it continues."""
        ledger = request.ledger
        if not groups:
            return Outcome(request.view, state, held=NOTHING_TO_COMPACT)
        start, stop = groups[0].first_event, groups[-1].messages[-1].event + 1
        new = Covered(seed.start if seed else start, stop, Synthetic("summary", 0))
        if not _is_worth_it(ledger, state.covered, new, request.check.at):
            return Outcome(request.view, state, held=NOTHING_TO_COMPACT)
        given: View = (*((seed.summary,) if seed else ()), Span(start, stop))
        try:
            summary, state = request.summarise(state, given, OUTPUT_TOKENS)
        except SummaryFailed:
            failed = msgspec.structs.replace(state, calls=state.calls + 1)
            return Outcome(request.view, failed, held=SUMMARISER_FAILED)
        text = Synthetic("summary", summary.bytes, summary.text, Role.MODEL)
        covered = (*(item for item in state.covered if not new.contains(item)), Covered(new.start, stop, text))
        state = msgspec.structs.replace(
            state, covered=covered, last_end=stop, watermark=stop, summary_bytes=summary.bytes
        )
        after = without(view_of_ranges(covered, request.check.at), self.left_out(ledger))
        record: Pass = request.passed(given, after, summary_bytes=summary.bytes, empty=not summary.bytes)
        return Outcome(after, state, (record,))


class AdkSlidingWindow(AdkCompaction):
    """By turns; see the package."""

    name: ClassVar[str] = "adk-sliding-window"

    @property
    def compares(self) -> str:
        return TURNS

    def limit(self, window: int) -> int:
        return int(self.settings.compaction_interval)

    def counted(self, sizes: Sizes) -> Ints:
        return new_turns(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.zeros(len(counted), dtype=np.bool_)

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        return np.asarray((new_turns(sizes) >= max(self.settings.compaction_interval, 1)) & has_answer(sizes))


class AdkTokenThreshold(AdkCompaction):
    """By tokens, and by turns where an interval is set; see the package."""

    name: ClassVar[str] = "adk-token-threshold"

    @property
    def compares(self) -> str:
        return TOKENS

    def limit(self, window: int) -> int:
        return int(self.settings.token_threshold)

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(np.where(sizes.as_of >= 0, sizes.last, sizes.whole // 4))

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        interval = self.settings.compaction_interval
        by_turns = (new_turns(sizes) >= interval) if interval else np.zeros(len(sizes.at), dtype=np.bool_)
        ledger, head = sizes.ledger, sizes.head
        prefix = RELAYED.prefix(ledger)
        relayed = (RELAYED.view(ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from]) // 4
        by_tokens = self.over(np.where(sizes.as_of >= 0, sizes.last, relayed), self.limit(0))
        return np.asarray((by_tokens | by_turns) & has_answer(sizes))


def _is_turn_start(ledger: Ledger) -> Ints:
    users = roles_of(ledger) == USER
    starts = users.copy()
    starts[1:] &= ~users[:-1]
    return np.asarray(starts, dtype=np.int64)


def turn_starts(ledger: Ledger, at: int) -> list[int]:
    """The events with which turns begin; what precedes the first message of the user belongs to the first."""
    begins = np.flatnonzero(_is_turn_start(ledger)[:at]).tolist()
    return [0, *begins[1:]] if begins else [0]


def new_turns(sizes: Sizes) -> Ints:
    """Turns that ended after the newest summary."""
    ledger, end = sizes.ledger, sizes.state.last_end
    prefix = ledger.prefix_by("adk turns", _is_turn_start)
    # a turn that began before the end of the newest summary and goes on after it is new, too
    goes_on = np.where((sizes.at > end) & (end < ledger.event_count), 1 - _begins_at(ledger, end), 0)
    return np.asarray(prefix[sizes.at] - prefix[min(end, ledger.event_count)] + goes_on, dtype=np.int64)


def _begins_at(ledger: Ledger, event: int) -> int:
    return int(_is_turn_start(ledger)[event]) if event < ledger.event_count else 1


def has_answer(sizes: Sizes) -> NDArray[np.bool_]:
    """Did the turn end with a final answer."""
    flags = np.append(sizes.ledger.events["flags"], 0)[np.maximum(sizes.at, 0) - 1]
    return np.asarray((sizes.at > 0) & ((flags & MODEL) > 0) & ((flags & HAS_CALL) == 0))


def view_of_ranges(covered: tuple[Covered, ...], at: int) -> View:
    """The log without covered events, and each summary where its range ends."""
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


def _is_worth_it(ledger: Ledger, covered: tuple[Covered, ...], new: Covered, at: int) -> bool:
    """Would a summary without text remove more than the newest summary has, as JSON."""
    before = JSON.view(ledger, view_of_ranges(covered, at)) if covered else JSON.view(ledger, (Span(0, at),))
    left = tuple(item for item in covered if not new.contains(item))
    after = JSON.view(ledger, view_of_ranges((*left, new), at)) - summary_json(0) + EMPTY_JSON
    previous = summary_json(covered[-1].summary.bytes) if covered else 0
    return before - after > previous


def _old_events(request: Request, state: Any, retained: int) -> tuple[list[Group], Covered | None]:
    """The events since the newest summary but for the newest, and that summary."""
    ledger, at = request.ledger, request.check.at
    latest = state.covered[-1] if state.covered else None
    groups = groups_of(ledger, [Message(event) for event in range(latest.stop if latest else 0, at)])
    if len(groups) <= retained:
        return [], None
    split = _split(ledger, groups, len(groups) - retained) if retained else len(groups)
    return _self_contained(ledger, groups[:split], at), latest


def _split(ledger: Ledger, groups: list[Group], split: int) -> int:
    """The last place up to `split` behind which no result is without its call."""
    open_calls: set[int] = set()
    for place in range(len(groups) - 1, -1, -1):
        for message in groups[place].messages:
            open_calls.update(row for row in answered_by(ledger, message) if row >= 0)
            open_calls.difference_update(calls_of(ledger, message))
        if not open_calls and place <= split:
            return place
    return 0


def _self_contained(ledger: Ledger, groups: list[Group], at: int) -> list[Group]:
    """The longest beginning of some events in which every call has its result. Calls that are never answered do not
    count, but for those of the newest turn."""
    strict = _safe_length(ledger, groups, frozenset())
    if strict == len(groups):
        return groups
    newest = turn_starts(ledger, at)[-1]
    if strict and _turn_of(ledger, groups[strict - 1]) != _turn_of(ledger, groups[strict]):
        return groups[:strict]
    answered = set(ledger.parts["answers"][: int(ledger.part_starts[at])].tolist())
    old = (message for group in groups for message in group.messages if message.event < newest)
    dead = frozenset(row for message in old for row in calls_of(ledger, message) if row not in answered)
    return groups[: max(strict, _safe_length(ledger, groups, dead))]


def _turn_of(ledger: Ledger, group: Group) -> int:
    return int(ledger.prefix_by("adk turns", _is_turn_start)[group.first_event + 1])


def _safe_length(ledger: Ledger, groups: list[Group], dead: frozenset[int]) -> int:
    open_calls: set[int] = set()
    safe = 0
    for place, group in enumerate(groups):
        for message in group.messages:
            open_calls.difference_update(answered_by(ledger, message))
            open_calls.update(row for row in calls_of(ledger, message) if row not in dead)
        if not open_calls:
            safe = place + 1
    return safe
