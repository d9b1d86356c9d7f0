"""Codex CLI rollouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.findings import Facts, recorded_findings
from guard_core.ledger import Ledger
from guard_core.recordings.formats.codex.rollout import FORMAT
from guard_core.requests import materialise
from guard_core.sessions import Evidence
from guard_core.triggers import is_counted
from guard_core.windows.window_evidence import other_windows, stated_windows
from tests.guard_core.recordings.checks import (
    SAMPLES,
    check_hostile,
    check_sample_facts,
    kept,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

LONG = SAMPLES / "codex" / "long-2-compactions.jsonl"
TIME = "2026-03-01T10:00:00.000Z"


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def item(**payload: Any) -> dict[str, Any]:
    return line("response_item", **payload)


def user(text: str) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def assistant(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def call(call_id: str, arguments: str = '{"cmd": "ls"}') -> dict[str, Any]:
    return item(type="function_call", name="shell", arguments=arguments, call_id=call_id)


def result(call_id: str, output: Any = "a.txt") -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=output)


def usage(prompt: int, total: int, **more: Any) -> dict[str, Any]:
    info = {
        "last_token_usage": {"input_tokens": prompt, "cached_input_tokens": prompt // 2, **more},
        "total_token_usage": {"input_tokens": total},
        "model_context_window": 121_600,
    }
    return line("event_msg", type="token_count", info=info)


META = line("session_meta", id="s1", base_instructions={"text": "Be brief."})
TURN = (user("List the files"), assistant("I look."), call("c1"), result("c1"), usage(900, 900))


def session_of(*objects: dict[str, Any], meta: dict[str, Any] = META):
    return read_as(FORMAT, lines(meta, *objects)).sessions[0]


def test_each_turn_of_a_session_that_exec_began_is_a_process():
    for source, names in (("exec", ["process_per_turn"]), ("cli", []), ({"subagent": "review"}, [])):
        session = session_of(*TURN, meta=line("session_meta", id="s1", source=source))
        assert [item.name for item in session.settings] == names


def test_one_response_is_one_event_with_its_text_and_calls():
    session = session_of(*TURN, assistant("Done."), usage(1_000, 1_900))
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert isinstance(session.events[1].parts[1], ToolCallPart)
    assert session.events[1].parts[1].arguments == {"cmd": "ls"}
    assert session.events[2].parts[0] == ToolResultPart("shell", "a.txt", "c1")
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 900), (3, 3, 1_000)]


def test_system_prompt_and_window_come_from_the_file():
    session = session_of(*TURN)
    assert session.system is not None
    assert session.system[0].text == "Be brief."
    assert session.window is not None
    assert session.window.value == 121_600
    assert session.tools is None


def developer(text: str) -> dict[str, Any]:
    return item(type="message", role="developer", content=[{"type": "input_text", "text": text}])


def test_tools_and_a_system_prompt_that_are_sent_as_items_are_in_the_session_once():
    """As 0.171.0 writes them for models that take both in the input."""
    tool = {"type": "custom", "name": "exec", "description": "Run"}
    tools = item(type="additional_tools", role="developer", tools=[{"type": "namespace", "name": "f", "tools": [tool]}])
    state = line("world_state", full=True, state={"top_level_tools": {"f.exec": "056c51947a5ff3696d99"}})
    prompt, rest = developer("Be brief."), developer("<permissions instructions>")
    history = [prompt["payload"], user("List the files")["payload"]]
    compacted = line("compacted", message="", replacement_history=history)
    data = lines(META, tools, prompt, rest, state, *TURN, compacted, user("Go on."), assistant("Done."))
    recording = read_as(FORMAT, data)
    (session,) = recording.sessions
    assert not recording.notes.problems
    assert session.system == (TextPart("Be brief."),)
    assert [tool.name for tool in session.tools or ()] == ["exec"]
    assert [part_text(event.parts[0]) for event in session.events[:2]] == [
        "<permissions instructions>",
        "List the files",
    ]
    assert not session.compactions[0].messages, "nothing but the user's message, which is in the log"
    assert not any("not in the file" in note for note in session.notes)


def test_windows_that_change_hold_from_the_call_with_which_they_are_stated():
    def started(window: int) -> dict[str, Any]:
        return line("event_msg", type="task_started", model_context_window=window)

    def counted(prompt: int, total: int, window: int) -> dict[str, Any]:
        count = usage(prompt, total)
        count["payload"]["info"]["model_context_window"] = window
        return count

    turns = [started(258_400), *TURN[:-1], counted(900, 900, 258_400)]
    assert session_of(*turns).windows == ()
    turns += [started(121_600), user("More"), assistant("Done."), counted(1_000, 1_900, 121_600)]
    session = session_of(*turns, assistant("And?"), counted(1_100, 3_000, 50_000))
    assert session.window is not None
    assert session.window.value == 50_000
    assert stated_windows(session) == [258_400, 121_600, 50_000]
    assert other_windows(session) == [258_400, 121_600, 0]


def test_a_token_count_with_the_same_total_is_not_a_second_call():
    recording = read_as(FORMAT, lines(META, *TURN, usage(900, 900), usage(900, 900)))
    assert recording.facts.model_calls == 1
    assert recording.notes.folded == 2


def test_usage_records_take_over_from_the_first_one_on():
    record = line("token_usage_record", response_id="r2", usage={"input_tokens": 1_000})
    recording = read_as(FORMAT, lines(META, *TURN, assistant("Done."), record, usage(1_000, 1_900)))
    assert recording.facts.prompt_tokens_sum == 1_900
    assert recording.sessions[0].calls[1].source_id == "r2"


def test_usage_ahead_of_its_response_belongs_to_what_follows():
    session = session_of(user("Go"), usage(500, 500), call("c1"), result("c1"), usage(600, 1_100), assistant("Done."))
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 500), (3, 3, 600)]


def test_an_interrupted_response_is_a_call_without_tokens():
    session = session_of(user("Go"), assistant("I beg"), user("Stop"), assistant("Stopped."), usage(400, 400))
    assert [step.prompt_tokens for step in session.calls] == [None, 400]


def reasoning() -> dict[str, Any]:
    return item(type="reasoning", summary=[], encrypted_content="gAAAA")


def test_responses_whose_counts_are_missing_are_calls_of_their_own():
    turn = (user("List the files"), reasoning(), call("c1"), result("c1"), usage(900, 900))
    uncounted = (reasoning(), call("c2"), call("c3"), result("c2"), result("c3"), call("c4"), result("c4"))
    session = session_of(*turn, *uncounted, reasoning(), assistant("Done."), usage(1_300, 3_300))
    assert [step.prompt_tokens for step in session.calls] == [900, None, None, 1_300]
    assert [len(session.events[step.response].parts) for step in session.calls] == [2, 3, 1, 2]


def test_a_text_behind_the_results_belongs_to_the_response_that_is_counted_next():
    session = session_of(*TURN, call("c2"), result("c2"), assistant("I looked."), usage(1_300, 2_200))
    assert [step.prompt_tokens for step in session.calls] == [900, 1_300]


COMPLETE = line("event_msg", type="task_complete")


@pytest.mark.parametrize(
    ("ending", "counts"),
    [
        ((assistant("I looked."), COMPLETE), [900, None, None]),
        ((assistant("I looked."), usage(1_300, 2_200), COMPLETE), [900, None, 1_300]),
        ((assistant("I looked."),), [900, None, None]),  # a version that writes no lines of turns
        ((assistant("I looked."), user("Thanks"), assistant("Bye."), usage(1_400, 9_000)), [900, None, None, 1_400]),
    ],
)
def test_the_words_that_end_a_turn_behind_results_are_a_call_of_their_own(ending, counts):
    session = session_of(*TURN, call("c2"), result("c2"), *ending)
    assert [step.prompt_tokens for step in session.calls] == counts
    assert texts(session)[4:6] == ["", "I looked."]


def test_words_behind_results_stay_in_a_turn_that_did_not_complete():
    aborted = line("event_msg", type="turn_aborted")
    session = session_of(*TURN, call("c2"), result("c2"), assistant("I looked, and"), aborted)
    assert len(session.calls) == 2


def test_a_recording_without_half_of_its_counts_has_the_same_calls_and_no_fall_that_none_explains():
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    (whole,) = read_as(FORMAT, LONG.read_bytes()).sessions
    counts = iter(range(10_000))
    remaining = (line for line in LONG.read_bytes().splitlines() if b'"token_count"' not in line or next(counts) % 2)
    (half,) = read_as(FORMAT, b"\n".join(remaining)).sessions
    assert [call.at for call in half.calls] == [call.at for call in whole.calls]
    assert sum(call.prompt_tokens is None for call in half.calls) == 90
    assert "silent_truncation" not in {finding.kind for finding in recorded_findings(Facts.of(half))}


def test_messages_that_codex_wrote_do_not_start_a_turn():
    own = (user("<environment_context>x</environment_context>"), user("# AGENTS.md instructions for /r"))
    session = session_of(*own, *TURN)
    assert [event.starts_turn() for event in session.events[:3]] == [False, False, True]


def test_a_replacement_history_is_the_exact_new_context():
    history = [user("List the files")["payload"], user("Another language model started: files")["payload"]]
    compacted = line("compacted", message="Another language model started: files", replacement_history=history)
    estimate = usage(0, 900, total_tokens=321)
    session = session_of(*TURN, compacted, estimate, assistant("Next."), usage(300, 1_200))
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind, compaction.tokens_after) == (
        3,
        Evidence.DECLARED,
        "summary",
        321,
    )
    assert kept(compaction.base) == [0]
    assert "Another language model started: files" not in texts(session)
    assert compaction.messages[0].parts[0].text.endswith("files")


@pytest.mark.parametrize(
    ("before", "trigger"),
    [
        ((), "auto"),
        ((line("event_msg", type="turn_aborted"),), ""),
        ((assistant("Done."), line("event_msg", type="task_complete")), ""),
    ],
    ids=["behind a result", "behind an interruption", "between two turns"],
)
def test_a_compaction_between_the_steps_of_a_turn_is_automatic(before, trigger):
    compacted = line("compacted", message="Files", replacement_history=[user("List the files")["payload"]])
    [compaction] = session_of(*TURN, *before, compacted).compactions
    assert compaction.trigger == trigger


PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. Here is the "
    "summary produced by the other language model, use it to assist with your own analysis:"
)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"{PREFIX}\n", "empty"),
        (f"{PREFIX}\n  \n", "empty"),
        (f"{PREFIX}\n(no summary available)", "empty"),
        ("(no summary available)", "empty"),
        (f"{PREFIX}\nFiles are listed.", "summary"),
        (f"{PREFIX} Files are listed.", "summary"),
        ("Files are listed, see your own analysis:", "summary"),
        ("Another language model started to solve this problem", "summary"),
        ("", "opaque"),
    ],
)
def test_a_summary_without_words_of_the_model_is_empty(message, kind):
    history = [user("List the files")["payload"], *([user(message)["payload"]] if message else [])]
    for compacted in (
        line("compacted", message=message, replacement_history=history),
        line("compacted", message="" if message.startswith(PREFIX) else message, replacement_history=history),
        line("compacted", message=message),
    ):
        (compaction,) = session_of(*TURN, compacted).compactions
        assert compaction.kind == kind
        assert bool(compaction.note) == (kind == "opaque" or "replacement_history" not in compacted["payload"])


def test_an_empty_summary_is_a_finding():
    history = [user("List the files")["payload"], user(f"{PREFIX}\n")["payload"]]
    compacted = line("compacted", message=f"{PREFIX}\n", replacement_history=history)
    session = session_of(*TURN, compacted, assistant("Next."), usage(300, 1_200))
    assert "empty_summary" in {finding.kind for finding in recorded_findings(Facts.of(session))}


def test_an_encrypted_summary_is_opaque():
    history = [user("List the files")["payload"], {"type": "compaction", "encrypted_content": "QUJDRA=="}]
    session = session_of(*TURN, line("compacted", message="", replacement_history=history))
    compaction = session.compactions[0]
    assert compaction.kind == "opaque"
    assert compaction.messages[0].parts == (ReasoningPart(opaque_bytes=4),)
    assert compaction.note


def test_a_compaction_without_replacement_history_keeps_opening_user_messages_and_summary():
    opening = user("<environment_context>x</environment_context>")
    session = session_of(opening, *TURN, line("compacted", message="All files listed."))
    compaction = session.compactions[0]
    assert kept(compaction.base) == [0, 1]
    assert compaction.messages[0].parts[0].text == "All files listed."
    assert "put together" in compaction.note


def test_the_summarisers_answer_and_call_stay_out_of_the_log():
    compacted = line("compacted", message="Another language model: Files are listed.", replacement_history=[])
    recording = read_as(FORMAT, lines(META, *TURN, assistant("Files are listed."), usage(950, 1_850), compacted))
    session = recording.sessions[0]
    assert "Files are listed." not in texts(session)
    assert session.compactions[0].summariser is not None
    assert session.compactions[0].summariser.prompt_tokens == 950
    assert [step.prompt_tokens for step in session.calls] == [900]
    assert recording.facts.model_calls == 2


def test_rolled_back_turns_leave_the_log():
    rollback = line("event_msg", type="thread_rolled_back", num_turns=1)
    session = session_of(*TURN, user("Delete them"), assistant("Really?"), usage(1_000, 1_900), rollback, user("Keep"))
    assert texts(session)[-1] == "Keep"
    assert "Delete them" not in texts(session)
    assert [step.prompt_tokens for step in session.side_calls] == [1_000]


HEADER = {"id": "old", "timestamp": TIME, "instructions": None}
BARE = [entry["payload"] for entry in TURN[:4]]
DONE = assistant("Done.")["payload"]


def test_what_codex_told_ahead_of_a_turn_is_rolled_back_with_it():
    opening, news = (user(f"<environment_context>{words}</environment_context>") for words in ("a", "b"))
    rollback = line("event_msg", type="thread_rolled_back", num_turns=1)
    session = session_of(opening, *TURN, news, user("Delete them"), assistant("Really?"), rollback, user("Keep"))
    assert [text[:22] for text in texts(session)] == ["<environment_context>a", "List the files", "I look.", "", "Keep"]
    first = session_of(opening, *TURN, rollback)
    assert [text[:22] for text in texts(first)] == ["<environment_context>a"]


def sent(session, step: int) -> list[str]:
    view, epoch = Ledger.of(session).recorded_view(step)
    return [part_text(event.parts[0])[:27].strip() for event in materialise(view, session, epoch)]


@pytest.mark.parametrize(
    ("turns", "left"),
    [
        (1, ["List the files", "Sort them", "<environment_context>", "Count them"]),
        (2, ["List the files", "Sort them"]),
        (3, ["List the files"]),
        (9, []),
    ],
)
@pytest.mark.parametrize("later", [0, 1])
def test_turns_are_taken_back_from_what_a_compaction_left_its_summary_being_one(turns, left, later):
    # As 0.144.6 sent it: the summary counts as a turn, and what Codex wrote before a turn goes with it.
    said = [
        user("List the files"),
        user("Sort them"),
        user("<environment_context>"),
        user("Count them"),
        user(f"{PREFIX} files"),
    ]
    compacted = line("compacted", message="", replacement_history=[entry["payload"] for entry in said])
    rest = (call("c2"), result("c2"), usage(300, 2_200), assistant("Done."), usage(400, 2_600))
    more = (user("And now?"), assistant("Now this."), usage(500, 3_100)) * later
    rollback = line("event_msg", type="thread_rolled_back", num_turns=turns + later)
    session = session_of(
        *TURN, *said[1:4], *rest, compacted, *rest, *more, rollback, user("Go on"), assistant("Yes."), usage(350, 3_500)
    )
    assert sent(session, len(session.calls) - 1) == [*left, "Go on"]
    assert [item.kind for item in session.compactions] == ["summary", "edit"]
    assert [call.prompt_tokens for call in session.side_calls] == [300, 400, *[500] * later]
    assert len([item for item in session.compactions if is_counted(item)]) == 1


def test_turns_since_a_compaction_are_taken_back_without_touching_what_it_left():
    compacted = line("compacted", message="", replacement_history=[TURN[0]["payload"], user(f"{PREFIX} a")["payload"]])
    rollback = line("event_msg", type="thread_rolled_back", num_turns=1)
    session = session_of(*TURN, compacted, user("Sort"), assistant("No."), rollback, user("Go on"), assistant("Yes."))
    assert [item.kind for item in session.compactions] == ["summary"]
    assert sent(session, len(session.calls) - 1) == ["List the files", PREFIX[:27].strip(), "Go on"]


def test_paths_of_changed_files_are_no_names_of_tools():
    changes = {"/p/tools/prepare.mdx": {"type": "update", "unified_diff": "@@", "move_path": None}}
    changes |= {"/p/token_usage.py": {"type": "add", "content": "x"}}
    patch = line("event_msg", type="patch_apply_end", call_id="c1", success=True, changes=changes)
    data = lines(META, user("List"), call("c1"), patch, result("c1"), assistant("Done"))
    assert recordings.read(data, strict=True).notes.problem_count == 0


def test_what_is_told_of_a_sub_agents_call_beside_the_call_itself_is_no_unknown_call():
    spawned = {"type": "CollabAgentToolCall", "id": "c1", "tool": "spawn_agent", "status": "completed", "prompt": "Go."}
    notice = user("<subagent_notification>\nDone.\n</subagent_notification>")
    notes = {"content_item_metadata": [{"provenance": {"type": "tool", "namespace": "multi_agent_v1"}}]}
    notice["payload"]["internal_chat_message_metadata_passthrough"] = notes
    recording = recordings.read(lines(META, *TURN, line("event_msg", type="item_completed", item=spawned), notice))
    assert recording.notes.problems == []
    assert len(recording.sessions[0].calls) == 1


def test_a_word_in_the_place_of_encrypted_reasoning_has_no_bytes():
    hidden = item(type="reasoning", summary=[], encrypted_content="REDACTED")
    [part] = session_of(user("List"), hidden, assistant("Done")).events[1].parts[:1]
    assert part == ReasoningPart("")


def test_old_rollouts_with_bare_items_have_calls_without_tokens():
    recording = read_as(FORMAT, lines(HEADER, *BARE, DONE))
    assert [(step.at, step.prompt_tokens) for step in recording.sessions[0].calls] == [(1, None), (3, None)]
    assert recording.sessions[0].started_at is not None
    assert recording.facts.model_calls == 0
    assert recording.facts.tool_results == 1


def test_a_rollout_in_one_object_has_calls_without_tokens():
    session = {"timestamp": TIME, "id": "first", "instructions": ""}
    recording = read_as(FORMAT, {"session": session, "items": [*BARE, DONE]})
    assert recording.sessions[0].source_id == "first"
    assert [step.at for step in recording.sessions[0].calls] == [1, 3]
    assert recording.facts.messages == 3
    assert not recognises(FORMAT, {"session": session, "items": [{"type": "novel"}]})


def test_a_state_line_tells_where_a_response_ends_that_wrote_its_text_behind_the_result():
    state = {"record_type": "state"}
    recording = read_as(FORMAT, lines(HEADER, BARE[0], state, *BARE[2:], BARE[1], state, DONE))
    assert [step.at for step in recording.sessions[0].calls] == [1, 3]


def test_a_turn_context_after_every_request_tells_where_a_response_ends():
    context = line("turn_context", model="m")
    recording = read_as(
        FORMAT,
        lines(META, TURN[0], context, TURN[2], TURN[1], TURN[3], context, call("c2"), result("c2"), assistant("Done.")),
    )
    assert [step.at for step in recording.sessions[0].calls] == [1, 3]


def test_such_a_turn_context_may_stand_behind_a_text_that_came_late():
    context = line("turn_context", model="m")
    late = (TURN[0], context, TURN[2], TURN[3], TURN[1], context, assistant("Done."))
    assert [step.at for step in session_of(*late).calls] == [1, 3]
    complete = line("event_msg", type="task_complete")
    newer = (TURN[0], context, TURN[2], TURN[3], assistant("Done."), complete, context, user("More"))
    assert [step.at for step in session_of(*newer).calls] == [1, 3]


def test_a_response_that_was_cut_and_asked_for_again_is_one_call():
    context = line("turn_context", model="m")
    again = (assistant("I look"), context, *TURN[1:3], usage(900, 900), TURN[3])
    assert [step.prompt_tokens for step in session_of(TURN[0], *again).calls] == [900]


def test_result_lists_and_pictures_are_text_and_media():
    output = [
        {"type": "input_text", "text": "seen"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
    ]
    recording = read_as(FORMAT, lines(META, *TURN[:3], result("c1", output)))
    parts = recording.sessions[0].events[2].parts
    assert parts[0].content == "seen"
    assert parts[1].size == 3
    assert recording.facts.largest_tool_result_chars == 4


def test_the_estimate_behind_a_compaction_may_follow_the_next_user_message():
    compacted = line("compacted", message="Files are listed.", replacement_history=[])
    session = session_of(*TURN, compacted, user("Next"), usage(0, 900, total_tokens=321), assistant("Yes."))
    assert session.compactions[0].tokens_after == 321


def test_the_answer_that_codex_takes_over_from_a_review_is_no_call():
    action = user("<user_action>\n<context>User initiated a review task.</context></user_action>")
    session = session_of(*TURN, action, assistant("All is well."), user("Good"), assistant("Yes."), usage(950, 1_850))
    assert [step.prompt_tokens for step in session.calls] == [900, 950]
    assert not session.events[3].starts_turn()
    assert "All is well." in texts(session)


def test_newer_versions_tell_who_wrote_a_message():
    def told(kind: str) -> dict[str, Any]:
        message = user("Whatever the words")
        message["payload"]["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": [kind]}
        return message

    session = session_of(told("environments.environment_context"), told("user.text"), told("unknown"))
    assert [event.starts_turn() for event in session.events] == [False, True, True]


def test_a_count_that_is_no_count_is_named():
    bad = usage(900, 900, output_tokens=10**17)
    assert read_as(FORMAT, lines(META, *TURN[:4], bad)).notes.problems[0].line == 6
    with pytest.raises(DamagedRecording, match="output_tokens is 100000000000000000"):
        read_as(FORMAT, lines(META, *TURN[:4], bad), strict=True)


def test_a_response_of_too_many_parts_is_refused():
    with pytest.raises(LimitExceeded):
        read_as(FORMAT, lines(META, user("Go"), *[assistant("a")] * 10_001))


def test_a_fork_is_named():
    session = session_of(*TURN, meta=line("session_meta", id="s2", forked_from_id="s1"))
    assert any("s1" in note for note in session.notes)
    assert not any("head" in note for note in session.notes)
    copied = session_of(META, *TURN, meta=line("session_meta", id="s2", forked_from_id="s1"))
    assert copied.source_id == "s2"
    assert any("the parent's history comes first" in note for note in copied.notes)


def test_a_rollout_that_goes_on_from_another_file_says_so():
    base = {"thread_id": "s1", "end_ordinal_exclusive": 117}
    session = session_of(*TURN, meta=line("session_meta", id="s1", history_base=base))
    assert any("continues another file, of thread s1" in note for note in session.notes)
    assert [item.name for item in session.settings] == ["continues_a_file"]


def test_a_rollout_of_a_sub_agent_says_so():
    by_review = line("session_meta", id="s2", source={"subagent": "review"})
    spawned = line("session_meta", id="s2", source={"subagent": {"thread_spawn": {"parent_thread_id": "s1"}}})
    assert "A sub-agent of another session." in session_of(*TURN, meta=by_review).notes
    assert "A sub-agent of session s1." in session_of(*TURN, meta=spawned).notes
    assert [session_of(*TURN, meta=meta).parent for meta in (by_review, spawned)] == ["", "s1"]


@pytest.mark.parametrize(("info", "refused"), [("context_window_exceeded", (2,)), ("usage_limit_exceeded", ())])
def test_a_request_that_was_too_long_is_recorded_as_refused(info, refused):
    error = {"message": "Start a new thread.", "codex_error_info": info}
    failed, ended = line("event_msg", type="error", **error), line("event_msg", type="task_complete", error=error)
    assert session_of(user("Go"), assistant("Done."), failed).refused == refused
    assert session_of(user("Go"), assistant("Done."), ended).refused == refused


def sizes(*items: dict[str, Any]) -> int:
    """The estimate of some items, in tokens: a quarter of the bytes of their JSON each, rounded up."""
    return sum(
        -(-len(json.dumps(one["payload"], separators=(",", ":"), ensure_ascii=False).encode()) // 4) for one in items
    )


@pytest.mark.parametrize(("version", "is_counted"), [("0.94.0", 0), ("0.95.0", 1), ("0.155.0", 1), ("0.156.0", 0)])
def test_versions_that_estimate_whole_items_have_what_waited_for_each_request(version, is_counted):
    """Of a turn that begins with a compaction, what was written before it counts as well."""
    meta = line("session_meta", id="s1", cli_version=version)
    outputs = result("c1", "one “quoted” line\n" * 9), result("c2", "b")
    context = user("<environment_context>…</environment_context>")
    session = session_of(
        user("Go"),
        call("c1"),
        call("c2"),
        usage(1_000, 1_000),
        *outputs,
        call("c3"),
        usage(1_500, 2_500),
        result("c3", "third"),
        line("compacted", message="Summary.", replacement_history=[]),
        assistant("Done."),
        usage(700, 3_200),
        context,
        line("compacted", message="Again.", replacement_history=[]),
        assistant("Summary written."),
        usage(600, 3_800),
        meta=meta,
    )
    estimates = [call.pending_tokens for call in session.calls]
    assert estimates == ([0, sizes(*outputs), 0, 0] if is_counted else [None] * 4)
    waited = [item.pending_tokens for item in session.compactions]
    assert waited == ([sizes(result("c3", "third")), sizes(context)] if is_counted else [None, None])


@pytest.mark.parametrize(
    ("version", "sent"), [("0.58.0", ["Go", "One.", "More", "Two."]), ("0.60.1", ["Go", "More", "Two."])]
)
def test_without_a_replacement_history_old_versions_repeat_earlier_summaries(version, sent):
    turns = (user("Go"), assistant("Done."), line("compacted", message="One."), user("More"), assistant("Yes."))
    meta = line("session_meta", id="s1", cli_version=version)
    session = session_of(*turns, line("compacted", message="Two."), user("And?"), assistant("Fine."), meta=meta)
    messages = materialise(session.compactions[1].base, session, 1)
    assert [message.parts[0].text for message in messages] == sent


def test_the_turn_of_a_compaction_says_who_asked_for_it():
    """A turn that continues compacted by itself; one that holds nothing else was asked for by a person."""
    started, ended = line("event_msg", type="task_started"), line("event_msg", type="task_complete")
    compacted = line("compacted", message="Done so far.", replacement_history=[])
    talk = (started, user("Go"), assistant("Done."), usage(1_000, 1_000), ended)
    by_person = (started, compacted, ended)
    by_itself = (started, compacted, user("More"), assistant("Fine."), usage(900, 1_900), ended)
    unsaid = (compacted, user("And?"), assistant("Yes."), usage(800, 2_700))
    triggers = [item.trigger for item in session_of(*talk, *by_person, *by_itself, *unsaid).compactions]
    assert triggers == ["manual", "auto", ""]


@pytest.mark.parametrize(
    ("ending", "trigger"),
    [
        ((line("event_msg", type="task_complete"),), "post_turn"),
        ((line("event_msg", type="turn_aborted"),), ""),
        ((assistant("And more."), usage(900, 2_900), line("event_msg", type="task_complete")), "auto"),
        ((), ""),
    ],
    ids=["the turn ends", "it is interrupted", "it continues", "the file ends"],
)
def test_a_compaction_behind_the_answer_of_its_turn_was_made_because_the_turn_ended(ending, trigger):
    """0.171.0, run with `model_post_turn_compact_threshold_percent`."""
    started, ended = line("event_msg", type="task_started"), line("event_msg", type="task_complete")
    compacted = line("compacted", message="Done so far.", replacement_history=[])
    talk = (started, user("Go"), assistant("Done."), usage(1_000, 1_000), ended)
    turn = (started, user("More"), assistant("Done."), usage(1_100, 2_100), compacted, *ending)
    assert [item.trigger for item in session_of(*talk, *turn).compactions] == [trigger]


def test_a_compaction_before_the_users_message_is_not_behind_the_answer_of_its_turn():
    started, ended = line("event_msg", type="task_started"), line("event_msg", type="task_complete")
    compacted = line("compacted", message="Done so far.", replacement_history=[])
    talk = (started, user("Go"), assistant("Done."), usage(1_000, 1_000), ended)
    assert [item.trigger for item in session_of(*talk, started, compacted, ended).compactions] == ["manual"]


def test_copies_of_what_a_compaction_replaced_are_no_calls_of_an_unknown_name():
    copies = [call("c1")["payload"], result("c1")["payload"]]
    compacted = line("compacted", message="Done so far.", replacement_history=[], guardian_history=copies)
    recording = recordings.read(lines(META, *TURN, compacted), strict=True)
    assert recording.notes.problem_count == 0
    assert recording.facts.tool_calls == 1


def test_what_a_server_says_of_a_result_to_its_client_is_no_call_of_an_unknown_name():
    said = {"Ok": {"content": [], "_meta": {"codex/toolSurface": {"kind": "browserUse"}}}}
    ended = line(
        "event_msg", type="mcp_tool_call_end", call_id="c1", invocation={"server": "s", "tool": "t"}, result=said
    )
    assert recordings.read(lines(META, *TURN, ended), strict=True).notes.problem_count == 0


def test_unknown_lines_are_counted():
    notes = read_as(FORMAT, lines(META, *TURN, line("event_msg", type="novel"), line("world_state"))).notes
    assert notes.skipped["event_msg novel"] == 1
    assert notes.skipped["world_state"] == 1


def test_it_does_not_take_other_json_lines():
    assert not recognises(FORMAT, lines({"type": "message", "message": {"role": "user"}}))
    assert not recognises(FORMAT, lines({"type": "function_call", "call_id": "a", "name": "b"}))


def test_wrong_types_anywhere_are_survived():
    history = [user("List the files")["payload"], {"type": "compaction", "encrypted_content": "QUJDRA=="}]
    records = (*TURN, line("compacted", message="m", replacement_history=history))
    for index, record in enumerate(records):
        rest = [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)]
        check_hostile(FORMAT, rest)


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "codex")


def test_two_rollouts_in_one_file_are_two_sessions():
    other = line("session_meta", id="s9", base_instructions={"text": "Be kind."})
    recording = read_as(FORMAT, lines(META, *TURN, assistant("Done."), other, *TURN))
    assert [(item.source_id, len(item.calls)) for item in recording.sessions] == [("s1", 2), ("s9", 1)]
    assert (recording.facts.tool_calls, recording.facts.model_calls) == (2, 2)


@pytest.mark.parametrize("name", ["s1", "[trimmed for fixture]", "REDACTED"])
def test_a_header_that_names_no_other_session_begins_none(name):
    recording = read_as(FORMAT, lines(META, *TURN, line("session_meta", id=name), assistant("Done.")))
    assert [len(item.calls) for item in recording.sessions] == [2]


def test_a_rollout_that_is_written_twice_into_one_file_counts_once():
    """Twice whole, in an earlier state before or behind a later one, and three times."""
    longer = (META, *TURN, assistant("Done."), usage(1_000, 1_900), user("And the tests?"), assistant("They pass."))
    shorter = longer[:7]
    whole = read_as(FORMAT, lines(*longer))
    whole_texts = texts(whole.sessions[0])
    for parts in (
        (longer, longer),
        (shorter, longer),
        (longer, shorter),
        (shorter, longer, longer),
        (longer, shorter, longer),
    ):
        twice = read_as(FORMAT, b"".join(lines(*part) for part in parts))
        assert [len(item.calls) for item in twice.sessions] == [3]
        assert texts(twice.sessions[0]) == whole_texts
        assert twice.facts.model_calls == whole.facts.model_calls
        assert twice.notes.folded == sum(map(len, parts)) - len(longer)


def test_a_copy_whose_header_was_written_anew_counts_once():
    """Its header names a branch, and a line of the first copy is missing in it."""
    longer = (*TURN, assistant("Done."), usage(1_000, 1_900), user("And the tests?"))
    header = line("session_meta", id="s1", base_instructions={"text": "Be brief."}, git={"branch": "main"})
    copy = (*longer[:2], *longer[3:], assistant("They pass."))
    session = read_as(FORMAT, lines(META, *longer, header, *copy)).sessions[0]
    assert (len(session.calls), texts(session)[-1]) == (3, "They pass.")
    assert "Forked" not in " ".join(session.notes)


def test_a_header_that_comes_again_in_a_resumed_session_takes_nothing_away():
    more = (user("And the tests?"), assistant("They pass."), usage(1_000, 1_900))
    session = read_as(FORMAT, lines(META, *TURN, META, *more)).sessions[0]
    assert len(session.calls) == 2


@pytest.mark.parametrize(
    ("policy", "text", "sent"),
    [
        # 0.122.0, run: 145,231 bytes were sent as 24,000, a mark and 24,000.
        ({"mode": "tokens", "limit": 10_000}, "a" * 145_231, "a" * 24_000 + "…24308 tokens truncated…" + "a" * 24_000),
        ({"mode": "tokens", "limit": 10_000}, "a" * 48_000, "a" * 48_000),
        # 0.98.0, run, marks a limit in bytes with the characters that are gone.
        ({"mode": "bytes", "limit": 100}, "a" * 161, "a" * 60 + "…41 chars truncated…" + "a" * 60),
        ({"mode": "tokens", "limit": 10}, "é" * 30, "é" * 12 + "…3 tokens truncated…" + "é" * 12),
        ({"mode": "words", "limit": 10}, "a" * 200_000, "a" * 200_000),
        ({"mode": "tokens", "limit": "many"}, "a" * 200_000, "a" * 200_000),
        ([], "a" * 200_000, "a" * 200_000),
    ],
)
def test_a_result_is_shown_as_it_was_sent_where_the_file_names_the_limit(policy, text, sent):
    context = line("turn_context", model="m", truncation_policy=policy)
    session = session_of(context, user("go"), call("c1"), result("c1", text), assistant("done"))
    (part,) = (part for event in session.events for part in event.parts if isinstance(part, ToolResultPart))
    assert part.content == sent
    cut = "Cut in the middle, as Codex sends them: 1 result, whole in the file."
    assert (cut in session.notes) == (sent != text)


def test_what_waits_for_the_model_is_estimated_of_what_is_sent():
    context = line("turn_context", model="m", truncation_policy={"mode": "tokens", "limit": 10_000})
    header = line("session_meta", id="s", cli_version="0.122.0")
    more = (
        user("go"),
        call("c1"),
        usage(900, 900),
        result("c1", "a" * 145_231),
        assistant("done"),
        usage(9_000, 9_900),
    )
    session = session_of(context, *more, meta=header)
    assert 12_000 < max(item.pending_tokens or 0 for item in session.calls) < 12_100
