"""A transcript and the requests that were captured beside it become one file with both."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.errors import DamagedRecording
from guard_core.events import TextPart
from guard_core.recordings import read
from guard_core.recordings.formats.capture.lines import NAME, VERSION, Shortener
from guard_core.recordings.formats.claude.joining import captured_calls, joined
from tests.guard_core.recordings.formats.claude.test_sent import REMINDER, sent
from tests.guard_core.recordings.formats.claude.test_transcript import SUMMARY, answer, boundary, call, result, user

SYSTEM = [{"type": "text", "text": "You are Claude Code", "cache_control": {"type": "ephemeral"}}]
TOOLS = [{"name": "Read", "description": "Read a file", "input_schema": {"type": "object"}}]
MARK = {"cache_control": {"type": "ephemeral"}}


def text(words, **more):
    return {"type": "text", "text": words, **more}


FIRST = {"role": "user", "content": [text(REMINDER), text("Read a.py", **MARK)]}
ASKED = {"role": "assistant", "content": [call("t1")]}
READ = {"role": "user", "content": [{**result("t1", f"one\n{REMINDER}")[0], **MARK}]}
UNMARKED = {"role": "user", "content": [text(REMINDER), text("Read a.py")]}
AFTER = {"role": "user", "content": [text(SUMMARY), text("file a.py")]}
TRANSCRIPT = (
    user("u1", None, "Read a.py"),
    answer("a1", "u1", call("t1")),
    user("u2", "a1", result("t1", "one")),
    answer("a2", "u2", "It says one"),
    boundary("c1", "a2"),
    user("s1", "c1", SUMMARY, isCompactSummary=True),
    answer("a3", "s1", "Done"),
)


def lines(*objects):
    return [json.dumps(item).encode() + b"\n" for item in objects]


def message_id(uuid):
    return next(line["message"]["id"] for line in TRANSCRIPT if line["uuid"] == uuid)


def capture(*calls):
    """A capture of (the id of the answer, messages) with a system prompt and tools."""
    shortener, out = Shortener(), [{"format": NAME, "version": VERSION, "client": "claude"}]
    for number, (identity, messages) in enumerate(calls):
        request = {"model": "m", "max_tokens": 32_000, "system": SYSTEM, "tools": TOOLS, "messages": list(messages)}
        # Half of the answers came as streams.
        start = {"type": "message_start", "message": {"id": identity, "type": "message", "content": []}}
        response = f"data: {json.dumps(start)}\n\n" if number % 2 else {"id": identity, "content": []}
        line = {"api": "anthropic", "timestamp": 1.0 + number, "response": response}
        out.append({**shortener.shorten("anthropic", request), **line})
        shortener.written("anthropic", request)
    return out


def whole():
    first, second, third = map(message_id, ("a1", "a2", "a3"))
    title = ("msg_of_a_title", [{"role": "user", "content": "Give it a title"}])
    return capture(title, (first, [FIRST]), (second, [UNMARKED, ASKED, READ]), (third, [AFTER]))


def test_every_request_of_the_joined_file_is_the_captured_one_message_by_message():
    result_ = joined(lines(*TRANSCRIPT), captured_calls(whole()))
    assert (result_.answers, result_.paired) == (3, 3)
    (session,) = read(b"".join(result_.lines)).sessions
    assert sent(session, 0) == [[REMINDER, "Read a.py"]]
    assert sent(session, 1) == [[REMINDER, "Read a.py"], ["Read"], [f"one\n{REMINDER}"]]
    assert sent(session, 2) == [[SUMMARY, "file a.py"]]
    assert session.system == (TextPart("You are Claude Code"),)
    assert [tool.name for tool in session.tools] == ["Read"]
    assert [call.prompt_tokens for call in session.calls] == [
        call.prompt_tokens for call in read(b"".join(lines(*TRANSCRIPT))).sessions[0].calls
    ]


def test_answers_that_were_not_captured_stay_as_the_transcript_has_them():
    calls = captured_calls(capture((message_id("a1"), [FIRST])))
    result_ = joined(lines(*TRANSCRIPT), calls)
    assert (result_.answers, result_.paired) == (3, 1)
    unchanged = lines(*TRANSCRIPT)
    assert [line for line in result_.lines if line in unchanged] == [unchanged[0], *unchanged[2:]]


def test_the_command_writes_the_file_or_says_that_the_two_are_of_other_sessions(tmp_path, capsys):
    for name, content in (("t.jsonl", TRANSCRIPT), ("c.jsonl", whole()), ("other.jsonl", capture(("msg_x", [FIRST])))):
        (tmp_path / name).write_bytes(b"".join(lines(*content)))
    paths = [str(tmp_path / name) for name in ("t.jsonl", "c.jsonl", "other.jsonl")]
    out = tmp_path / "joined.jsonl"
    assert main(["join", paths[0], paths[2], "-o", str(out)]) == 1
    assert "the files are of two sessions" in capsys.readouterr().out
    assert not out.exists()
    assert main(["join", *paths, "-o", str(out)]) == 0
    assert capsys.readouterr().out == "3 of 3 answers have their request now.\n"
    assert sent(read(out).sessions[0], 0) == [[REMINDER, "Read a.py"]]
    assert main(["join", paths[1], paths[0], "-o", str(out)]) == 2
    assert "not a capture" in capsys.readouterr().err


@pytest.mark.parametrize("line", [{"request": 7}, {"request": {}, "like": 3, "kept": 1}])
def test_a_damaged_capture_is_refused_with_its_line(line):
    with pytest.raises(DamagedRecording, match="line 2 of the capture"):
        captured_calls([{"format": NAME}, {"api": "anthropic", **line}])


def test_lines_that_are_no_json_are_kept_as_they_are():
    raw = [b"not json\n", b"[1]\n", *lines(*TRANSCRIPT)]
    assert joined(raw, captured_calls(whole())).lines[:2] == raw[:2]
