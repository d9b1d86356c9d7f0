"""Messages of libraries that hold several events of the log: parallel results are one, consecutive messages of the user
are one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

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


class MessageGroup(NamedTuple):
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


_Known = dict[tuple[int, int, str], MessageGroup]  # by first event, number of events and form


def groups_of(ledger: Ledger, messages: Iterable[ListMessage]) -> list[MessageGroup]:
    """The messages of a library in a list. What no longer follows the event before it begins a new one."""
    begins, listed = _begins(ledger), list(messages)
    edges: list[int] = []
    before = -1
    for place, (event, _, _) in enumerate(listed):
        if event <= 0 or before != event - 1 or begins[event]:
            edges.append(place)
        before = event
    edges.append(len(listed))
    known: _Known = ledger.derived.setdefault("groups of the log", {})
    return [_group(ledger, known, listed[first:stop]) for first, stop in pairwise(edges)]


def _begins(ledger: Ledger) -> list[int]:
    """`starts` as plain numbers, once for a ledger."""
    if "group begins" not in ledger.derived:
        ledger.derived["group begins"] = starts(ledger).tolist()
    begins: list[int] = ledger.derived["group begins"]
    return begins


def _group(ledger: Ledger, known: _Known, messages: list[ListMessage]) -> MessageGroup:
    """One message of a library; those of events in one form, or as in the log, are made once for a ledger and `known`
    then."""
    first, form, _ = messages[0]
    size = len(messages)
    if first < 0 or (size > 1 and any(other != form for _, other, _ in messages)):
        return _new_group(ledger, tuple(messages))
    key = first, size, form
    group = known.get(key)
    if group is None:
        group = known[key] = _new_group(ledger, tuple(messages))
    return group


def _new_group(ledger: Ledger, messages: tuple[ListMessage, ...]) -> MessageGroup:
    role = role_of(ledger, messages[0])
    has_calls = role == ASSISTANT and any(calls_of(ledger, message) for message in messages)
    return MessageGroup(messages, role, has_calls)


def flat(groups: Iterable[MessageGroup]) -> list[ListMessage]:
    """The messages of some groups."""
    return [message for group in groups for message in group.messages]
