"""ClearToolUsesEdit: in each request over the trigger the results of all but the newest tool calls are cleared."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import tool_key
from guard_core.estimation.usage import normal
from guard_core.forms import Arguments, Replaced
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.langchain.counting import APPROXIMATE
from guard_core.policies.langchain.settings import LangChainClearSettings
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, ListMessage, MessageCosts, calls_of, roles_of, view_of
from guard_core.view_columns import MOST_SEGMENTS, ViewColumns
from guard_core.views import Span, View


class ClearableUses(NamedTuple):
    """What can be cleared of a log: the events with tool results in order, of each whether it can be cleared, and the
    view of the log with all that can be. Of the first 0, 1, ... results `up_to` counts those up to the last that can be
    cleared; `most` is the number of results after which clearing stops. `answers` are the answers before each event;
    `plain` says of how many events up to each a clearing leaves nothing: no result that can be cleared and changes."""

    results: Ints
    clearable: list[bool]
    up_to: Ints
    answers: list[int]
    plain: list[int]
    view: View
    starts: list[int]
    most: int


class LangChainClearToolUses(EditingPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "langchain-clear-tool-uses"
    settings: LangChainClearSettings

    def costs(self) -> MessageCosts:
        return APPROXIMATE

    def limit(self, window: int) -> int:
        return self.settings.trigger

    def edited(self, steps: ActingSteps) -> Edited | None:
        clearing = self._clearing(steps.ledger)
        views: list[View] = []
        cleared: dict[int, View] = {0: ()}
        for at, count in zip(steps.at.tolist(), self._counts(clearing, steps.at).tolist(), strict=True):
            stop = clearing.results.item(count - 1) + 1 if count else 0
            if count not in cleared:
                cleared[count] = self._cleared(steps.ledger, clearing, stop - 1)
            views.append((*cleared[count], Span(stop, at)) if stop < at else cleared[count])
            if len(views[-1]) > MOST_SEGMENTS:
                return None
        columns = ViewColumns.of(views)
        return None if columns is None else Edited(columns)

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, at = request.ledger, request.check.at
        clearing = self._clearing(ledger)
        count = int(self._counts(clearing, np.array([at]))[0])
        if not count:
            return ListOutcome(request.view, state)
        last = int(clearing.results[count - 1])
        return ListOutcome(
            (*self._cleared(ledger, clearing, last), *((Span(last + 1, at),) if last + 1 < at else ())), state
        )

    def _counts(self, clearing: ClearableUses, at: Ints) -> Ints:
        """How many results are looked at in requests over `at` events; the last of them is cleared."""
        count = np.searchsorted(clearing.results, at) - self.settings.keep
        return clearing.up_to[np.maximum(np.minimum(count, clearing.most), 0)]

    def _clearing(self, ledger: Ledger) -> ClearableUses:
        """What can be cleared, once for a ledger and the settings."""
        settings = self.settings
        key = (self.name, *msgspec.structs.astuple(msgspec.structs.replace(settings, trigger=0, keep=0)))
        if key not in ledger.derived:
            ledger.derived[key] = self._of_ledger(ledger)
        clearing: ClearableUses = ledger.derived[key]
        return clearing

    def _of_ledger(self, ledger: Ledger) -> ClearableUses:
        roles = roles_of(ledger)
        results = np.flatnonzero(roles == TOOL)
        owners = self._owners(ledger, roles, results)
        clearable = [owner >= 0 for owner in owners]
        cleared = {event for event, owner in zip(results.tolist(), owners, strict=True) if owner >= 0}
        messages = [self._formed(ledger, event, cleared) for event in range(ledger.event_count)]
        view = view_of(ledger, messages)
        starts = [segment.start for segment in view if isinstance(segment, Span)]
        most = self._most(ledger, results.tolist(), owners)
        counts = np.where(clearable, np.arange(1, len(results) + 1), 0).astype(np.int64)
        answers = np.where(roles == ASSISTANT, np.arange(len(roles)), 0)
        changed = np.zeros(len(roles), dtype=np.bool_)
        changed[results[clearable]] = True
        changed &= ledger.changed_by(self._form)
        return ClearableUses(
            results,
            clearable,
            np.maximum.accumulate(np.append(0, counts)),
            np.maximum.accumulate(answers).tolist(),
            prefix_sums((~changed).astype(np.int64)).tolist(),
            view,
            starts,
            most,
        )

    def _owners(self, ledger: Ledger, roles: Ints, results: Ints) -> list[int]:
        """For each event with results the answer whose calls they answer; -1 where they are not cleared: the call is
        not in the answer just before, or its tool is left alone."""
        names = (name.strip() for name in self.settings.exclude_tools.split(","))
        excluded = {tool_key(name) for name in names if name}
        answers = np.append(np.flatnonzero(roles == ASSISTANT), -1)
        before = answers[np.searchsorted(answers[:-1], results) - 1].tolist()
        parts, owners = ledger.parts, []
        for event, answer in zip(results.tolist(), before, strict=True):
            first, stop = ledger.part_starts[event : event + 2].tolist()
            calls = [row for row in parts["answers"][first:stop].tolist() if row >= 0]
            own = bool(calls) and all(int(parts["event"][row]) == answer for row in calls)
            allowed = not any(int(parts["tool"][row]) in excluded for row in calls)
            owners.append(answer if own and allowed else -1)
        return owners

    @cached_property
    def _form(self) -> str:
        """The form of cleared results and, with their arguments cleared, of the answers that called for them."""
        replaced = Replaced(text=self.settings.placeholder).name
        return f"{replaced}+{Arguments().name}" if self.settings.clear_tool_inputs else replaced

    def _formed(self, ledger: Ledger, event: int, cleared: set[int]) -> ListMessage:
        """An event where some events with results are cleared; as it is where that changes nothing."""
        if event in cleared:
            return self._changed(ledger, event)
        if not self.settings.clear_tool_inputs:
            return ListMessage(event)
        calls = calls_of(ledger, ListMessage(event))
        which = tuple(place for place, row in enumerate(calls) if self._answer_to(ledger, row) in cleared)
        if len(which) == len(calls):
            return self._changed(ledger, event) if calls else ListMessage(event)
        return ListMessage(event, Arguments(which=which).name if which else "")

    def _changed(self, ledger: Ledger, event: int) -> ListMessage:
        return ListMessage(event, self._form if ledger.changed_by(self._form)[event] else "")

    def _answer_to(self, ledger: Ledger, call: int) -> int:
        """The event with the result of a call, -1: none."""
        if "answer to call" not in ledger.derived:
            parts = ledger.parts
            rows = np.flatnonzero(parts["answers"] >= 0)
            pairs = zip(parts["answers"][rows].tolist(), parts["event"][rows].tolist(), strict=True)
            ledger.derived["answer to call"] = dict(pairs)
        answers: dict[int, int] = ledger.derived["answer to call"]
        return answers.get(call, -1)

    def _cleared(self, ledger: Ledger, clearing: ClearableUses, last: int) -> View:
        """The log up to event `last` with all results cleared that can be; of the answer that called for the last of
        them only the arguments of calls whose results are cleared."""
        group = clearing.answers[last]
        head = _clipped(clearing, group)
        if (
            not self.settings.clear_tool_inputs
            and group < last
            and clearing.plain[last + 1] == clearing.plain[group + 1]
        ):
            return normal((*head, Span(group, group + 1), Span(group + 1, last + 1, self._form)))
        cleared = {event for event in range(group, last + 1) if self._is_clearable(clearing, event)}
        tail = view_of(ledger, [self._formed(ledger, event, cleared) for event in range(group, last + 1)])
        return normal((*head, *tail))

    def _is_clearable(self, clearing: ClearableUses, event: int) -> bool:
        """Is an event a result that can be cleared. `clearing.results` is in order."""
        place = int(np.searchsorted(clearing.results, event))
        return place < len(clearing.results) and int(clearing.results[place]) == event and clearing.clearable[place]

    def _most(self, ledger: Ledger, results: list[int], owners: list[int]) -> int:
        """How many results are looked at before enough is reclaimed."""
        least = self.settings.clear_at_least
        if not least:
            return len(results)
        plain, saved = APPROXIMATE.prefix(ledger), 0
        cleared: dict[int, list[int]] = {}
        for place, (event, owner) in enumerate(zip(results, owners, strict=True)):
            if owner < 0:
                continue
            saved += int(plain[event + 1] - plain[event]) - APPROXIMATE.message(ledger, ListMessage(event, self._form))
            if self.settings.clear_tool_inputs:
                earlier = set(cleared.setdefault(owner, []))
                before = APPROXIMATE.message(ledger, self._formed(ledger, owner, earlier))
                cleared[owner].append(event)
                saved += before - APPROXIMATE.message(ledger, self._formed(ledger, owner, {*earlier, event}))
            if saved >= least:
                return place + 1
        return len(results)


def _clipped(clearing: ClearableUses, stop: int) -> View:
    """The view of the log with all cleared, up to event `stop`."""
    count = bisect_left(clearing.starts, stop)
    head = clearing.view[:count]
    last = head[-1] if head else None
    if isinstance(last, Span) and last.stop > stop:
        return (*head[:-1], Span(last.start, stop, last.form))
    return head
