"""Decimation keeps what a decision turns on."""

import numpy as np

from guard_core.decimation import crossings, kept_steps, thinned

NONE = np.array([], dtype=np.int64)


def test_a_short_session_is_drawn_whole():
    assert list(kept_steps([np.arange(5.0)], NONE, NONE, 1, 4)) == [1, 2, 3]


def test_one_spike_among_fifty_thousand_steps_is_kept():
    values = np.zeros(50_000)
    values[31_337] = 7.0
    steps = kept_steps([values], NONE, NONE, 0, 50_000)
    assert 31_337 in steps
    assert len(steps) <= 2000


def test_compactions_and_both_ends_are_kept():
    rng = np.random.default_rng(1)
    must = np.array([5, 40_001, 49_990])
    steps = kept_steps([rng.random(50_000), rng.random(50_000)], must, NONE, 0, 50_000)
    assert set(must) <= set(steps)
    assert (steps[0], steps[-1]) == (0, 49_999)


def test_a_session_that_compacts_at_every_step_still_fits():
    everywhere = np.arange(50_000)
    assert len(kept_steps([np.ones(50_000)], everywhere, everywhere, 0, 50_000)) <= 2000


def test_steps_without_a_value_do_not_hide_the_others():
    values = np.full(10_000, np.nan)
    values[4321] = 1.0
    assert 4321 in kept_steps([values], NONE, NONE, 0, 10_000)


def test_a_crossing_is_kept_on_both_sides():
    values = np.array([1.0, 9.0, np.nan, 1.0, 1.0, 9.0])
    assert list(crossings(values, np.full(6, 5.0))) == [0, 1, 4, 5]


def test_thinning_keeps_first_and_last():
    few = thinned(np.arange(1000), 10)
    assert (few[0], few[-1], len(few)) == (0, 999, 10)
