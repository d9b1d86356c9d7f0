"""`trim_messages`: as many messages from one end of the list as fit."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.usage import normal
from guard_core.ledger import Ints, Ledger
from guard_core.policies.langchain.counting import APPROXIMATE
from guard_core.policies.langchain.partial import part_of
from guard_core.policies.langchain.settings import LangChainTrimSettings, kinds_named
from guard_core.policies.pieces.compared import MESSAGES, TOKENS
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import ONE, SYSTEM_ROLE, ListMessage, MessageCosts, roles_of, view_of
from guard_core.view_columns import ViewColumns
from guard_core.views import Span, View

NAMES = ("human", "ai", "tool", "system")  # by role, as guard_core.policies.pieces.messages numbers them


class KeptRange(NamedTuple):
    """Events `start` to `stop` (exclusive) stay, and perhaps a part of the event before or behind them."""

    start: int
    stop: int
    partial: ListMessage | None = None


class LangChainTrimMessages(EditingPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "langchain-trim-messages"
    settings: LangChainTrimSettings

    @property
    def compares(self) -> str:
        return MESSAGES if self.settings.counter == "messages" else TOKENS

    def costs(self) -> MessageCosts:
        return ONE if self.compares == MESSAGES else APPROXIMATE

    def limit(self, window: int) -> int:
        return self.settings.max_tokens

    @cached_property
    def _start_on(self) -> frozenset[str]:
        return kinds_named(self.settings.start_on)

    @cached_property
    def _end_on(self) -> frozenset[str]:
        return kinds_named(self.settings.end_on)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        ledger, at = sizes.ledger, sizes.at
        over = self.over(counted, limit)
        if self._end_on:
            over = over | ~self._is(ledger, self._end_on)[at - 1]
        if self._start_on and ledger.event_count:
            first = 1 if self._has_system(ledger) else 0
            over = over | ((at > first) & ~self._is(ledger, self._start_on)[min(first, ledger.event_count - 1)])
        return np.asarray(over & (at > 0))

    @property
    def acts_below(self) -> str:
        return "the list begins or ends with a message of another kind than the settings name"

    def _is(self, ledger: Ledger, names: frozenset[str]) -> NDArray[np.bool_]:
        """Which events are messages of some kinds."""
        return np.isin(roles_of(ledger), [role for role, name in enumerate(NAMES) if name in names])

    def _has_system(self, ledger: Ledger) -> bool:
        """Is there a leading system message that stays."""
        return self.settings.include_system and ledger.event_count > 0 and int(roles_of(ledger)[0]) == SYSTEM_ROLE

    def edited(self, steps: ActingSteps) -> Edited | None:
        if self.settings.allow_partial or self.settings.strategy != "last" or not steps.at.all():
            return None
        ledger, at = steps.ledger, steps.at
        if self._end_on:
            at = _last_allowed(self._is(ledger, self._end_on))[at]
        prefix, first = self.costs().prefix(ledger), ((at > 0) & self._has_system(ledger)).astype(np.int64)
        room = np.maximum(0, self.settings.max_tokens - prefix[first])
        start = np.maximum(np.searchsorted(prefix, prefix[at] - room, side="left"), first)
        if self._start_on:
            allowed = self._is(ledger, self._start_on)[::-1]
            start = np.minimum(ledger.event_count - _last_allowed(allowed)[::-1][start], at)
        return Edited(ViewColumns.spans((0, first), (start, at)))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, at = request.ledger, request.check.at
        selected = (
            self._last(request, ledger, at) if self.settings.strategy == "last" else self._first(request, ledger, at)
        )
        return ListOutcome(selected, state)

    def _first(self, request: ListRequest, ledger: Ledger, at: int) -> View:
        """The oldest messages."""
        prefix = self.costs().prefix(ledger)
        stop = int(np.searchsorted(prefix[: at + 1], self.settings.max_tokens, side="right")) - 1
        partial = None
        if self.settings.allow_partial and stop < at:
            partial = self._part_of(request, stop, self.settings.max_tokens - int(prefix[stop]), last=False)
        if self._end_on:
            allowed = self._is(ledger, self._end_on)
            partial = partial if partial is not None and allowed[partial.event] else None
            if partial is None:
                fitting = np.flatnonzero(allowed[:stop])
                stop = int(fitting[-1]) + 1 if len(fitting) else 0
        return _view(ledger, KeptRange(0, stop, partial), after=True)

    def _last(self, request: ListRequest, ledger: Ledger, at: int) -> View:
        """The newest messages, behind a leading system message where that stays."""
        if self._end_on:
            fitting = np.flatnonzero(self._is(ledger, self._end_on)[:at])
            at = int(fitting[-1]) + 1 if len(fitting) else 0
        prefix, first = self.costs().prefix(ledger), 1 if at and self._has_system(ledger) else 0
        room = max(0, self.settings.max_tokens - int(prefix[first]))
        start = max(int(np.searchsorted(prefix[: at + 1], int(prefix[at]) - room, side="left")), first)
        partial = None
        if self.settings.allow_partial and start > first:
            partial = self._part_of(request, start - 1, room - int(prefix[at] - prefix[start]), last=True)
        if self._start_on:
            allowed = self._is(ledger, self._start_on)
            partial = partial if partial is not None and allowed[partial.event] else None
            if partial is None:
                fitting = np.flatnonzero(allowed[start:at])
                start = start + int(fitting[0]) if len(fitting) else at
        view = _view(ledger, KeptRange(start, at, partial), after=False)
        return normal((Span(0, 1), *view)) if first else view

    def _part_of(self, request: ListRequest, event: int, room: int, *, last: bool) -> ListMessage | None:
        """The part of an event that fits."""

        def fits(message: ListMessage) -> bool:
            return self.costs().message(request.ledger, message) <= room

        return part_of(request, event, fits, fits, last=last)


def _last_allowed(allowed: NDArray[np.bool_]) -> Ints:
    """Of the first 0, 1, ... of some events, the end of the last one that is allowed."""
    ends = np.where(allowed, np.arange(1, len(allowed) + 1), 0)
    return np.append(0, np.maximum.accumulate(ends))


def _view(ledger: Ledger, selected: KeptRange, *, after: bool) -> View:
    span: View = (Span(selected.start, selected.stop),) if selected.start < selected.stop else ()
    part = view_of(ledger, [selected.partial]) if selected.partial is not None else ()
    return normal((*span, *part) if after else (*part, *span))
