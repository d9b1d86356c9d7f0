"""What a cut does to a request: calls parted from their results, and how much of its beginning stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guard_core.events import Event, ToolCallPart, ToolResultPart
from guard_core.views import Segment, Span, View

CALL_WITHOUT_RESULT, RESULT_WITHOUT_CALL = "call without its result", "result without its call"


class PairViolation(NamedTuple):
    """One half of a tool call that is sent alone. `message` is its index in the request."""

    kind: str
    message: int
    name: str
    id: str


def pair_violations(messages: Sequence[Event]) -> tuple[PairViolation, ...]:
    """All calls and results of a request whose other half is missing, in order; matched by id, else by name."""
    open_calls: dict[tuple[str, str], list[PairViolation]] = {}
    found: list[PairViolation] = []
    for index, event in enumerate(messages):
        for part in event.parts:
            if isinstance(part, ToolCallPart):
                key = ("id", part.id) if part.id else ("name", part.name)
                open_calls.setdefault(key, []).append(PairViolation(CALL_WITHOUT_RESULT, index, part.name, part.id))
            elif isinstance(part, ToolResultPart) and not _answers(open_calls, part):
                found.append(PairViolation(RESULT_WITHOUT_CALL, index, part.name, part.call_id))
    found += [call for calls in open_calls.values() for call in calls]
    return tuple(sorted(found, key=lambda item: item.message))


def _answers(open_calls: dict[tuple[str, str], list[PairViolation]], result: ToolResultPart) -> bool:
    for key in (("id", result.call_id), ("name", result.name)):
        if open_calls.get(key):
            open_calls[key].pop(0)
            return True
    return False


def shared_beginning(first: View, second: View) -> View:
    """The messages that both requests begin with: what a provider's prompt cache can use again."""
    shared: list[Segment] = []
    for mine, other in zip(first, second, strict=False):
        if mine == other:
            shared.append(mine)
            continue
        if isinstance(mine, Span) and isinstance(other, Span) and mine.start == other.start:
            shared.append(Span(mine.start, min(mine.stop, other.stop)))
        break
    return tuple(shared)
