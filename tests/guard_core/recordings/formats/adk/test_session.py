"""ADK sessions: both spellings, compactions by ranges of time, ContextGuard's state, and databases."""

import json
import pickle
import sqlite3
from contextlib import closing

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import read
from guard_core.recordings.formats.adk import database as adk_sqlite
from guard_core.recordings.formats.adk import session as adk
from guard_core.rules.registry import agent_of
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_session, lines, read_as, recognises, sample_facts, texts


def event(time, *parts, author="agent", role="model", prompt=None, **fields):
    usage = {} if prompt is None else {"usageMetadata": {"promptTokenCount": prompt, "cachedContentTokenCount": 1}}
    content = {"role": role, "parts": list(parts)}
    return {"id": f"e{time}", "author": author, "timestamp": time, "content": content, **usage, **fields}


def user(time, text="Look", **fields):
    return event(time, {"text": text}, author="user", role="user", **fields)


def compaction(time, start, end, summary="Done so far", prompt=900):
    content = {"role": "model", "parts": [{"text": summary}]}
    action = {"compaction": {"startTimestamp": start, "endTimestamp": end, "compactedContent": content}}
    usage = {"promptTokenCount": prompt}
    return {"id": f"c{time}", "author": "user", "timestamp": time, "actions": action, "usageMetadata": usage}


def stored(*events, **header):
    return {"id": "s1", "appName": "app", "userId": "u", "state": {}, "events": list(events), **header}


def read_json(*events, **header):
    return read_as(adk.FORMAT, stored(*events, **header))


