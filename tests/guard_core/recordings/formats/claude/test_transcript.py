"""Claude Code transcripts."""

import msgspec
import pytest

from guard_core import recordings
from guard_core.counts import counted_compactions
from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, ReasoningPart, ToolCallPart, ToolResultPart
from guard_core.findings import Facts, recorded_findings
from guard_core.recordings.formats.claude.log import CLEARED
from guard_core.recordings.formats.claude.transcript import FORMAT
from guard_core.recordings.reading.early_events import SendingPace
from guard_core.rules import explain
from guard_core.sessions import WROTE_SUMMARY, Evidence, LeftBranches, Refusal, SubAgent
from guard_core.views import Inserted, Rewritten, Span
from tests.guard_core.recordings.checks import check_hostile, check_sample_facts, lines, read_as, spoiled, texts

SUMMARY = "This session is being continued from a previous conversation that ran out of context. We did X."


FRAME = "This session is being continued from a previous conversation that ran out of context."
BELOW = "The summary below covers the earlier portion of the conversation."
READ = "If you need specific details from before compaction (like code), read the full transcript at: a.jsonl"
RESUME = "Please continue the conversation from where we left it off without asking the user any further questions."


def user(uuid, parent, content="Look", **fields):
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **fields}


def answer(uuid, parent, content="Done", id=None, prompt=100, **fields):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [content]
    usage = {"input_tokens": 3, "cache_read_input_tokens": prompt - 3, "cache_creation_input_tokens": 0}
    message = {"id": id or f"m-{uuid}", "role": "assistant", "model": "model-1", "content": blocks, "usage": usage}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **fields}


def call(id, name="Read"):
    return {"type": "tool_use", "id": id, "name": name, "input": {"path": "a.py"}}


def result(id, content="text"):
    return [{"type": "tool_result", "tool_use_id": id, "content": content}]


