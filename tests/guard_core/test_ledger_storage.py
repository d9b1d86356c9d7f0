"""A ledger is stored as bytes and comes back as it was."""

import msgspec
import numpy as np
import pytest

from guard_core.costs import EVENT_COLUMNS, PACKED_ROWS, EventCounter, event_columns
from guard_core.errors import GuardError
from guard_core.ledger import LEDGER_VERSION, Ledger
from guard_core.packing import encode
from guard_core.step_columns import STEP_COLUMNS
from guard_core.tokens import tokenizer
from tests.builders import user


def test_it_comes_back_exactly(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    again = Ledger.from_bytes(ledger.to_bytes())
    assert all(np.array_equal(again.events[name], ledger.events[name]) for name in EVENT_COLUMNS)
    assert all(np.array_equal(again.steps[name], ledger.steps[name]) for name in STEP_COLUMNS)
    assert again.to_bytes() == ledger.to_bytes()
    assert again.events["bytes"].dtype == np.int64


def test_it_keeps_the_totals_of_a_session_without_counts(no_usage_reported):
    value = msgspec.structs.replace(no_usage_reported, prompt_tokens_total=90_000, total_calls=12)
    again = Ledger.from_bytes(Ledger.of(value).to_bytes())
    assert (again.prompt_tokens_total, again.total_calls) == (90_000, 12)


def test_it_keeps_the_names_of_its_models(tool_heavy):
    calls = tuple(
        msgspec.structs.replace(call, model=("one", "two", "two")[step % 3])
        for step, call in enumerate(tool_heavy.calls)
    )
    ledger = Ledger.of(msgspec.structs.replace(tool_heavy, calls=calls))
    again = Ledger.from_bytes(ledger.to_bytes())
    assert again.models == ("one", "two")
    assert again.main_model == ledger.main_model == "two"


def test_text_is_counted_by_the_tokenizer_of_the_sessions_model_where_that_is_public(tool_heavy):
    def counts(name: str) -> list[int]:
        calls = tuple(msgspec.structs.replace(call, model=name) for call in tool_heavy.calls)
        again = Ledger.from_bytes(Ledger.of(msgspec.structs.replace(tool_heavy, calls=calls)).to_bytes())
        return again.events["tokenizer_tokens"].tolist()

    assert counts("gpt-5.4") == tokenizer.count_events(tool_heavy.events).tolist()
    assert counts("gpt-4-0613") == tokenizer.count_events(tool_heavy.events, "cl100k_base").tolist()
    assert counts("claude-opus-4-6") == [0] * len(tool_heavy.events)


def test_it_keeps_an_empty_session(short_chat):
    ledger = Ledger.of(type(short_chat)(events=()))
    assert Ledger.from_bytes(ledger.to_bytes()).event_count == 0


def test_it_counts_reasoning_calls_and_results_apart(sequential_chain):
    events = Ledger.of(sequential_chain).events
    assert events["call_bytes"][1] == events["bytes"][1]
    assert events["result_bytes"][2] == events["bytes"][2]
    assert events["result_bytes"][0] == events["call_bytes"][0] == 0


@pytest.mark.parametrize("data", [b"", b"\x00", b"not a ledger", encode({"version": 2})])
def test_it_refuses_other_bytes_in_a_sentence(data):
    with pytest.raises(GuardError, match="import the session again"):
        Ledger.from_bytes(data)


def test_it_refuses_another_version(short_chat):
    data = Ledger.of(short_chat).to_bytes()
    other = data.replace(b"\xa7version" + bytes([LEDGER_VERSION]), b"\xa7version\x63")
    assert other != data
    with pytest.raises(GuardError, match="version 99"):
        Ledger.from_bytes(other)


def test_a_long_session_is_counted_as_a_short_one_is():
    events = [user(f"message {number} " + "x" * (number % 300)) for number in range(2 * PACKED_ROWS + 7)]
    counter = EventCounter()
    for event in events:
        counter.add(event)
    table = counter.columns()
    for place in (0, 1, PACKED_ROWS - 1, PACKED_ROWS, 2 * PACKED_ROWS, len(events) - 1):
        assert {name: int(column[place]) for name, column in table.items()} == event_columns(events[place])
    assert {len(column) for column in table.values()} == {len(events)}
