"""Small readable builders of events and sessions for tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.sessions import (
    Evidence,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Session,
    Sourced,
    ToolDefinition,
)
from guard_core.simulator.samples import SAMPLES
from guard_core.views import Inserted, Span


@cache
def bundled(name: str) -> Session:
    """A bundled sample session, built once in each process."""
    return SAMPLES[name].build()


def user(text: str, **event: Any) -> Event:
    """A user's words."""
    return Event(role=Role.USER, parts=(TextPart(text),), **event)


def model(text: str, *, reasoning: str = "", **event: Any) -> Event:
    """A model's answer, with its reasoning before it."""
    thought = (ReasoningPart(reasoning),) if reasoning else ()
    return Event(role=Role.MODEL, parts=(*thought, TextPart(text)), **event)


def tool_call(name: str = "read_file", id: str = "", /, **arguments: Any) -> Event:
    """A model's call of one tool."""
    return Event(role=Role.MODEL, parts=(ToolCallPart(name=name, arguments=arguments, id=id),))


def tool_result(content: Any, name: str = "read_file", id: str = "", *, is_error: bool = False) -> Event:
    """What the tool returned."""
    return Event(role=Role.USER, parts=(ToolResultPart(name=name, content=content, call_id=id, is_error=is_error),))


def image(size: int, mime: str = "image/png") -> Event:
    """A user's picture of `size` raw bytes."""
    return Event(role=Role.USER, parts=(MediaPart(mime=mime, size=size),))


def session(
    *events: Event,
    window: int = 200_000,
    overhead: int = 500,
    bytes_per_token: float = 3.0,
    reported: bool = True,
    system: str | None = None,
    tools: tuple[ToolDefinition, ...] | None = None,
    **fields: Any,
) -> Session:
    """A session with one model call per model event; prompt tokens = overhead + text bytes before it / ratio."""
    return Session(
        events=events,
        calls=fields.pop("calls", None) or calls(events, overhead, bytes_per_token, reported),
        system=None if system is None else (TextPart(system),),
        tools=tools,
        window=Sourced(window, Provenance.USER),
        **fields,
    )


def calls(
    events: tuple[Event, ...], overhead: int = 500, bytes_per_token: float = 3.0, reported: bool = True
) -> tuple[ModelCall, ...]:
    """One call per model event, reported or not."""
    model_calls = []
    size = 0
    for index, event in enumerate(events):
        if event.role is Role.MODEL:
            tokens = overhead + round(size / bytes_per_token) if reported else None
            model_calls.append(ModelCall(at=index, response=index, prompt_tokens=tokens))
        size += sum(len(part_text(part).encode()) for part in event.parts)
    return tuple(model_calls)


OPUS = "claude-opus-4-5-20251101"
CALLS = (20_000, 150_000, 154_000, 30_000)  # prompt tokens


def transcript(
    format_: str = "claude-code",
    version: str = "2.1.14",
    trigger: str = "auto",
    prompts: Sequence[int] = CALLS,
    place: int = 3,
    **compaction: Any,
) -> Session:
    """One call per prompt, each with a result of 4,000 characters, and a compaction before the call at `place`."""
    events, calls = [user("go")], []
    for number, prompt in enumerate(prompts):
        calls.append(ModelCall(len(events), len(events), prompt, None, None, 10, OPUS))
        events += [model("reading"), tool_result("x" * 4_000, id=str(number))]
    at = calls[place].at
    base = RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0), Span(at, at)), (user("sum"),), trigger)
    return Session(
        events=tuple(events),
        calls=tuple(calls),
        compactions=(msgspec.structs.replace(base, **compaction),),
        format=format_,
        model=OPUS,
        versions=((0, version),) if version else (),
    )
