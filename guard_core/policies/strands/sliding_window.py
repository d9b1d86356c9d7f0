"""The sliding window: after a turn, and before every so many calls, the oldest messages beyond a number are dropped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_CALL, RESULT
from guard_core.events import Event, Part, ToolResultPart, value_text
from guard_core.forms import Form, brings_form
from guard_core.forms.base import LogColumns, PartColumns
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.groups import GROUPS, MessageGroup, flat, starts
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, USER, ListMessage, MessageCosts, roles_of, view_of
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.policies.strands.manager import StrandsManager, is_pinned, list_of
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Span

KEPT = 200  # characters at each end of a result that is cut (1.62.0)
CANNOT = "Unable to trim conversation context!"  # the library's own words
BEFORE, AFTER = "...\n\n... [truncated: ", " chars removed] ...\n\n..."  # around the number of removed characters


@brings_form
class CutResults(Form, frozen=True):
    """Results cut to their first and last 200 characters, with the number of those that are gone."""

    kind: ClassVar[str] = "cut results"

    @property
    def words(self) -> str:
        return f"the result was cut to its first and last {KEPT} characters"

    def touches(self, kind: int) -> bool:
        return kind == RESULT

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        chars = parts["chars"]
        cut = self._is_cut(parts)
        removed = np.maximum(chars - 2 * KEPT, 1)
        added = len(BEFORE + AFTER) + np.floor(np.log10(removed)).astype(np.int64) + 1
        new = {name: parts[name] * 2 * KEPT // np.maximum(chars, 1) for name in ("bytes", "utf16", "json_chars")}
        new |= {name: parts[name] * 2 * KEPT // np.maximum(chars, 1) for name in ("non_ascii", "wide", "repr_chars")}
        new |= {name: new[name] + added for name in ("bytes", "utf16", "json_chars", "repr_chars")}
        new |= {"chars": 2 * KEPT + added, "heuristic": parts["name_chars"] // 4 + new["bytes"] // 4}
        return {**parts, **{name: np.where(cut, value, parts[name]) for name, value in new.items()}}

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        return self._is_cut(old)  # the note may be as long as what is cut

    def _is_cut(self, parts: PartColumns) -> NDArray[np.bool_]:
        return np.asarray((parts["kind"] == RESULT) & (parts["chars"] > 2 * KEPT))

    def message(self, event: Event) -> Event:
        parts = tuple(map(_cut, event.parts))
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)


def _cut(part: Part) -> Part:
    """A result without its middle, as text: the first and the last KEPT characters, and how many were between."""
    text = value_text(part.content) if isinstance(part, ToolResultPart) else ""
    if len(text) <= 2 * KEPT:
        return part
    new = f"{text[:KEPT]}{BEFORE}{len(text) - 2 * KEPT}{AFTER}{text[-KEPT:]}"
    return msgspec.structs.replace(part, content=new)


class _Begins(NamedTuple):
    """The events with which the messages of a log begin; of each of them the place of the first message from there on
    that is the user's, and of the first call that its results follow (the number of messages: there is none)."""

    events: list[int]
    users: list[int]
    pairs: list[int]


def _begins(ledger: Ledger) -> _Begins:
    if "strands begins" not in ledger.derived:
        events = np.flatnonzero(starts(ledger))
        roles, is_call = roles_of(ledger)[events], (ledger.events["flags"][events] & HAS_CALL) > 0
        answered = np.append(roles[1:] == TOOL, False)[: len(events)]
        marked = (roles == USER, (roles == ASSISTANT) & is_call & answered)
        places = [np.where(each, np.arange(len(events)), len(events)) for each in marked]
        firsts = (np.minimum.accumulate(each[::-1])[::-1].tolist() for each in places)
        ledger.derived["strands begins"] = _Begins(events.tolist(), *firsts)
    begins: _Begins = ledger.derived["strands begins"]
    return begins


