"""Contexts and wires of Kimi CLI, alone and together."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from guard_core.errors import DamagedRecording, LimitExceeded, UnknownFormat
from guard_core.events import MediaPart, Role, TextPart, ToolResultPart
from guard_core.recordings import first_look, look_at, read
from guard_core.recordings.formats.kimi_cli.format import FORMAT
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.summary_words import KIMI_CLI
from guard_core.rules import Agreement, explain
from guard_core.rules.words import headline
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_hostile, check_session, kept, lines, read_as, spoiled, texts
from tests.recordings.seeds import SEEDS, archive

SYSTEM = {"role": "_system_prompt", "content": "Be brief."}
Record = dict[str, Any]


def checkpoint(number: int) -> Record:
    return {"role": "_checkpoint", "id": number}


def usage(tokens: int) -> Record:
    return {"role": "_usage", "token_count": tokens}


def user(words: str) -> Record:
    return {"role": "user", "content": words}


def asking(name: str) -> Record:
    call = {"type": "function", "id": name, "function": {"name": "ReadFile", "arguments": '{"path": "a"}'}}
    return {"role": "assistant", "content": [], "tool_calls": [call]}


def result(name: str, size: int = 400) -> Record:
    content = [{"type": "text", "text": "<system>1 line.</system>"}, {"type": "text", "text": "x" * size}]
    return {"role": "tool", "content": content, "tool_call_id": name}


def step(number: int, prompt: int, answer: Record, *results: Record, output: int = 7) -> list[Record]:
    return [checkpoint(number), usage(prompt), answer, usage(prompt + output), *results]


def done(words: str = "Done") -> Record:
    return {"role": "assistant", "content": [{"type": "text", "text": words}]}


SUMMARY = {"role": "user", "content": [{"type": "text", "text": KIMI_CLI}, {"type": "text", "text": "Read a and b."}]}
FIRST = [
    SYSTEM,
    checkpoint(0),
    user("Read"),
    *step(1, 30_000, asking("a"), result("a")),
    *step(2, 212_137, asking("b"), result("b")),
]
SECOND = [
    SYSTEM,
    checkpoint(0),
    SUMMARY,
    asking("a"),
    result("a"),
    asking("b"),
    result("b"),
    usage(300),
    *step(1, 20_000, done()),
]


def shown(kind: str, at: float = 1_795_331_041.5, **payload: Any) -> Record:
    return {"timestamp": at, "message": {"type": kind, "payload": payload}}


def shown_step(number: int, prompt: int, name: str = "", size: int = 400, compacts: bool = False) -> list[Record]:
    begun = [shown("StepBegin", n=number)]
    if compacts:
        begun += [shown("CompactionBegin"), shown("CompactionEnd")]
    counts = {"input_other": prompt - 10, "output": 7, "input_cache_read": 8, "input_cache_creation": 2}
    status = shown("StatusUpdate", token_usage=counts, max_context_tokens=262_144, message_id=f"m{prompt}")
    if not name:
        return [*begun, shown("ContentPart", type="text", text="Done"), status]
    value = {"is_error": False, "output": "x" * size, "message": "1 line."}
    call = shown("ToolCall", type="function", id=name, function={"name": "ReadFile", "arguments": '{"path": "a"}'})
    return [*begun, call, status, shown("ToolResult", tool_call_id=name, return_value=value)]


HEADER = {"type": "metadata", "protocol_version": "1.9"}
WIRE = [
    HEADER,
    shown("TurnBegin", user_input="Read"),
    *shown_step(1, 30_000, "a"),
    *shown_step(2, 212_137, "b"),
    *shown_step(3, 20_000, compacts=True),
    shown("TurnEnd"),
]


def session_of(*records: Record, strict: bool = True) -> Session:
    (session,) = read_as(FORMAT, lines(*records), strict=strict).sessions
    check_session(session)
    return session


def joined(files: dict[str, list[Record]], strict: bool = True) -> tuple[Session, ...]:
    content = archive({f"sid/{name}": lines(*records) for name, records in files.items()})
    sessions = read_as(FORMAT, content, strict=strict).sessions
    for session in sessions:
        check_session(session)
    return sessions


WHOLE = {"context_1.jsonl": FIRST, "context.jsonl": SECOND, "wire.jsonl": WIRE}


def test_a_context_has_what_was_sent_with_its_tokens():
    session = session_of(*FIRST)
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL, Role.USER]
    assert [(call.at, call.prompt_tokens, call.output_tokens) for call in session.calls] == [
        (1, 30_000, 7),
        (3, 212_137, 7),
    ]
    assert (session.system, session.tools, session.window) == ((TextPart("Be brief."),), None, None)
    assert session.events[2].parts == (ToolResultPart("ReadFile", "<system>1 line.</system>" + "x" * 400, "a"),)


def test_a_context_alone_may_begin_with_a_summary():
    session = session_of(*SECOND)
    (item,) = session.compactions
    assert (item.at, item.base, item.tokens_after, item.trigger) == (0, tuple(map(Inserted, range(5))), 300, "")
    assert (texts(session), len(session.calls)) == (["Done"], 1)
    assert "before the first summary" in session.notes[-1]


def test_an_answer_without_usage_is_a_call_without_tokens():
    session = session_of(
        SYSTEM, checkpoint(0), user("Hi"), checkpoint(1), done(), checkpoint(2), user("More"), usage(50), done()
    )
    assert [call.prompt_tokens for call in session.calls] == [None, 50]


def test_context_and_wire_are_one_session():
    (session,) = joined(WHOLE)
    assert (session.source_id, session.versions, session.agent) == ("sid", ((0, "wire 1.9"),), "Kimi CLI")
    assert (session.window.value, session.window.source) == (262_144, Provenance.RECORDER)
    assert [(call.prompt_tokens, call.cached_tokens, call.cache_write_tokens) for call in session.calls] == [
        (30_000, 8, 2),
        (212_137, 8, 2),
        (20_000, 8, 2),
    ]
    (item,) = session.compactions
    assert (item.at, item.base, item.kind, item.trigger) == (5, (Inserted(0), Span(1, 5)), "summary+tail", "auto")
    assert item.messages[0].parts[1] == TextPart("Read a and b.")
    assert all(event.timestamp == 1_795_331_041.5 for event in session.events)


def test_the_files_that_were_put_aside_are_taken_by_their_numbers():
    third = [SYSTEM, checkpoint(0), SUMMARY, done(), usage(300), *step(1, 25_000, done("Again"))]
    numbers = {f"context_{number}.jsonl": records for number, records in ((2, SECOND), (10, third), (1, FIRST))}
    (session,) = joined({**numbers, "context.jsonl": [*third, *step(2, 26_000, done("Last"))]})
    assert [call.prompt_tokens for call in session.calls] == [30_000, 212_137, 20_000, 25_000, 26_000]


def test_calls_that_no_context_has_are_taken_from_the_wire():
    (session,) = joined({"context.jsonl": SECOND, "wire.jsonl": WIRE})
    (whole,) = joined(WHOLE)
    assert [event.parts for event in session.events] == [event.parts for event in whole.events]
    assert session.compactions[0].base == whole.compactions[0].base
    assert session.compactions[0].messages == whole.compactions[0].messages


def test_the_end_of_a_session_that_is_on_the_wire_alone_is_read():
    (session,) = joined({"context.jsonl": FIRST, "wire.jsonl": WIRE})
    assert [call.prompt_tokens for call in session.calls] == [30_000, 212_137, 20_000]
    assert "1 compaction without the summary" in session.notes[1]


def test_a_wire_alone_has_all_but_summaries_and_system_prompt():
    session = session_of(*WIRE)
    (whole,) = joined(WHOLE)
    assert [event.parts for event in session.events] == [event.parts for event in whole.events]
    (item,) = session.compactions
    assert (item.trigger, item.base, texts_of(item)) == ("auto", (Inserted(0), Span(1, 5)), [KIMI_CLI])
    assert session.system is None


def texts_of(item: Any) -> list[str]:
    return [part.text for message in item.messages for part in message.parts]


def test_what_a_wire_kept_of_an_earlier_compaction_stays():
    again = [*WIRE[:-1], shown("TurnEnd"), shown("TurnBegin", user_input="More"), *shown_step(1, 30_000, compacts=True)]
    session = session_of(*again)
    assert kept(session.compactions[1].base) == [5, 6]
    assert session.compactions[1].at == 7


def test_a_command_that_no_step_follows_is_never_sent_and_compacts_by_hand():
    asked = [shown("TurnBegin", user_input="/compact"), shown("CompactionBegin"), shown("CompactionEnd")]
    shown_after = [shown("ContentPart", type="text", text="The context has been compacted."), shown("TurnEnd")]
    session = session_of(*WIRE, *asked, *shown_after)
    assert [item.trigger for item in session.compactions] == ["auto", "manual"]
    assert texts(session)[-1] == "Done"


def test_a_compaction_that_failed_is_none():
    session = session_of(
        *WIRE,
        shown("TurnBegin", user_input="Go"),
        shown("StepBegin", n=1),
        shown("CompactionBegin"),
        shown("StepInterrupted"),
    )
    assert len(session.compactions) == 1
    assert "1 compaction failed." in session.notes


def test_a_compaction_that_has_nothing_to_summarise_is_none():
    records = [HEADER, shown("TurnBegin", user_input="Go"), *shown_step(1, 30_000, compacts=True)]
    assert session_of(*records).compactions == ()


def test_clearing_and_returning_to_a_checkpoint_are_edits():
    cleared = [SYSTEM, checkpoint(0), user("New"), *step(1, 900, done("Yes"))]
    back = [*cleared[:3], *step(1, 950, done("No"))]
    (session,) = joined({"context_1.jsonl": FIRST, "context_2.jsonl": cleared, "context.jsonl": back})
    assert [(item.kind, item.trigger, kept(item.base)) for item in session.compactions] == [
        ("edit", "clear", []),
        ("edit", "rewind", [5]),
    ]


def test_results_come_in_the_order_of_their_calls():
    call_a, status_a, result_a = shown_step(1, 900, "a")[1:]
    call_b, _, result_b = shown_step(1, 900, "b")[1:]
    begun = [HEADER, shown("TurnBegin", user_input="Go"), shown("StepBegin", n=1)]
    session = session_of(*begun, call_a, call_b, result_b, status_a, result_a)
    assert [part.call_id for event in session.events[2:] for part in event.parts] == ["a", "b"]
    assert len(session.calls) == 1


@pytest.mark.parametrize(
    ("value", "content", "failed"),
    [
        ({"is_error": True, "message": "No such file", "output": ""}, "<system>ERROR: No such file</system>", True),
        ({"is_error": False, "message": "", "output": ""}, "<system>Tool output is empty.</system>", False),
        ({"is_error": False, "message": "1 line.", "output": "a"}, "<system>1 line.</system>a", False),
    ],
)
def test_a_shown_result_is_the_message_that_was_sent(value, content, failed):
    result = shown("ToolResult", tool_call_id="a", return_value=value)
    session = session_of(HEADER, shown("TurnBegin", user_input="Go"), *shown_step(1, 900, "a")[:-1], result)
    (part,) = session.events[2].parts
    assert (part.content, part.is_error) == (content, failed)


def test_a_picture_in_a_result_has_a_sentence_before_it():
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    result = shown("ToolResult", tool_call_id="a", return_value={"is_error": False, "message": "", "output": picture})
    session = session_of(HEADER, shown("TurnBegin", user_input="Go"), *shown_step(1, 900, "a")[:-1], result)
    assert session.events[2].parts == (
        ToolResultPart("ReadFile", "<system>Tool returned non-text content.</system>", "a"),
        MediaPart("image/png", 3),
    )


def test_what_a_failed_attempt_had_shown_is_left_out():
    begun = [HEADER, shown("TurnBegin", user_input="Go"), shown("StepBegin", n=1)]
    tried = [shown("ContentPart", type="text", text="Do"), shown("StepRetry", n=1, next_attempt=2)]
    assert texts(session_of(*begun, *tried, *shown_step(1, 900)[1:])) == ["Go", "Done"]


def test_sub_agents_are_sessions_of_their_own():
    started = shown("SubagentEvent", agent_id="a1", parent_tool_call_id="a", event=shown_step(1, 500)[-1]["message"])
    sub = {"context.jsonl": FIRST[:3] + step(1, 500, done("Seen"))}
    main, other = joined(
        {"context.jsonl": FIRST, "wire.jsonl": [*WIRE, started], "subagents/a1/context.jsonl": sub["context.jsonl"]}
    )
    assert (other.source_id, other.parent, texts(other)) == ("a1", "sid", ["Read", "Seen"])
    assert [(item.session, item.call, item.at) for item in main.sub_agents] == [("a1", "a", 1)]
    assert [call.prompt_tokens for call in main.side_calls] == [500]


def test_a_sub_agent_has_the_protocol_of_its_session():
    """1.46, run: a sub-agent's wire names the constant 1.1, whatever the version."""
    sub = [{"type": "metadata", "protocol_version": "1.1"}, shown("TurnBegin", user_input="Look"), *shown_step(1, 900)]
    main, other = joined({"context.jsonl": FIRST, "wire.jsonl": WIRE, "subagents/a1/wire.jsonl": sub})
    assert (main.version, other.version) == ("wire 1.9", "wire 1.9")
    assert session_of(*sub).version == ""


