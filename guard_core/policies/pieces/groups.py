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
    ListMessage,
    MessageCosts,
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


GROUPS = MessageCosts("groups", lambda ledger, parts: starts(ledger), lambda message: 1)


@dataclass(frozen=True)
class MessageGroup:
    """One message of a library: events of the log with the same role, or an inserted message."""

    messages: tuple[ListMessage, ...]
    role: int
    has_calls: bool

    @property
    def has_results(self) -> bool:
        return self.role == TOOL

    @property
    def first_event(self) -> int:
        """Its first event, -1: it is an inserted message."""
        return self.messages[0].event


def groups_of(ledger: Ledger, messages: Iterable[ListMessage]) -> list[MessageGroup]:
    """The messages of a library in a list. What no longer follows the event before it begins a new one."""
    begins = _begins(ledger)
    groups: list[list[ListMessage]] = []
    for message in messages:
        last = groups[-1][-1] if groups else None
        follows = last is not None and message.event >= 0 and last.event == message.event - 1
        if follows and not begins[message.event]:
            groups[-1].append(message)
        else:
            groups.append([message])
    return [_group(ledger, tuple(group)) for group in groups]


def _begins(ledger: Ledger) -> list[int]:
    """`starts` as plain numbers, once for a ledger."""
    if "group begins" not in ledger.derived:
        ledger.derived["group begins"] = starts(ledger).tolist()
    begins: list[int] = ledger.derived["group begins"]
    return begins


def _group(ledger: Ledger, messages: tuple[ListMessage, ...]) -> MessageGroup:
    """One message of a library; those that are as in the log are made once for a ledger."""
    if any(message.event < 0 or message.form for message in messages):
        return _new_group(ledger, messages)
    known: dict[tuple[int, int], MessageGroup] = ledger.derived.setdefault("groups of the log", {})
    key = messages[0].event, len(messages)
    if key not in known:
        known[key] = _new_group(ledger, messages)
    return known[key]


def _new_group(ledger: Ledger, messages: tuple[ListMessage, ...]) -> MessageGroup:
    role = role_of(ledger, messages[0])
    has_calls = role == ASSISTANT and any(calls_of(ledger, message) for message in messages)
    return MessageGroup(messages, role, has_calls)


def flat(groups: Iterable[MessageGroup]) -> list[ListMessage]:
    """The messages of some groups."""
    return [message for group in groups for message in group.messages]
