"""Chats of Qwen Code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, Role, TextPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings import first_look, look_at, read
from guard_core.recordings.formats.qwen.format import FORMAT
from guard_core.rules import Agreement, explain
from guard_core.sessions import Evidence, LeftBranches, Provenance
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_session,
    kept,
    lines,
    read_as,
    spoiled,
    texts,
)
from tests.recordings.seeds import SEEDS

TIME = "2026-11-22T07:06:18.861Z"


def chain(*records: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    """Lines, each the child of the one before, where they do not say otherwise."""
    place = {"sessionId": "s", "timestamp": TIME, "cwd": "/p", "version": "0.24.4"}
    links = [{"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None} for n in range(start, start + len(records))]
    return [{**link, **place, **record} for link, record in zip(links, records, strict=True)]


def said(kind: str, role: str, *parts: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"role": role, "parts": list(parts)}, **rest}


def user(words: str, **rest: Any) -> dict[str, Any]:
    return said("user", "user", {"text": words}, **rest)


def answer(prompt: int, *parts: dict[str, Any], output: int = 7, window: int = 200_000) -> dict[str, Any]:
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}
    usage["cachedContentTokenCount"] = prompt // 2
    return said("assistant", "model", *parts, usageMetadata=usage, contextWindowSize=window, model="qwen3-coder-plus")


def call(name: str) -> dict[str, Any]:
    return {"functionCall": {"id": name, "name": "read_file", "args": {"file_path": "a"}}}


def result(name: str, size: int = 1_600, **response: Any) -> dict[str, Any]:
    content = {"id": name, "name": "read_file", "response": response or {"output": "x" * size}}
    return said("tool_result", "user", {"functionResponse": content})


def reported(prompt: int, output: int, **rest: Any) -> dict[str, Any]:
    event = {"event.name": "qwen-code.api_response", "input_token_count": prompt, "output_token_count": output}
    return system("ui_telemetry", uiEvent={**event, "total_token_count": prompt + output, "model": "m", **rest})


def system(subtype: str, **payload: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "systemPayload": payload}


SUMMARY = {"role": "user", "parts": [{"text": "<state_snapshot>\nread a\n</state_snapshot>"}]}
ACK = {"role": "model", "parts": [{"text": "Got it. Thanks for the additional context!"}]}


def compressed(*kept: dict[str, Any], before: int = 167_000, reason: str = "token_limit") -> dict[str, Any]:
    return history(SUMMARY, ACK, *kept, before=before, reason=reason)


def history(*contents: dict[str, Any], before: int = 167_000, reason: str = "token_limit") -> dict[str, Any]:
    """A compaction with the history after it."""
    info = {"originalTokenCount": before, "newTokenCount": 900, "compressionStatus": 1}
    return system(
        "chat_compression",
        info={**info, **({"triggerReason": reason} if reason else {})},
        compressedHistory=list(contents),
    )


CALLED = {"role": "model", "parts": [call("b")]}
TALK = (
    user("Read a"),
    answer(30_000, call("a")),
    result("a"),
    answer(166_577, call("b")),
    result("b"),
    reported(167_300, 600),
    compressed(CALLED),
    answer(20_000, {"text": "Done"}),
)


def session_of(*records: dict[str, Any], strict: bool = True):
    session = read_as(FORMAT, lines(*records), strict=strict).sessions[0]
    check_session(session)
    return session


def test_a_chat_has_its_calls_with_their_tokens_window_model_and_version():
    session = session_of(*chain(*TALK))
    assert [(item.prompt_tokens, item.cached_tokens, item.output_tokens) for item in session.calls] == [
        (30_000, 15_000, 7),
        (166_577, 83_288, 7),
        (20_000, 10_000, 7),
    ]
    assert (session.window.value, session.window.source) == (200_000, Provenance.RECORDER)
    assert (session.model, session.versions, session.agent) == ("qwen3-coder-plus", ((0, "0.24.4"),), "Qwen Code")
    assert (session.system, session.tools) == (None, None)
    assert "are not in the file" in session.notes[0]


def test_a_result_is_the_text_that_the_model_is_sent():
    session = session_of(
        *chain(user("Go"), answer(9, call("a"), call("b")), result("a", output="text"), result("b", error="No"))
    )
    assert [(part.content, part.is_error) for event in session.events[2:] for part in event.parts] == [
        ("text", False),
        ("No", True),
    ]


def test_a_call_at_the_end_of_a_compressed_history_that_is_still_to_come_is_not_sent():
    early = (*TALK[:3], compressed({"role": "model", "parts": [call("b")]}), answer(20_000, call("b")), result("b"))
    (item,) = session_of(*chain(*early)).compactions
    assert (item.at, item.base) == (3, (Inserted(0), Inserted(1), Span(2, 3)))
    assert len(item.messages) == 2


def test_a_call_at_the_end_of_a_compressed_history_whose_result_waits_is_sent():
    """0.24.4 compacts within the first turn: the answer with the call is joined with the words behind the summary."""
    joined = {"role": "model", "parts": [*ACK["parts"], call("a")]}
    (item,) = session_of(
        *chain(user("Go"), answer(90_000, call("a")), result("a"), history(SUMMARY, joined))
    ).compactions
    assert (item.base, len(item.messages)) == ((Inserted(0), Inserted(1), Span(2, 3)), 2)


@pytest.mark.parametrize(
    ("behind", "kind"), [(ACK, "summary+tail"), ({"role": "model", "parts": [{"text": "Yes"}]}, "edit")]
)
def test_a_summary_is_known_by_the_words_behind_it_whatever_its_own(behind, kind):
    """Models do not always answer with a snapshot (0.24.4 sends what they say)."""
    line = history({"role": "user", "parts": [{"text": "Files were read"}]}, behind)
    (item,) = session_of(*chain(user("Go"), answer(90_000, call("a")), result("a"), line)).compactions
    assert item.kind == kind


def test_an_answer_that_a_compressed_history_holds_before_it_is_written_is_not_sent_twice():
    """0.15.10 wrote down the history when the answer to its request was in it already."""
    done = {"role": "model", "parts": [{"text": "Done"}]}
    waits = {"role": "user", "parts": result("b")["message"]["parts"]}
    (item,) = session_of(*chain(*TALK[:6], compressed(CALLED, waits, done), TALK[-1])).compactions
    assert (item.base, len(item.messages)) == ((Inserted(0), Inserted(1), Span(3, 5)), 2)
    (other,) = session_of(*chain(*TALK[:6], compressed(), answer(20_000, ACK["parts"][0]))).compactions
    assert len(other.messages) == 2


def test_a_compaction_is_declared_with_the_history_after_it_and_what_waited():
    session = session_of(*chain(*TALK))
    (item,) = session.compactions
    assert (item.at, item.evidence, item.kind, item.trigger) == (5, Evidence.DECLARED, "summary+tail", "auto")
    assert (item.tokens_before, item.tokens_after) == (167_000, 900)
    assert item.base == (Inserted(0), Inserted(1), Span(3, 5))
    assert (item.summariser.prompt_tokens, item.summariser.output_tokens) == (167_300, 600)
    assert session.side_calls == ()


def test_a_result_that_the_history_holds_already_is_not_sent_twice():
    waits = {"role": "user", "parts": result("b")["message"]["parts"]}
    session = session_of(*chain(*TALK[:6], compressed(CALLED, waits), TALK[-1]))
    assert kept(session.compactions[0].base) == [3, 4]


def test_results_that_the_history_holds_as_one_message_are_not_sent_twice():
    both = {"role": "user", "parts": [*result("b")["message"]["parts"], *result("c")["message"]["parts"]]}
    called = {"role": "model", "parts": [call("b"), call("c")]}
    records = chain(
        user("Go"), answer(167_000, call("b"), call("c")), result("b"), result("c"), compressed(called, both)
    )
    (item,) = session_of(*records).compactions
    assert item.base == (Inserted(0), Inserted(1), Span(1, 4))


def test_what_waited_before_words_that_the_history_holds_was_summarised():
    """A later process compacts before the user's new words, which stand behind a reminder of its own."""
    last = {"role": "user", "parts": [{"text": "<system-reminder>\nA date\n</system-reminder>"}, {"text": "More"}]}
    records = chain(user("Go"), answer(167_000, call("b")), result("b"), user("More"), compressed(last))
    (item,) = session_of(*records).compactions
    assert item.base == (Inserted(0), Inserted(1), Inserted(2), Span(3, 4))


