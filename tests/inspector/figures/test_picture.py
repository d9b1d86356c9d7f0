"""Charts as plain pictures: of a comparison and of the estimator."""

import re

import numpy as np

from inspector.pages.compare.figure import SideLine, comparison_picture
from inspector.pages.estimator.figure import scatter_picture

NONE = np.array([], dtype=np.int64)


def test_a_comparison_has_a_line_and_marks_for_each_side_over_one_axis():
    long, short = (
        SideLine("A recorded", np.arange(1, 101) * 100, np.array([50])),
        SideLine("B", np.arange(1, 51) * 100, NONE),
    )
    picture = comparison_picture([long, short], parts_at=9)
    paths = {path.kind: path for path in picture.paths}
    assert list(paths) == ["recorded", "recorded picture-marks", "replayed", "window"]
    assert paths["recorded"].d.rsplit("L", 1)[1].startswith("1000 ")
    assert paths["replayed"].d.rsplit("L", 1)[1].startswith("500 ")
    assert paths["recorded picture-marks"].is_dots
    assert not paths["replayed"].is_dots
    assert paths["window"].d == "M95 0V220"
    assert (picture.left, picture.right) == ("step 1", "step 100")


def test_a_comparison_without_steps_has_no_picture():
    assert comparison_picture([SideLine("A", NONE, NONE), SideLine("B", NONE, NONE)], None) is None


def test_unknown_counts_break_the_line_of_a_side():
    tokens = np.array([100.0, np.nan, 100.0, 100.0])
    (path,) = comparison_picture([SideLine("A", tokens, NONE)], None).paths
    assert path.d.count("M") == 2


def test_each_point_of_the_estimator_is_a_dot_within_the_picture():
    picture = scatter_picture([0, 1, 2], [1_000, 2_000, 40_000], [900, 500, 30_000])
    dots = next(path for path in picture.paths if path.is_dots)
    places = [tuple(map(float, place)) for place in re.findall(r"M([-\d.]+) ([-\d.]+)h0", dots.d)]
    assert len(places) == 3
    assert all(0 < x < 1_000 and 0 < y < 220 for x, y in places)
    assert places[1][0] < places[0][0] < places[2][0]
    assert places[0][1] > places[1][1] > places[2][1]


def test_lines_of_equal_ratio_are_cut_at_the_edges_of_the_picture():
    picture = scatter_picture([0, 1], [1_000, 40_000], [900, 30_000])
    lines = [path for path in picture.paths if not path.is_dots]
    assert lines[0].name == "1×"
    for path in lines:
        numbers = [float(number) for number in re.findall(r"[-\d.]+", path.d)]
        assert all(-0.1 <= number <= 1_000.1 for number in numbers)
        assert all(-0.1 <= number <= 220.1 for number in numbers[1::2])