def boundary(uuid, logical, **details):
    metadata = {"trigger": "auto", "preTokens": 155_000, **details}
    line = {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": None, "sessionId": "s"}
    return {**line, "logicalParentUuid": logical, "compactMetadata": metadata}


def attachment(uuid, parent, content, **fields):
    return {"type": "attachment", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "attachment": content, **fields}


def progress(uuid, parent):
    data = {"type": "hook_progress", "hookName": "PostToolUse:Read"}
    return {"type": "progress", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "data": data}


def read(*objects, **options):
    return read_as(FORMAT, lines(*objects), **options)


def session(*objects):
    return read(*objects).sessions[0]


def test_the_samples_give_the_counted_facts():
    check_sample_facts(FORMAT, "claude-code")


def test_the_lines_of_one_message_are_one_event_and_one_call():
    recording = read(
        user("u1", None),
        answer("a1", "u1", {"type": "thinking", "thinking": "Hm", "signature": "AAAA"}, id="m1", prompt=120),
        answer("a2", "a1", "I look", id="m1", prompt=120),
        answer("a3", "a2", call("t1"), id="m1", prompt=120),
    )
    session = recording.sessions[0]

    assert [type(part) for part in session.events[1].parts][::2] == [ReasoningPart, ToolCallPart]
    assert [(step.at, step.response, step.prompt_tokens, step.cached_tokens) for step in session.calls] == [
        (1, 1, 120, 117)
    ]
    assert (recording.facts.prompt_tokens_sum, recording.notes.folded) == (120, 2)


def inside(uuid, parent, tokens, read, **fields):
    """An answer with OpenAI's counts under Anthropic's names."""
    line = answer(uuid, parent, **fields)
    line["message"]["usage"] = {"input_tokens": tokens, "cache_read_input_tokens": read}
    return line


def test_cached_tokens_that_a_gateway_counts_inside_the_input_are_not_added_again():
    counts = [(90_000, 0), (110_000, 89_984), (130_000, 109_952), (150_000, 129_920)]
    said = [user("u", None)]
    for number, each in enumerate(counts):
        said.append(inside(f"a{number}", said[-1]["uuid"], *each, content=call(f"t{number}")))
        said.append(user(f"r{number}", f"a{number}", result(f"t{number}")))
    side = inside("side", "a0", 50_000, 49_920, isSidechain=True)
    left = inside("left", "r2", 140_000, 129_920)
    recording = recordings.read(lines(*said[:-1], left, side, said[-1]))
    log = recording.sessions[0]

    assert [each.prompt_tokens for each in log.calls] == [90_000, 110_000, 130_000, 150_000]
    assert [each.cached_tokens for each in log.calls] == [0, 89_984, 109_952, 129_920]
    assert sorted(each.prompt_tokens for each in log.side_calls) == [50_000, 140_000]
    assert recording.facts.prompt_tokens_max == 150_000
    assert (
        "cached tokens are counted inside input_tokens in 3 calls, as OpenAI counts: they were not added again"
        in log.notes
    )
    assert Facts.of(log).window.value == 200_000


def test_a_reference_to_a_tool_that_was_searched_for_is_known():
    found = result("c1", [{"type": "tool_reference", "tool_name": "WebFetch"}])
    said = user("u1", None), answer("a1", "u1", call("c1", "ToolSearch")), user("u2", "a1", found)
    recording = recordings.read(lines(*said))
    assert recording.notes.problem_count == 0
    assert recording.facts.tool_results == 1


def test_cached_tokens_are_judged_by_the_whole_file_where_it_is_stored_while_it_is_read(tmp_path):
    counts = [(20_000, 0), (24_000, 19_968), (29_000, 23_936), *((5, 60_000 + 1_000 * number) for number in range(4))]
    said = [user("u", None)]
    for number, each in enumerate(counts):
        said.append(inside(f"a{number}", said[-1]["uuid"], *each, content=call(f"t{number}")))
        said.append(user(f"r{number}", f"a{number}", result(f"t{number}")))
    path = tmp_path / "large.jsonl"
    path.write_bytes(lines(*said))
    follower = recordings.EarlyEvents(lambda event: None, SendingPace(1, 2, 2))
    (large,) = recordings.read(path, shelve=tmp_path, shelve_from=0, early=follower).sessions
    assert [each.prompt_tokens for each in large.calls] == [sum(each) for each in counts]
    assert not [note for note in large.notes if "cached tokens" in note]


def test_a_turn_that_the_file_holds_twice_begins_with_its_request():
    """Once under other uuids: an answer on two branches has one id."""
    log = session(
        user("u1", None, "Look at this"),
        answer("a1", "u1", {"type": "thinking", "thinking": "Hm", "signature": "AAAA"}, id="m1"),
        answer("a2", "a1", "Seen", id="m1"),
        user("v1", None, "Look at this"),
        answer("b1", "v1", {"type": "thinking", "thinking": "Hm", "signature": "AAAA"}, id="m1"),
        answer("b2", "b1", "Seen", id="m1"),
        user("v2", "b2", "Thanks"),
        answer("b3", "v2", "Welcome"),
    )
    assert [event.line for event in log.events] == [4, 5, 7, 8]
    assert [step.at for step in log.calls] == [1, 3]


def test_results_of_parallel_calls_belong_to_the_session():
    log = session(
        user("u1", None),
        answer("a1", "u1", call("t1"), id="m1"),
        answer("a2", "a1", call("t2"), id="m1"),
        user("r1", "a1", result("t1", "first")),
        user("r2", "a2", result("t2", "second")),
        answer("a3", "r2"),
    )

    contents = [part.content for event in log.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert contents == ["first", "second"]
    assert [step.at for step in log.calls] == [1, 4]


@pytest.mark.parametrize(
    ("summary", "is_empty"),
    [
        ("This session is being continued from a previous conversation", True),
        (FRAME, True),
        (f"{FRAME} {BELOW}\n\n \n", True),
        (f"{FRAME} The conversation is summarized below:\n", True),
        (f"{FRAME} {BELOW}\n\n\n\n{READ}\n{RESUME}", True),
        (f"{FRAME} {BELOW}\n{RESUME}", True),
        (SUMMARY, False),
        (f"{FRAME} {BELOW}\n\nWe did X.\n\n{READ}\n{RESUME}", False),
        ([{"type": "text", "text": FRAME}, {"type": "text", "text": "We did X."}], False),
    ],
)
def test_a_summary_without_words_of_the_model_is_empty(summary, is_empty):
    log = session(
        user("u1", None),
        answer("a1", "u1", prompt=150_000),
        boundary("b1", "a1"),
        user("s1", "b1", summary, isCompactSummary=True),
        answer("a2", "s1", prompt=9_000),
    )
    assert [item.kind for item in log.compactions] == ["empty" if is_empty else "summary"]
    assert ("empty_summary" in {finding.kind for finding in recorded_findings(Facts.of(log))}) == is_empty


def test_a_rewound_branch_is_left_out_but_its_calls_are_counted_apart():
    recording = read(
        user("u1", None), answer("a1", "u1", "old", prompt=50), user("u2", None, "Again"), answer("a2", "u2", "new")
    )
    session = recording.sessions[0]

    assert texts(session) == ["Again", "new"]
    assert [step.prompt_tokens for step in session.side_calls] == [50]
    assert recording.facts.model_calls == 2
    assert "2 messages on edited or rewound branches" in session.notes[0]
    assert session.left == LeftBranches(messages=2, largest=50)


def test_compactions_and_refusals_on_a_rewound_branch_are_counted_apart():
    refusal = synthetic("a2", "u2", "Prompt is too long", isApiErrorMessage=True)
    left = (user("u2", "a1", "On"), refusal, boundary("b", "a2"), user("s1", "b", SUMMARY, isCompactSummary=True))
    recording = read(user("u1", None), answer("a1", "u1"), *left, user("u3", "a1", "Again"), answer("a3", "u3"))
    (log,) = recording.sessions
    assert log.compactions == log.refused == ()
    assert log.left == LeftBranches(messages=3, compactions=1, refused=1)


def test_words_about_a_prompt_that_is_too_long_are_no_refusal():
    asks = user("u2", "a1", "Why does it say: prompt is too long?")
    said = answer("a2", "u2", "Prompt is too long means that the context window is full.")
    (log,) = read(user("u1", None), answer("a1", "u1"), asks, said, user("u3", "a1"), answer("a3", "u3")).sessions
    assert (log.refused, log.left.messages, log.left.refused) == ((), 2, 0)


def test_progress_that_is_written_at_the_end_of_a_turn_begins_no_branch():
    log = session(
        user("u1", None),
        answer("a1", "u1", call("t1")),
        user("r1", "a1", result("t1", "first")),
        answer("a2", "r1", "Read it.", prompt=30),
        progress("p1", "a1"),
        progress("p2", "p1"),
        user("u2", "p2", "Next"),
        answer("a3", "u2", "Sure", prompt=40),
    )
    assert texts(log)[-3:] == ["Read it.", "Next", "Sure"]
    assert [step.prompt_tokens for step in log.calls][1:] == [30, 40]
    assert not [note for note in log.notes if "branches" in note]


def test_progress_that_was_written_as_a_tool_ran_leaves_a_rewound_branch_out():
    log = session(
        user("u1", None),
        answer("a1", "u1"),
        progress("p1", "a1"),
        user("u2", "p1", "Wrong"),
        answer("a2", "u2", "old"),
        user("u3", "p1", "Right"),
        answer("a3", "u3", "new"),
    )
    assert texts(log) == ["Look", "Done", "Right", "new"]


def test_a_retried_request_that_is_written_at_the_end_of_a_turn_begins_no_branch():
    """2.1.100, run: the next question hangs from an error whose parent is the message that was tried again."""
    retried = {"type": "system", "subtype": "api_error", "sessionId": "s"}
    log = session(
        user("u1", None),
        answer("a1", "u1", call("t1")),
        user("r1", "a1", result("t1", "first")),
        answer("a2", "r1", "Read it.", prompt=30),
        {**retried, "uuid": "e1", "parentUuid": "r1"},
        {**retried, "uuid": "e2", "parentUuid": "e1"},
        user("u2", "e2", "Next"),
        answer("a3", "u2", "Sure", prompt=40),
    )
    assert texts(log)[-3:] == ["Read it.", "Next", "Sure"]
    assert [step.prompt_tokens for step in log.calls][1:] == [30, 40]


def test_a_conversation_that_is_written_anew_without_its_question_keeps_it():
    """`-p` of 1.0.30 and 1.0.80 with a second question (run)."""
    log = session(
        user("u1", None, "Look"),
        answer("a1", "u1", call("t1"), id="m1"),
        user("r1", "a1", result("t1")),
        answer("a2", "r1", "Read it.", id="m2"),
        answer("a3", None, call("t1"), id="m1"),
        user("r2", "a3", result("t1")),
        answer("a4", "r2", "Read it.", id="m2"),
        user("u2", "a4", "Next"),
        answer("a5", "u2", "Sure"),
    )
    assert [text for text in texts(log) if text] == ["Look", "Read it.", "Next", "Sure"]
    assert len(log.calls) == 3
    assert not [note for note in log.notes if "branches" in note]


def test_what_hooks_add_to_parallel_results_is_behind_them_all():
    """As 2.1.100 sends it; the next answer hangs from what was added to the last result."""
    log = session(
        user("u1", None),
        answer("a1", "u1", call("t1"), id="m1"),
        answer("a2", "a1", call("t2"), id="m1"),
        user("r1", "a1", result("t1", "first")),
        attachment("h1", "r1", {"type": "hook_success", "hookEvent": "PostToolUse", "content": ""}),
        attachment("h2", "h1", {"type": "hook_additional_context", "content": ["of one"]}),
        user("r2", "a2", result("t2", "second")),
        attachment("h3", "r2", {"type": "hook_additional_context", "content": ["of two"]}),
        answer("a3", "h3", "Sure"),
    )
    assert [type(event.parts[0]).__name__ for event in log.events[2:4]] == ["ToolResultPart"] * 2
    assert texts(log)[-3:] == ["of one", "of two", "Sure"]


def test_a_summary_is_no_event_of_the_log():
    log = session(
        user("u1", None),
        answer("a1", "u1"),
        boundary("b", "a1"),
        user("s1", "b", SUMMARY, isCompactSummary=True),
        answer("a2", "s1", prompt=20),
    )
    compaction = log.compactions[0]

    assert texts(log) == ["Look", "Done", "Done"]
    assert (compaction.at, compaction.base, compaction.kind) == (2, (Inserted(0),), "summary")
    assert (compaction.evidence, compaction.tokens_before, compaction.trigger) == (Evidence.DECLARED, 155_000, "auto")
    assert compaction.messages[0].parts[0].text == SUMMARY


def test_preserved_messages_are_the_tail_behind_the_summary():
    log = session(
        user("u1", None),
        answer("a1", "u1"),
        user("u2", "a1", "Keep me"),
        answer("a2", "u2", "Kept"),
        boundary("b", "a2", preservedMessages={"anchorUuid": "s1", "uuids": ["u2", "a2"]}, postTokens=9000),
        user("s1", "b", SUMMARY, isCompactSummary=True),
        user("u3", "a2", "Next"),
    )
    compaction = log.compactions[0]

    assert texts(log) == ["Look", "Done", "Keep me", "Kept", "Next"]
    assert (compaction.at, compaction.base) == (4, (Inserted(0), Span(2, 4)))
    assert (compaction.kind, compaction.tokens_after) == ("summary+tail", 9000)


def test_a_preserved_segment_is_the_tail_too():
    segment = {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}
    log = session(
        user("u1", None),
        answer("a1", "u1"),
        user("u2", "a1", "Keep me"),
        answer("a2", "u2", "Kept"),
        boundary("b", "a2", preservedSegment=segment),
        {"type": "attachment", "uuid": "x", "parentUuid": "b", "sessionId": "s"},
        user("s1", "x", SUMMARY, isCompactSummary=True),
        user("u3", "a2", "Next"),
    )

    assert log.compactions[0].base == (Inserted(0), Span(2, 4))
    assert len(log.compactions) == 1


def test_messages_hung_below_the_boundary_stand_before_the_summary():
    preserved = {"anchorUuid": "b", "uuids": ["u1", "a1"]}
    log = session(
        user("u1", None, "Keep me"),
        answer("a1", "u1", "Kept"),
        user("u2", "a1", "Sum me up"),
        answer("a2", "u2", "Gone"),
        boundary("b", "a2", preservedMessages=preserved),
        user("s1", "b", SUMMARY, isCompactSummary=True),
        user("u3", "s1", "Next"),
    )

    assert log.compactions[0].base == (Span(0, 2), Inserted(0))


def test_a_summary_of_older_versions_is_matched_by_its_wording():
    recording = read(user("u1", None), answer("a1", "u1"), user("s1", "a1", SUMMARY), answer("a2", "s1"))

    assert [item.evidence for item in recording.sessions[0].compactions] == [Evidence.MATCHED]
    assert recording.facts.compactions == 1


def test_the_wording_counts_no_more_where_the_version_marks_its_summaries():
    pasted = user("s1", "a1", SUMMARY, version="1.0.128")
    recording = read(user("u1", None), answer("a1", "u1"), pasted, answer("a2", "s1"))

    assert recording.sessions[0].compactions == ()
    assert recording.facts.compactions == 0


def test_the_wording_behind_a_boundary_is_the_summary_of_any_version():
    plain = user("s1", "b", SUMMARY, version="2.1.80")
    log = session(user("u1", None), answer("a1", "u1"), boundary("b", "a1"), plain, answer("a2", "s1"))

    assert [item.kind for item in log.compactions] == ["summary"]
    assert texts(log) == ["Look", "Done", "Done"]


def test_a_request_that_shrank_with_no_compaction_in_the_file_is_told():
    log = session(
        user("u1", None), answer("a1", "u1", prompt=150_000), user("u2", "a1"), answer("a2", "u2", prompt=20_000)
    )

    assert log.notes == (
        "requests that shrank with no compaction in the file: 1, the first from 150000 to 20000 tokens at line 4",
    )


def test_the_wording_inside_a_tool_result_is_no_compaction():
    recording = read(user("u1", None), answer("a1", "u1", call("t1")), user("r1", "a1", result("t1", SUMMARY)))

    assert recording.sessions[0].compactions == ()
    assert recording.facts.compactions == 0


def test_a_file_that_starts_at_a_boundary_says_so():
    log = session(boundary("b", "lost"), user("s1", "b", SUMMARY, isCompactSummary=True), answer("a1", "s1"))

    assert log.compactions[0].at == 0
    assert log.compactions[0].note == "the history before this compaction is not in the file"


def test_a_file_that_begins_in_the_middle_says_so():
    assert session(user("u9", "lost")).notes == (
        "the file begins in the middle of a session: what came before is not in it",
    )


def test_lines_that_follow_one_which_is_not_in_the_file_are_named():
    talk = (user("u1", None), answer("a1", "u1"), user("u2", "a1"), answer("a2", "u2"), user("u3", "a2"))
    assert session(*talk).notes == ()
    words = "The entry on line 3 follows one that is not in the file: what that one held is not known."
    assert session(talk[0], *talk[2:], answer("a3", "u3")).notes == (
        "The entry on line 2 follows one that is not in the file: what that one held is not known.",
    )
    assert session(talk[0], talk[1], talk[3], answer("a3", "a2")).notes == (words,)
    taken_out = msgspec.json.decode(msgspec.json.encode(talk[3]).replace(b'"u2"', b'"REDACTED"'))
    assert session(talk[0], talk[1], taken_out).notes == ()


def test_a_boundary_without_summary_is_opaque():
    log = session(user("u1", None), answer("a1", "u1"), boundary("b", "a1"), user("u2", "b"))

    assert (log.compactions[0].kind, log.compactions[0].base) == ("opaque", ())


def test_a_micro_compaction_clears_results_in_place():
    line = boundary("b", "r1", compactedToolIds=["t1"], tokensSaved=5_000)
    log = session(
        user("u1", None),
        answer("a1", "u1", call("t1")),
        user("r1", "a1", result("t1", "long text")),
        {**line, "subtype": "microcompact_boundary", "microcompactMetadata": line.pop("compactMetadata")},
        answer("a2", "b"),
    )
    kept, rewritten = log.compactions[0].base

    assert (kept, rewritten.event) == (Span(0, 2), 2)
    assert isinstance(rewritten, Rewritten)
    assert rewritten.message.parts[0].content == CLEARED
    assert log.compactions[0].tokens_after == 150_000


def test_clearing_results_is_no_compaction_at_the_threshold_and_what_is_compared_after_it_is_not_known():
    cleared = {**boundary("b", "r3", tokensSaved=60_000), "subtype": "microcompact_boundary"}
    sizes = (100_000, 150_000, 170_000)  # the check behind the first answer of all says nothing
    answers = [answer(f"a{n}", f"r{n - 1}", call(f"t{n}"), prompt=size) for n, size in enumerate(sizes, 1)]
    answers.append(answer("a4", "b", prompt=110_000))
    for item in answers:
        item["message"]["usage"]["output_tokens"] = 10
    results = [user(f"r{n}", f"a{n}", result(f"t{n}")) for n in (1, 2, 3)]
    first, second, third, fourth = answers
    log = session(user("r0", None), first, results[0], second, results[1], third, results[2], cleared, fourth)
    explanation = explain(log)

    assert (log.compactions[0].kind, counted_compactions(log).total) == ("edit", 0)
    assert log.compactions[0].note == "0 tool results cleared at 155,000 tokens"
    assert explanation.compactions == explanation.missed == ()
    assert [(item.above, item.at_most) for item in explanation.inference] == [(150_011, None)]


def test_sub_agents_inside_the_file_are_sessions_of_their_own():
    recording = read(
        user("u1", None),
        user("s1", None, "Search", isSidechain=True, agentId="k1"),
        answer("s2", "s1", "Found", prompt=7, isSidechain=True, agentId="k1"),
        answer("a1", "u1"),
    )
    main, agent = recording.sessions

    assert (texts(main), texts(agent)) == (["Look", "Done"], ["Search", "Found"])
    assert (agent.source_id, agent.parent) == ("k1", main.source_id)
    assert [step.prompt_tokens for step in main.side_calls] == [7]
    assert recording.facts.model_calls == 1


def test_the_call_that_wrote_a_summary_is_named_as_one():
    side = {"isSidechain": True, "agentId": "acompact-946d2b"}
    asked = user("s1", None, "Your task is to create a detailed summary of the conversation so far", **side)
    (call,) = read(asked, answer("s2", "s1", "<summary>Done</summary>", prompt=139_534, **side)).sessions

    assert call.title == "Call of a compaction acompact-946d2b"
    assert WROTE_SUMMARY in call.notes


def synthetic(uuid, parent, content, **fields):
    line = answer(uuid, parent, content, prompt=3, **fields)
    line["message"]["model"] = "<synthetic>"
    return line


def test_errors_in_the_place_of_an_answer_are_no_calls_and_not_sent():
    marked = synthetic("a2", "a1", "Prompt is too long", isApiErrorMessage=True)
    recording = read(user("u1", None), synthetic("a1", "u1", "API Error: 529"), marked, user("u2", "a2"))

    assert recording.sessions[0].calls == ()
    assert texts(recording.sessions[0]) == ["Look", "Look"]
    assert recording.facts.model_calls == 0


@pytest.mark.parametrize(
    ("words", "refused", "refusals"),
    [
        ("Prompt is too long", (2,), ()),
        (
            "API Error: 400 prompt is too long: 204123 tokens > 200000 maximum",
            (2,),
            (Refusal(2, 204_123, 200_000),),
        ),
        (
            "API Error: 400 input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            (2,),
            (Refusal(2, 190_000, 200_000),),
        ),
        ("API Error: Claude's response exceeded the 32000 output token maximum", (), ()),
        ("API Error: 413 Request too large (max 32MB)", (), ()),
        ("API Error: 529 Overloaded", (), ()),
    ],
)
def test_an_error_that_the_prompt_is_too_long_is_a_refused_request_in_its_place(words, refused, refusals):
    lines = (user("u1", None), answer("a1", "u1"), synthetic("a2", "a1", words, isApiErrorMessage=True))
    log = session(*lines, user("u2", "a2"), answer("a3", "u2"))
    assert (log.refused, log.refusals) == (refused, refusals)
    assert [call.at for call in log.calls] == [1, 3]


def test_words_put_into_the_mouth_of_the_model_are_sent_but_no_call():
    log = session(user("u1", None), synthetic("a1", "u1", "No response requested."), user("u2", "a1", "Next"))

    assert texts(log) == ["Look", "No response requested.", "Next"]
    assert log.calls == ()


def test_a_sub_agent_may_be_compacted_itself():
    side = {"isSidechain": True, "agentId": "k1"}
    main, agent = read(
        user("u1", None),
        user("s1", None, "Search", **side),
        answer("s2", "s1", "Found", **side),
        {**boundary("b", "s2"), **side},
        user("s3", "b", SUMMARY, isCompactSummary=True, **side),
        answer("s4", "s3", "Done", **side),
        answer("a1", "u1"),
    ).sessions

    assert (texts(agent), [item.at for item in agent.compactions]) == (["Search", "Found", "Done"], [2])
    assert main.compactions == ()


def test_an_answer_written_before_its_question_stands_behind_it():
    side = {"isSidechain": True, "agentId": "k1"}
    log = session(answer("s2", "s1", "Found", **side), user("s1", None, "Search", **side))

    assert texts(log) == ["Search", "Found"]
    assert [step.at for step in log.calls] == [1]


def test_the_structured_copy_of_a_result_is_not_counted():
    recording = read(user("u1", None), user("r1", "u1", result("t1", "seen"), toolUseResult={"stdout": "x" * 9000}))

    assert recording.facts.largest_tool_result_chars == 4


def test_images_are_sized_not_counted_as_text():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4000}}
    log = session(user("u1", None, [image]), user("r1", "u1", result("t1", [image, {"type": "text", "text": "ok"}])))

    assert log.events[0].parts == (MediaPart(mime="image/png", size=3000),)
    assert log.events[1].parts[0].content == "ok"
    assert log.events[1].parts[1].size == 3000