def test_a_summary_that_was_not_used_says_nothing_against_the_rule():
    talk = (user("Go"), answer(168_000, call("a")), result("a"), reported(169_000, 600))
    going_on = (answer(100, call("b")), result("b"), answer(100, {"text": "Done"}))
    assert explain(session_of(*chain(*talk, *going_on))).missed == ()
    unmarked = (answer(169_000, call("b")), result("b"), answer(100, {"text": "Done"}))
    assert len(explain(session_of(*chain(*talk[:3], *unmarked))).missed) == 1


def test_a_prompt_that_waits_is_sent_behind_the_summary():
    session = session_of(*chain(*TALK[:4], result("b"), answer(166_990, {"text": "So"}), user("More"), compressed()))
    assert kept(session.compactions[0].base) == [6]


def test_a_person_compacts_with_nothing_waiting():
    records = chain(user("Read a"), answer(9_000, {"text": "Done"}), compressed(before=9_007, reason="manual"))
    (item,) = session_of(*records).compactions
    assert (item.trigger, item.base, item.kind) == ("manual", (Inserted(0), Inserted(1)), "summary")


@pytest.mark.parametrize(
    ("reason", "trigger"), [("payload_overflow", "overflow"), ("image_overflow", "image_overflow"), ("", "")]
)
def test_other_reasons_keep_their_names(reason, trigger):
    records = chain(user("Read a"), answer(9_000, call("a")), result("a"), compressed(before=9_007, reason=reason))
    assert session_of(*records).compactions[0].trigger == trigger


