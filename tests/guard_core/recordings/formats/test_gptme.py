"""gptme's conversations."""

import io
import zipfile

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings.formats.gptme.format import FORMAT
from guard_core.requests import materialise
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


def at(second, role, content, **about):
    return message(role, content, **about) | {"timestamp": f"2026-11-30T09:00:{second:02}.000001"}


def timed(second, *args, **about):
    return answer(*args, **about) | {"timestamp": f"2026-11-30T09:00:{second:02}.000001"}


ASK = at(5, "user", "Write a checkpoint", metadata={"compaction_checkpoint_view": ""})
MADE = at(7, "system", "Resumed:\n• View: compacted-001 (all kept)", ui_only=True)
CUT = at(10, "system", "Compacted:\n• Messages: 7 → 7\n• View: compacted-002 (all kept)", ui_only=True)
BEFORE = [
    *HEAD,
    at(1, "user", "Look"),
    timed(2, call("c1"), 3),
    at(3, "system", "a.txt", call_id="c1", **TOOL),
    timed(4, call("c2", "cat a.txt"), 5),
    at(4, "system", "long " * 50, call_id="c2", **TOOL),
]
INTRO = at(6, "system", "Previous conversation resumed from x:", metadata={"compaction_artifact": "intro"})
SUMMARY = at(6, "assistant", "# Checkpoint")
CONVERSATION = [
    *BEFORE,
    ASK,
    timed(6, "# Checkpoint", 8, fresh=300),
    MADE,
    timed(8, call("c3"), 7, fresh=20),
    at(9, "system", "b.txt", call_id="c3", **TOOL),
    CUT,
    timed(11, "Done", 10, fresh=2),
]
FIRST_VIEW = [*HEAD, INTRO, SUMMARY, *BEFORE[5:], MADE, *CONVERSATION[10:12]]
SECOND_VIEW = [*FIRST_VIEW[:5], at(4, "system", "[pruned]", call_id="c2", **TOOL), *FIRST_VIEW[6:], *CONVERSATION[12:]]
VIEWS = {"compacted-001": FIRST_VIEW, "compacted-002": SECOND_VIEW}


def folder(conversation, views, name="run"):
    files = {"conversation.jsonl": conversation} | {f"views/{view}.jsonl": views[view] for view in views}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for place, messages in files.items():
            archive.writestr(f"{name}/{place}" if name else place, lines(*messages))
    return packed.getvalue()


def requests_of(log):
    ledger = Ledger.of(log)
    views = [ledger.recorded_view(step) for step in range(len(log.calls))]
    return [[shown(event) for event in materialise(view, log, epoch)] for view, epoch in views]


def shown(event):
    """Its only part: a text, a result, or the id of a call."""
    [part] = event.parts
    match part:
        case ToolCallPart():
            return part.id
        case ToolResultPart():
            return part.content
    return part.text


def test_views_beside_a_conversation_say_what_was_sent_from_each_compaction_on():
    for name in ("run", ""):
        recording = recordings.read(folder(CONVERSATION, VIEWS, name))
        [log] = recording.sessions
        assert (recording.format, log.notes, recording.notes.problems) == ("gptme", (), [])
        assert requests_of(log) == [
            ["Look"],
            ["Look", "c1", "a.txt"],
            [INTRO["content"], "# Checkpoint", "c2", "long " * 50],
            [INTRO["content"], "# Checkpoint", "c2", "[pruned]", "c3", "b.txt"],
        ]
        first, second = log.compactions
        assert [(item.at, item.kind, item.trigger, item.line) for item in log.compactions] == [
            (5, "summary+tail", "auto", 10),
            (7, "trim", "auto", 13),
        ]
        assert (first.summariser.prompt_tokens, second.summariser) == (390, None)
        assert "Write a checkpoint" not in texts(log)
        assert (recording.facts.compactions, recording.facts.model_calls) == (2, 5)
        check_session(log)


def test_a_conversation_without_its_views_has_the_question_for_a_checkpoint():
    [log] = read(*CONVERSATION, strict=True).sessions
    assert log.compactions == ()
    assert "Write a checkpoint" in texts(log)
    assert [(item.name, item.value) for item in log.settings] == [("view_from_event", 5)]
    [note] = log.notes
    assert note.endswith("is imported.")


def test_a_checkpoint_that_left_no_view_is_a_part_of_the_conversation():
    ends = [*BEFORE, ASK, timed(6, "# Checkpoint", 8), at(8, "user", "Go on"), timed(9, "Done", 10)]
    [log] = recordings.read(folder(ends, VIEWS)).sessions
    assert texts(log)[-4:] == ["Write a checkpoint", "# Checkpoint", "Go on", "Done"]
    assert log.compactions == ()


def test_a_damaged_view_stops_a_strict_reading_and_is_noted_by_a_lenient_one():
    damaged = {**VIEWS, "compacted-001": [*FIRST_VIEW[:3], message("assistant", 7), *FIRST_VIEW[3:]]}
    with pytest.raises(DamagedRecording, match=r"run/views/compacted-001.jsonl: content of a message"):
        recordings.read(folder(CONVERSATION, damaged), strict=True)
    recording = recordings.read(folder(CONVERSATION, damaged), strict=False)
    [log] = recording.sessions
    assert "compacted-001.jsonl" in recording.notes.problems[0].message
    assert [item.kind for item in log.compactions] == ["trim"]


def test_version_and_window_are_in_the_system_prompt():
    window = message("system", "<budget:token_budget>128000</budget:token_budget>", hide=True)
    log = session(message("system", "You are gptme v0.35.1, an assistant.", pinned=True), window, *TALK[2:])
    assert (log.version, log.window.value) == ("0.35.1", 128_000)


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