def test_automatic_messages_start_no_turn():
    log = session(
        user("u1", None, "<local-command-stdout>ok</local-command-stdout>"), user("u2", "u1", "Reminder", isMeta=True)
    )

    assert [event.starts_turn() for event in log.events] == [False, False]


@pytest.mark.parametrize(("sender", "starts"), [("team-lead", True), ("tester", False), ("system", False)])
def test_of_the_agents_of_a_team_only_the_lead_starts_a_turn(sender, starts):
    message = f'<teammate-message teammate_id="{sender}" color="blue">\nDone\n</teammate-message>'
    assert [event.starts_turn() for event in session(user("u1", None, message)).events] == [starts]
    reported = '<teammate-message teammate_id="tester">\nDone, too\n</teammate-message>\n\n'
    assert [event.starts_turn() for event in session(user("u1", None, reported + message)).events] == [starts]


def test_the_end_of_another_session_before_the_first_line_is_no_session_and_has_no_call_of_a_sub_agent():
    ended = user("u0", "elsewhere", "[Request interrupted by user for tool use]", sessionId="before")
    agents = answer("a9", None, prompt=900)
    data = {"type": "agent_progress", "message": {"type": "assistant", "message": agents["message"]}}
    reported = {**progress("p1", "a2"), "data": data}
    recording = read(
        ended, user("u1", None), answer("a2", "u1"), reported, user("u3", "a2", "Next"), answer("a4", "u3")
    )

    assert [one.source_id for one in recording.sessions] == ["s"]
    log = recording.sessions[0]
    assert ([call.prompt_tokens for call in log.calls], [call.prompt_tokens for call in log.side_calls]) == (
        [100] * 2,
        [900],
    )
    assert texts(log) == ["Look", "Done", "Next", "Done"]
    assert "1 message of another session, without an answer, left out" in log.notes
    assert log.left is None


