"""The steps of a session that strip and chart show when they are zoomed."""

import math

import pytest
from django.test import RequestFactory

from inspector.pages.session.strip import strip
from inspector.pages.session.zoom import SMALLEST, around, moves, words, zoom_of
from tests.inspector.pages.overview.test_figure import made


def named(text: str, count: int = 1_000) -> range:
    return zoom_of(RequestFactory().get("/", {"zoom": text}), count)


@pytest.mark.parametrize("text", ["", "5", "a-b", "1-2-3", "-", "1234567890-2", "①-②"])
def test_an_address_without_steps_shows_all(text):
    assert named(text) == range(1_000)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("101-200", range(100, 200)),
        ("200-101", range(100, 200)),
        ("991-2000", range(1_000)),
        ("951-1050", range(900, 1_000)),
        ("5-5", range(4, 14)),
        ("0-0", range(10)),
    ],
)
def test_the_steps_of_an_address_are_within_the_session(text, steps):
    assert named(text) == steps
    assert named(words(steps, 1_000)) == steps


def test_of_a_short_session_all_steps_are_shown():
    assert named("2-3", 4) == range(4)
    assert [move["steps"] for move in moves(range(4), 4, None)] == [None] * 4


def test_each_key_leads_to_other_steps_and_zooming_in_keeps_the_step_that_is_shown():
    steps = {move["key"]: move["steps"] for move in moves(range(400, 600), 1_000, 590)}
    assert steps == {"A": range(350, 550), "D": range(450, 650), "S": range(390, 790), "W": range(540, 640)}


def test_what_would_change_nothing_has_no_steps():
    steps = {move["key"]: move["steps"] for move in moves(range(1_000), 1_000, None)}
    assert steps == {"A": None, "D": None, "S": None, "W": range(250, 750)}


def test_a_link_shows_the_steps_around_one():
    assert 5 in around(5, 50_000)
    assert words(around(25_000, 50_000), 50_000) == "24801-25200"
    assert words(around(3, 100), 100) == ""


def test_a_zoomed_strip_draws_its_steps_alone():
    shown = strip(made(1_000), at=150, commented=(5, 150), zoom=range(100, 200))
    assert (shown["first"], shown["last"], shown["left"], shown["width"]) == (101, 200, "10.000", "10.000")
    assert shown["line"].startswith("M0 ")
    assert shown["line"].rsplit("L", 1)[1].startswith("1000 ")
    assert shown["cursor"] == "50.500"
    assert shown["comments"].count("M") == 1
    assert "steps 101 to 200 of 1,000 steps" in shown["label"]


def test_the_cursor_is_not_shown_beside_the_steps():
    assert strip(made(1_000), at=5, zoom=range(100, 200))["cursor"] is None


@pytest.mark.parametrize("count", [21, 169, 4_999])
def test_zooming_in_ends_at_the_fewest_steps_and_as_many_times_out_are_all_of_them(count):
    shown, pressed = range(count), 0
    while (nearer := moves(shown, count, None)[3]["steps"]) is not None:
        shown, pressed = nearer, pressed + 1
    assert (len(shown), pressed) == (SMALLEST, math.ceil(math.log2(count / SMALLEST)))
    for _ in range(pressed):
        shown = moves(shown, count, None)[2]["steps"]
    assert words(shown, count) == ""
