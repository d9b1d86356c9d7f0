"""The versions of an agent are placed at the events that they wrote."""

from guard_core.recordings.formats.claude.stream import FORMAT as STREAM
from guard_core.recordings.formats.claude.transcript import FORMAT as CLAUDE
from guard_core.recordings.formats.codex.rollout import CodexRolloutFormat
from guard_core.recordings.formats.native import write
from guard_core.recordings.formats.native.format import FORMAT as NATIVE
from guard_core.recordings.reading.versions import Versions
from tests.builders import model, user
from tests.guard_core.recordings.checks import lines, read_as

EVENTS = [user("a", line=1), model("b", line=2), user("c", line=5), model("d", line=6)]


def versions_of(*seen):
    versions = Versions()
    for line, version in seen:
        versions.see(line, version)
    return versions.of(EVENTS)


def test_a_version_holds_from_the_event_that_it_wrote_first():
    assert versions_of((1, "2.1.14"), (2, "2.1.14"), (4, "2.1.21"), (5, "2.1.21")) == ((0, "2.1.14"), (2, "2.1.21"))


def test_a_file_without_versions_has_none():
    assert versions_of((1, ""), (2, "")) == ()


def test_a_version_whose_lines_are_no_events_is_left_out():
    assert versions_of((1, "1"), (3, "2"), (4, "1"), (9, "3")) == ((0, "1"),)


def claude(number, role, version, **message):
    parent = f"u{number - 1}" if number > 1 else None
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": parent,
        "sessionId": "s",
        "version": version,
        "message": {"role": role, "content": "text", **message},
    }


TRANSCRIPT = lines(
    claude(1, "user", "2.1.14"),
    claude(2, "assistant", "2.1.14", id="m1", model="m", usage={"input_tokens": 9, "output_tokens": 3}),
    claude(3, "user", "2.1.21"),
    claude(
        4,
        "assistant",
        "2.1.21",
        id="m2",
        model="m",
        stop_reason="end_turn",
        usage={"input_tokens": 12, "output_tokens": 40},
    ),
)


def test_a_claude_code_transcript_that_was_resumed_with_another_version_has_both():
    (session,) = read_as(CLAUDE, TRANSCRIPT).sessions
    assert session.versions == ((0, "2.1.14"), (2, "2.1.21"))


def test_output_tokens_of_an_answer_that_had_only_begun_are_held_apart():
    (session,) = read_as(CLAUDE, TRANSCRIPT).sessions
    assert [(call.output_tokens, call.output_tokens_at_start) for call in session.calls] == [(None, 3), (40, None)]


def test_an_export_has_the_versions_and_the_output_at_start_again():
    (session,) = read_as(CLAUDE, TRANSCRIPT).sessions
    (again,) = read_as(NATIVE, write(session)).sessions
    assert (again.versions, again.calls) == (session.versions, session.calls)


def test_what_claude_code_prints_names_its_version():
    printed = lines(
        {"type": "system", "subtype": "init", "session_id": "s", "tools": [], "claude_code_version": "2.1.330"},
        {
            "type": "assistant",
            "session_id": "s",
            "uuid": "u",
            "parent_tool_use_id": None,
            "message": {"id": "m", "model": "m", "content": [{"type": "text", "text": "Hi"}], "usage": {}},
        },
    )
    assert read_as(STREAM, printed).sessions[0].versions == ((0, "2.1.330"),)


def test_a_codex_rollout_names_its_version():
    rollout = lines(
        {"type": "session_meta", "payload": {"id": "s", "cli_version": "0.169.0"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}},
    )
    assert read_as(CodexRolloutFormat(), rollout).sessions[0].versions == ((0, "0.169.0"),)


def test_versions_of_an_export_that_point_outside_of_its_events_are_left_out():
    (session,) = read_as(CLAUDE, TRANSCRIPT).sessions
    data = write(session).replace(b'[[0,"2.1.14"],[2,"2.1.21"]]', b'[[99,"x"],[2,"2.1.21"],[-1,"y"],[0,"2.1.14"]]')
    (again,) = read_as(NATIVE, data).sessions
    assert again.versions == ((0, "2.1.14"), (2, "2.1.21"))