def test_a_damaged_line_in_the_middle_does_not_lose_what_was_before():
    data = lines(user("u1", None)) + b"{broken\n" + lines(answer("a2", "a1"), user("u3", "a2", "Next"))

    assert texts(read_as(FORMAT, data).sessions[0]) == ["Look", "Done", "Next"]


def test_a_title_is_taken_from_the_file():
    named = {"type": "custom-title", "customTitle": "My refactoring", "sessionId": "s"}

    assert session({"type": "summary", "summary": "Other", "leafUuid": "x"}, user("u1", None), named).title == (
        "My refactoring"
    )


def test_a_summary_line_about_another_conversation_is_no_title():
    other = {"type": "summary", "summary": "Other", "leafUuid": "x"}
    own = {"type": "summary", "summary": "Own", "leafUuid": "u1"}

    assert session(other, user("u1", None)).title == ""
    assert session(own, other, user("u1", None)).title == "Own"


def test_tool_outputs_that_were_moved_out_are_told():
    preview = result("t1", "<persisted-output>\nOutput too large (2 MB)")
    log = session(user("u1", None), answer("a1", "u1", call("t1")), user("r1", "a1", preview), answer("a2", "r1"))

    assert log.notes == ("tool outputs moved to files of their own, their previews were sent: 1",)


