"""gptme's conversations."""

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.gptme import FORMAT
from guard_core.sessions import BEGINS_WITH_SUMMARY
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, recognises, spoiled, texts

TIME = "2026-11-29T23:12:03.287594"
TOOL = {"metadata": {"tool": "shell"}}


def message(role, content, **about):
    return {"role": role, "content": content, "timestamp": TIME, **about}


def answer(content, before, fresh=10, **about):
    usage = {"input_tokens": fresh, "output_tokens": 7, "cache_read_tokens": 80, "cache_creation_tokens": 10}
    metadata = {"model": "local/m", "usage": usage, "input_log_messages": before, "input_log_digest": "d", **about}
    return message("assistant", content, metadata=metadata)


def call(id, command="ls"):
    return f'@shell({id}): {{"command": "{command}"}}'


HEAD = [
    message("system", "You are gptme.", pinned=True, hide=True),
    message("system", "## Date", pinned=True, hide=True),
]
TALK = [
    *HEAD,
    message("user", "Look"),
    answer(f"I look.\n{call('c1')}", 3),
    message("system", "a.txt", call_id="c1", **TOOL),
    answer("Done", 5, fresh=30),
]


def read(*messages, **options):
    return read_as(FORMAT, lines(*messages), **options)


def session(*messages):
    return read(*messages, strict=True).sessions[0]


def parts(content):
    return session(*HEAD, message("user", "Look"), answer(content, 3)).events[1].parts


def test_messages_calls_and_tools_are_read():
    recording = read(*TALK, strict=True)
    [log] = recording.sessions

    assert [event.role for event in log.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [part.text for part in log.system or ()] == ["You are gptme.", "## Date"]
    assert log.events[1].parts == (TextPart("I look."), ToolCallPart("shell", {"command": "ls"}, "c1"))
    assert log.events[2].parts == (ToolResultPart("shell", "a.txt", "c1"),)
    counts = [(step.at, step.prompt_tokens, step.cached_tokens, step.cache_write_tokens) for step in log.calls]
    assert counts == [(1, 100, 80, 10), (3, 120, 80, 10)]
    assert {(step.output_tokens, step.model) for step in log.calls} == {(7, "local/m")}
    facts = recording.facts
    assert (facts.messages, facts.model_calls, facts.tool_calls, facts.tool_results) == (6, 2, 1, 1)
    assert (log.agent, log.notes, recording.notes.problems) == ("gptme", (), [])
    check_session(log)


def test_counts_of_older_versions_are_in_the_metadata():
    old = message("assistant", "Done", metadata={"model": "m", "input_tokens": 40, "cache_read_tokens": 60})
    [step] = session(*HEAD, message("user", "Look"), old).calls
    assert (step.prompt_tokens, step.cached_tokens, step.output_tokens) == (100, 60, None)


def test_calls_are_found_where_gptme_finds_them():
    both = parts(f"{call('a')}\n{call('b', 'cat x')}\nThen")
    assert [type(part) for part in both] == [ToolCallPart, ToolCallPart, TextPart]
    assert both[1].arguments == {"command": "cat x"}
    for quoted in (
        f"```\n{call('a')}\n```",
        f"````md\n```\n{call('a')}\n```\n````",
        f"As in {call('a')}",
        '@shell(a): {"command": "l',
        "@shell(a): [1]",
    ):
        assert parts(quoted) == (TextPart(quoted),)
    assert [type(part) for part in parts(f"```\nx\n```\n{call('a')}")] == [TextPart, ToolCallPart]


def test_what_is_only_displayed_is_not_sent():
    log = session(*TALK, message("system", "Compacted", ui_only=True), message("system", "12 % used", hide=True))
    assert texts(log)[-1] == "12 % used"
    assert (log.events[-1].role, log.events[-1].meta) == (Role.USER, True)
    assert "Compacted" not in texts(log)


def test_requests_from_a_compacted_view_are_noted():
    [note] = session(*TALK, message("user", "More"), answer("Yes", 4, fresh=1)).notes
    assert note.startswith("From line 8 on, gptme sent fewer messages than are in this file: a compacted view")


def test_a_view_begins_with_what_a_compaction_made():
    intro = message("system", "Previous conversation resumed from x:", metadata={"compaction_artifact": "intro"})
    log = session(*HEAD, intro, message("assistant", "# Checkpoint"), message("user", "More"), answer("Yes", 5))

    assert BEGINS_WITH_SUMMARY in log.notes
    assert [step.at for step in log.calls] == [3]
    assert len(log.system or ()) == 2


def test_a_damaged_message_stops_a_strict_reading_and_is_left_out_of_a_lenient_one():
    damaged = [*TALK[:4], message("assistant", 7), *TALK[4:]]
    with pytest.raises(DamagedRecording, match=r"^line 5: content of a message is missing"):
        read(*damaged, strict=True)
    assert texts(read(*damaged).sessions[0]) == texts(session(*TALK))

    wrong = [*TALK[:3], answer("Done", 3, fresh=-5)]
    older = [*TALK[:3], message("assistant", "Done", metadata={"input_tokens": -5, "cache_read_tokens": 1})]
    for spoiled_count in (wrong, older):
        with pytest.raises(DamagedRecording, match="input_tokens is -5, no count of tokens"):
            read(*spoiled_count, strict=True)
        [step] = read(*spoiled_count).sessions[0].calls
        assert step.prompt_tokens is None


def test_only_messages_of_gptme_are_taken():
    assert recordings.read(lines(*TALK)).format == "gptme"
    assert recognises(FORMAT, lines(HEAD[0]))
    assert not recognises(FORMAT, lines(message("user", "Look"), message("assistant", "Done")))
    assert not recognises(FORMAT, lines({"role": "user", "content": "Look", "pinned": True}))
    assert not recognises(FORMAT, lines(*TALK, message("assistant", "x", tool_calls=[])))
    assert not recognises(FORMAT, lines(*TALK, message("tool", "x")))


def test_hostile_values_are_read_or_refused():
    check_hostile(FORMAT, (lines(*bad) for bad in spoiled(TALK[1:5]) if all(isinstance(item, dict) for item in bad)))
