"""A context window that no model has is refused with its place, or noted and not used, in every format that has one."""

from __future__ import annotations

import json
import re

import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings import read
from guard_core.windows.models import window_of
from guard_core.windows.window_evidence import Status, judge_session, stated_windows
from tests.guard_core.recordings.checks import lines
from tests.recordings.seeds import SEEDS

IMPOSSIBLE = (-1, True, 10**15, 1, 0.5, "much", 100_000_001, {"tokens": 200_000})
STATED = re.compile(
    rb'("(?:model_context_window|contextWindowSize|max_context_tokens|contextWindow|context_window|context_length'
    rb'|maxPromptTokens|tokenLimit)" ?: ?)\d+'
)


def exec_run():
    usage = {"input_tokens": 100, "cached_input_tokens": 50, "output_tokens": 5, "total_tokens": 105}
    info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272_000}
    return lines(
        {"model": "model-1", "provider": "openai", "workdir": "/w"},
        {"prompt": "Look"},
        {"id": "0", "msg": {"type": "task_started", "model_context_window": 272_000}},
        {"id": "0", "msg": {"type": "token_count", "info": info}},
        {"id": "0", "msg": {"type": "agent_message", "message": "Done"}},
    )


def claude_run():
    usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "model-1", "usage": usage}
    message["content"] = [{"type": "text", "text": "Done"}]
    return lines(
        {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "tools": ["Bash"], "model": "model-1"},
        {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "s"},
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 1,
            "session_id": "s",
            "result": "Done",
            "usage": usage,
            "modelUsage": {"model-1": {"inputTokens": 6, "contextWindow": 200_000}},
        },
    )


def openhands():
    usage = {"prompt_tokens": 90, "completion_tokens": 5, "per_turn_token": 90, "context_window": 200_000}

    def event(kind, name, source, **rest):
        return {"id": name, "timestamp": "2026-03-01T10:00:00.000001", "source": source, "kind": kind, **rest}

    def said(name, source, role):
        spoken = {"role": role, "content": [{"type": "text", "text": "Go"}]}
        return event("MessageEvent", name, source, llm_message=spoken)

    metrics = {"default": {"model_name": "m-1", "accumulated_token_usage": usage}}
    called = {"id": "c1", "name": "terminal", "arguments": "{}"}
    about = {"tool_name": "terminal", "tool_call_id": "c1", "tool_call": called, "llm_response_id": "r1"}
    act = event("ActionEvent", "a1", "agent", thought=[], **about)
    stats = event("ConversationStateUpdateEvent", "st", "environment", key="stats", value={"usage_to_metrics": metrics})
    return lines(said("u1", "user", "user"), stats, act)


def copilot(key):
    def event(kind, **data):
        return {"type": kind, "data": data, "id": kind, "parentId": None, "timestamp": "2026-03-01T10:00:00.000Z"}

    return lines(
        event("session.start", sessionId="s1", selectedModel="m-1", startTime="2026-03-01T09:59:00Z"),
        event("user.message", content="List files"),
        event("session.usage_info", tokenLimit=128_000, currentTokens=900)
        if key == "tokenLimit"
        else event("session.usage_record", usage={"inputTokens": 900, "maxPromptTokens": 128_000}),
        event("assistant.message", messageId="m1", content="Done", toolRequests=[]),
    )


def hermes():
    row = {"id": "s1", "system_prompt": "Be brief.", "model": "m-1", "api_call_count": 1, "input_tokens": 90}
    talk = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Done"}]
    return lines({**row, "model_config": {"context_length": 200_000}, "messages": talk})


FILES = {
    **{name: SEEDS[name] for name in ("codex", "qwen-code", "kimi-cli wire")},
    "codex exec": exec_run(),
    "claude run": claude_run(),
    "openhands": openhands(),
    "copilot info": copilot("tokenLimit"),
    "copilot usage": copilot("maxPromptTokens"),
    "hermes": hermes(),
}


def stating(name, window):
    """A file whose windows are all of so many tokens."""
    content, count = STATED.subn(lambda match: match[1] + json.dumps(window).encode(), FILES[name])
    assert count, name
    return content


@pytest.mark.parametrize("name", FILES)
def test_a_possible_window_is_used(name):
    recording = read(stating(name, 300_000), strict=True)
    assert window_of(recording.sessions[0]).value == 300_000


@pytest.mark.parametrize("window", IMPOSSIBLE, ids=str)
@pytest.mark.parametrize("name", FILES)
def test_an_impossible_window_is_refused_with_its_line(name, window):
    with pytest.raises(DamagedRecording, match="no context window: allowed are 256 to 100,000,000") as error:
        read(stating(name, window), strict=True)
    assert name == "hermes" or error.value.line


@pytest.mark.parametrize("window", IMPOSSIBLE, ids=str)
@pytest.mark.parametrize("name", FILES)
def test_an_impossible_window_is_noted_and_not_used(name, window):
    recording = read(stating(name, window))
    assert any("no context window" in problem.message for problem in recording.notes.problems)
    assert recording.sessions[0].window is None
    assert recording.sessions[0].windows == ()


@pytest.mark.parametrize("name", FILES)
def test_a_window_of_0_says_that_the_agent_does_not_know_it(name):
    assert read(stating(name, 0), strict=True).sessions[0].window is None


def test_an_export_with_an_impossible_window_is_refused_and_its_session_kept():
    content = SEEDS["compaction-inspector"].replace(b'"value":200000', b'"value":1000000000000000')
    with pytest.raises(DamagedRecording, match="no context window") as error:
        read(content, strict=True)
    recording = read(content)
    assert (error.value.line, recording.notes.problem_count, recording.sessions[0].window) == (1, 1, None)


@pytest.mark.parametrize("name", ["qwen-code", "kimi-cli wire"])
def test_a_window_that_changes_holds_from_the_call_with_which_it_is_stated(name):
    """The larger prompt was answered under the larger window, and contradicts nothing."""
    windows = iter((1_000_000, 131_072))
    content = STATED.sub(lambda match: match[1] + b"%d" % next(windows), FILES[name])
    content = content.replace(b'"promptTokenCount": 100', b'"promptTokenCount": 200000', 1)
    (session,) = read(content.replace(b'"input_other": 100', b'"input_other": 200000', 1), strict=True).sessions
    assert stated_windows(session) == [1_000_000, 131_072]
    assert session.calls[0].prompt_tokens == 200_000
    assert judge_session(session).status is Status.KNOWN