def test_sub_agents_with_files_of_their_own_are_told():
    done = user("r1", "a1", result("t1", "found"), toolUseResult={"agentId": "k1", "totalTokens": 90})
    log = session(user("u1", None), answer("a1", "u1", call("t1", "Task")), done, answer("a2", "r1"))

    assert log.notes == ("sub-agents with transcripts of their own (agent-*.jsonl): 1",)
    assert log.sub_agents == (SubAgent("k1", "t1", 1),)


@pytest.mark.parametrize("version", ["", "1.0.x", "9" * 5000, "1.0.29", "0.2.126"])
def test_a_version_that_is_not_known_to_mark_is_matched_by_the_wording(version):
    assert read(user("u1", None), user("s1", "u1", SUMMARY, version=version)).facts.compactions == 1


def test_system_prompt_and_tools_are_read_where_they_are_written_down():
    tool = {"name": "Read", "description": "Reads", "input_schema": {"type": "object"}}
    late = {"name": "Cron", "defer_loading": True}
    shape = {"system": [{"type": "text", "text": "Be brief."}], "tools": [tool, late]}
    line = {"type": "api-request-shape", "sessionId": "s", "shape": shape}
    snapshot = {"type": "prompt_snapshot", "systemPrompt": ["Be short."]}
    recording = read(user("u1", None), line, attachment("x", "u1", snapshot), line, answer("a1", "x"))
    log = recording.sessions[0]

    assert [part.text for part in log.system] == ["Be brief."]
    assert [(item.name, item.description, item.schema) for item in log.tools] == [("Read", "Reads", {"type": "object"})]
    assert session(user("u1", None), attachment("x", "u1", snapshot)).system[0].text == "Be short."


