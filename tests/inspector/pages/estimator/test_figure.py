"""The scatter figure of recorded over estimated tokens."""

import json

import numpy as np

from inspector.pages.estimator.figure import MOST_POINTS, RATIOS, real_against_heuristic


def figure(count=50):
    heuristic = np.linspace(2_000, 60_000, count).astype(int)
    return real_against_heuristic(list(range(count)), (heuristic * 2).tolist(), heuristic.tolist())


def test_each_call_is_a_point_that_knows_its_step():
    calls = figure().data[-1]
    assert len(calls.x) == len(calls.y) == len(calls.customdata) == 50
    assert (calls.y[7], calls.customdata[7]) == (2 * calls.x[7], 8)


def test_a_guide_line_has_its_ratio_all_along():
    guides = figure().data[:-1]
    for ratio, line in zip(RATIOS, guides, strict=True):
        assert np.allclose(np.array(line.y) / np.array(line.x), ratio)


def test_every_label_lies_inside_the_axes():
    layout = figure().layout
    for item in layout.annotations:
        assert layout.yaxis.range[0] <= item.y <= layout.yaxis.range[1] + 1e-9
        assert item.x <= layout.xaxis.range[1] + 1e-9
    assert {item.text for item in layout.annotations} >= {"1×", "2×"}


def test_of_many_calls_some_are_drawn_the_first_and_the_last_among_them():
    drawn = figure(5_000).data[-1]
    assert len(drawn.x) == MOST_POINTS
    assert (drawn.customdata[0], drawn.customdata[-1]) == (1, 5_000)


def test_a_session_of_one_call_can_be_drawn():
    assert json.loads(real_against_heuristic([0], [100], [40]).to_json())["data"]
