"""This project's own export."""

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import OtherPart
from guard_core.recordings import read
from guard_core.recordings.formats import native
from guard_core.recordings.reading.shelf import ShelvedEvents
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Span
from tests.builders import model, tool_call, tool_result, user

TALK = Session(
    events=(user("Look"), tool_call("ls", "c1", path="."), tool_result({"n": 1}, "ls", "c1"), model("Done")),
    calls=(ModelCall(at=1, response=1, prompt_tokens=100), ModelCall(at=3, response=3, prompt_tokens=130)),
    compactions=(RecordedCompaction(2, Evidence.DECLARED, "summary", (Inserted(0), Span(1, 2)), (user("Summary"),)),),
    format="claude-code",
    title="A talk",
)


def test_a_session_comes_back_as_it_was():
    recording = read(native.write(TALK), strict=True)

    assert recording.format == "compaction-inspector"
    assert recording.sessions == (TALK,)
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_max) == (2, 130)


def test_texts_of_a_large_export_stay_on_disk(tmp_path):
    (tmp_path / "export.jsonl").write_bytes(native.write(TALK).replace(b'"index":2', b'"index":9'))
    recording, left = read(tmp_path / "export.jsonl"), read(tmp_path / "export.jsonl", shelve=tmp_path, shelve_from=0)

    assert isinstance(left.sessions[0].events, ShelvedEvents)
    assert tuple(left.sessions[0].events) == recording.sessions[0].events
    assert (left.facts, left.notes.problems) == (recording.facts, recording.notes.problems)


def test_several_sessions_come_back(short_chat):
    data = b"".join(native.write_all([TALK, short_chat]))

    assert read(data, strict=True).sessions == (TALK, short_chat)


def test_a_session_that_was_written_twice_comes_back_twice(short_chat):
    """Each says where it begins; of a format that does not, a copy is the same recording once more."""
    data = b"".join(native.write_all([short_chat, TALK, short_chat]))
    assert read(data, strict=True).sessions == (short_chat, TALK, short_chat)


def test_equal_sessions_give_equal_bytes():
    assert native.write(TALK) == native.write(read(native.write(TALK)).sessions[0])


def test_an_export_without_its_header_is_told_as_that():
    with pytest.raises(DamagedRecording, match="without the header of a session"):
        read(native.write(TALK).split(b"\n", 1)[1])


def test_a_missing_event_leaves_a_marked_gap():
    data = native.write(TALK).split(b"\n")
    del data[2]
    recording = read(b"\n".join(data))
    session = recording.sessions[0]

    assert session.events[1].parts == (OtherPart("missing"),)
    assert (session.events[3], session.calls) == (TALK.events[3], TALK.calls)
    assert "1 of 4 events of this session are missing" in recording.notes.problems[0].message


def test_a_missing_event_is_damage_when_strict():
    data = native.write(TALK).replace(b'"index":2', b'"index":"2"')

    with pytest.raises(DamagedRecording, match="line 4: index is '2'"):
        read(data, strict=True)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b'"at":3', b'"at":99', "an entry at event 99"),
        (b'"response":3', b'"response":4', "answered by event 4 of 4"),
        (b'"prompt_tokens":130', b'"prompt_tokens":-1', r"`int` >= 0 - at `\$.prompt_tokens`"),
        (b'"session":{', b'"session":{"total_calls":-1,', r"`int` >= 0 - at `\$.total_calls`"),
        (b'"start":1,"stop":2', b'"start":1,"stop":9', "outside of the session"),
        (b'"index":0}', b'"index":7}', "outside of the session"),
        (b'"version":1', b'"version":2', "an export of version 2"),
        (b'"type":"text"', b'"type":"video"', "not a valid Event"),
        (b'"role":"user"', b'"role":"assistant"', r"at `\$.role`; allowed is one of: user, model, system"),
        (b'"evidence":"declared"', b'"evidence":"sure"', "allowed is one of: declared, inferred, matched"),
    ],
)
def test_what_points_nowhere_is_damage(old, new, sentence):
    with pytest.raises(DamagedRecording, match=sentence):
        read(native.write(TALK).replace(old, new, 1), strict=True)
