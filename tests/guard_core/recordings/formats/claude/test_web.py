"""Sessions of Claude Code on the web: the entries of a transcript in one object."""

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.claude.web import FORMAT
from guard_core.sessions import Evidence
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, recognises, spoiled, texts
from tests.guard_core.recordings.formats.claude.test_transcript import SUMMARY, answer, boundary, call, result, user

# As one that shows transcripts keeps it: no uuids, no ids, no usage.
BARE = [
    {"type": "user", "timestamp": "2026-01-01T10:00:00.000Z", "message": {"role": "user", "content": "Look"}},
    {"type": "assistant", "message": {"role": "assistant", "content": [call("t1")]}},
    {"type": "user", "message": {"role": "user", "content": result("t1")}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done"}]}},
    {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": SUMMARY}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "On it"}]}},
]
FULL = [
    user("a", None),
    answer("b", "a", call("t1"), prompt=150),
    user("c", "b", result("t1")),
    answer("d", "c", prompt=170),
    boundary("e", "d"),
    user("f", "e", SUMMARY, isCompactSummary=True),
    answer("g", "f", "On it", prompt=40),
]


def read(entries, **options):
    return read_as(FORMAT, {"loglines": entries}, **options)


def test_entries_are_read_as_the_lines_of_a_transcript():
    web, transcript = read(FULL, strict=True), recordings.read(lines(*FULL), strict=True)

    assert web.facts == transcript.facts
    assert [step.prompt_tokens for step in web.sessions[0].calls] == [150, 170, 40]
    assert web.sessions == transcript.sessions


def test_entries_without_ids_follow_each_other_and_have_no_tokens():
    recording = read(BARE, strict=True)
    [session] = recording.sessions

    assert [step.at for step in session.calls] == [1, 3, 4]  # the summary is part of its compaction
    assert {step.prompt_tokens for step in session.calls} == {None}
    assert [compaction.evidence for compaction in session.compactions] == [Evidence.DECLARED]
    assert (recording.facts.messages, recording.facts.tool_calls, recording.facts.tool_results) == (6, 1, 1)
    assert (recording.facts.model_calls, recording.facts.compactions) == (0, 1)
    check_session(session)


def test_a_damaged_entry_is_named_by_its_number():
    damaged = [*BARE[:3], {"type": "user", "message": 7}, *BARE[3:]]
    with pytest.raises(DamagedRecording, match=r'^entry 4: "message" of a user line is missing or no object'):
        read(damaged, strict=True)
    with pytest.raises(DamagedRecording, match=r"^entry 2 is a number and no object"):
        read([BARE[0], 7, *BARE[1:]], strict=True)

    recording = read([*damaged, 7])
    assert texts(recording.sessions[0]) == texts(read(BARE).sessions[0])
    assert [problem.message for problem in recording.notes.problems] == [
        'entry 4: "message" of a user line is missing or no object',
        "entry 8 is a number and no object, left out",
    ]
    assert {problem.line for problem in recording.notes.problems} == {None}


def test_an_entry_that_follows_one_outside_is_named_by_its_number():
    [session] = read([user("a", None), answer("b", "a"), user("d", "c"), answer("e", "d")]).sessions
    assert any(note.startswith("Entry 3 follows one that is not in the file") for note in session.notes)


def test_the_file_is_recognised_by_its_messages():
    assert recordings.read(b'{"loglines": [%s]}' % lines(FULL[0]).strip()).format == "claude-code"
    assert recognises(FORMAT, {"loglines": [{"type": "custom-title"}, *BARE]})
    assert not recognises(FORMAT, {"loglines": ["2026-01-01 started"]})
    assert not recognises(FORMAT, {"loglines": [{"type": "user", "message": "said"}]})
    assert not recognises(FORMAT, {"lines": BARE})
    assert not recognises(FORMAT, lines(*FULL))


def test_hostile_values_are_read_or_refused():
    check_hostile(FORMAT, (lines(value) for value in spoiled({"loglines": BARE[1:]})))
