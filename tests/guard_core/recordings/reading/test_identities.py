"""Ids that were taken out are not identities; one id for two contents is a conflict; exact repeats fold."""

from __future__ import annotations

import json
import re

import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings import read
from guard_core.recordings.reading.placeholders import is_placeholder
from tests.guard_core.recordings.checks import SAMPLES, lines, texts
from tests.recordings.seeds import SEEDS

PLACEHOLDERS = ["REDACTED", "[REDACTED]", "<id>", "xxx", "XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX", "***", "call_xxx"]
PLACEHOLDERS += ["[message id]", "msg_REDACTED", "00000000-0000-0000-0000-000000000000", "anonymized", "removed"]
IDS = [
    "a1",
    "call_0_0",
    "c_0",
    "r",
    "n1",
    "0",
    "toolu_01AbC",
    "msg_redacted_17",
    "t",
    "session",
    "call",
    "01a20210-49f1",
    "main",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_placeholder_is_no_id(value):
    assert is_placeholder(value)


@pytest.mark.parametrize("value", IDS)
def test_an_id_is_no_placeholder(value):
    assert not is_placeholder(value)


KEYS = ("uuid", "parentUuid", "id", "parentId", "requestId", "messageID", "tool_use_id", "tool_call_id", "toolCallId")
KEYS += ("call_id", "callID")
LONG = {
    "claude-code/long-2-compactions.jsonl",
    "claude-code/progress-lines.jsonl",
    "claude-code/images-in-user-messages.jsonl",
    "codex/rollout-0.169-2-compactions.jsonl",
    "pi/v3-2-compactions.jsonl",
    "cline/sdk-session.messages.json",
    "openai-chat/requests-responses.jsonl",
    "opencode/export-1.18-1-compaction.json",
    "adk/session-snake-small.json",
    "hermes/sessions-export.jsonl",
}


def without_ids(content, keys):
    names = "|".join(keys).encode()
    return re.sub(rb'(?<!\\)"(' + names + rb')"(\s*:\s*)"[^"\\]*"', rb'"\1"\2"REDACTED"', content)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="../shared/samples is absent")
@pytest.mark.parametrize("keys", [KEYS, ("id",), ("uuid", "parentUuid"), KEYS[6:]], ids=["all", "id", "uuid", "tools"])
@pytest.mark.parametrize("name", sorted(LONG))
def test_a_recording_whose_ids_were_taken_out_keeps_its_calls(name, keys):
    content = (SAMPLES / name).read_bytes()
    whole, blotted = read(content).facts, read(without_ids(content, keys)).facts
    for figure in ("model_calls", "prompt_tokens_sum", "messages", "tool_calls", "tool_results", "compactions"):
        assert getattr(blotted, figure) == getattr(whole, figure), figure


def test_ids_that_were_taken_out_are_told():
    recording = read(without_ids(SEEDS["claude-code"], KEYS))
    assert recording.notes.skipped["placeholder in the place of an id"] >= 2


def claude(name, parent, text):
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message}


def pi(name, parent, text):
    message = {"role": "user", "content": text}
    return {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message}


PI_HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/p"}
AFTER = claude("c", "b", "4")
CONFLICTS = {
    "Claude Code": [
        claude("a", None, "One"),
        claude("b", "a", "Two"),
        claude("b", "a", "Three"),
        AFTER,
    ],
    "pi": [PI_HEADER, pi("b", None, "Two"), pi("b", "b", "Three"), pi("c", "b", "4")],
}
PLACES = {"Claude Code": (2, 3), "pi": (2, 3)}


@pytest.mark.parametrize("name", CONFLICTS)
def test_one_id_for_two_contents_is_refused_with_both_lines(name):
    first, second = PLACES[name]
    with pytest.raises(DamagedRecording) as refused:
        read(lines(*CONFLICTS[name]), strict=True)
    assert refused.value.line == second
    assert f"the id b is on line {first} and, with other content, on line {second}" in refused.value.reason


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_lenient_reading_keeps_both_and_notes_it(name):
    recording = read(lines(*CONFLICTS[name]))
    assert {"Two", "Three", "4"} <= set(texts(recording.sessions[0]))
    assert [problem.line for problem in recording.notes.problems] == [PLACES[name][1]]


@pytest.mark.parametrize("name", CONFLICTS)
def test_an_exact_repeat_folds(name):
    records = [record for at, record in enumerate(CONFLICTS[name], start=1) if at != PLACES[name][1]]
    recording = read(lines(*records, records[1]), strict=True)
    assert recording.facts == read(lines(*records)).facts
    assert recording.notes.folded == 1


def test_each_content_of_an_id_folds_with_its_own_repeats():
    records = CONFLICTS["Claude Code"]
    recording = read(lines(*records, *records[1:]))
    assert recording.facts == read(lines(*records)).facts
    assert recording.notes.folded == 3
    assert recording.notes.problem_count == 1


def test_one_id_for_two_messages_of_a_value_is_refused_by_their_numbers():
    messages = [{"id": "m", "role": "user", "content": text, "ts": 1} for text in ("One", "Two")]
    content = json.dumps({"version": 1, "sessionId": "s", "messages": messages}).encode()
    with pytest.raises(DamagedRecording, match="is on message 1 and, with other content, on message 2"):
        read(content, strict=True)
    assert read(content).facts.messages == 2
