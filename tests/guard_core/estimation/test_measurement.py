"""The engine measures itself: every recorded call is predicted from the others, before and after it."""

import time

import numpy as np
import pytest

from guard_core.estimation.comparison import compare, request_counts
from guard_core.estimation.forecast import forecast
from guard_core.estimation.measurement import errors, interpolate
from guard_core.ledger import Ledger
from guard_core.sessions import Session
from tests.big_sessions import big_session
from tests.builders import bundled, model, session, user


@pytest.mark.parametrize(("name", "most"), [("healthy", 0.01), ("timing-gap", 0.01), ("long-coding", 0.01)])
def test_the_samples_are_predicted_within_a_percent(name, most):
    measurement = interpolate(Ledger.of(bundled(name)))
    assert measurement.overall.mape < most
    assert abs(measurement.overall.bias) < most


def test_whole_stretches_between_compactions_are_predicted_too():
    measurement = interpolate(Ledger.of(bundled("long-coding")))
    assert measurement.stretches.calls == measurement.overall.calls
    assert measurement.stretches.mape < 0.03


def test_a_prediction_does_not_know_the_call_it_predicts(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    before = interpolate(ledger).predicted[10]
    ledger.steps["prompt_tokens"][10] += 7
    assert interpolate(ledger).predicted[10] == before


def test_errors_are_relative_to_the_recorded_count():
    recorded, predicted = np.array([100, 200, 400]), np.array([110, 180, 400])
    relative = errors(recorded, predicted, np.arange(3))
    assert (relative.bias, relative.mape, relative.worst, relative.worst_step) == (0.0, 0.066667, 0.1, 0)
    assert errors(recorded, predicted, np.arange(0)) is None


def test_calls_are_told_apart_by_what_was_added(tool_heavy):
    measurement = interpolate(Ledger.of(tool_heavy))
    assert measurement.by_kind["tool results"].calls == 20
    assert sum(part.calls for part in measurement.by_kind.values()) == measurement.overall.calls
    assert sum(part.calls for part in measurement.by_method.values()) == measurement.overall.calls


@pytest.mark.parametrize("reported", [0, 1])
def test_too_few_reported_calls_give_no_measurement(reported, short_chat):
    calls = [
        call if index < reported else type(call)(call.at, call.response) for index, call in enumerate(short_chat.calls)
    ]
    measurement = interpolate(Ledger.of(Session(events=short_chat.events, calls=tuple(calls))))
    assert measurement.overall is None
    assert measurement.predicted.tolist() == [-1, -1]


def test_a_very_long_session_is_measured_on_a_part_of_its_calls():
    measurement = interpolate(Ledger.of(big_session(3_000, 12)))
    assert measurement.overall.calls == 2_000
    assert measurement.overall.mape < 0.02


@pytest.mark.long
def test_measuring_a_long_session_takes_at_most_ten_seconds_of_processor_time():
    """`test_a_very_long_session_is_measured_on_a_part_of_its_calls` says why."""
    ledger = Ledger.of(big_session(4_000, 12))
    started = time.process_time()
    forecast(ledger)
    interpolate(ledger)
    for share in (3, 4):  # two tokenizers
        interpolate(ledger, ledger.events["bytes"] // share, stretches=False)
    assert time.process_time() - started < 10


def test_nearly_every_prediction_lies_between_two_known_counts():
    assert interpolate(Ledger.of(bundled("long-coding"))).between > 0.9
    assert interpolate(Ledger.of(session())).between is None


def test_estimators_are_compared_on_the_same_calls():
    chat = bundled("long-coding")
    comparison = compare(chat, Ledger.of(chat))
    assert list(comparison) == ["chars/4", "bytes/4", "o200k_base", "cl100k_base"]
    assert comparison["chars/4"]["the text alone"].bias < -0.2
    assert comparison["chars/4"]["and the call before"].mape < comparison["chars/4"]["and the first call"].mape


def test_a_request_is_counted_with_what_a_compaction_left():
    chat = bundled("timing-gap")
    ledger = Ledger.of(chat)
    counts = request_counts(chat, ledger, lambda texts: [1 for _ in texts])
    first = int(np.flatnonzero(ledger.steps["epoch"] == 0)[0])
    assert counts[first] == 1 + len(chat.tools) + 2


def test_text_outside_ascii_is_longer_in_bytes_than_in_characters():
    chat = session(user("漢字" * 400), model("かな"), user("漢字" * 400), model("かな"))
    comparison = compare(chat, Ledger.of(chat))
    assert comparison["bytes/4"]["the text alone"].bias > comparison["chars/4"]["the text alone"].bias
