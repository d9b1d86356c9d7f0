"""What a reading says was sent before each call is what agents really sent, message by message."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import pytest

from guard_core.events import Event, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.requests import materialise
from guard_core.sessions import Session
from tests.guard_core.rules.measured import run_of

# Runs, the calls whose requests are wholly in the file, and the messages of the others that no file holds (by hash).
WHOLE = {
    "codex/default": 155,
    "hermes/default-200k": 82,
    "kimi-code/default": 155,
    "opencode/default": 156,
    "pi/0.74.2-default": 180,
}
# Codex: 16,979 characters of the developer before all others; Kimi Code: a reminder of 123 characters.
NOT_IN_THE_FILE = {"codex/default": {"3b08633fa672"}, "kimi-code/default": {"63ee3cbb7102"}}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def parts_of(event: Event) -> list[tuple[str, int, str]]:
    """The parts of a message as they were measured; of a call only that it is one, for its spelling may differ."""
    parts = []
    for part in event.parts:
        if isinstance(part, TextPart) and part.text:
            parts.append(("text", len(part.text), digest(part.text)))
        elif isinstance(part, ToolResultPart):
            text = part.content if isinstance(part.content, str) else json.dumps(part.content, ensure_ascii=False)
            parts.append(("tool_result", len(text), digest(text)))
        elif isinstance(part, ToolCallPart):
            parts.append(("tool_call", 0, ""))
    return parts


def sent(session: Session, ledger: Ledger, step: int) -> list[list[tuple[str, int, str]]]:
    view, epoch = ledger.recorded_view(step)
    return [parts_of(event) for event in materialise(view, session, epoch)]


def measured_requests(truth: dict[str, Any], absent: set[str]) -> list[list[list[tuple[str, int, str]]]]:
    """The requests of turns; texts that are in no file left out."""
    requests, messages = [], []
    for call in truth["calls"]:
        messages = [*messages[: call["same_as_previous_call"]], *call["messages_from_there"]]
        if call["kind"] == "turn call" and not call["refused"]:
            requests.append(messages)
    return [
        [
            [("tool_call", 0, "") if kind == "tool_call" else (kind, size, sha) for kind, size, sha in parts if size]
            for _, parts in request
            if not any(sha in absent for _, _, sha in parts)
        ]
        for request in requests
    ]


@pytest.mark.parametrize("name", WHOLE)
def test_every_request_is_the_one_that_was_sent(name, tmp_path):
    run = run_of(name, tmp_path)
    measured = measured_requests(run.truth, NOT_IN_THE_FILE.get(name, set()))
    assert len(run.session.calls) == len(measured) == WHOLE[name]
    ledger = Ledger.of(run.session)
    for step, request in enumerate(measured):
        assert sent(run.session, ledger, step) == request, f"step {step}"


def test_the_requests_of_mistral_vibe_since_its_last_compaction_before_the_journal_are_those_that_were_sent(tmp_path):
    run = run_of("mistral-vibe/default", tmp_path)
    measured = measured_requests(run.truth, set())
    assert len(run.session.calls) == len(measured)
    first = run.session.compactions[3].at
    steps = [step for step, call in enumerate(run.session.calls) if call.at >= first or not step]
    assert len(steps) == 36
    ledger = Ledger.of(run.session)
    for step in steps:
        assert sent(run.session, ledger, step) == measured[step], f"step {step}"


# Runs whose messages are divided otherwise (two of a user's in a row are sent as one), and how often texts were sent
# that are in no file: Qwen Code's context texts.
DIVIDED = {
    "gemini-cli/default": {},
    "kimi-cli/default": {},
    "qwen-code/default-1m": {"065858186e01": 111, "4ee827e08522": 111, "3fcfb16f8d7e": 111, "1d53f567485a": 30},
}


@pytest.mark.parametrize("name", DIVIDED)
def test_every_text_of_a_request_is_one_that_was_sent_in_its_order(name, tmp_path):
    run = run_of(name, tmp_path)
    measured = measured_requests(run.truth, set())
    assert len(run.session.calls) == len(measured)
    ledger, absent = Ledger.of(run.session), Counter[str]()
    for step, request in enumerate(measured):
        parts = [part for message in request for part in message]
        absent.update(sha for _, _, sha in parts if sha in DIVIDED[name])
        pieces = [part for message in sent(run.session, ledger, step) for part in message]
        assert pieces == [part for part in parts if part[2] not in DIVIDED[name]], f"step {step}"
    assert absent == DIVIDED[name]


def sizes(request: list[list[tuple[str, int, str]]]) -> list[list[tuple[str, int]]]:
    """A request without its hashes: the texts of Claude Code's runs are dots of the same length."""
    return [[(kind, size) for kind, size, _ in message] for message in request]


# What 2.1.14 sent and did not write down, as kinds and sizes: files that it attached again, each behind a note of 127
# characters, and reminders of the to-do list, most of them at the end of a tool's result.
UNRECORDED = {("text", 127), ("text", 2192), ("text", 2184), ("text", 481), ("tool_result", 2571)}


def test_a_transcript_without_requests_lacks_what_was_attached_again_and_nothing_else(tmp_path):
    run = run_of("claude-code/2.1.14-default", tmp_path)
    measured = measured_requests(run.truth, set())
    assert len(run.session.calls) == len(measured) == 155
    ledger, absent, extra, whole = Ledger.of(run.session), Counter(), Counter(), 0
    for step, request in enumerate(measured):
        ours = Counter(part for message in sizes(sent(run.session, ledger, step)) for part in message)
        wire = Counter(part for message in sizes(request) for part in message)
        absent.update(wire - ours)
        extra.update(ours - wire)
        whole += ours == wire
    assert set(absent) == UNRECORDED
    assert extra == {("tool_result", 2094): absent[("tool_result", 2571)]}  # the same results without the reminder
    assert whole == 22


def test_every_request_of_a_transcript_that_holds_its_requests_is_the_one_that_was_sent(tmp_path):
    run = run_of("claude-code/2.1.330-default-overflow", tmp_path)
    measured = measured_requests(run.truth, set())
    assert len(run.session.calls) == len(measured) == 39
    ledger = Ledger.of(run.session)
    for step, request in enumerate(measured):
        assert sizes(sent(run.session, ledger, step)) == sizes(request), f"step {step}"
    plain = [part for request in measured for message in request for part in message if part[:2] == ("text", 68)]
    assert {part for message in sent(run.session, ledger, 0) for part in message} & set(plain)


@pytest.mark.parametrize("name", ["kimi-code/default", "mistral-vibe/default", "hermes/default-200k"])
def test_the_system_prompt_is_the_one_that_was_sent(name, tmp_path):
    run = run_of(name, tmp_path)
    (part,) = run.session.system
    assert digest(part.text) == run.truth["calls"][0]["system"]["sha"]
