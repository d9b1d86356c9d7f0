"""The lines of an export as JSON Schema: what it allows is read, and what it forbids is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from guard_core.errors import DamagedRecording
from guard_core.events import Event, MediaPart, OtherPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats import native
from guard_core.recordings.formats.native.growing import LINE_LIMITS, kept
from guard_core.recordings.formats.native.schema import ANY, line_schema
from guard_core.recordings.reading.strict_json import JsonProblem, decode
from guard_core.sessions import (
    AgentSetting,
    Evidence,
    GuardState,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Session,
    Sourced,
    SubAgent,
    ToolDefinition,
)
from guard_core.views import Inserted, Rewritten, Span, Synthetic
from tests.plugins.tiers import mostly_long

NOTE = Event(Role.USER, (TextPart("note", {"a": [1, None]}),), "id", 3, 1.5, "me", meta=True, joined=True)
PLAIN = Event(Role.USER, (TextPart("plain"),))  # in a compaction: what an event may be, its own lines have asked
CALL = ModelCall(1, 1, 9, 1, 2, 3, "m", 2.5, 4, "id", 1, -1)
PARTS = (
    *(
        ReasoningPart("x", 9),
        ToolCallPart("look", {"at": 1.5}, "c"),
        ToolResultPart("look", [True], "c", is_error=True),
    ),
    *(MediaPart("image/png", 8), OtherPart("code", {"k": "v"})),
)
BASE = (Span(0, 1, "cut"), Inserted(0), Rewritten(1, PLAIN, "pruned"), Synthetic("summary", 7))
SESSION = Session(
    events=(NOTE, Event(Role.MODEL, PARTS)),
    calls=(CALL,),
    side_calls=(CALL,),
    compactions=(RecordedCompaction(1, Evidence.DECLARED, "summary", BASE, (PLAIN,), "auto", 9, 8, CALL),),
    guard_states=(GuardState(1, "agent", "text", -1, 2, 3, 4),),
    system=(TextPart("system"),),
    tools=(ToolDefinition("look", "looks", {"type": "object"}),),
    sub_agents=(SubAgent("other", "c", 1),),
    window=Sourced(9_000, Provenance.USER),
    usage_ratio=1.5,
    versions=((0, "1.0"),),
    windows=((0, 9_000),),
    settings=(AgentSetting("trigger", 0.5),),
    refused=(1,),
)
LINES = [msgspec.json.decode(line) for line in native.write(SESSION).splitlines()]
VALUES = [
    None,
    True,
    0,
    1,
    1.0,
    1.5,
    -1,
    2**53 + 1,
    2**63,
    1e17 + 0.5,
    "",
    "user",
    "text",
    [],
    [1],
    [[1]],
    {},
    {"k": 2**63},
    10**299,
]
REFERENCE = "#/$defs/{name}"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema, components = line_schema(REFERENCE)
    return Draft202012Validator({**schema, "$defs": components})


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to everything inside of a value."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (key,)
            yield from ((key, *rest) for rest in places(item))


def altered(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lines with one thing replaced, left out or added."""
    for *way, last in places(line):
        for value in (*VALUES, ...):
            changed = copy.deepcopy(line)
            holder: Any = changed
            for key in way:
                holder = holder[key]
            if value is not ...:
                holder[last] = value
            else:
                del holder[last]
            yield changed
    yield from ({**line, "more": value} for value in VALUES)


def is_taken(line: Any) -> bool:
    try:
        kept(decode(msgspec.json.encode(line), LINE_LIMITS).value)
    except (DamagedRecording, JsonProblem):
        return False
    return True


@pytest.mark.parametrize(
    "line", mostly_long(LINES, short=LINES[:2]), ids=lambda line: next(key for key in line if key != "index")
)
def test_the_schema_allows_exactly_what_is_taken(validator, line):
    assert validator.is_valid(line)
    assert is_taken(line)
    judged = [(each, validator.is_valid(each), is_taken(each)) for each in altered(line)]
    assert [each for each, is_valid, is_read in judged if is_valid != is_read] == []
    assert len({is_valid for _, is_valid, _ in judged}) == 2


def test_every_reference_of_the_schema_has_its_component():
    schema, components = line_schema(REFERENCE)
    text = msgspec.json.encode([schema, components]).decode()
    assert {part.partition('"')[0] for part in text.split('"#/$defs/')[1:]} == components.keys()
    assert ANY in components
