"""An agent's own recording and what was captured of it become one session that holds what was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guard_core import read
from guard_core.__main__ import main
from guard_core.events import TextPart
from guard_core.recordings.formats.capture.joining import CHANGED, joined
from guard_core.recordings.formats.capture.lines import NAME, VERSION
from tests.guard_core.recordings.checks import lines

JSON = dict[str, Any]
TOOL = {"type": "function", "name": "exec_command", "description": "Run", "parameters": {"type": "object"}}
RULES = "<permissions instructions>"


def message(role: str, *texts: str) -> JSON:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


ITEMS = [message("developer", RULES), message("user", "List the files")]
CALLED = {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": '{"cmd": "ls"}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}
DONE = message("assistant", "One file.")
ANSWERS = ((CALLED, 900), (DONE, 950))


def rollout() -> list[JSON]:
    """A session of Codex, whose file has no tools and another system prompt than it sends."""
    usages = [
        {"type": "token_usage_record", "payload": {"response_id": f"r{number}", "usage": {"input_tokens": tokens}}}
        for number, (_, tokens) in enumerate(ANSWERS)
    ]
    meta = {"type": "session_meta", "payload": {"id": "s1", "base_instructions": {"text": "Be brief and plan."}}}
    *begin, called, result, done = (
        {"type": "response_item", "payload": item} for item in (*ITEMS, CALLED, RESULT, DONE)
    )
    return [meta, *begin, called, usages[0], result, done, usages[1]]


def capture(name: str = "s1", system: str = "Be brief.", ids: str = "r", tools: Any = (TOOL,)) -> list[JSON]:
    """Its requests."""
    out: list[JSON] = [{"format": NAME, "version": VERSION, "client": "codex"}]
    inputs = ([*ITEMS], [*ITEMS, CALLED, RESULT])
    for number, (items, (answer, tokens)) in enumerate(zip(inputs, ANSWERS, strict=True)):
        request = {"model": "m", "input": [message("developer", system), *items], "prompt_cache_key": name}
        usage = {"input_tokens": tokens, "output_tokens": 5}
        response = {"id": f"{ids}{number}", "object": "response", "output": [answer], "usage": usage}
        line = {"id": number, "api": "responses", "timestamp": 1.0 + number, "status": 200}
        out.append({**line, "request": {**request, "tools": list(tools)}, "response": response})
    return out


def session_of(records: Any) -> Any:
    (session,) = read(lines(*records)).sessions
    return session


def test_the_joined_session_has_the_prompt_and_the_tools_that_were_sent_and_no_message_twice() -> None:
    own = session_of(rollout())
    result = joined(own, [session_of(capture())])
    assert (result.answers, result.paired) == (2, 2)
    session = result.session
    assert session.system == (TextPart("Be brief."),)
    assert [tool.name for tool in session.tools or ()] == ["exec_command"]
    assert (session.events, session.calls, session.format) == (own.events, own.calls, "codex")
    assert session.notes == ()


@pytest.mark.parametrize("name", ["s1", "another name"])
def test_answers_are_known_by_their_words_and_tokens_where_their_ids_are_not_in_the_recording(name: str) -> None:
    own = session_of(rollout())
    assert joined(own, [session_of(capture(name, ids="other"))]).paired == 2
    own = session_of([line for line in rollout() if line["type"] != "token_usage_record"])
    assert joined(own, [session_of(capture(name, ids="other"))]).paired == 0, "words alone may be those of another"


def test_a_conversation_of_the_sessions_name_goes_before_one_that_answered_alike() -> None:
    captured = [session_of(capture("s2", "Another prompt.", ids="x")), session_of(capture(ids="y"))]
    assert joined(session_of(rollout()), captured).session.system == (TextPart("Be brief."),)


def test_what_changed_while_requests_were_captured_and_what_was_sent_beside_messages_is_noted() -> None:
    first, second = capture(), capture(system="Be long.")
    del first[2], second[1]
    second[1]["request"]["input"].append(message("user", "A reminder"))
    session = joined(session_of(rollout()), [session_of(first), session_of(second)]).session
    assert session.system == (TextPart("Be long."),)
    assert session.notes == (CHANGED, "In the captured requests, and in no message of the file: 1 text.")


def test_the_command_writes_the_joined_session_as_an_export(tmp_path: Path, capsys: Any) -> None:
    own, sent, out = (tmp_path / name for name in ("own.jsonl", "sent.jsonl", "out.jsonl"))
    own.write_bytes(lines(*rollout()))
    sent.write_bytes(lines(*capture()))
    assert main(["join", str(own), str(sent), "-o", str(out)]) == 0
    assert capsys.readouterr().out == "2 of 2 answers have their request now.\n"
    (session,) = read(out).sessions
    assert session == joined(session_of(rollout()), [session_of(capture())]).session
    assert main(["join", str(sent), str(own), "-o", str(out)]) == 2
    assert "not a capture" in capsys.readouterr().err


def test_files_of_two_sessions_are_not_joined(tmp_path: Path, capsys: Any) -> None:
    own, sent, out = (tmp_path / name for name in ("own.jsonl", "sent.jsonl", "out.jsonl"))
    own.write_bytes(lines(*rollout()))
    strange = json.loads(json.dumps(capture("s3", ids="z")).replace("One file.", "Two.").replace("ls", "pwd"))
    sent.write_bytes(lines(*strange))
    assert main(["join", str(own), str(sent), "-o", str(out)]) == 1
    assert "the files are of two sessions" in capsys.readouterr().out
    assert not out.exists()