def test_a_call_of_a_sub_agent_in_its_sessions_wire_is_no_unknown_name():
    call = {"type": "ToolCall", "payload": {"id": "t", "function": {"name": "Shell", "arguments": "{}"}}}
    event = shown("SubagentEvent", agent_id="a1", parent_tool_call_id="a", event=call)
    assert read(lines(*WIRE, event)).notes.problems == []


def test_contexts_of_old_sub_agents_belong_to_the_session_beside_them():
    main, other = joined(
        {"context.jsonl": FIRST, "context_sub_1.jsonl": [checkpoint(0), user("Look"), *step(1, 50, done())]}
    )
    assert (other.source_id, other.parent, len(main.calls)) == ("sid/context_sub_1", "sid", 2)


# -- archives and folders


def test_a_folder_is_read_like_its_archive(tmp_path):
    folder = tmp_path / "sid"
    folder.mkdir()
    for name, records in WHOLE.items():
        (folder / name).write_bytes(lines(*records))
    (folder / "state.json").write_text("{}")
    (folder / "context_2.jsonl").write_bytes(b"")
    (session,) = read(folder, strict=True).sessions
    assert msgspec.json.encode(session) == msgspec.json.encode(joined(WHOLE)[0])


def test_what_is_wrong_with_a_file_of_an_archive_names_it():
    content = archive(
        {"sid/context_1.jsonl": lines(*FIRST) + b"oops\n" + lines(*FIRST[-1:]), "sid/context.jsonl": lines(*SECOND)}
    )
    with pytest.raises(DamagedRecording, match=f"^line {len(FIRST) + 1}, column 1: sid/context_1.jsonl: "):
        read(content, strict=True)
    (problem,) = read(content).notes.problems
    assert problem.message.startswith("sid/context_1.jsonl: ")


