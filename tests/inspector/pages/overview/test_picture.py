"""The main chart as a plain picture, from hand-made columns."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
from django.template.loader import render_to_string

from inspector.pages.overview.picture import context_picture
from tests.inspector.pages.overview.test_figure import dense, made


def kinds(data):
    return {path.kind: path for path in context_picture(data).paths}


def test_it_draws_the_recording_the_replay_and_the_marks():
    drawn = kinds(made())
    assert list(drawn) == ["window", "threshold", "replayed", "recorded", "compactions", "overflows"]
    assert drawn["replayed"].name == "replayed prompt tokens (modelled)"
    assert drawn["recorded"].d.count("L") == 41  # forty steps, and the edges of the first and the last


def test_of_many_compactions_it_draws_the_edges_and_says_how_many():
    drawn = kinds(dense())
    assert {"recorded-lowest", "recorded-peaks", "ticks"} <= drawn.keys()
    assert "compactions" not in drawn
    assert drawn["ticks"].name == "250 compactions"
    assert drawn["recorded-peaks"].d.count("L") <= 103


def test_it_is_short_for_any_session():
    assert sum(len(path.d) for path in context_picture(made(50_000)).paths) < 20_000


def test_a_replay_begins_where_it_differs():
    assert kinds(made())["replayed"].d.startswith(
        "M175 "
    )  # the left edge of the last step that is the same, the eighth of forty
    same = made()
    assert "replayed" not in kinds(replace(same, replayed=replace(same.replayed, divergence=None)))


def test_without_counts_the_estimate_is_drawn_under_its_own_name():
    data = made(replayed=False)
    data.recorded[:] = np.nan
    shown = kinds(data)
    assert shown["estimated"].name == "estimated prompt tokens"
    assert "recorded" not in shown


def test_levels_that_are_near_each_other_keep_their_words_apart():
    data = made(replayed=False)
    data.threshold[:] = 199_000
    window, threshold = context_picture(data).levels
    assert abs(int(window.y) - int(threshold.y)) >= 13
    assert (window.text, threshold.text) == ("window 200k", "ContextGuard threshold 199k")


def test_a_threshold_that_changes_is_drawn_and_named_at_each_of_its_values():
    data = made(replayed=False)
    data.threshold[:10], data.threshold[10:] = 150_000, 90_000
    picture = context_picture(data)
    first, second = next(path.d for path in picture.paths if path.kind == "threshold").split("M")[1:]
    assert (first.split(" ")[0], first.split("H")[1]) == ("0", "250")
    assert (second.split(" ")[0], second.split("H")[1]) == ("250", "1000")
    assert [level.text for level in picture.levels] == [
        "window 200k",
        "ContextGuard threshold 150k",
        "ContextGuard threshold 90k",
    ]


def test_a_session_without_steps_has_no_picture():
    assert context_picture(made(0, replayed=False)) is None


def test_text_that_is_not_ours_stays_text():
    context = {"picture": context_picture(made()), "id": "timeline", "label": '<script>"&'}
    text = render_to_string("inspector/_picture.html", context)
    assert "<script>" not in text
    ElementTree.fromstring(text)
