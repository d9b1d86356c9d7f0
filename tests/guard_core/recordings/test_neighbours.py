"""Formats that look alike are told apart by the whole registry, not only by their own readers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.recordings import read
from tests.guard_core.recordings.checks import lines
from tests.guard_core.recordings.formats import test_anthropic_messages, test_cline
from tests.guard_core.recordings.formats.claude import test_stream as test_claude_stream
from tests.guard_core.recordings.formats.codex import test_exec as test_codex_exec
from tests.guard_core.recordings.formats.codex import test_rollout as test_codex
from tests.guard_core.recordings.formats.gemini import test_format as test_gemini_cli
from tests.guard_core.recordings.formats.gemini import test_result as test_gemini_json
from tests.guard_core.recordings.formats.openai import test_completions as test_openai_chat
from tests.guard_core.recordings.formats.openai import test_responses as test_openai_responses
from tests.guard_core.recordings.formats.opencode import test_format as test_opencode
from tests.guard_core.recordings.formats.pi import test_events as test_pi_events
from tests.guard_core.recordings.formats.pi import test_session as test_pi

BARE_CODEX = ({"id": "old", "timestamp": test_codex.TIME, "git": None}, test_codex.TURN[0]["payload"])
SDK = {"version": 1, "sessionId": "s", "messages": [test_cline.TASK, test_cline.assistant(1, "Yes")]}
RECORDINGS = {
    "claude-code": [lines(*test_claude_stream.TALK), list(test_claude_stream.TALK), test_claude_stream.ended()],
    "codex": [
        lines(test_codex.META, *test_codex.TURN),
        lines(*BARE_CODEX),
        lines(test_codex.META),
        lines(*test_codex_exec.ITEMS),
        lines(*test_codex_exec.ENVELOPES),
    ],
    "pi": [lines(test_pi.HEADER, *test_pi.TALK), lines(test_pi.HEADER), lines(*test_pi_events.TALK)],
    "opencode": [test_opencode.export(*test_opencode.TALK)],
    "gemini-cli": [
        lines(test_gemini_cli.HEADER, *test_gemini_cli.TALK),
        {**test_gemini_cli.HEADER, "messages": list(test_gemini_cli.TALK)},
        lines(*test_gemini_cli.STREAM),
        test_gemini_json.MANY,
    ],
    "openai-chat": [
        test_openai_chat.TALK,
        lines(*test_openai_chat.TALK),
        {"messages": test_openai_chat.TALK},
        lines(test_openai_chat.logged(test_openai_chat.TALK[:2], test_openai_chat.TALK[2], 9)),
    ],
    "openai-responses": [
        test_openai_responses.ITEMS,
        lines(*test_openai_responses.ITEMS),
        test_openai_responses.response("r1", 9, test_openai_responses.CALL),
        lines(test_openai_responses.logged("Hi", test_openai_responses.response("r1", 9, test_openai_responses.DONE))),
    ],
    "anthropic-messages": [
        test_anthropic_messages.TALK,
        {"system": "Be brief.", "messages": [test_anthropic_messages.USER]},
        lines(test_anthropic_messages.logged(test_anthropic_messages.TALK[:1], test_anthropic_messages.CALL, 9)),
    ],
    "cline": [[test_cline.TASK, test_cline.assistant(1, "Yes")], SDK, [test_cline.say(0, "text", "Go")]],
}
CASES = [(name, content) for name, contents in RECORDINGS.items() for content in contents]


@pytest.mark.parametrize(("name", "content"), CASES, ids=[name for name, _ in CASES])
def test_each_recording_finds_its_own_format(name: str, content: Any) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    recording = read(data)
    assert recording.format == recording.facts.format == name
    assert all(session.format == name for session in recording.sessions)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("cut", [2, 20, 60])
def test_an_unfinished_last_line_is_left_out_and_told_in_both_modes(cut: int, strict: bool) -> None:
    recording = read(lines(test_codex.META, *test_codex.TURN)[:-cut], strict=strict)
    [problem] = recording.notes.problems
    assert problem.message.startswith("the last line is not finished")
    assert problem.line == 1 + len(test_codex.TURN)
    assert len(recording.sessions[0].events) == 3