def test_other_folders_are_refused_with_a_reason(tmp_path):
    with pytest.raises(DamagedRecording, match="has no files"):
        read(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UnknownFormat, match="a folder without a session that is kept in several files"):
        read(tmp_path)
    with pytest.raises(LimitExceeded, match="name the folder of one session"):
        read(tmp_path, limits=Limits(request_bytes=0))


def test_a_link_in_a_folder_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(lines(*SECOND))
    folder = tmp_path / "sid"
    folder.mkdir()
    (folder / "wire.jsonl").write_bytes(lines(*WIRE))
    (folder / "context.jsonl").symlink_to(tmp_path / "secret")
    assert read(folder).sessions[0].system is None


def test_an_archive_that_claims_such_names_and_holds_nothing_of_it_is_refused(tmp_path):
    path: Path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("wire.jsonl", "hello")
    with pytest.raises(UnknownFormat, match="a ZIP archive"):
        read(path)


# -- what is in the lines


@pytest.mark.parametrize("record", [*FIRST[2:7], SECOND[2]], ids=lambda record: record["role"])
def test_any_value_in_a_context_is_survived(record):
    check_hostile(FORMAT, (lines(SYSTEM, checkpoint(0), user("Hi"), bad, *SECOND[1:]) for bad in spoiled(record)))