def test_a_compaction_after_a_refused_request_is_no_evidence_of_the_threshold():
    refusal = system(
        "ui_telemetry",
        uiEvent={
            "event.name": "qwen-code.api_error",
            "error_message": "Range of input length should be [1, 202752]",
            "status_code": 400,
        },
    )
    session = session_of(*chain(*TALK[:5], refusal, compressed(CALLED, before=200_000), TALK[-1]))
    assert (session.compactions[0].trigger, kept(session.compactions[0].base)) == ("overflow", [3])
    assert session.refused == (5,)
    explanation = explain(session)
    assert explanation.compactions[0].verdict == Agreement.AGREES
    assert {item.at_most for item in explanation.inference} == {None}


def test_a_count_of_the_provider_is_that_of_a_refused_request():
    line = compressed(CALLED, before=200_100)
    line["systemPayload"]["info"]["originalTokenCountIsEstimated"] = False
    assert session_of(*chain(*TALK[:5], line, TALK[-1])).compactions[0].trigger == "overflow"


def test_calls_that_no_line_answers_count_apart():
    session = session_of(*chain(reported(30_000, 7), *TALK[:2], reported(500, 20)))
    assert [item.prompt_tokens for item in session.calls] == [30_000]
    assert [item.prompt_tokens for item in session.side_calls] == [500]


def test_telemetry_may_come_after_its_answer():
    session = session_of(*chain(*TALK[:2], reported(30_000, 7)))
    assert session.side_calls == ()


def test_what_a_rewind_took_back_is_not_in_the_log():
    records = chain(user("One"), answer(100, {"text": "Yes"}), user("Two"), answer(120, {"text": "No"}))
    back = chain(system("rewind", truncatedCount=2), user("Three"), answer(130, {"text": "Right"}), start=4)
    back[0]["parentUuid"] = "u1"
    session = session_of(*records, *back)
    assert texts(session) == ["One", "Yes", "Three", "Right"]
    assert [item.prompt_tokens for item in session.calls] == [100, 130]
    assert [item.prompt_tokens for item in session.side_calls] == [120]
    assert "2 messages" in session.notes[-1]
    assert session.left == LeftBranches(messages=2, largest=120)


