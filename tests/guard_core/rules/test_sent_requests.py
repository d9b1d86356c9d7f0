"""What a reading says was sent before each call is what agents really sent, message by message."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest

from guard_core.events import Event, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.ledger import Ledger
from guard_core.requests import materialise
from guard_core.sessions import Session
from tests.guard_core.rules.measured import run_of

# Runs, the calls whose requests are wholly in the file, and the messages of the others that no file holds (by hash).
WHOLE = {"hermes/default-200k": 82, "kimi-code/default": 155}
NOT_IN_THE_FILE = {"kimi-code/default": {"63ee3cbb7102"}}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def parts_of(event: Event) -> list[tuple[str, int, str]]:
    """The parts of a message as they were measured; of a call only that it is one, for its spelling may differ."""
    found = []
    for part in event.parts:
        if isinstance(part, TextPart) and part.text:
            found.append(("text", len(part.text), digest(part.text)))
        elif isinstance(part, ToolResultPart):
            text = value_text(part.content)
            found.append(("tool_result", len(text), digest(text)))
        elif isinstance(part, ToolCallPart):
            found.append(("tool_call", 0, ""))
    return found


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
        found = [part for message in sent(run.session, ledger, step) for part in message]
        assert found == [part for part in parts if part[2] not in DIVIDED[name]], f"step {step}"
    assert absent == DIVIDED[name]


@pytest.mark.parametrize("name", ["kimi-code/default", "mistral-vibe/default", "hermes/default-200k"])
def test_the_system_prompt_is_the_one_that_was_sent(name, tmp_path):
    run = run_of(name, tmp_path)
    (part,) = run.session.system
    assert digest(part.text) == run.truth["calls"][0]["system"]["sha"]
