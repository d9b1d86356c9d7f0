"""The overview strip."""

import numpy as np

from inspector.pages.session.strip import strip
from tests.inspector.pages.overview.test_figure import made


def test_it_is_a_handful_of_short_paths_for_any_length():
    shown = strip(made(50_000))
    assert sum(len(value) for value in shown.values() if isinstance(value, str)) < 25_000


def test_the_cursor_stands_in_the_middle_of_its_step():
    assert strip(made(40), at=0)["cursor"] == "1.250"
    assert strip(made(40))["cursor"] is None


def test_every_compaction_has_its_line():
    assert strip(made(40))["compactions"] == "M512.5 0V56"


def test_a_session_without_calls_has_no_strip():
    assert strip(made(0, replayed=False)) == {"empty": True}


def test_where_nothing_was_counted_the_estimates_are_drawn():
    data = made(10, replayed=False)
    data.recorded[:] = np.nan
    shown = strip(data)
    assert shown["estimated"].count("L") == 11  # ten steps and the edges of the first and the last
    assert shown["line"] == ""
    assert shown["label"].startswith("Estimated prompt tokens over")


def test_a_single_call_fills_the_strip():
    shown = strip(made(1, replayed=False))
    assert shown["line"].startswith("M0 ")
    assert "L1000 " in shown["line"]


def test_an_unknown_value_breaks_the_line():
    data = made(10, replayed=False)
    data.recorded[4] = data.requests[4] = np.nan
    line = strip(data)["line"]
    assert line.count("M") == 2
    assert "L400 " in line
    assert "M500 " in line


def test_counts_and_estimates_are_never_one_line():
    data = made(10, replayed=False)
    data.recorded[:4] = np.nan
    shown = strip(data)
    assert shown["line"].startswith("M400 ")
    assert "L450 " in shown["estimated"]  # to the first that was counted
    assert "L550 " not in shown["estimated"]
    assert shown["label"].startswith("Recorded and estimated prompt tokens")


def test_the_replayed_side_has_its_own_line_and_marks():
    shown = strip(made(40), side="replayed")
    assert shown["modelled"]
    assert shown["line"] != strip(made(40))["line"]
    assert shown["compactions"] == "M212.5 0V56"
    assert shown["label"] == "Replayed prompt tokens (modelled) over 40 steps, 1 compaction marked"


def test_many_matches_are_one_mark_a_column_and_a_single_one_keeps_its_own():
    dense = np.arange(10_000)
    shown = strip(made(50_000), matched=np.append(dense, 40_000))
    assert shown["matches"].count("M") == 400 * 10_000 // 50_000 + 1
    assert shown["matches"].split()[-2] == "M800"
    assert "10,001 steps with matches of the search" in shown["label"]


def test_without_a_search_there_are_no_matches():
    assert strip(made(40))["matches"] == ""
    assert "matches" not in strip(made(40))["label"]


def test_each_step_has_the_threshold_that_was_in_force_there():
    data = made(40)
    data.threshold[:] = np.where(np.arange(40) < 20, 90_000, 60_000)
    first, second = strip(data)["threshold"].split("M")[1:]
    assert (first.startswith("0 "), first.endswith("H500")) == (True, True)
    assert (second.startswith("500 "), second.endswith("H1000")) == (True, True)
    assert strip(data, zoom=range(20, 40))["threshold"].count("M") == 1