@pytest.mark.parametrize("record", [*WIRE[1:6], *WIRE[10:13]], ids=lambda record: record["message"]["type"])
def test_any_value_on_a_wire_is_survived(record):
    check_hostile(FORMAT, (lines(*WIRE[:6], bad, *WIRE[6:]) for bad in spoiled(record)))


@pytest.mark.parametrize("records", [WIRE, FIRST], ids=["wire", "context"])
def test_a_first_look_finds_what_a_reading_finds(records, tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_bytes(lines(*records))
    assert first_look(path) == look_at(read(path).sessions[0])


def test_the_header_of_a_wire_alone_holds_nothing():
    with pytest.raises(DamagedRecording, match="no message that can be read"):
        read(lines(HEADER))


def test_the_seeds_are_one_session():
    (session,) = read(archive({"s/context.jsonl": SEEDS["kimi-cli"], "s/wire.jsonl": SEEDS["kimi-cli wire"]})).sessions
    assert [call.timestamp for call in session.calls] == [1_770_000_000.5] * 2
    assert json.loads(SEEDS["kimi-cli wire"].splitlines()[0]) == HEADER


# -- the rule


def windowed(window: int, protocol: str = "1.9", prompt: int = 30_000) -> Session:
    changed = json.loads(json.dumps(shown_step(1, prompt)).replace("262144", str(window)))
    header = {**HEADER, "protocol_version": protocol}
    return session_of(header, shown("TurnBegin", user_input="Go"), *changed)


@pytest.mark.parametrize(
    ("protocol", "window", "typed", "threshold", "counter"),
    [
        ("1.9", 262_144, {}, 212_144, "total_pending"),
        ("1.10", 128_000, {}, 78_000, "total_pending"),
        ("1.9", 1_000_000, {}, 850_000, "total_pending"),
        ("1.9", 262_144, {"reserved_context_size": "10000"}, 222_823, "total_pending"),
        ("1.9", 262_144, {"compaction_trigger_ratio": "0.5"}, 131_072, "total_pending"),
        ("1.9", 40_000, {}, 0, "total_pending"),
        ("1.5", 1_000_000, {}, 850_000, "total"),
        ("1.2", 1_000_000, {}, 950_000, "total"),
    ],
)
def test_it_has_the_threshold_of_its_version(protocol, window, typed, threshold, counter):
    rule = explain(windowed(window, protocol), typed=typed).rule
    assert (rule.threshold, rule.counter) == (threshold, counter)


@pytest.mark.parametrize(("records", "profile"), [(WIRE, "1.28"), (WIRE[1:], "before-1.17"), (WIRE[2:], "1.28")])
def test_a_wire_that_begins_with_a_turn_is_older_than_any_protocol(records, profile):
    assert explain(session_of(*records)).rule.profile == profile


def test_a_wire_of_the_first_protocol_names_no_window():
    """0.88, run; later versions name the same protocol in files of sub-agents."""
    header = {**HEADER, "protocol_version": "1.1"}
    records = json.loads(json.dumps(WIRE[1:]).replace('"max_context_tokens": 262144, ', ""))
    session = session_of(header, *records)
    rule = explain(session, typed={"window": "128000"}).rule
    assert (session.version, rule.profile, rule.counter, rule.threshold) == ("wire 1.1", "before-1.17", "total", 78_000)
    assert session_of(header, *WIRE[1:]).version == ""


def test_a_compaction_at_its_threshold_agrees():
    """212,137 + 7 tokens and 424 characters of the result: 212,250."""
    explanation = explain(joined(WHOLE)[0])
    assert [(item.computed, item.verdict) for item in explanation.compactions] == [(212_250, Agreement.AGREES)]
    assert explanation.missed == ()


def test_results_of_one_answer_are_counted_together():
    """Two results of 425 characters are 212 tokens, not 106 each; what the user says counts by itself."""
    one, two = asking("a"), asking("b")
    both = {**one, "tool_calls": [*one["tool_calls"], *two["tool_calls"]]}
    first = [SYSTEM, checkpoint(0), user("Read"), *step(1, 212_000, both, result("a", 401), result("b", 401))]
    explanation = explain(
        joined({"context_1.jsonl": first, "context.jsonl": SECOND})[0], window=Sourced(262_144, Provenance.USER)
    )
    assert [item.computed for item in explanation.compactions] == [212_007 + 212]


def test_a_window_that_leaves_no_room_compacts_before_every_call_that_has_something_to_summarise():
    records = [HEADER, shown("TurnBegin", user_input="Go"), *shown_step(1, 9_000, "a"), *shown_step(2, 9_500, "b")]
    records += [*shown_step(3, 9_000, "c", compacts=True), *shown_step(4, 9_000, compacts=True)]
    session = session_of(*json.loads(json.dumps(records).replace("262144", "40000")))
    explanation = explain(session)
    assert (explanation.auto, explanation.agrees, explanation.missed) == (2, 2, ())
    assert "compacts before every call: " in headline(explanation)


def test_a_reminder_of_the_software_comes_behind_the_check():
    reminder = user("<system-reminder>\n" + "x" * 4_000 + "\n</system-reminder>")
    records = [
        SYSTEM,
        checkpoint(0),
        user("Read"),
        *step(1, 212_000, asking("a"), result("a", 40)),
        checkpoint(2),
        reminder,
        usage(215_000),
        done(),
    ]
    explanation = explain(session_of(*records), window=Sourced(262_144, Provenance.USER))
    assert explanation.missed == ()


def test_steps_that_the_numbers_of_a_wire_prove_to_be_missing_are_noted():
    def notes(*records: Record) -> list[str]:
        return [note for note in session_of(HEADER, *records).notes if "umber" in note]

    turn = shown("TurnBegin", user_input="Read")
    first, second, third = shown_step(1, 30_000, "a"), shown_step(2, 40_000, "b"), shown_step(3, 50_000)
    assert notes(turn, *first, *second, *third, shown("TurnEnd"), turn, *shown_step(1, 60_000)) == []
    assert notes(turn, *first, *third) == [
        "By its number a step is not in the file (the next one is step 3 of its turn, on line 7): what it held is not "
        "known."
    ]
    assert notes(*third, shown("TurnEnd"), turn, *shown_step(1, 60_000)) == [
        "By their numbers 2 steps are not in the file (the first in the file behind them is step 3 of its turn, on "
        "line 2): what they held is not known."
    ]


def test_a_wire_that_begins_in_the_middle_of_a_turn_keeps_its_first_compaction():
    """Its file was cut behind the messages that were summarised: that it has none says nothing of the session."""
    cut = [shown("CompactionBegin"), shown("CompactionEnd"), *shown_step(2, 30_000)]
    (compaction,) = session_of(shown("StepBegin", n=1), *cut).compactions
    assert (compaction.at, compaction.kind, compaction.trigger) == (0, "opaque", "auto")
    assert [item.trigger for item in session_of(*cut).compactions] == [""]