def test_a_message_whose_predecessor_is_not_in_the_file_is_named():
    records = chain(*[user("One"), answer(100, {"text": "Yes"})] * 3)
    assert not any("follow" in note for note in session_of(*records).notes)
    assert session_of(*records[:2], *records[4:]).notes[-1] == (
        "The entry on line 3 follows one that is not in the file: what that one held is not known."
    )
    assert "2 entries, the first on line 2, follow ones" in session_of(records[0], records[2], records[5]).notes[-1]


def test_a_compaction_that_was_taken_back_is_none():
    records = chain(user("One"), answer(100, {"text": "Yes"}), compressed(reason="manual"), user("Two"))
    again = chain(user("Three"), start=4)
    again[0]["parentUuid"] = "u1"
    session = session_of(*records, *again)
    assert (texts(session), session.compactions) == (["One", "Yes", "Three"], ())


def test_words_in_the_middle_of_a_turn_join_the_results():
    session = session_of(*chain(*TALK[:3], user("Also b", subtype="mid_turn_user_message")))
    assert [type(part) for part in session.events[2].parts] == [ToolResultPart, TextPart]


def test_a_command_that_was_answered_here_is_never_sent():
    typed = system("slash_command", phase="result", rawCommand="/about", outputHistoryItems=[{"type": "assistant"}])
    assert texts(session_of(*chain(user("Go"), answer(9, {"text": "Yes"}), user("/about"), typed))) == ["Go", "Yes"]


def test_pictures_of_a_result_follow_it():
    media = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    content = {"id": "a", "name": "shot", "response": {"output": ""}, "parts": [media]}
    session = session_of(*chain(*TALK[:2], said("tool_result", "user", {"functionResponse": content})))
    assert session.events[2].parts[1:] == (MediaPart("image/png", 3),)


