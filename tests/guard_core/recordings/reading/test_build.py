"""What formats share: pairs of calls and results, facts, limits."""

import pytest

from guard_core.errors import LimitExceeded
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading.build import FactCounter, SessionBuilder, pair
from guard_core.recordings.reading.limits import Limits
from guard_core.sessions import Evidence, RecordedCompaction


def calls(*parts):
    return Event(role=Role.MODEL, parts=parts)


def results(*parts):
    return Event(role=Role.USER, parts=parts)


def pairs(*events):
    """The id and name that each result has after pairing."""
    parts = (part for event in pair(events) for part in event.parts if isinstance(part, ToolResultPart))
    return [(part.call_id, part.name) for part in parts]


def test_a_result_is_named_after_the_call_of_its_id():
    paired = pairs(calls(ToolCallPart("ls", id="1"), ToolCallPart("cat", id="2")), results(ToolResultPart(call_id="2")))

    assert paired == [("2", "cat")]


def test_results_without_ids_answer_in_order():
    paired = pairs(calls(ToolCallPart("ls"), ToolCallPart("cat")), results(ToolResultPart()), results(ToolResultPart()))

    assert paired == [("call-0-0", "ls"), ("call-0-1", "cat")]


def test_a_result_with_a_name_answers_the_oldest_call_of_that_name():
    paired = pairs(calls(ToolCallPart("ls"), ToolCallPart("cat"), ToolCallPart("cat")), results(ToolResultPart("cat")))

    assert paired == [("call-0-1", "cat")]


def test_an_id_may_come_again_in_a_later_turn():
    paired = pairs(
        calls(ToolCallPart("ls", id="1")),
        results(ToolResultPart(call_id="1")),
        calls(ToolCallPart("cat", id="1")),
        results(ToolResultPart(call_id="1")),
    )

    assert paired == [("1", "ls"), ("1", "cat")]


def test_a_result_without_its_call_stays_as_it_is():
    assert pairs(results(ToolResultPart(content="x", call_id="lost"))) == [("lost", "")]


def test_many_open_calls_do_not_slow_down_pairing():
    count = 40_000
    asked = [calls(ToolCallPart(f"tool{n % 7}")) for n in range(count)]
    answers = [results(ToolResultPart(f"tool{n % 7}")) for n in range(count)]

    assert all(call_id for call_id, _ in pairs(*asked, *answers))


def test_ids_are_counted_once_and_missing_ids_every_time():
    counter = FactCounter("x")
    for call_id in ("a", "a", "", ""):
        counter.tool_call(call_id)
    counter.tool_result("a", 10)
    counter.tool_result("a", 30)

    facts = counter.facts()
    assert (facts.tool_calls, facts.tool_results, facts.largest_tool_result_chars) == (3, 1, 30)


def test_a_message_with_too_many_parts_is_refused():
    builder = SessionBuilder("x", limits=Limits(parts=2))

    with pytest.raises(LimitExceeded, match=r"line 7: a message with 3 parts \(limit 2\)"):
        builder.event(Role.USER, [TextPart("a")] * 3, line=7)


def test_a_session_with_too_many_events_is_refused():
    builder = SessionBuilder("x", limits=Limits(events=1))
    builder.event(Role.USER, [TextPart("a")])

    with pytest.raises(LimitExceeded, match="more than 1 events"):
        builder.event(Role.USER, [TextPart("a")])


def test_a_session_with_too_many_compactions_is_refused():
    builder = SessionBuilder("x", limits=Limits(compactions=0))

    with pytest.raises(LimitExceeded, match="more than 0 compactions"):
        builder.compaction(RecordedCompaction(0, Evidence.DECLARED, "summary", ()))


def test_ids_are_unique_in_a_session_and_may_be_the_same_in_the_next():
    counter = FactCounter("test")
    for _ in range(3):
        counter.session()
        counter.tool_call("call_1")
        counter.tool_call("call_1")
        counter.tool_result("call_1")
    facts = counter.facts()
    assert (facts.tool_calls, facts.tool_results) == (3, 3)
