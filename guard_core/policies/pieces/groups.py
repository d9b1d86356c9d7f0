"""Messages of libraries that hold several events of the log: parallel results are one, consecutive messages of the user
are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    TOOL,
    USER,
    Costs,
    Message,
    calls_of,
    role_of,
    roles_of,
)


def starts(ledger: Ledger) -> Ints:
    """1 for every event with which a message begins, 0 for one that belongs to the message before it."""
    roles = roles_of(ledger)
    joins = np.zeros(len(roles), dtype=np.bool_)
    joins[1:] = (roles[1:] == roles[:-1]) & np.isin(roles[1:], (TOOL, USER))
    return (~joins).astype(np.int64)


GROUPS = Costs("groups", lambda ledger, parts: starts(ledger), lambda message: 1)


@dataclass(frozen=True)
class Group:
    """One message of a library: events of the log with the same role, or an inserted message."""

    messages: tuple[Message, ...]
    role: int
    has_calls: bool

    @property
    def has_results(self) -> bool:
        return self.role == TOOL

    @property
    def first_event(self) -> int:
        """Its first event, -1: it is an inserted message."""
        return self.messages[0].event


def groups_of(ledger: Ledger, messages: Iterable[Message]) -> list[Group]:
    """The messages of a library in a list. What no longer follows the event before it begins a new one."""
    begins = np.diff(GROUPS.prefix(ledger))
    found: list[list[Message]] = []
    for message in messages:
        last = found[-1][-1] if found else None
        follows = last is not None and message.event >= 0 and last.event == message.event - 1
        if follows and not begins.item(message.event):
            found[-1].append(message)
        else:
            found.append([message])
    return [_group(ledger, tuple(group)) for group in found]


def _group(ledger: Ledger, messages: tuple[Message, ...]) -> Group:
    role = role_of(ledger, messages[0])
    has_calls = role == ASSISTANT and any(calls_of(ledger, message) for message in messages)
    return Group(messages, role, has_calls)


def flat(groups: Iterable[Group]) -> list[Message]:
    """The messages of some groups."""
    return [message for group in groups for message in group.messages]
