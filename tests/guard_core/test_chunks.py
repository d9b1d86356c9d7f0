"""A ledger in chunks: what is stored of a session that grows, and what is refused."""

import msgspec
import pytest

from guard_core.chunks import ROWS, GrowingLedger, joined, read_state
from guard_core.columns import Packed, unpack_columns
from guard_core.errors import GuardError, OtherVersion
from guard_core.events import Event, Role
from guard_core.ledger import LEDGER_VERSION, Ledger
from guard_core.packing import decode, encode
from guard_core.sessions import ModelCall, Session
from tests.builders import tool_call, tool_result, user

SMALL = {"events": 2, "calls": 2, "bases": 1}


def stored(value: Session) -> tuple[bytes, dict[str, list[bytes]]]:
    growing = GrowingLedger.of(value, sizes=SMALL)
    chunks = growing.chunks()
    return growing.state, {kind: [chunk.body for chunk in chunks if chunk.kind == kind] for kind in ROWS}


def grown(value: Session, *events: Event) -> GrowingLedger:
    """The stored ledger of a session, with more events."""
    state, bodies = stored(value)
    last = {kind: bodies[kind][number] for kind, number in read_state(state).open_chunks.items()}
    growing = GrowingLedger.resumed(state, last)
    growing.add(events)
    return growing


def test_a_full_chunk_is_not_written_again(short_chat):
    even = Session(events=short_chat.events[:2])
    assert [(chunk.kind, chunk.number) for chunk in grown(even, user("more")).chunks()] == [("events", 1)]


@pytest.mark.parametrize("stored_events", [1, 2, 3, 4])
def test_of_calls_with_one_id_the_newest_is_answered(stored_events):
    """An agent that numbers the calls of each turn anew uses the id of a call again that was never answered."""
    events = (tool_call("look", "c"), user("stop"), tool_call("look", "c"), tool_result("seen", "look", "c"))
    growing = grown(Session(events=events[:stored_events]), *events[stored_events:])
    _, bodies = stored(Session(events=events[:stored_events]))
    for kind, number, body in growing.chunks():
        bodies[kind][number:] = [body]
    assert joined(growing.state, bodies).parts["answers"].tolist() == [-1, -1, -1, 2]


def test_calls_of_one_event_with_one_id_are_answered_in_their_order():
    calls = Event(Role.MODEL, (*tool_call("look", "c").parts, *tool_call("look", "c").parts))
    results = (tool_result("one", "look", "c"), tool_result("two", "look", "c"))
    assert Ledger.of(Session(events=(calls, *results))).parts["answers"].tolist() == [-1, -1, 0, 1]


def test_a_result_finds_its_call_in_a_chunk_before():
    events = (tool_call("look", "c1"), *(user(f"wait {number}") for number in range(5)))
    value = Session(events=events)
    result = tool_result("seen", "look", "c1")
    growing = grown(value, result)
    state, bodies = stored(value)
    for kind, number, body in growing.chunks():
        bodies[kind][number:] = [body]
    ledger = joined(growing.state, bodies)
    assert ledger.cut(6) == 0  # nowhere between the call and its result can the log be cut
    assert ledger.parts["answers"].tolist()[-1] == 0
    assert joined(state, stored(value)[1]).cut(5) == 5


def test_a_model_keeps_its_number_when_a_session_grows(short_chat):
    calls = [ModelCall(at=1, model="a"), ModelCall(at=2, model="b"), ModelCall(at=2, model="a")]
    growing = GrowingLedger.of(msgspec.structs.replace(short_chat, calls=tuple(calls[:2])), sizes=SMALL)
    again = GrowingLedger.resumed(growing.state, {chunk.kind: chunk.body for chunk in growing.chunks()})
    again.add(calls=calls[2:])
    (chunk,) = again.chunks()
    assert unpack_columns(decode(chunk.body, Packed, "calls"))["model"].tolist() == [0]


@pytest.mark.parametrize("state", [b"", b"\x00", b"no state", encode({"version": 2})])
def test_a_state_that_is_none_is_refused_in_a_sentence(state):
    with pytest.raises(GuardError, match="import the session again"):
        joined(state, {})


def test_a_state_of_another_version_is_refused(short_chat):
    state, bodies = stored(short_chat)
    other = state.replace(b"\xa7version" + bytes([LEDGER_VERSION]), b"\xa7version\x63")
    assert other != state
    with pytest.raises(OtherVersion, match="version 99"):
        joined(other, bodies)
    with pytest.raises(OtherVersion, match="version 99"):
        GrowingLedger.resumed(other, {})


def test_a_missing_chunk_is_refused(short_chat):
    state, bodies = stored(short_chat)
    with pytest.raises(GuardError, match="rows"):
        joined(state, {**bodies, "events": bodies["events"][1:]})
    odd = GrowingLedger.of(Session(events=short_chat.events[:1]), sizes=SMALL)
    with pytest.raises(GuardError, match="last chunk of events is missing"):
        GrowingLedger.resumed(odd.state, {})


def test_a_damaged_chunk_is_refused(short_chat):
    state, bodies = stored(short_chat)
    with pytest.raises(GuardError, match="cannot be read"):
        joined(state, {**bodies, "events": [b"\xff", *bodies["events"][1:]]})


def test_a_long_session_has_chunks_of_the_usual_size():
    events = tuple(user(f"message {number}") for number in range(ROWS["events"] + 3))
    growing = GrowingLedger.of(Session(events=events))
    chunks = growing.chunks()
    assert [(chunk.kind, chunk.number) for chunk in chunks] == [("events", 0), ("events", 1)]
    bodies = {"events": [chunk.body for chunk in chunks]}
    assert joined(growing.state, bodies).to_bytes() == Ledger.of(Session(events=events)).to_bytes()