def test_a_prompt_whose_texts_were_taken_out_is_none():
    shape = {"type": "api-request-shape", "shape": {"masked": True, "chars": 9}}
    snapshot = {"type": "prompt_snapshot", "masked": True, "systemPrompt": ["[853 characters]"]}
    log = session(user("u1", None), shape, attachment("x", "u1", snapshot), answer("a1", "x"))
    assert (log.system, log.tools) == (None, None)


def test_the_limit_of_answers_in_a_request_is_a_setting_of_the_rule():
    request = {"type": "api-request", "params": {"max_tokens": 8_192}, "keep": 0, "tail": []}
    log = session(user("u1", None, version="2.1.330"), request, answer("a1", "u1"))
    assert [(item.name, item.value) for item in log.settings] == [("max_output_tokens", 8_192)]
    assert explain(log, typed={"auto_compact_window": "200000"}).rule.threshold == 178_808


def test_the_limit_of_answers_is_a_setting_of_a_sub_agent_in_a_file_of_its_own():
    request = {"type": "api-request", "params": {"max_tokens": 8_192}, "keep": 0, "tail": []}
    side = {"isSidechain": True, "agentId": "k1"}
    log = session(user("s1", None, "Search", **side), request, answer("s2", "s1", "Found", **side))
    assert [(item.name, item.value) for item in log.settings] == [("max_output_tokens", 8_192)]


