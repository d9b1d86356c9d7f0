"""What guards share for frameworks that pass a history before each call and send what they get back.

A framework may keep its whole history, or continue with what it was given: the guard recognises its own beginning
either way, and keeps the whole conversation. The provider's count of an answer is read from that answer in the history.
After a failed turn a program may continue with the history from before it, and so does the guard.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from guard_core.errors import GuardError
from guard_core.guarding.dialects import Neutral
from guard_core.guarding.guard import Guard, GuardMark
from guard_core.guarding.summarisers import host_loop
from guard_core.policies.base import Policy
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer
from guard_core.trace import CompactionRecord

U = TypeVar("U")  # the least that the framework sends or leaves out: a message, or a part of one
Plain = dict[str, Any]  # a message of Chat Completions


class HistoryGuard(ABC, Generic[U]):
    """One conversation of a framework and the policy that guards it. Not for two threads at once."""

    def __init__(
        self, policy: Policy | str, *, window: int, summarizer: Summarizer | None = None, **settings: Any
    ) -> None:
        self.guard = Guard(policy, window=window, dialect=Neutral(), summarizer=summarizer, **settings)
        self._history: list[U] = []
        self._given: list[U] = []
        self._plain: list[list[Plain]] = []  # each of the history in the plain form
        self._turn: _TurnStart[U] | None = None  # the last one, where another one came before

    @property
    def compactions(self) -> tuple[CompactionRecord, ...]:
        """What the policy compacted for the last request."""
        return self.guard.compactions

    @property
    def recorded(self) -> Session:
        """The conversation so far, for a `Recorder`."""
        return self.guard.recorded

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.guard.window

    @abstractmethod
    def units(self, messages: Sequence[Any]) -> list[U]:
        """The history in its least units."""

    @abstractmethod
    def plain(self, unit: U) -> list[Plain]:
        """A unit as messages of Chat Completions."""

    @abstractmethod
    def is_same(self, one: U, other: U) -> bool:
        """Are two units the same, though perhaps copies of each other."""

    @abstractmethod
    def counts(self, unit: U) -> dict[str, int | None] | None:
        """What the provider counted, by the names of `Guard.after_call`; None for what is not an answer of a model."""

    @abstractmethod
    def written(self, sent: Iterable[tuple[Plain, U | None]]) -> list[Any]:
        """The messages to send: each plain message with the unit that it is, None for what the policy wrote."""

    def before_call(self, messages: Sequence[Any], system: Any = None) -> list[Any]:
        """The messages to send in place of the history. `system`: instructions beside the messages, as blocks of text.

        Raises GuardError for the history of another conversation.
        """
        units = self.units(messages)
        self._take_back(units)
        added = self._added(units)
        if not self._answered(added):  # the request failed, and is made again
            self.guard.withdraw()
        if self._history and any(item["role"] == "user" for unit in added for item in self.plain(unit)):
            self._turn = _TurnStart(len(self._history), list(self._given), self.guard.mark())
        self._keep(added)
        sources = {id(item): unit for unit, some in zip(self._history, self._plain, strict=True) for item in some}
        sent = self.guard.before_call([item for some in self._plain for item in some], system=system)
        given = self.written((item, sources.get(id(item))) for item in sent)
        self._given = self.units(given)
        return given

    def take(self, messages: Sequence[Any]) -> None:
        """What followed the last call, in the history that the framework has now, where no other call is made yet: for
        a recording that has its answer at once, or at the end. Raises GuardError as `before_call`."""
        added = self._added(self.units(messages))
        if self._answered(added):
            self._keep(added)
            self._given += added
            self.guard.take([item for some in self._plain for item in some])

    async def before_call_async(self, messages: Sequence[Any], system: Any = None) -> list[Any]:
        """The same in an event loop: the policy decides in a thread, an asynchronous summariser is awaited here."""
        with host_loop(asyncio.get_running_loop()):
            return await asyncio.to_thread(self.before_call, messages, system)

    def _answered(self, added: list[U]) -> bool:
        """Does no request wait for its answer, now that this was added."""
        if self.guard.asked is None:
            return True
        answer = next((counts for unit in added if (counts := self.counts(unit)) is not None), None)
        if answer is not None:
            self.guard.after_call(**answer)
        return answer is not None

    def _keep(self, added: list[U]) -> None:
        self._history += added
        self._plain += map(self.plain, added)

    def _take_back(self, units: list[U]) -> None:
        """Go back to before the last turn, where it was not answered to its end and the history is without it."""
        turn = self._turn
        if turn is None or self.guard.asked is None or self._begins(units, self._history, self._given) is not None:
            return
        if self._begins(units, self._history[: turn.units], turn.given) is not None:
            self.guard.go_back(turn.mark)
            del self._history[turn.units :], self._plain[turn.units :]
            self._given = list(turn.given)

    def _begins(self, units: list[U], *known: list[U]) -> list[U] | None:
        """The first of some beginnings that a history has; None for none."""
        return next((one for one in known if len(units) >= len(one) and all(map(self.is_same, units, one))), None)

    def _added(self, units: list[U]) -> list[U]:
        """What follows the beginning that is known."""
        known = self._begins(units, self._history, self._given)
        if known is not None:
            return units[len(known) :]
        raise GuardError(
            "the history continues neither from the whole conversation nor from what was sent of it last: "
            "begin a new guard for another conversation"
        )


class _TurnStart(NamedTuple, Generic[U]):
    """Where a turn began: how long the history was, what was given of it last, and where its guard was."""

    units: int
    given: list[U]
    mark: GuardMark


def call_ids(item: Mapping[str, Any]) -> frozenset[str]:
    """The ids of the tool calls of a plain message."""
    return frozenset(call["id"] for call in item.get("tool_calls") or ())
