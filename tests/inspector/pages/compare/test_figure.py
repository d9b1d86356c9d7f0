"""The chart of a comparison, from hand-made columns."""

import json

import numpy as np
import plotly.graph_objects as go

from inspector.figures.plain import plain_figure
from inspector.pages.compare.figure import SideLine, comparison_figure


def lines(steps=5_000):
    tokens = np.arange(steps, dtype=np.int64) % 900 * 200 + 1_000
    fired = np.arange(900, steps, 900)
    return [SideLine("A: <b>x</b>%{y}", tokens, fired), SideLine("B: y", tokens[: steps // 2], fired[:0])]


def test_every_name_and_value_of_it_is_one_that_plotly_knows():
    figure = comparison_figure(lines(), 7)
    written = json.loads(go.Figure(figure).update_layout(template=go.layout.Template()).to_json())
    del written["layout"]["template"]
    assert json.loads(json.dumps(plain_figure(figure), allow_nan=False)) == written


def test_a_long_side_has_few_points_its_compactions_among_them():
    line, marks, short, none = comparison_figure(lines(), None)["data"]
    assert len(line["x"]) <= 1_200
    assert set(marks["x"]) <= set(line["x"])
    assert marks["x"].tolist() == [901, 1_801, 2_701, 3_601, 4_501]  # the steps count from 1
    assert short["x"][-1] == 2_500
    assert not len(none["x"])


def test_a_title_is_text_in_the_legend():
    assert "<b>" not in json.dumps(plain_figure(comparison_figure(lines(), 7)))


def test_a_side_without_a_step_is_an_empty_line():
    empty = np.array([], dtype=np.int64)
    assert plain_figure(comparison_figure([SideLine("A", empty, empty)], None))["data"][0]["x"] == []