class StrandsSlidingWindow(StrandsManager, StagedPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "strands-sliding-window"
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.END_OF_TURN, Point.ON_OVERFLOW)
    compares_searched: ClassVar[bool] = False

    def searched(self, window: int) -> tuple[MessageCosts, int]:
        return GROUPS, self.settings.window_size

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """It acts after turns alone, and its list is the end of the log as it is."""
        settings, head = self.settings, state.head
        is_end = not head or (len(head) == 1 and isinstance(head[0], Span) and head[0].stop == state.kept_from)
        is_plain = is_end and not any(getattr(segment, "form", "?") for segment in head)
        simple = settings.window_size > 0 and not (settings.per_turn or settings.pin_first or settings.proactive)
        return simple and is_plain and not ledger.changed_by(self.sent_form).any()

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int:
        begins, users, pairs = _begins(asked.ledger)
        end, high = asked.looks.item(row), bisect_left(begins, asked.looks.item(row))
        oldest = high - self.settings.window_size  # the list has more messages than that
        if users[oldest] < high:
            start = begins[users[oldest]]
        elif pairs[oldest] + 1 < high:
            start = begins[pairs[oldest]]
        else:
            return NOTHING_TO_COMPACT
        return Act(Head((Span(start, end),), end, self.sent_form), state)

    def _many(self, sizes: Sizes) -> NDArray[np.bool_]:
        """Where the list has more messages than stay."""
        prefix, head = GROUPS.prefix(sizes.ledger), sizes.head
        count = GROUPS.view(sizes.ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from]
        return np.asarray(count > self.settings.window_size)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        over = self.over(counted, limit)
        if self.settings.per_turn:
            over = over | (self._is_due(sizes.rows, sizes.state) & self._many(sizes))
        return np.asarray(over)

    @property
    def acts_below(self) -> str:
        return f"more than {self.settings.window_size:,} messages"

    def reason(self, request: ListRequest) -> str:
        """When a turn has ended, messages alone count."""
        return self.acts_below if request.check.point is Point.END_OF_TURN else super().reason(request)

    def _is_due(self, rows: Any, state: Any) -> Any:
        """Before which steps it checks; a request that is sent again counts as a call."""
        return (rows + 1 + state.refusals) % self.settings.per_turn == 0

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        return self._many(sizes)

    def checks(self, request: ListRequest, state: Any, counted: int) -> list[Callable[[list[ListMessage]], bool]]:
        def many(messages: list[ListMessage]) -> bool:
            due = bool(self._is_due(request.check.step, state))
            return due and len(list_of(request, messages)) > int(self.settings.window_size)

        others = super().checks(request, state, counted)
        return [*others, many] if self.settings.per_turn else others

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        if request.check.point is Point.END_OF_TURN:
            return self.reduced(request, request.messages, state, refused=False)
        return super().compact(request, state)

    def reduced(self, request: ListRequest, messages: list[ListMessage], state: Any, *, refused: bool) -> ListOutcome:
        ledger, groups, size = request.ledger, list_of(request, messages), self.settings.window_size
        state = self.pinned(request, groups, state)
        if size == 0:
            return _dropped(request, groups, len(groups), state)
        if refused and self.settings.should_truncate_results:
            cut = _cut_oldest(ledger, groups, state)
            if cut is not None:
                view = view_of(ledger, flat(cut))
                return ListOutcome(view, state, (request.passed((), view),))
        start = 2 if len(groups) <= size else len(groups) - size
        place = _trim_point(groups, start)
        if place is None:
            error = CANNOT if refused else ""
            return ListOutcome(view_of(ledger, messages), state, error=error, held=NOTHING_TO_COMPACT)
        return _dropped(request, groups, place, state, refused=refused)


def _dropped(
    request: ListRequest, groups: list[MessageGroup], place: int, state: Any, *, refused: bool = False
) -> ListOutcome:
    """The list without the messages before a place, but for pinned ones."""
    remaining = [group for number, group in enumerate(groups) if number >= place or is_pinned(group, state)]
    view = view_of(request.ledger, flat(remaining))
    if len(remaining) == len(groups):
        return ListOutcome(view, state, error=CANNOT if refused else "", held=NOTHING_TO_COMPACT)
    return ListOutcome(view, state, (request.passed((), view),))


def _cut_oldest(ledger: Ledger, groups: list[MessageGroup], state: Any) -> list[MessageGroup] | None:
    """The list with the results of its oldest message with results cut; None where none of them is long."""
    form = CutResults().name
    for place, group in enumerate(groups):
        if not group.has_results or is_pinned(group, state):
            continue
        long = [
            message for message in group.messages if not message.is_in(form) and ledger.changed_by(form)[message.event]
        ]
        if not long:
            return None
        changed = tuple(message.joined(form) if message in long else message for message in group.messages)
        return [*groups[:place], MessageGroup(changed, group.role, group.has_calls), *groups[place + 1 :]]
    return None


def _trim_point(groups: list[MessageGroup], start: int) -> int | None:
    """The first message of the user from a place on, else the first call with its results."""
    for place in range(start, len(groups)):
        if groups[place].role == USER:
            return place
    for place in range(start, len(groups) - 1):
        if groups[place].has_calls and groups[place + 1].has_results:
            return place
    return None
