"""What each context of an ADK session sees: rewinds, branches of parallel agents, scopes of delegated tasks."""

import json

import pytest

from guard_core.errors import LimitExceeded
from guard_core.recordings import Limits
from guard_core.recordings.formats.adk.session import FORMAT
from guard_core.recordings.reading.source import ByteSource
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, spoiled, texts
from tests.guard_core.recordings.formats.adk.test_session import compaction, event, read_json, stored, user


def asked(time, invocation, text="Look", **fields):
    return user(time, text, invocationId=invocation, **fields)


def said(time, invocation, text, prompt=10, **fields):
    return event(time, {"text": text}, prompt=prompt, invocationId=invocation, **fields)


def rewind(time, invocation, before):
    actions = {"rewindBeforeInvocationId": before}
    return {"id": f"r{time}", "author": "user", "timestamp": time, "invocationId": invocation, "actions": actions}


FIRST = [asked(1.0, "i1", "one"), said(2.0, "i1", "1")]
SECOND = [asked(3.0, "i2", "two"), said(4.0, "i2", "2", 20)]


def test_what_a_rewind_took_back_leaves_the_log_and_its_calls_count_apart():
    recording = read_json(*FIRST, *SECOND, rewind(5.0, "i3", "i2"), asked(6.0, "i4", "three"), said(7.0, "i4", "3"))
    session = recording.sessions[0]

    assert texts(session) == ["one", "1", "three", "3"]
    assert [(call.at, call.prompt_tokens) for call in session.side_calls] == [(2, 20)]
    assert "2 events taken back" in session.notes[0]
    assert (recording.facts.messages, recording.facts.model_calls) == (7, 3)


def test_a_rewind_to_the_start_takes_back_compactions_too():
    entries = [*FIRST, compaction(2.5, 1.0, 2.0), *SECOND, rewind(5.0, "i3", "i1"), asked(6.0, "i4", "three")]
    recording = read_json(*entries)
    session = recording.sessions[0]

    assert (texts(session), session.compactions, recording.facts.compactions) == (["three"], (), 1)
    assert [call.prompt_tokens for call in session.side_calls] == [10, 900, 20]


def test_a_rewind_inside_what_a_later_one_took_back_is_gone_with_it():
    entries = [*FIRST, *SECOND, rewind(5.0, "i3", "i1"), asked(6.0, "i4", "three"), rewind(7.0, "i5", "i4")]

    assert texts(read_json(*entries, asked(8.0, "i6", "four")).sessions[0]) == ["four"]


def test_a_rewind_to_nothing_takes_back_nothing():
    assert texts(read_json(*FIRST, rewind(3.0, "i2", "lost")).sessions[0]) == ["one", "1"]


def parallel(*branches, merged=True):
    steps = [
        said(2.0 + step + place / 10, "i1", f"{branch}{step}", branch=f"par.{branch}", author=branch)
        for step in (0, 1)
        for place, branch in enumerate(branches)
    ]
    return [asked(1.0, "i1", "go"), *steps, *([said(9.0, "i1", "all", 99)] if merged else [])]


def test_parallel_agents_have_sessions_of_their_own_and_the_main_context_sees_all():
    recording = read_json(*parallel("a", "b"))
    main, first, second = recording.sessions

    assert texts(main) == ["go", "a0", "b0", "a1", "b1", "all"]
    assert [(call.at, call.prompt_tokens) for call in main.calls] == [(5, 99)]
    assert texts(first) == ["go", "a0", "a1", "all"]
    assert [call.at for call in second.calls] == [1, 2]
    assert (second.agent, second.title) == ("par.b", "par.b")
    assert recording.facts.model_calls == 5
    for session in recording.sessions:
        check_session(session)


def test_parallel_agents_without_a_main_context_are_all_told():
    assert [texts(session) for session in read_json(*parallel("a", "b", merged=False)).sessions] == [
        ["go", "a0", "a1"],
        ["go", "b0", "b1"],
    ]


def test_a_branch_of_a_single_call_is_a_side_call():
    once = said(3.5, "i1", "b", 7, branch="par.b")
    recording = read_json(*parallel("a"), once)

    assert [len(session.calls) for session in recording.sessions] == [1, 2]
    assert [call.prompt_tokens for call in recording.sessions[0].side_calls] == [7]


def test_a_single_branch_that_all_requests_see_is_one_session():
    recording = read_json(asked(1.0, "i1"), said(2.0, "i1", "a", branch="par.a"), said(3.0, "i1", "b", branch="par.a"))

    assert len(recording.sessions) == 1


def test_a_delegated_task_sees_its_own_scope_only():
    task = [said(3.0, "i1", "t1", isolationScope="c1"), said(4.0, "i1", "t2", isolationScope="c1")]
    main, scoped = read_json(asked(1.0, "i1"), said(2.0, "i1", "m"), *task, said(5.0, "i1", "n")).sessions

    assert (texts(main), texts(scoped)) == (["Look", "m", "n"], ["t1", "t2"])


def test_a_tool_s_agent_and_its_caller_do_not_see_each_other_s_events():
    call = event(2.0, {"functionCall": {"id": "c1", "name": "sub", "args": {}}}, prompt=5, invocationId="i1")
    inner = [said(3.0, "i1", "s1", branch="sub@c1"), said(4.0, "i1", "s2", branch="sub@c1")]
    other = said(5.0, "i1", "o", branch="par.x")
    main, tool = read_json(asked(1.0, "i1"), call, *inner, other).sessions

    assert texts(main) == ["Look", "", "o"]
    assert texts(tool) == ["s1", "s2"]


def test_a_compaction_is_one_of_every_context_that_sees_it():
    entries = [*parallel("a", "b"), compaction(10.0, 1.0, 2.5), said(11.0, "i1", "end")]
    main, first, _ = read_json(*entries).sessions

    assert main.compactions[0].base == (Inserted(0), Span(3, 6))
    assert first.compactions[0].base == (Inserted(0), Span(2, 4))
    assert "Up to 1.26" in main.compactions[0].note
    assert [len(session.side_calls) for session in (main, first)] == [1, 0]


def test_too_many_contexts_of_too_many_events_are_refused():
    with (
        pytest.raises(LimitExceeded, match="13 events in 6 contexts"),
        ByteSource.open(lines(stored(*parallel(*"abcdef", merged=False))), limits=Limits(events=3)) as source,
    ):
        FORMAT.read(source)


def test_wrong_types_anywhere_are_survived():
    actions = {"stateDelta": {"__context_guard_summary_b": "s", "__context_guard_contents_at_compaction_b": 1}}
    entries = [
        asked(1.0, "i1"),
        said(2.0, "i1", "a", branch="sub@c1", isolationScope="s", actions=actions),
        said(3.0, "i1", "b", branch="par.a"),
        rewind(4.0, "i2", "i1"),
        compaction(5.0, 1.0, 2.0),
    ]
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(stored(*entries))))
