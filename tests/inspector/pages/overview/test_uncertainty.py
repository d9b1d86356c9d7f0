"""The band around what a replay models comes from the session's forecast errors."""

import numpy as np

from guard_core.estimation.measurement import Errors
from inspector.figures.timeline import Replayed
from inspector.pages.overview.uncertainty import share_off
from tests.inspector.pages.overview.test_figure import context_timeline, made

NOWHERE = np.array([], dtype=np.int64)


def errors(p95: float, calls: int = 20) -> Errors:
    return Errors(calls, 0.0, p95 / 2, p95, p95, 3)


FORECAST = {"1": errors(0.01), "10": errors(0.10), "50": None, "compaction": errors(0.3, 3)}


def replayed(divergence: int | None = 8, compactions: tuple[int, ...] = ()) -> Replayed:
    return Replayed("early", np.full(40, 50_000.0), np.array(compactions, dtype=np.int64), NOWHERE, divergence)


def test_it_grows_with_the_calls_since_the_divergence_and_is_nowhere_before_it():
    off = share_off(replayed(), FORECAST)
    assert np.isnan(off[:8]).all()
    assert (off[8], off[17], off[39]) == (0.01, 0.10, 0.10)
    assert 0.01 < off[12] < 0.10


def test_it_is_at_least_that_of_a_first_call_after_a_compaction_once_the_replay_compacts():
    off = share_off(replayed(compactions=(20,)), FORECAST)
    assert off[19] == 0.10
    assert (off[20:] == 0.3).all()


def test_it_ends_at_the_first_compaction_where_too_few_recorded_ones_could_be_forecast():
    off = share_off(replayed(compactions=(20,)), {**FORECAST, "compaction": errors(0.9, calls=2)})
    assert off[19] == 0.10
    assert np.isnan(off[20:]).all()


def test_nothing_is_drawn_without_forecasts_a_divergence_or_enough_calls():
    assert share_off(replayed(), {}) is None
    assert share_off(replayed(None), FORECAST) is None
    assert share_off(replayed(), {"1": errors(0.01, calls=2)}) is None


def test_the_chart_draws_the_band_over_the_modelled_part_only():
    band = {trace.name: trace for trace in context_timeline(made(), forecast=FORECAST).data}
    high, low = band["band of 95 % of forecasts"], band["lower end of the forecasts"]
    assert high.fill == "tonexty"
    assert min(high.x) == 9  # steps count from 1
    assert all(top > bottom for top, bottom in zip(high.y, low.y, strict=True))
    assert "band of 95 % of forecasts" not in [trace.name for trace in context_timeline(made()).data]
