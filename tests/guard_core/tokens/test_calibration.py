"""The calibrated estimate: the heuristic scaled by the last known error, never below the provider's count."""

import math

import numpy as np
import pytest

from guard_core.tokens.calibration import DEFAULT, DEFAULT_WITH_REAL, RATIO, Factors, estimate, estimate_run

FACTORS = Factors()
CASES = [
    # heuristic, real, last → tokens, factor, source
    (90_009, 140_000, 70_000, 180_018, 2.0, RATIO),  # the timing gap
    (150_008, 100_000, 50_000, 300_016, 2.0, RATIO),
    (100, 0, 0, 250, 2.5, DEFAULT),
    (101, 0, 50, 252, 2.5, DEFAULT),  # a heuristic without a count is ignored
    (100, 200_000, 0, 200_000, 2.5, DEFAULT_WITH_REAL),
    (500, 300, 600, 500, 1.0, RATIO),  # the floor
    (1_000, 10_000, 1_000, 10_000, 5.0, RATIO),  # the cap, and the count above it
]


@pytest.mark.parametrize(("heuristic", "real", "last", "tokens", "factor", "source"), CASES)
def test_it_scales_and_never_undercounts(heuristic, real, last, tokens, factor, source):
    estimated = estimate(heuristic, real, last, FACTORS)
    assert (estimated.tokens, estimated.factor, estimated.source) == (tokens, factor, source)


def test_the_raw_ratio_is_kept_beside_the_clamped_one():
    estimated = estimate(100, 900, 100, FACTORS)
    assert (estimated.raw, estimated.factor) == (9.0, 5.0)
    assert math.isnan(estimate(100, 0, 0, FACTORS).raw)


def test_a_run_gives_the_same_numbers():
    columns = (np.array(column) for column in list(zip(*CASES, strict=True))[:3])
    estimated = estimate_run(*columns, FACTORS)
    assert estimated.tokens.tolist() == [case[3] for case in CASES]
    assert estimated.factor.tolist() == [case[4] for case in CASES]
    assert estimated.source.tolist() == [case[5] for case in CASES]