def snake(value):
    """The same in the other spelling, with nulls."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {
        "".join("_" + c.lower() if c.isupper() else c for c in key): item
        if key in {"args", "response"}
        else snake(item)
        for key, item in value.items()
    }
    return {**renamed, "custom_metadata": None}


def test_the_samples_give_the_counted_facts():
    for path, expected in sample_facts("adk"):
        recording = read(path)
        assert recording.facts.prompt_tokens_sum == expected["prompt_tokens_sum"], path.name
        for session in recording.sessions:
            check_session(session)


def test_the_kinds_of_parts():
    session = read_json(
        event(
            1.0,
            {"text": "Hm", "thought": True},
            {"text": "I look"},
            {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"}},
            {"executableCode": {"code": "1+1"}},
        )
    ).sessions[0]

    kinds = [type(part) for part in session.events[0].parts]
    assert kinds == [ReasoningPart, TextPart, ToolCallPart, MediaPart, MediaPart, OtherPart]


def test_what_is_asked_of_the_user_by_a_call_and_artifacts_by_the_names_of_files_are_no_counts_and_no_calls():
    call = {"functionCall": {"id": "toolu_1", "name": "drop", "args": {"table": "t"}}}
    asked = {"toolu_1": {"hint": "Drop it?", "confirmed": False, "payload": {"table": "t"}}}
    auth = {"toolu_1": {"authScheme": {"type": "oauth2"}}}
    actions = {"requestedToolConfirmations": asked, "requestedAuthConfigs": auth, "artifactDelta": {"tokens.csv": 3}}
    value = stored(user(1.0), event(2.0, call, prompt=10, actions=actions))
    for spelling in (value, snake(value)):
        recording = read(json.dumps(spelling).encode())
        assert [str(problem) for problem in recording.notes.problems] == []
        assert (recording.facts.tool_calls, recording.facts.model_calls) == (1, 1)


def test_a_signature_in_the_alphabet_of_addresses_is_measured_in_bytes():
    signed = {"text": "Hm", "thought": True, "thoughtSignature": "_-8AAAAA"}
    part = read_json(event(1.0, signed)).sessions[0].events[0].parts[0]

    assert part == ReasoningPart("Hm", opaque_bytes=6)


def test_a_signature_on_a_call_is_reasoning_that_nobody_can_read():
    call = {"functionCall": {"id": "c1", "name": "ls", "args": {}}, "thoughtSignature": "AAAA"}
    parts = read_json(event(1.0, call, {"text": "", "thoughtSignature": "AAAA"})).sessions[0].events[0].parts

    assert parts == (ReasoningPart(opaque_bytes=3), ToolCallPart("ls", {}, "c1"))


def test_both_spellings_give_the_same_session():
    events = [
        user(1.0),
        event(2.0, {"functionCall": {"id": "c1", "name": "ls", "args": {"a": 1}}}, prompt=50),
        event(3.0, {"functionResponse": {"id": "c1", "name": "ls", "response": {"ok": 1}}}, role="user"),
        compaction(4.0, 1.0, 2.0),
    ]
    camel = read_json(*events)
    other = read_as(adk.FORMAT, snake(stored(*events)))

    assert (camel.sessions, camel.facts) == (other.sessions, other.facts)


def test_streaming_pieces_are_skipped():
    recording = read_json(user(1.0), event(2.0, {"text": "Hel"}, partial=True, prompt=9), event(3.0, {"text": "Hello"}))

    assert texts(recording.sessions[0]) == ["Look", "Hello"]
    assert (recording.facts.model_calls, recording.notes.skipped) == (0, {"streaming piece of an event": 1})


def test_events_are_ordered_by_time_then_position():
    session = read_json(user(3.0, "third"), user(1.0, "first"), user(2.0, "second")).sessions[0]

    assert texts(session) == ["first", "second", "third"]


def test_merged_results_are_one_event():
    parts = [{"functionResponse": {"id": f"c{n}", "name": "ls", "response": {"n": n}}} for n in (1, 2)]
    calls = [{"functionCall": {"id": f"c{n}", "name": "ls", "args": {}}} for n in (1, 2)]
    recording = read_json(user(1.0), event(2.0, *calls, prompt=5), event(3.0, *parts, role="user"))

    assert [len(item.parts) for item in recording.sessions[0].events] == [1, 2, 2]
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (2, 2)
    assert len(recording.sessions[0].calls) == 1


def test_a_compaction_is_no_event_and_its_call_is_counted_apart():
    recording = read_json(
        user(1.0), event(2.0, {"text": "a"}, prompt=10), user(3.0), compaction(4.0, 1.0, 2.0), event(5.0, {"text": "b"})
    )
    session = recording.sessions[0]

    assert len(session.events) == 4
    assert (session.compactions[0].at, session.compactions[0].base) == (3, (Inserted(0), Span(2, 3)))
    assert [call.prompt_tokens for call in session.calls] == [10, None]
    assert [call.prompt_tokens for call in session.side_calls] == [900]
    assert recording.facts.model_calls == 2


@pytest.mark.parametrize(("invocations", "name"), [("aaaa", "ADK"), ("aabb", "ADK (interval)")])
def test_a_compaction_between_messages_of_one_invocation_is_none_of_an_interval(invocations, name):
    first, second, third, fourth = ({"invocationId": letter} for letter in invocations)
    session = read_json(
        user(1.0, **first),
        event(2.0, {"text": "a"}, prompt=10, **second),
        {**compaction(3.0, 1.0, 2.0), **second},
        user(4.0, **third),
        event(5.0, {"text": "b"}, prompt=20, **fourth),
    ).sessions[0]
    assert agent_of(session).label == name


def test_an_answer_without_usage_names_its_model():
    session = read_json(user(1.0), event(2.0, {"text": "a"}, modelVersion="gemini-2.5-flash")).sessions[0]
    assert [(call.prompt_tokens, call.model) for call in session.calls] == [(None, "gemini-2.5-flash")]


def test_a_later_range_swallows_an_older_one():
    session = read_json(
        user(1.0), user(2.0), compaction(2.5, 1.0, 2.0, "old"), user(3.0), user(4.0), compaction(5.0, 1.0, 3.0, "new")
    ).sessions[0]

    assert session.compactions[1].base == (Inserted(0), Span(3, 4))
    assert [message.parts[0].text for message in session.compactions[1].messages] == ["new"]


def test_ranges_that_overlap_keep_both_summaries():
    session = read_json(
        *(user(float(n)) for n in range(1, 7)),
        compaction(7.0, 2.0, 3.0, "first"),
        compaction(8.0, 3.0, 5.0, "second"),
    ).sessions[0]

    assert session.compactions[1].base == (Span(0, 1), Inserted(0), Inserted(1), Span(5, 6))


def test_speech_is_read_from_its_transcription():
    spoken = {"id": "t1", "author": "user", "timestamp": 1.0, "inputTranscription": {"text": "Hello", "finished": True}}
    answer = {"id": "t2", "author": "agent", "timestamp": 2.0, "outputTranscription": {"text": "Hi"}}
    session = read_json(spoken, answer).sessions[0]

    assert [(item.role, item.parts[0].text) for item in session.events] == [("user", "Hello"), ("model", "Hi")]
    assert session.calls == ()


def test_the_output_of_code_is_no_answer_of_the_model():
    output = event(3.0, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42"}})
    session = read_json(user(1.0), event(2.0, {"executableCode": {"code": "6*7"}}, prompt=9), output).sessions[0]

    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, 9)]


def test_the_result_of_a_tool_is_no_answer_of_the_model():
    asked = event(2.0, {"functionCall": {"id": "c1", "name": "look", "args": {}}}, prompt=9)
    result = event(3.0, {"functionResponse": {"id": "c1", "name": "look", "response": {"result": "a"}}})
    session = read_json(user(1.0), asked, result, event(4.0, {"text": "Done"}, prompt=12)).sessions[0]

    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, 9), (3, 12)]


def test_an_error_without_content_is_counted():
    failed = {"id": "x", "author": "agent", "timestamp": 2.0, "errorCode": "MAX_TOKENS"}

    assert read_json(user(1.0), failed).notes.skipped == {"error of an agent, without content": 1}


def test_a_long_running_call_that_is_answered_again_is_noted():
    result = {"functionResponse": {"id": "c1", "name": "ask", "response": {"status": "pending"}}}
    call = event(2.0, {"functionCall": {"id": "c1", "name": "ask", "args": {}}})
    recording = read_json(user(1.0), call, event(3.0, result, role="user"), event(4.0, result, role="user"))

    assert recording.facts.tool_results == 1
    assert "1 result of long-running calls" in recording.sessions[0].notes[0]


def test_the_times_of_go_services_are_read():
    session = read_json(
        user(0, timestamp="2026-11-21T02:53:19.123456789Z", id="b"),
        {**user(0, "before", id="a"), "timestamp": None, "time": 1795229598},
    ).sessions[0]

    assert [round(item.timestamp) for item in session.events] == [1795229598, 1795229599]


def test_events_that_a_range_leaves_out_stay():
    event = compaction(9.0, 1.0, 3.0)
    event["actions"]["compaction"]["excludedEvents"] = [{"invocationId": "i2", "timestamp": 2.0}]
    session = read_json(user(1.0), user(2.0, invocationId="i2"), user(3.0), event).sessions[0]

    assert session.compactions[0].base == (Span(1, 2), Inserted(0))


@pytest.mark.parametrize("spelling", [lambda value: value, snake])
def test_the_events_alone_and_sessions_on_lines_are_recognised(spelling):
    events = [spelling({**user(1.0), "invocationId": "i", "actions": {}}), spelling(event(2.0, {"text": "a"}))]
    events[1] = {**events[1], "invocationId": "i", "actions": {}}

    for content in (events, lines(*events), lines(spelling(stored(user(1.0))), spelling(stored(user(1.0))))):
        assert sum(len(session.events) for session in read_as(adk.FORMAT, content).sessions) == 2


def test_a_session_of_which_nothing_can_be_read_names_the_damage():
    with pytest.raises(DamagedRecording, match="without any message: event 1 is not an object"):
        read_json("text", 7)


def test_an_object_with_events_of_another_program_is_not_taken():
    assert not recognises(adk.FORMAT, {"events": [], "name": "x"})


# -- databases

SESSIONS = "CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state {state}, update_time REAL)"
WHOLE = "CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, timestamp REAL, event_data TEXT)"
SPREAD = (
    "CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, author TEXT, timestamp DATETIME,"
    " content {json}, usage_metadata {json}, actions BLOB, partial BOOLEAN)"
)


def database(tmp_path, events, *rows, sessions=("s1",), journal="DELETE"):
    path = tmp_path / "session.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute(SESSIONS.format(state="TEXT"))
    connection.execute("CREATE TABLE app_states (app_name TEXT)")
    connection.execute(events)
    connection.executemany(
        "INSERT INTO sessions VALUES (?,?,?,?,?)", [("app", "u", name, "{}", 1.0) for name in sessions]
    )
    for row in rows:
        connection.execute(f"INSERT INTO events VALUES ({','.join('?' * len(row))})", row)
    connection.commit()
    return path, connection


def whole(session, value):
    return value["id"], "app", "u", session, value["timestamp"], json.dumps(value)


def spread(value, actions, *, as_bytes=False):
    def column(item):
        text = json.dumps(item) if item else None
        return text.encode() if text and as_bytes else text

    usage = column(value.get("usageMetadata"))
    place = (value["id"], "app", "u", "s1", value["author"], "2026-11-21 02:53:19.5")
    return *place, column(value["content"]), usage, actions, 0


def test_a_database_with_whole_events_gives_every_session(tmp_path):
    rows = [whole("s1", user(1.0, "one")), whole("s2", user(2.0, "two"))]
    path, connection = database(tmp_path, WHOLE, *rows, sessions=("s1", "s2"))
    connection.close()
    recording = read(path)

    assert [texts(session) for session in recording.sessions] == [["one"], ["two"]]
    assert [session.source_id for session in recording.sessions] == ["s1", "s2"]


def test_pickled_actions_are_never_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was read",))

    path, connection = database(
        tmp_path, SPREAD.format(json="TEXT"), spread(event(1.0, {"text": "a"}, prompt=9), pickle.dumps(Bomb()))
    )
    connection.close()
    recording = read(path)

    assert recording.facts.prompt_tokens_sum == 9
    assert recording.notes.skipped == {"pickled column actions (never unpickled)": 1}


def test_what_a_pickle_hides_is_told(tmp_path):
    compacted = pickle.dumps({"compaction": {"start_timestamp": 1.0}, "rewind_before_invocation_id": None})
    rewound = pickle.dumps({"compaction": None, "rewind_before_invocation_id": "i1"})
    rows = [spread(user(1.0), rewound), spread(user(2.0, id="e2"), compacted)]
    summariser = spread({"id": "e3", "author": "user", "content": None, "usageMetadata": {"promptTokenCount": 7}}, b"")
    path, connection = database(tmp_path, SPREAD.format(json="TEXT"), *rows, summariser)
    connection.close()
    session = read(path).sessions[0]

    assert "hide compactions (1), rewinds (1)" in session.notes[-1]
    assert ([call.prompt_tokens for call in session.side_calls], session.calls) == ([7], ())


def test_a_database_of_which_no_row_can_be_read_names_the_damage(tmp_path):
    path, connection = database(tmp_path, WHOLE, ("e1", "app", "u", "s1", 1.0, '{"id": '))
    connection.close()

    with pytest.raises(DamagedRecording, match="without any message: event row 1: JSON that ends too early"):
        read(path)


def test_columns_of_json_bytes_are_read(tmp_path):
    actions = json.dumps({"stateDelta": {"__context_guard_real_tokens_bot": 5}}).encode()
    rows = [spread(event(1.0, {"text": "a"}, prompt=9), actions, as_bytes=True)]
    path, connection = database(tmp_path, SPREAD.format(json="BLOB"), *rows)
    connection.close()
    session = read(path).sessions[0]

    assert (texts(session), session.guard_states[0].real_tokens) == (["a"], 5)
    assert session.events[0].timestamp == 1795229599.5


def test_rows_in_the_write_ahead_log_are_read(tmp_path):
    path, connection = database(tmp_path, WHOLE, whole("s1", user(1.0, "in the log")), journal="WAL")

    assert path.with_name("session.db-wal").stat().st_size
    assert texts(read(path).sessions[0]) == ["in the log"]
    connection.close()


def test_a_missing_write_ahead_log_is_told(tmp_path):
    path, connection = database(tmp_path, WHOLE)
    connection.close()
    content = path.read_bytes()
    in_wal_mode = content[:18] + b"\x02\x02" + content[20:]

    with pytest.raises(DamagedRecording, match="ending in -wal, which is missing"):
        read(in_wal_mode)


def test_a_database_of_another_program_is_not_taken():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE events (id TEXT)")

        assert not recognises(adk_sqlite.FORMAT, connection.serialize())


def test_a_result_that_names_its_call_is_paired():
    parts = {"functionResponse": {"id": "c1", "response": {"n": 1}}}
    call = {"functionCall": {"id": "c1", "name": "ls", "args": {}}}
    session = read_json(user(1.0), event(2.0, call), event(3.0, parts, role="user")).sessions[0]

    assert session.events[2].parts == (ToolResultPart("ls", {"n": 1}, "c1"),)