def test_a_later_system_prompt_is_told():
    first, later = ({"type": "api-request-shape", "shape": {"system": name, "tools": []}} for name in ("One", "Two"))

    assert read(user("u1", None), first, later).notes.skipped == {"later system prompt or tools": 1}


def test_tokens_that_are_text_are_damage():
    bad = answer("a1", "u1")
    bad["message"]["usage"]["input_tokens"] = "3"

    with pytest.raises(DamagedRecording, match=r"line 2, column \d+: input_tokens is '3'"):
        read(user("u1", None), bad, strict=True)


def test_wrong_types_anywhere_are_survived():
    shape = {"system": [{"type": "text", "text": "Be brief."}], "tools": [{"name": "Read", "input_schema": {}}]}
    rendered = {"rendered": [{"content": "Today"}], "renderedRole": "system"}
    file = {"type": "file", "content": {"type": "text", "file": {"content": "a"}}}
    preserved = {"anchorUuid": "s1", "uuids": ["u1"]}
    micro = {**boundary("c", "a2"), "subtype": "microcompact_boundary"}
    records = [
        {"type": "summary", "summary": "Own", "leafUuid": "u1"},
        user("u1", None, version="2.1.0"),
        attachment("x1", "u1", {"type": "date"}, **rendered),
        attachment("x2", "x1", file),
        {"type": "api-request-shape", "shape": shape},
        answer("a1", "x2", call("t1")),
        user("r1", "a1", result("t1"), toolUseResult={"agentId": "k1"}),
        boundary("b", "r1", preservedMessages=preserved, preservedSegment={"headUuid": "u1", "tailUuid": "a1"}),
        user("s1", "b", SUMMARY, isCompactSummary=True),
        answer("a2", "s1"),
        {**micro, "microcompactMetadata": {"compactedToolIds": ["t1"], "preTokens": 9, "tokensSaved": 3}},
    ]
    for index, record in enumerate(records):
        rest = [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)]
        check_hostile(FORMAT, rest)


OTHER = (
    user("v1", None, "Another task", sessionId="s2"),
    answer("b1", "v1", "Begun", sessionId="s2", prompt=70),
)


@pytest.mark.parametrize("places", [(0, 1, 2, 3, 4, 5), (0, 4, 1, 2, 5, 3)], ids=["behind", "between"])
def test_files_of_two_sessions_in_one_are_two_sessions(places):
    own = (user("u1", None), answer("a1", "u1"), user("u2", "a1", "More"), answer("a2", "u2"))
    recording = read(*((*own, *OTHER)[place] for place in places))
    assert [(item.source_id, len(item.events)) for item in recording.sessions] == [("s", 4), ("s2", 2)]
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (3, 270)
    assert not any("rewound" in note for item in recording.sessions for note in item.notes)


