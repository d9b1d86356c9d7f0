"""Traces of any-agent: spans whose ids are numbers of 128 bits, and whose later calls have no messages."""

import json

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.recordings.formats.trace_exports.format import FORMAT
from guard_core.recordings.reading import strict_json
from guard_core.recordings.reading.limits import Limits
from tests.guard_core.recordings.checks import check_hostile, check_session, read_as, spoiled, texts

TRACE, AGENT = 2**127 + 5, 2**63 + 7
SENT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What year is it?"}]


def span(number, operation, parent=AGENT, **attributes):
    context = {"trace_id": TRACE, "span_id": number, "is_remote": False}
    about = {"gen_ai.operation.name": operation, **attributes}
    times = {"start_time": (1_758_026_593 + number % 2**63) * 10**9, "end_time": 1_758_026_700 * 10**9}
    above = {"trace_id": TRACE, "span_id": parent} if parent else None
    status = {"status_code": "ok", "description": None}
    return {"name": operation, "parent": above, **times, "status": status, "context": context, "attributes": about}


def call(number, prompt, output, sent=None):
    given = {"gen_ai.input.messages": json.dumps(sent)} if sent else {}
    usage = {"gen_ai.usage.input_tokens": prompt, "gen_ai.usage.output_tokens": 5}
    answer = output if isinstance(output, str) else json.dumps(output)
    return span(number, "call_llm", **given, **usage, **{"gen_ai.request.model": "m", "gen_ai.output": answer})


def asks(name, arguments):
    return [{"tool.name": name, "tool.args": arguments}]


def run(number, name, output, **attributes):
    about = {"gen_ai.tool.name": name, "gen_ai.tool.args": '{"zone": "UTC"}', "gen_ai.output": output, **attributes}
    return span(number, "execute_tool", **about)


ROOT = span(AGENT, "invoke_agent", parent=None, **{"gen_ai.agent.name": "finder"})
TALK = [
    call(2**63 + 11, 100, asks("clock", '{"zone": "UTC"}'), SENT),
    run(2**63 + 12, "clock", "2026", **{"gen_ai.tool.call.id": "c1"}),
    call(2**63 + 13, 130, asks("write", {"text": "2026"})),
    run(14, "write", "ok"),
    call(2**63 + 15, 150, "Done"),
    ROOT,
]


def read(*spans, **options):
    return read_as(FORMAT, {"spans": list(spans), "final_output": "Done"}, **options)


def test_later_requests_are_the_first_and_what_came_since():
    recording = read(*TALK, strict=True)
    [session] = recording.sessions

    assert [(step.at, step.prompt_tokens, step.output_tokens) for step in session.calls] == [
        (1, 100, 5),
        (3, 130, 5),
        (5, 150, 5),
    ]
    assert texts(session)[0] == "What year is it?"
    assert texts(session)[-1] == "Done"
    parts = [event.parts[0] for event in session.events[1:5]]
    assert [(part.name, part.arguments) for part in parts if isinstance(part, ToolCallPart)] == [
        ("clock", {"zone": "UTC"}),
        ("write", {"text": "2026"}),
    ]
    assert [part.content for part in parts if isinstance(part, ToolResultPart)] == ["2026", "ok"]
    assert (session.source_id, session.agent, session.compactions) == (f"{TRACE:x}", "finder", ())
    assert session.system is not None
    assert (recording.facts.model_calls, recording.facts.tool_calls, recording.facts.tool_results) == (3, 2, 2)
    assert recordings.read(json.dumps({"spans": TALK}).encode()).format == "trace-export"
    check_session(session)


def test_arguments_that_the_answer_lacks_are_those_of_the_run():
    [session] = read(call(11, 100, asks("clock", "{}"), SENT), run(12, "clock", "2026")).sessions
    assert session.events[1].parts[0].arguments == {"zone": "UTC"}


def test_a_request_with_fewer_tokens_is_no_continuation():
    main, other = read(*TALK[:-1], call(16, 60, '{"year": 2026}'), ROOT, strict=True).sessions

    assert [step.prompt_tokens for step in main.calls] == [100, 130, 150]
    assert [step.prompt_tokens for step in other.calls] == [60]
    assert texts(other) == ['{"year": 2026}']
    assert any(note.startswith("What was sent to the model is not in the file") for note in other.notes)


def test_a_count_that_is_none_is_reported():
    bad = call(11, -3, "Done", SENT)
    with pytest.raises(DamagedRecording, match=r"gen_ai\.usage\.input_tokens"):
        read(bad, strict=True)
    assert read(bad).notes.problems


def test_counts_under_a_name_that_is_not_known_are_noted():
    renamed = json.dumps({"spans": TALK}).replace("usage.input_tokens", "usage.given_tokens")
    recording = recordings.read(renamed.encode())

    assert recording.facts.model_calls == 0
    assert any("gen_ai.usage.given_tokens" in str(note) for note in recording.notes.problems)
    assert recordings.read(json.dumps({"spans": TALK}).encode()).notes.problems == []


def test_only_ids_of_spans_may_be_wider_than_numbers():
    def value(text):
        return strict_json.decode(text.encode(), Limits()).value

    wide = 2**128 - 1
    ids = f'{{"trace_id": {wide}, "span_id" : {2**63}}}'
    assert value(ids) == {"trace_id": f"{wide:x}", "span_id": f"{2**63:x}"}
    assert strict_json.decode_again(ids.encode(), Limits()) == value(ids)
    assert value(f'{{"trace_id": {2**63 - 1}}}') == {"trace_id": 2**63 - 1}
    assert value(f'{{"a": "\\"trace_id\\": {wide},"}}') == {"a": f'"trace_id": {wide},'}
    for key, written in (
        ("tokens", f"{wide}"),
        ("trace_id", f"{2**128}"),
        ("trace_id", f"-{wide}"),
        ("trace_id", f"[{wide}]"),
        ("my_trace_id", f"{wide}"),
        ('\\"trace_id', f"{wide}"),
    ):
        with pytest.raises(strict_json.JsonProblem, match="digits"):
            value(f'{{"{key}": {written}}}')
    before = f'{{"trace_id": {wide}, "tokens": '
    with pytest.raises(strict_json.JsonProblem) as caught:
        value(before + "9" * 21 + "}")
    assert caught.value.offset == len(before)


@pytest.mark.parametrize("strict", [True, False])
def test_a_small_file_asks_for_no_more_messages_than_the_limit(strict):
    """500 calls, each with the answers before it: 125,000 messages."""
    calls = [call(2**63 + number, number, "Go on", SENT if number == 1 else None) for number in range(1, 501)]
    with pytest.raises(LimitExceeded, match="more than 100,000 messages together"):
        read(*calls, strict=strict)


def test_runs_of_one_tool_go_to_its_calls_in_their_order():
    talk = [
        call(
            2**63 + 1, 100, [*asks("clock", {"zone": "UTC"}), *asks("write", {}), *asks("clock", {"zone": "CET"})], SENT
        ),
        *(run(2**63 + at, *named) for at, named in enumerate((("clock", "1"), ("write", "ok"), ("clock", "2")), 2)),
        call(2**63 + 5, 150, "Done"),
    ]
    [session] = read(*talk, strict=True).sessions
    results = [part for event in session.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert [(part.name, part.content) for part in results] == [("clock", "1"), ("write", "ok"), ("clock", "2")]


def test_hostile_values_are_read_or_refused():
    check_hostile(FORMAT, (json.dumps(value).encode() for value in spoiled({"spans": TALK[2:4]})))
