"""The trend picture of a row: what it keeps, and what it says to those who do not see it."""

import numpy as np

from inspector.figures.sparkline import MOST_POINTS, Trend, sparkline, trend, words


def made(tokens, fired=(), overflow=(), window=100):
    steps = np.arange(len(tokens))
    flags = (np.isin(steps, chosen).astype(np.int64) for chosen in (fired, overflow))
    return trend(np.array(tokens, dtype=np.int64), *flags, threshold=80, window=window)


def test_a_long_session_keeps_its_peak_and_its_marks():
    tokens = [10] * 1_000
    tokens[777] = 99
    line = made(tokens, fired=[3, 400], overflow=[777])
    assert len(line.tokens) == MOST_POINTS
    assert max(line.tokens) == 99
    assert (len(line.compactions), len(line.overflows)) == (2, 1)


def test_a_short_session_has_one_point_for_every_step():
    assert made([1, 2, 3]).tokens == (1, 2, 3)


def test_window_and_peak_are_both_in_the_picture():
    shown = sparkline(made([10, 250], overflow=[1]))
    heights = [float(point.split(",")[1]) for point in shown.line.split()]
    assert 0 < min(heights) < float(shown.window) < float(shown.threshold) < shown.height


def test_one_step_is_drawn_in_the_middle_and_none_is_not_drawn():
    assert sparkline(made([10])).line.startswith("84.0,")
    empty = sparkline(made([]))
    assert (empty.line, empty.area) == ("", "")


def test_a_policy_without_a_threshold_has_no_threshold_line():
    assert sparkline(Trend((5,), threshold=-1, window=10)).threshold == ""


def test_the_picture_is_told_in_words():
    sentence = words(made([10, 250], overflow=[1]), 2, 250, [], 100)
    assert sentence == "Prompt tokens over 2 steps: peak 250, 250 % of the window of 100; no compaction; it overflows."
