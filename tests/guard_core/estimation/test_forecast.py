"""Calls are forecast from the past only, by the pricing of a replay."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from guard_core.estimation.forecast import MOST_ORIGINS, forecast, known_at, predict, predictions
from guard_core.estimation.ratios import content
from guard_core.events import Event, ReasoningPart, Role, TextPart
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall
from guard_core.tokens import tokenizer
from tests.big_sessions import big_session
from tests.builders import bundled, model, session, user


def test_it_predicts_one_ten_and_fifty_calls_ahead_and_the_first_after_a_compaction():
    errors = forecast(Ledger.of(bundled("long-coding")))
    assert list(errors) == ["1", "10", "50", "compaction"]
    assert errors["compaction"].calls == 3
    assert errors["1"].mape < 0.01
    assert errors["10"].mape < 0.02
    assert errors["compaction"].mape < 0.05


def test_a_horizon_without_a_call_is_none():
    errors = forecast(Ledger.of(bundled("long-coding")))
    assert forecast(Ledger.of(session()))["1"] is None
    assert errors["50"] is None or errors["50"].calls


@pytest.mark.parametrize("name", ["healthy", "long-coding", "unpersisted-loop"])
def test_nothing_after_the_origin_changes_a_prediction(name):
    ledger = Ledger.of(bundled(name))
    for origin, step, _ in list(predictions(ledger))[::7]:
        later = np.arange(ledger.step_count) > origin
        counts = {
            column: np.where(later & (ledger.steps[column] >= 0), ledger.steps[column] * 3 + 11, ledger.steps[column])
            for column in ("prompt_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
        }
        other = replace(ledger, steps={**ledger.steps, **counts}, _prefixes={})
        assert predict(other, known_at(other, origin), step) == predict(ledger, known_at(ledger, origin), step)


def test_what_events_hold_is_counted_once_for_all_origins():
    ledger = Ledger.of(bundled("long-coding"))
    held = [content(known_at(ledger, origin).ledger) for origin in (3, 20)]
    assert held[0] is held[1]
    with pytest.raises(ValueError, match="read-only"):
        held[0][0] = 7


def test_texts_after_the_call_that_is_predicted_do_not_change_it():
    events = [part for turn in range(30) for part in (user(f"question {turn} " * 40), model(f"answer {turn} " * 60))]
    longer = [*events[:41], *(user("other words 77 " * 500) for _ in range(19))]
    calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 900 + 330 * turn) for turn in range(30))
    first, second = (Ledger.of(session(*log, calls=calls)) for log in (events, longer))
    assert predict(first, known_at(first, 10), 20) == predict(second, known_at(second, 10), 20)


def test_the_call_after_the_origin_costs_its_count_and_what_was_added():
    events = [part for turn in range(30) for part in (user("word " * 200), model("answer " * 200))]
    hidden = 40_000  # appears at once and in no event
    calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 900 + 600 * turn + hidden * (turn > 5)) for turn in range(30))
    ledger = Ledger.of(session(*events, calls=calls))
    assert predict(ledger, known_at(ledger, 20), 21) == pytest.approx(calls[21].prompt_tokens, abs=150)


def test_the_first_calls_are_forecast_by_what_is_usual_for_the_model():
    events = [part for _ in range(4) for part in (user("word " * 200), user("more words " * 900))]
    level = 0.87  # of the tokens that Claude's tokenizer makes
    growth = round(level * 2_000) + 40
    calls = tuple(ModelCall(2 * call + 1, None, 900 + growth * call, model="glm-5.1") for call in range(4))
    errors = {}
    for name in ("glm-5.1", "scripted-model"):
        ledger = Ledger.of(session(*events, calls=tuple(msgspec.structs.replace(call, model=name) for call in calls)))
        errors[name] = abs(predict(ledger, known_at(ledger, 1), 2) / calls[2].prompt_tokens - 1)
    assert errors["glm-5.1"] < 0.01 < errors["scripted-model"]


def test_text_of_a_model_of_openai_costs_what_its_tokenizer_makes_of_it():
    texts = [
        "Summarise the report. " * 300,
        "f3a9-0c17-77be " * 250,
        "├── src ─ tests " * 280,
        "数える 文字 " * 300,
    ] * 3
    events, counts = [user(text) for text in texts], np.cumsum(tokenizer.count(texts)) + 9_000
    calls = tuple(ModelCall(call + 1, None, int(count) + 8 * call) for call, count in enumerate(counts))
    errors = {}
    for name in ("openai/gpt-5.3-codex", "scripted-model"):
        ledger = Ledger.of(session(*events, calls=tuple(msgspec.structs.replace(call, model=name) for call in calls)))
        errors[name] = forecast(ledger)["1"].mape
    assert errors["openai/gpt-5.3-codex"] < 0.0005 < 0.02 < errors["scripted-model"]


def test_hidden_reasoning_is_forecast_by_its_encrypted_size_from_the_first_calls_on():
    hidden, per_byte = 6_000, 0.3  # bytes of a signature, and the tokens per byte that the provider counts
    answer = Event(Role.MODEL, (ReasoningPart("", opaque_bytes=hidden), TextPart("answer")))
    events = [part for _ in range(6) for part in (user("word " * 20), answer)]
    growth = round(hidden * per_byte) + 60
    calls = tuple(
        ModelCall(2 * turn + 1, 2 * turn + 1, 4_000 + growth * turn, model="claude-opus-4-6") for turn in range(6)
    )
    ledger = Ledger.of(session(*events, calls=calls))
    assert predict(ledger, known_at(ledger, 1), 5) == pytest.approx(calls[5].prompt_tokens, rel=0.05)


def test_messages_of_opencode_cost_no_more_beside_their_texts_than_those_of_others():
    events = [part for _ in range(40) for part in (user("word " * 10), model("answer " * 10))]
    by_agent = {}
    for agent in ("opencode", "scripted"):
        calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 3_000 + 70 * turn) for turn in range(40))
        ledger = Ledger.of(session(*events, calls=calls, format=agent))
        by_agent[agent] = predict(ledger, known_at(ledger, 1), 11)
    assert by_agent["opencode"] == by_agent["scripted"]


def test_summaries_of_reasoning_are_expected_to_cost_less_than_as_much_text_where_a_family_shows_no_more():
    answer = model("answer " * 20, reasoning="a summary of thoughts " * 150)
    events = [part for _ in range(12) for part in (user("word " * 200), answer)]
    by_model = {}
    for name in ("gpt-5.5", "claude-opus-4-6"):
        calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 6_000 + 300 * turn, model=name) for turn in range(12))
        ledger = Ledger.of(session(*events, calls=calls))
        by_model[name] = predict(ledger, known_at(ledger, 0), 2) - calls[0].prompt_tokens
    assert by_model["gpt-5.5"] < by_model["claude-opus-4-6"] / 2


def test_thoughts_that_gemini_cli_shows_are_not_expected_in_its_requests():
    answer = model("answer " * 20, reasoning="a long thought " * 300)
    events = [part for _ in range(12) for part in (user("word " * 200), answer)]
    calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 6_000 + 300 * turn) for turn in range(12))
    errors = {}
    for agent in ("gemini-cli", "scripted"):
        ledger = Ledger.of(session(*events, calls=calls, format=agent))
        errors[agent] = abs(predict(ledger, known_at(ledger, 1), 2) / calls[2].prompt_tokens - 1)
    assert errors["gemini-cli"] < 0.01 < errors["scripted"]


def test_answers_without_what_they_answer_grow_as_the_calls_before():
    sizes = np.cumsum([900 + 300 * (turn % 3) for turn in range(60)]).tolist()
    calls = tuple(ModelCall(turn, turn, size) for turn, size in enumerate(sizes))
    errors = forecast(Ledger.of(session(*(model("look " * 10) for _ in sizes), calls=calls)))
    assert [errors[name].mape < 0.1 for name in ("1", "10", "50")] == [True] * 3


def test_calls_of_another_model_are_not_predicted():
    events = [part for turn in range(6) for part in (user("word " * 200), model("answer " * 200))]
    names = ("one", "one", "one", "two", "two", "one")
    calls = tuple(ModelCall(2 * turn + 1, 2 * turn + 1, 900 + 600 * turn, model=names[turn]) for turn in range(6))
    pairs = {(origin, step) for origin, step, _ in predictions(Ledger.of(session(*events, calls=calls)))}
    assert pairs == {(1, 2), (3, 4)}


def test_a_long_session_is_forecast_from_evenly_spaced_origins():
    ledger = Ledger.of(big_session(2_000, 4))
    origins = sorted({origin for origin, _, name in predictions(ledger) if name == "1"})
    assert len(origins) <= MOST_ORIGINS
    assert max(np.diff(origins)) < 2 * 2_000 / MOST_ORIGINS
    assert forecast(ledger)["50"].mape < 0.03


def test_the_work_can_be_broken_off_between_origins():
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        forecast(Ledger.of(bundled("healthy")), stop)