@pytest.mark.parametrize("layout", ["behind", "between"])
def test_each_of_two_sessions_in_one_file_has_the_calls_and_sub_agents_that_it_started(layout):
    def with_agents(first, name, session, prompt):
        """A turn with a call in a line of progress, and one of a sub-agent whose lines are in the file."""
        other = {"sessionId": session}
        reply = answer(f"{name}9", None, prompt=prompt)
        said = {"type": "agent_progress", "message": {"type": "assistant", "message": reply["message"]}}
        side = {"isSidechain": True, "agentId": f"agent-{name}", **other}
        ended = user(f"{name}3", f"{name}2", result(f"t-{name}"), toolUseResult={"agentId": f"agent-{name}"}, **other)
        return [
            first,
            answer(f"{name}2", first["uuid"], call(f"t-{name}"), **other),
            {**progress(f"{name}p", f"{name}2"), "data": said, **other},
            user(f"{name}5", None, "Search", **side),
            answer(f"{name}6", f"{name}5", "Found", prompt=prompt + 1, **side),
            ended,
            answer(f"{name}4", f"{name}3", "Done", **other),
        ]

    one = with_agents(user("u1", None), "a", "s", 900)
    two = with_agents(user("v1", None, "Another task", sessionId="s2"), "b", "s2", 700)
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    recording = read(*(one + two if layout == "behind" else mixed))

    assert [(item.source_id, item.parent) for item in recording.sessions] == [
        ("s", ""),
        ("s2", ""),
        ("agent-a", "s"),
        ("agent-b", "s2"),
    ]
    first, second = recording.sessions[:2]
    assert [[call.prompt_tokens for call in item.side_calls] for item in (first, second)] == [[900, 901], [700, 701]]
    assert [[(sub.session, sub.call) for sub in item.sub_agents] for item in (first, second)] == [
        [("agent-a", "t-a")],
        [("agent-b", "t-b")],
    ]


def test_a_branch_that_was_left_is_of_its_own_session():
    left = [
        user("v1", None, "Another task", sessionId="s2"),
        answer("b1", "v1", "Begun", sessionId="s2", prompt=70),
        user("v2", "b1", "Not so", sessionId="s2"),
        answer("b2", "v2", "Wrong", sessionId="s2", prompt=80),
        user("v3", "b1", "So", sessionId="s2"),
        answer("b3", "v3", "Right", sessionId="s2", prompt=90),
    ]
    first, second = read(user("u1", None), answer("a1", "u1"), *left).sessions
    assert (first.left, [call.prompt_tokens for call in first.side_calls]) == (None, [])
    assert second.left is not None
    assert (second.left.messages, [call.prompt_tokens for call in second.side_calls]) == (2, [80])


def test_a_session_whose_id_changes_is_one():
    """A resume continues the chain, a compaction the lines before it."""
    sessions = read(
        user("u1", None),
        answer("a1", "u1"),
        user("u2", "a1", "More", sessionId="s2"),
        answer("a2", "u2", sessionId="s2"),
        {**boundary("b", "gone"), "sessionId": "s3"},
        user("s1", "b", SUMMARY, isCompactSummary=True, sessionId="s3"),
        answer("a3", "s1", sessionId="s3"),
    ).sessions
    assert [len(item.events) for item in sessions] == [5]


def test_a_compaction_that_was_written_twice_is_one():
    """Run with 2.1.250 and 2.1.301: the boundary and some lines behind it come once more, under the same ids."""
    compacted = [
        boundary("c1", "u2", preservedMessages={"anchorUuid": "s1", "uuids": ["a1", "u2"]}),
        user("s1", "c1", SUMMARY, isCompactSummary=True),
        answer("a2", "s1", call("t2")),
        user("u3", "a2", result("t2")),
    ]
    lines = [user("u1", None, "Go"), answer("a1", "u1", call("t1")), user("u2", "a1", result("t1"))]
    recording = read(*lines, *compacted, *compacted, answer("a3", "u3", "Done"))
    (session,) = recording.sessions
    assert [(item.at, item.kind) for item in session.compactions] == [(3, "summary+tail")]
    assert (recording.facts.compactions, len(session.calls)) == (1, 3)


def test_a_file_none_of_whose_lines_has_a_parent_is_read_in_its_order():
    talk = [user("u1", None), answer("a1", None), user("u2", None, "And then?"), answer("a2", None)]
    session = read_as(FORMAT, lines(*talk)).sessions[0]
    assert texts(session) == ["Look", "Done", "And then?", "Done"]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3)]


def test_it_takes_no_path_of_a_saved_file_for_a_name_of_counts():
    backup = {"backupFileName": "3f2a@v1", "version": 1, "backupTime": "2026-01-01T10:00:00Z"}
    paths = {"src/token.ts": backup, "lib/usage.py": backup, "tools/function.go": backup}
    snapshot = {"messageId": "u1", "trackedFileBackups": paths}
    saved = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": snapshot, "isSnapshotUpdate": False}
    recording = recordings.read(lines(user("u1", None), saved, answer("a1", "u1")))
    assert [str(problem) for problem in recording.notes.problems] == []
    assert recording.sessions[0].calls[0].prompt_tokens == 100