@pytest.mark.parametrize(("version", "has_words"), [("0.24.4", True), ("0.21.2", True), ("0.15.10", False)])
def test_a_call_without_a_result_has_the_words_that_are_sent_for_it(version, has_words):
    records = [user("Go"), answer(900, call("a"), call("b")), result("b"), user("Go on"), answer(950, call("c"))]
    recording = read_as(FORMAT, lines(*({**record, "version": version} for record in chain(*records))))
    (session,) = recording.sessions
    results = [part for event in session.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert [(part.call_id, part.is_error) for part in results] == [("b", False), *[("a", True)] * has_words]
    assert [item.at for item in session.calls] == [1, 4 + has_words]
    assert recording.facts.tool_results == 1
    assert not has_words or str(results[1].content).startswith("Tool execution result was not recorded — likely")


def test_the_calls_of_a_sub_agents_answer_are_one_answer():
    """0.24, run: the usage is a line without parts, then each call is one."""
    pieces = [said("assistant", "model", call("a")), said("assistant", "model", call("b"))]
    worded = [said("assistant", "model", {"text": "And c"}), said("assistant", "model", call("c"))]  # 0.15: no usage
    records = [user("Go"), answer(900), *pieces, result("a"), result("b"), *worded, result("c"), answer(950)]
    session = session_of(*({**record, "isSidechain": True} for record in chain(*records)))
    assert [(item.at, item.response, item.prompt_tokens) for item in session.calls] == [
        (1, 1, 900),
        (4, 4, None),
        (6, None, 950),
    ]
    assert [len(event.parts) for event in session.events] == [1, 2, 1, 1, 2, 1]


def test_a_sub_agents_file_names_its_parent():
    fork = system(
        "agent_bootstrap",
        kind="fork",
        history=[{"role": "user", "parts": [{"text": "Context"}]}],
        systemInstruction="Explore.",
        tools=[{"name": "ls"}],
    )
    records = [
        {**record, "isSidechain": True, "agentId": "explore-7", "agentName": "Explore"}
        for record in chain(fork, user("Look"), answer(50, {"text": "Seen"}))
    ]
    session = session_of(*records)
    assert (session.source_id, session.parent, session.title) == ("explore-7", "s", "Explore")
    assert (texts(session), session.system, session.tools[0].name) == (
        ["Context", "Look", "Seen"],
        (TextPart("Explore."),),
        "ls",
    )


def test_side_lines_in_a_file_are_not_its_conversation():
    side = {**chain(answer(900, {"text": "Aside"}), start=2)[0], "isSidechain": True}
    session = session_of(*chain(user("Go"), answer(100, {"text": "Yes"})), side)
    assert (texts(session), [item.prompt_tokens for item in session.side_calls]) == (["Go", "Yes"], [900])


def test_messages_of_the_software_begin_no_turn():
    session = session_of(*chain(user("Go"), user("<task-notification>done", subtype="notification")))
    assert [event.meta for event in session.events] == [False, True]


def test_the_chat_of_one_value_is_not_taken_for_gemini_clis():
    content = SEEDS["qwen-code of one value"]
    recording = read(content)
    assert (recording.format, recording.sessions[0].agent, recording.sessions[0].format) == (
        "qwen-code",
        "Qwen Code",
        "qwen-code",
    )
    assert [event.role for event in recording.sessions[0].events] == [Role.USER, Role.MODEL]


def test_the_chat_of_one_value_that_was_written_twice_keeps_its_answers():
    content = SEEDS["qwen-code of one value"]
    once, twice = read(content), read(json.dumps(json.loads(content)).encode() + b"\n" + content + b"\n")
    assert twice.sessions[0].calls
    assert twice.facts == once.facts
    assert [texts(session) for session in twice.sessions] == [texts(session) for session in once.sessions]


def test_chats_that_were_put_into_one_file_are_sessions_of_their_own(tmp_path):
    """Nothing of the first was taken back: a chat of another session begins with a line that has no parent."""
    other = [
        {
            **line,
            "sessionId": "t",
            "uuid": f"t{line['uuid']}",
            "parentUuid": line["parentUuid"] and f"t{line['parentUuid']}",
        }
        for line in chain(*TALK)
    ]
    path = tmp_path / "chats.jsonl"
    path.write_bytes(lines(*chain(*TALK), *other))
    recording = read(path)
    assert [(session.source_id, len(session.calls), session.left) for session in recording.sessions] == [
        ("s", 3, None),
        ("t", 3, None),
    ]
    assert recording.facts.compactions == 2
    assert first_look(path) == look_at(recording.sessions[0])


def test_a_compaction_without_its_history_is_damaged():
    broken = system("chat_compression", info={})
    with pytest.raises(DamagedRecording, match=r"^line 3: a compaction without the history after it"):
        session_of(*chain(*TALK[:2], broken))
    assert session_of(*chain(*TALK[:2], broken), strict=False).compactions == ()


def test_a_first_look_finds_what_a_reading_finds(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(lines(*chain(*TALK)))
    assert first_look(path) == look_at(read(path).sessions[0])


@pytest.mark.parametrize(
    "record", [*chain(*TALK[:3]), chain(TALK[6])[0], chain(TALK[5])[0]], ids=lambda record: record["type"]
)
def test_any_value_anywhere_is_survived(record):
    rest = lines(*chain(*TALK))
    check_hostile(FORMAT, (rest + lines({**bad, "uuid": "x", "sessionId": "s"}) for bad in spoiled(record)))


# -- the rule


@pytest.mark.parametrize(
    ("version", "window", "typed", "threshold"),
    [
        ("0.24.4", 1_000_000, {}, 850_000),
        ("0.24.4", 200_000, {}, 167_000),
        ("0.24.4", 131_072, {}, 98_072),
        ("0.24.4", 32_000, {}, 27_200),
        ("0.24.4", 1_000_000, {"auto_compact_threshold": "0.5"}, 500_000),
        ("0.24.4", 200_000, {"auto_compact_threshold": "100%"}, 167_000),
        ("0.24.4", 131_072, {"auto_compact_threshold": "0.333"}, 43_647),
        ("0.17.0", 1_000_000, {}, 967_000),
        ("0.17.0", 64_000, {}, 44_800),
        ("0.15.10", 1_000_000, {}, 700_000),
        ("0.5.2", 200_000, {"context_percentage_threshold": "0.5"}, 100_000),
        ("0.15.10", 1_000_000, {"context_percentage_threshold": "0"}, None),  # off
        ("", 200_000, {}, 167_000),
    ],
)
def test_it_has_the_threshold_of_its_version(version, window, typed, threshold):
    records = [
        {**record, "version": version} for record in chain(user("Go"), answer(100, {"text": "Yes"}, window=window))
    ]
    assert explain(session_of(*records), typed=typed).rule.threshold == threshold


def test_what_waits_is_counted_as_one_message():
    """Two results of 1,601 and 1,602 characters with 64 more each are 3,331 characters: 833 tokens, not 417 + 417."""
    records = chain(
        user("Go"),
        answer(166_160, call("a"), call("b")),
        result("a", 1_601),
        result("b", 1_602),
        compressed(before=0),
        answer(9, {"text": "So"}),
    )
    (item,) = explain(session_of(*records)).compactions
    assert (item.computed, item.verdict) == (166_160 + 7 + 833, Agreement.AGREES)


def test_the_recorded_count_is_the_one_compared():
    (item,) = explain(session_of(*chain(*TALK))).compactions
    assert (item.recorded, item.computed, item.verdict) == (167_000, 167_000, Agreement.AGREES)


def test_the_views_of_the_calls_are_what_was_sent():
    ledger = Ledger.of(session_of(*chain(*TALK)))
    assert kept(ledger.recorded_view(2)[0]) == [3, 4]


def test_the_seed_is_one_of_its_kind():
    assert json.loads(SEEDS["qwen-code"].splitlines()[1])["contextWindowSize"] == 1_000_000


def test_a_chat_of_one_value_is_of_an_early_version_and_may_lack_calls():
    """0.1.4 with `-p` writes neither tool calls nor the answers that made them, and compacts at 70 %."""
    spoken = {"timestamp": TIME, "tokens": {"input": 90, "output": 3, "cached": 0}}
    messages = [
        {"id": "u1", "type": "user", "content": "List"},
        {"id": "q1", "type": "qwen", "content": "Done", **spoken},
    ]
    (session,) = read_as(FORMAT, {"sessionId": "s", "projectHash": "h", "messages": messages}).sessions
    assert session.version == "before 0.3"
    rule = explain(session).rule
    assert (rule.profile, rule.counter) == ("before-0.8", "prompt")
    assert any("No tool call is in the file" in note for note in session.notes)


@pytest.mark.parametrize(("version", "missed"), [("0.15.6", 0), ("0.12.0", 2)])
def test_within_a_long_turn_0_15_has_too_little_to_summarise(version, missed):
    prompts = {"a": 50_000, "b": 60_000, "c": 70_000, "d": 95_000, "e": 100_000}
    rounds = [(answer(prompt, call(name), window=131_072), result(name, 6_000)) for name, prompt in prompts.items()]
    turn = [user("Go"), *(line for pair in rounds for line in pair), answer(105_000, {"text": "Done"}, window=131_072)]
    summarised = compressed(before=105_007, reason="")
    records = [*turn, user("More"), summarised, answer(20_000, {"text": "Done"}, window=131_072)]
    session = read_as(FORMAT, lines(*chain(*({**record, "version": version} for record in records)))).sessions[0]
    explained = explain(session)
    assert (explained.rule.threshold, len(explained.missed)) == (91_751, missed)
    assert (explained.compactions[0].verdict is Agreement.AGREES) is (not missed)
