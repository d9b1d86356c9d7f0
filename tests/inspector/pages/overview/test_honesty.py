"""The sentence beside a replay quotes the forecast error, never the interpolation's."""

from dataclasses import replace

from inspector.pages.overview.presenter import honesty
from tests.inspector.pages.overview.test_figure import made
from tests.inspector.pages.overview.test_uncertainty import FORECAST, errors


def test_it_quotes_the_forecast_and_says_what_was_not_measured():
    assert honesty(made(), FORECAST) == (
        "From step 9 on the replay is modelled: the same turns and replies, with other requests. "
        "Forecasts of this session's recorded prompts, made from the past only, are off on average by: "
        "1 call ahead 0.5 %, 10 calls 5.0 %, 50 calls not measured, first call after a compaction 15.0 %."
    )


def test_an_average_of_two_calls_says_so():
    said = honesty(made(), {**FORECAST, "1": errors(0.01, calls=2), "50": None})
    assert "1 call ahead 0.5 % (2 calls), 10 calls 5.0 %, 50 calls not measured" in said


def test_it_promises_nothing_before_the_forecast_is_there():
    assert honesty(made(), {}).endswith("with other requests.")


def test_it_says_where_nothing_can_be_forecast():
    said = honesty(made(), dict.fromkeys(FORECAST))
    assert said.endswith("How far off it is cannot be said: too few prompts are recorded to forecast any.")


def test_a_replay_that_sends_what_was_recorded_has_no_error():
    same = made()
    same = replace(same, replayed=replace(same.replayed, divergence=None))
    assert honesty(same, FORECAST).startswith("The replay sends exactly what was recorded")
