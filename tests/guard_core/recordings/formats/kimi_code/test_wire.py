"""Wire logs of Kimi Code: steps, results, compactions, and what Kimi Code counts."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.checker.story import holds
from guard_core.events import MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings.presence import removed_requests
from guard_core.ledger import Ledger
from guard_core.recordings import first_look
from guard_core.recordings import read as read_recording
from guard_core.recordings.formats.kimi_code.format import FORMAT
from guard_core.recordings.formats.kimi_code.messages import estimated
from guard_core.rules import Agreement, explain
from guard_core.rules.decisions import OwnChecks
from guard_core.rules.stretch_checks import OVERFLOW
from guard_core.sessions import Provenance, Sourced
from guard_core.views import JOINED, Inserted, Rewritten, Span
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, spoiled, texts
from tests.recordings.seeds import archive

USAGE = {"inputOther": 100, "output": 5, "inputCacheRead": 800, "inputCacheCreation": 100}
Record = dict[str, Any]


def record(name: str, **rest: Any) -> Record:
    return {"type": name, "agentId": "main", "time": 1_795_332_122_300, **rest}


def event(kind: str, **rest: Any) -> Record:
    return record("context.append_loop_event", event={"type": kind, "stepUuid": "s", **rest})


def said(text: str, origin: str = "user") -> Record:
    content = [{"type": "text", "text": text}]
    return record("context.append_message", message={"role": "user", "content": content, "origin": {"kind": origin}})


def begin() -> list[Record]:
    return [event("step.begin", uuid="s"), record("llm.request", kind="loop", model="k2", maxTokens=262_144)]


def read_file(call: str = "c1", output: Any = "a.txt", **result: Any) -> list[Record]:
    """A step whose answer calls one tool."""
    return [
        *begin(),
        event("tool.call", toolCallId=call, name="Read", args={"path": "a"}),
        event("tool.result", toolCallId=call, result={"output": output, **result}),
        event("step.end", finishReason="tool_use", usage=USAGE),
    ]


def compacted(**rest: Any) -> list[Record]:
    fields = {"summary": "short", "contextSummary": "long", "compactedCount": 3, "keptUserMessageCount": 1, **rest}
    return [
        record("full_compaction.begin", source="auto"),
        record("llm.request", kind="compaction", model="k2", maxTokens=131_072),
        record("usage.record", usage={**USAGE, "output": 50}, usageScope="session"),
        record("context.apply_compaction", **fields),
        record("full_compaction.complete"),
    ]


HEAD = (
    {"type": "metadata", "protocol_version": "1.5", "created_at": 1_795_332_121_823},
    record("profile.bind", systemPrompt="Be brief.", modelAlias="k"),
    record("llm.tools_snapshot", tools=[{"name": "Read", "description": "d", "parameters": {"type": "object"}}]),
)


def read(*records: Record):
    recording = read_as(FORMAT, lines(*HEAD, *records))
    for session in recording.sessions:
        check_session(session)
    return recording


def session_of(*records: Record):
    return read(*records).sessions[0]


def test_a_step_is_an_answer_and_its_results():
    recording = read(said("Go"), *read_file(note="<system>1 line.</system>"))
    session = recording.sessions[0]
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER]
    assert session.events[1].parts == (ToolCallPart("Read", {"path": "a"}, "c1"),)
    assert session.events[2].parts == (ToolResultPart("Read", "a.txt\n<system>1 line.</system>", "c1"),)
    (call,) = session.calls
    assert (call.at, call.response, call.model) == (1, 1, "k2")
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (1000, 800, 100, 5)
    assert (session.system, session.tools[0].name) == ((TextPart("Be brief."),), "Read")
    facts = recording.facts
    assert (facts.model_calls, facts.messages, facts.tool_calls, facts.tool_results) == (1, 3, 1, 1)


@pytest.mark.parametrize(
    ("tool", "output", "text"),
    [
        ("Bash", "a", "Wall time: 0.017 seconds\na"),
        ("mcp__docs__find", "a", "Wall time: 0.017 seconds\na"),
        ("Bash", "", "Wall time: 0.017 seconds\n<system>Tool output is empty.</system>"),
        ("Read", "a", "a"),
    ],
)
def test_shells_and_servers_of_tools_say_how_long_they_took(tool, output, text):
    records = [{**item} for item in read_file(output=output, durationMs=17)]
    records[2] = event("tool.call", toolCallId="c1", name=tool, args={})
    assert session_of(said("Go"), *records).events[2].parts == (ToolResultPart(tool, text, "c1"),)


def test_after_a_refusal_a_compaction_below_the_threshold_is_neither_early_nor_a_contradiction():
    """Kimi Code goes by a window that it learned from the refusal, 85 % of its estimate of the request."""
    refused = [*begin(), event("step.end", finishReason="error")]
    records = [*read_file(), *refused, *compacted(), *read_file("c2"), *compacted(), *read_file("c3")]
    explanation = explain(session_of(said("Go"), *records), window=Sourced(100_000, Provenance.USER))
    assert [item.verdict for item in explanation.compactions] == [Agreement.AGREES] * 2
    learned = explanation.stretches[-1].window
    assert (learned.value, learned.note.partition(" of ")[0]) == (18, "85 %")
    assert not any(item.contradiction or (item.at_most and item.start < 2) for item in explanation.inference)


def test_results_follow_the_order_of_their_calls_and_messages_that_came_meanwhile():
    records = [
        *begin(),
        event("content.part", part={"type": "think", "think": "Two files."}),
        event("tool.call", toolCallId="c1", name="Read", args={}),
        event("tool.call", toolCallId="c2", name="Read", args={}),
        event("tool.result", toolCallId="c2", result={"output": "second"}),
        said("Faster"),
        event("tool.result", toolCallId="c1", result={"output": "first"}),
        event("step.end", usage=USAGE),
    ]
    session = session_of(said("Go"), *records)
    results = [part.content for event in session.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert results == ["first", "second"]
    assert texts(session)[-1] == "Faster"
    assert session.events[1].parts[0] == ReasoningPart("Two files.")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"output": ""}, "<system>Tool output is empty.</system>"),
        ({"output": "Tool output is empty."}, "<system>Tool output is empty.</system>"),
        ({"output": "no", "isError": True}, "<system>ERROR: Tool execution failed.</system>\nno"),
        ({"output": " ", "isError": True}, "<system>ERROR: Tool execution failed. Tool output is empty.</system>"),
        ({"output": [{"type": "text", "text": "in"}], "note": "N"}, "in\nN"),
    ],
)
def test_a_result_is_worded_as_it_is_sent(result, text):
    session = session_of(said("Go"), *read_file(**{"output": "", **result}))
    assert session.events[2].parts[0].content == text


def test_a_picture_in_a_result_stays_beside_its_words():
    picture = {"type": "image_url", "imageUrl": {"url": "data:image/png;base64,AAAA"}}
    session = session_of(said("Go"), *read_file(output=[{"type": "text", "text": "seen"}, picture]))
    assert session.events[2].parts[1:] == (MediaPart("image/png", size=3),)


def test_a_call_whose_result_was_never_recorded_gets_kimis_own_words():
    broken = [*begin(), event("tool.call", toolCallId="c1", name="Read", args={})]
    session = session_of(said("Go"), *broken, *read_file("c2"))
    (part,) = session.events[2].parts
    assert part.is_error
    assert "was interrupted before its result was recorded" in part.content


def test_a_log_that_is_still_written_waits_for_the_result():
    session = session_of(said("Go"), *begin(), event("tool.call", toolCallId="c1", name="Read", args={}))
    assert len(session.events) == 2


def test_what_was_appended_is_counted_as_kimi_code_does():
    """The output of 10 characters is 3 tokens, its role one; the note and the reminder of the next step are none."""
    reminder = said("<system-reminder>x</system-reminder>", "injection")
    session = session_of(said("Go"), *read_file(output="0123456789", note="N" * 400), reminder, *read_file("c2"))
    assert [call.pending_tokens for call in session.calls] == [None, 4]
    assert (estimated("日本"), estimated("abcde"), estimated("")) == (2, 2, 0)


def test_the_reminders_of_a_new_turn_are_counted_for_they_come_before_the_check():
    reminder = said("R" * 400, "injection")
    answer = [*begin(), event("content.part", part={"type": "text", "text": "Done"}), event("step.end", usage=USAGE)]
    session = session_of(said("Go"), *answer, said("Next"), reminder, *read_file("c2"))
    assert [call.pending_tokens for call in session.calls] == [None, 2 + 101]


def test_an_automatic_compaction_fires_at_its_count():
    usage = {**USAGE, "inputOther": 211_000}
    end = event("step.end", usage=usage)
    step = [*begin(), event("tool.call", toolCallId="c1", name="Read", args={})]
    step += [event("tool.result", toolCallId="c1", result={"output": "x" * 1_000}), end]
    session = session_of(said("Go"), *step, *compacted(), *read_file("c2"))
    explanation = explain(session)
    (item,) = explanation.compactions
    assert (item.decision_tokens, item.verdict) == (211_900 + 5 + 251, Agreement.AGREES)
    assert explanation.rule.formula == "262,144 − 50,000 (reserve)"
    terms = OwnChecks(session, Ledger.of(session), explanation).at(item.step).terms
    assert [(term.value, term.expression) for term in terms if term.name == "count"] == [(212_156, "211,900 + 5 + 251")]


def test_a_compaction_keeps_the_users_messages_and_puts_the_summary_behind_them():
    session = session_of(said("Go"), *read_file(), said("Stay", "injection"), *compacted(), *read_file("c2"))
    (item,) = session.compactions
    assert (item.base, item.messages[0].parts) == ((Span(0, 1), Inserted(0)), (TextPart("long"),))
    assert (item.at, item.trigger, item.summariser.output_tokens) == (4, "auto", 50)
    assert (item.tokens_before, item.tokens_after) == (None, None)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"summary": {"role": "user", "content": []}}, "empty"),
        ({"summary": None}, "opaque"),
    ],
)
def test_a_summary_without_text_is_empty_and_one_that_is_missing_not_readable(fields, kind):
    session = session_of(said("Go"), *read_file(), *compacted(contextSummary=None, **fields), *read_file("c2"))
    assert session.compactions[0].kind == kind


def test_neighbouring_messages_of_the_user_are_one_on_the_way_to_the_model():
    session = session_of(said("One"), *read_file(), said("Two"), *read_file("c2"), *compacted(), *read_file("c3"))
    joined, summary = session.compactions[0].base
    assert isinstance(joined, Rewritten)
    assert (joined.event, joined.reason, joined.joins) == (3, JOINED, (0,))
    assert joined.message.parts == (TextPart("One\n\nTwo"),)
    assert summary == Inserted(0)


def test_of_many_messages_the_oldest_and_the_latest_stay_round_a_note():
    old, new = "a" * 10_000, "b" * 80_000  # 2,501 and 20,001 tokens with their roles
    session = session_of(said(old), *read_file(), said(new), *read_file("c2"), *compacted(), *read_file("c3"))
    head, note, tail, summary = session.compactions[0].base
    assert (head.event, len(head.message.parts[0].text)) == (0, 8_000)
    assert (tail.event, len(tail.message.parts[0].text)) == (3, 72_000)
    assert (note, summary) == (Inserted(0), Inserted(1))
    assert "were omitted here during compaction" in session.compactions[0].messages[0].parts[0].text


def test_older_compactions_kept_the_last_messages_behind_the_summary():
    records = [said("One"), *read_file(), *read_file("c2")]
    fields = {"summary": "sum", "contextSummary": None, "compactedCount": 3, "keptUserMessageCount": None}
    session = session_of(*records, *compacted(**fields), *read_file("c3"))
    assert session.compactions[0].base == (Inserted(0), Span(3, 5))


def test_a_compaction_behind_a_request_without_an_answer_is_a_recovery():
    refused = [*begin(), event("step.end", finishReason="error")]
    session = session_of(said("Go"), *read_file(), *refused, *compacted(), *read_file("c2"))
    assert session.refused == (3,)
    assert session.compactions[0].trigger == OVERFLOW
    assert [call.prompt_tokens for call in session.calls] == [1000, 1000]


@pytest.mark.parametrize("between", [[event("step.end", finishReason="interrupted")], [said("Go on")]])
def test_a_step_that_the_user_cancelled_or_that_failed_before_the_user_spoke_was_not_refused(between):
    session = session_of(said("Go"), *read_file(), *begin(), *between, *compacted(), *read_file("c2"))
    assert (session.refused, session.compactions[0].trigger) == ((), "auto")


def test_what_a_compaction_used_that_ran_beside_a_step_and_was_cancelled_is_a_call_beside():
    counts = {"inputOther": 230_000, "output": 500, "inputCacheRead": 0, "inputCacheCreation": 0}
    beside = [
        record("full_compaction.begin", source="auto"),
        *begin(),
        record("usage.record", usage=USAGE, usageScope="turn"),
        record("usage.record", usage=counts, usageScope="session"),
        record("full_compaction.cancel"),
        event("content.part", part={"type": "text", "text": "Done"}),
        event("step.end"),
    ]
    session = session_of(said("Go"), *read_file(), *beside)
    assert [(call.at, call.prompt_tokens) for call in session.side_calls] == [(3, 230_000)]
    assert session.calls[1].prompt_tokens == session.calls[0].prompt_tokens
    assert session.compactions == ()


@pytest.mark.parametrize(("dropped", "places"), [((0, 5), [3]), ((2, 5, 6), [3, 3]), ((0, 0), []), ((3,), [])])
def test_a_request_for_a_summary_that_was_made_again_of_fewer_messages_was_refused(dropped, places):
    asked = [record("llm.request", kind="compaction", maxTokens=131_072, droppedCount=count) for count in dropped]
    begun, _, *done = compacted()
    session = session_of(said("Go"), *read_file(), begun, *asked, *done, *read_file("c2"), *compacted())
    assert [(item.name, item.value) for item in session.settings] == [("summary_refused_at", at) for at in places]


def test_a_compaction_that_was_cancelled_is_none():
    records = [record("full_compaction.begin", source="manual"), record("full_compaction.cancel")]
    assert session_of(said("Go"), *read_file(), *records).compactions == ()


def test_what_the_user_took_back_or_cleared_is_not_sent():
    session = session_of(said("One"), *read_file(), said("Two"), *read_file("c2"), record("context.undo", count=1))
    assert (session.compactions[0].kind, session.compactions[0].base) == ("edit", (Span(0, 3),))
    session = session_of(said("One"), *read_file(), record("context.clear"), said("Two"))
    assert session.compactions[0].base == ()


def test_the_window_is_that_of_requests_without_a_limit_of_their_own():
    session = session_of(said("Go"), *read_file(), *compacted(), *read_file("c2"))
    assert (session.window.value, session.window.source) == (262_144, Provenance.RECORDER)
    assert session_of(said("Go"), *read_file()).window is None


@pytest.mark.parametrize(("limit", "window"), [(128_000, 128_000), (999, None)])
def test_a_limit_that_a_prompt_exceeds_is_no_window(limit, window):
    records = [said("Go"), *read_file(), *compacted(), *read_file("c2")]
    limited = [{**item, "maxTokens": limit} if item["type"] == "llm.request" else item for item in records]
    session_window = session_of(*limited).window
    assert (None if session_window is None else session_window.value) == window


def test_messages_that_kimi_code_counts_and_does_not_write_down_are_noted():
    rebased = record("token_counting.rebased", length=3, tokens=9, measured=False)
    session = session_of(said("Go"), *read_file(), *compacted(), rebased, *read_file("c2"))
    assert "A message behind the summary of a compaction: sent by Kimi Code, not in the file." in session.notes


@pytest.mark.parametrize(
    ("window", "typed", "threshold"),
    [
        (262_144, {}, 212_144),
        (128_000, {}, 78_000),
        (262_144, {"reserved_context_size": "10000"}, 222_823),
        (32_000, {}, 27_200),
        (262_144, {"trigger_ratio": "50"}, 131_072),
    ],
)
def test_the_threshold_is_that_which_was_measured_or_is_in_the_source(window, typed, threshold):
    session = session_of(said("Go"), *read_file())
    assert explain(session, window=Sourced(window, Provenance.USER), typed=typed).rule.threshold == threshold


def test_a_log_of_a_sub_agent_says_so():
    records = [{**item, "agentId": "agent-7"} for item in (said("Go"), *read_file())]
    (session,) = read_as(FORMAT, lines(HEAD[0], *records)).sessions
    assert (session.source_id, session.title) == ("1795332121823 agent-7", "Sub-agent agent-7")
    assert session.notes == (
        "The system prompt is not in the file.",
        "The schemas of the tools are not in the file.",
    )


def test_what_a_finished_sub_agent_used_is_neither_a_call_of_its_parent_nor_an_unknown_count():
    ended = record("subagent.completed", subagentId="agent-0", resultSummary="Done", usage=USAGE, contextTokens=900)
    recording = read_recording(lines(*HEAD, said("Go"), *read_file(), ended))
    assert recording.notes.problems == []
    assert (len(recording.sessions[0].calls), recording.sessions[0].side_calls) == (1, ())


def test_a_first_look_is_that_of_the_reading(tmp_path):
    path = tmp_path / "wire.jsonl"
    path.write_bytes(lines(*HEAD, said("Go"), *read_file(), *compacted(), *read_file("c2")))
    look = first_look(path)
    assert (look.prompt_tokens, look.compactions, look.model) == ((1_000, 1_000), (1,), "k2")


def test_an_archive_of_the_folder_has_the_sub_agents_behind_their_session():
    main = lines(*HEAD, said("Go"), *read_file())
    sub = lines(*({**item, "agentId": "agent-7"} for item in (*HEAD, said("Look"), *read_file())))
    files = {"ses_1/agents/agent-7/wire.jsonl": sub, "ses_1/agents/main/wire.jsonl": main, "ses_1/state.json": b"{}"}
    recording = read_recording(archive(files), strict=True)
    assert [(item.source_id, item.parent) for item in recording.sessions] == [("ses_1", ""), ("ses_1 agent-7", "ses_1")]
    assert recording.facts.model_calls == 2


def test_a_request_that_is_joined_with_others_is_not_lost():
    turn = [said("Rewrite the parser"), *read_file(), said("And then the writer"), *read_file("c2")]
    session = session_of(*turn, *compacted(), *read_file("c3"))
    ledger = Ledger.of(session)
    assert removed_requests(session, ledger, ledger.steps["user_event"]) == []
    assert holds(session.compactions[0].base, 3)
    assert not holds(session.compactions[0].base, 2)


def test_hostile_values_are_no_tracebacks():
    records = [*HEAD, said("Go"), *read_file(), *compacted(), *read_file("c2")]
    places = range(len(records))
    check_hostile(FORMAT, (lines(*records[:n], bad, *records[n + 1 :]) for n in places for bad in spoiled(records[n])))


def numbered(*steps: tuple[int, int]) -> list[Record]:
    """Steps of a turn, by its number and theirs."""
    records = []
    for turn, number in steps:
        begun = event("step.begin", uuid="s", turnId=str(turn), step=number)
        records += [begun, *said_step(number)[1:]]
    return records


def said_step(number: int) -> list[Record]:
    part = event("content.part", part={"type": "text", "text": f"Step {number}"})
    return [*begin(), part, event("step.end", finishReason="stop", usage=USAGE)]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([(0, 1), (0, 2), (1, 1)], []),
        ([(0, 1), (0, 2), (0, 2), (0, 1), (0, 2)], []),  # another attempt, and a resumed turn
        ([(0, 1), (0, 3)], ["By its number a step is not in the file (the next one is step 3 of its turn"]),
        ([(0, 1), (0, 4), (1, 2)], ["By their numbers 3 steps are not in the file (the first in the file behind them"]),
        ([(0, 1), (2, 1)], ["By its numbers 1 turn has no step in the file (turn 3 follows turn 1)"]),
        ([(3, 1), (4, 1)], ["By its numbers 3 turns have no step in the file (turn 4 is the first)"]),
        ([(3, 1), (0, 1)], []),  # numbered anew
    ],
)
def test_steps_and_turns_that_their_numbers_prove_to_be_missing_are_noted(steps, said):
    session = session_of(*numbered(*steps))
    notes = [note for note in session.notes if "umber" in note]
    assert len(notes) == len(said)
    assert all(note.startswith(words) for note, words in zip(notes, said, strict=True))


@pytest.mark.parametrize(("own", "is_noted"), [({}, False), ({"queueItemId": "msg_1"}, True)])
def test_a_turn_that_goes_on_behind_a_refused_request_is_not_missing(own, is_noted):
    """2.1.0 counts it, and its steps bear the number of the turn before; the user's own have an item of a queue."""
    resumed = {"type": "agent.turn.started", "turnId": 1, "kind": "event", **own}
    session = session_of(*numbered((0, 1)), resumed, *numbered((0, 2), (2, 1)))
    assert any("have no step" in note or "has no step" in note for note in session.notes) == is_noted
