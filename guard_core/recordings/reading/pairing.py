"""Calls and their results: which result answers which call, by ids or by order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from guard_core.events import Event, Part, ToolCallPart, ToolResultPart


def pair(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events whose tool results carry the id and name of the call they answer.

    A result with an id belongs to the last open call of that id; without an id, to the oldest open call (of the same
    name, where it has one). Calls without an id get one, so that a pair can be recognised later. Results whose call is
    not in the log stay as they are.
    """
    return tuple(map(Pairing().paired, events))


class Pairing:
    """The same, event by event, in order."""

    def __init__(self) -> None:
        self._count = 0
        self._calls = _UnansweredCalls()

    def paired(self, event: Event) -> Event:
        """The next event."""
        index, self._count = self._count, self._count + 1
        if any(isinstance(part, ToolCallPart | ToolResultPart) for part in event.parts):
            return _paired(index, event, self._calls)
        return event


class _UnansweredCalls:
    """Calls that wait for their results, oldest first, by id and by name. Every step takes constant time."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, ToolCallPart] = OrderedDict()
        self._by_name: dict[str, OrderedDict[str, None]] = {}

    def add(self, call: ToolCallPart) -> None:
        """An id may be used again in a later turn: then the newest call has it."""
        self.close(call.id)
        self._by_id[call.id] = call
        self._by_name.setdefault(call.name, OrderedDict())[call.id] = None

    def close(self, call_id: str) -> None:
        call = self._by_id.pop(call_id, None)
        if call is not None:
            del self._by_name[call.name][call_id]

    def of(self, result: ToolResultPart) -> ToolCallPart | None:
        """The call that a result answers."""
        if result.call_id:
            return self._by_id.get(result.call_id)
        waiting = self._by_name.get(result.name, OrderedDict()) if result.name else self._by_id
        first = next(iter(waiting), None)
        return None if first is None else self._by_id[first]


def _paired(index: int, event: Event, open_calls: _UnansweredCalls) -> Event:
    parts: list[Part] = []
    for position, part in enumerate(event.parts):
        if isinstance(part, ToolCallPart):
            part = part if part.id else msgspec.structs.replace(part, id=f"call-{index}-{position}")
            open_calls.add(part)
        elif isinstance(part, ToolResultPart):
            call = open_calls.of(part)
            if call is not None:
                open_calls.close(call.id)
                if part.call_id != call.id or not part.name:
                    part = msgspec.structs.replace(part, call_id=call.id, name=part.name or call.name)
        parts.append(part)
    changed = any(new is not old for new, old in zip(parts, event.parts, strict=True))
    return msgspec.structs.replace(event, parts=tuple(parts)) if changed else event
