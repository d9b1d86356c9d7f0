"""Where the conversations of an OpenHands file are: a log of events, an array of them, or rows of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

SDK_KINDS = frozenset(
    {
        "ActionEvent",
        "ObservationEvent",
        "MessageEvent",
        "SystemPromptEvent",
        "AgentErrorEvent",
        "ConversationStateUpdateEvent",
        "Condensation",
        "CondensationRequest",
        "UserRejectObservation",
        "PauseEvent",
        "InterruptEvent",
        "ConversationErrorEvent",
        "TokenEvent",
        "LLMCompletionLogEvent",
        "HookExecutionEvent",
        "ACPToolCallEvent",
    }
)
SOURCES = frozenset({"user", "agent", "environment"})
_BODIES = frozenset({"args", "extras", "content", "message"})  # of the older events: what they say


class OpenHandsConversation:
    """One conversation: its events with the lines they are on, and what the evaluation says about it."""

    def __init__(self, events: Iterable[tuple[JSON, int | None]], about: JSON) -> None:
        self.events = events
        self.about = about


def array_of(value: Any) -> list[Any]:
    """The events of a downloaded trajectory: the value itself, or the list under one of its known keys."""
    if isinstance(value, dict):
        value = value.get("trajectory", value.get("events", value.get("items")))
    return value if isinstance(value, list) else []


_KIND = re.compile(r"[a-z_]{1,40}")


def is_event(value: Any) -> bool:
    """Is it an event of the SDK, or one of the older kind."""
    if not isinstance(value, dict):
        return False
    if fields.text(value, "kind") in SDK_KINDS:
        return True
    has_kind = "action" in value or "observation" in value
    return has_kind and fields.text(value, "source") in SOURCES and "id" in value and bool(_BODIES & value.keys())


def is_row(value: JSON) -> bool:
    """Is it a row of an evaluation: an object with a `history` of events."""
    history = value.get("history")
    if not isinstance(history, list):
        return False
    entries = list(_flat(history[:4]))
    return bool(entries) and all(_has_kind(item) or is_event(item) for item in entries)


def _has_kind(entry: JSON) -> bool:
    """Is what an older event is a word: "run" or "run_ipython", not an agent's words or a tool's output."""
    kinds = [entry[name] for name in ("action", "observation") if name in entry]
    return any(isinstance(kind, str) and _KIND.fullmatch(kind) for kind in kinds)


def _flat(history: list[Any]) -> Iterator[JSON]:
    """The entries of a history: flat events, or pairs of action and observation."""
    for item in history:
        if isinstance(item, dict):
            yield item
        elif isinstance(item, list):
            yield from fields.objects(item)


def _listed(source: ByteSource) -> Iterator[JSON]:
    """The objects of an array, or of the one in a downloaded trajectory."""
    return fields.objects(source.elements(array_of))


def conversations(source: ByteSource) -> Iterator[OpenHandsConversation]:
    """The conversations of a file: one for each row of an evaluation, else one."""
    if source.shape is SourceShape.JSON:
        value = source.json_head()
        if isinstance(value, dict) and is_row(value):
            value = source.json()
            yield OpenHandsConversation(((item, 1) for item in _flat(value["history"])), value)
        elif isinstance(value, dict) and is_event(value):
            yield OpenHandsConversation([(source.json(), 1)], {})
        elif any(map(is_row, _listed(source))):
            for row in filter(is_row, _listed(source)):
                yield OpenHandsConversation([(item, None) for item in _flat(row["history"])], row)
        else:
            yield OpenHandsConversation(((item, None) for item in _listed(source)), {})
        return
    if any(is_row(line.obj) for line in source.head_lines()):
        for line in source.lines():
            if is_row(line.obj):
                number = line.number
                yield OpenHandsConversation([(item, number) for item in _flat(line.obj["history"])], line.obj)
            else:
                source.notes.skip("row without a history")
        return
    yield OpenHandsConversation(((line.obj, line.number) for line in source.lines()), {})
