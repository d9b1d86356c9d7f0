"""Settings of a replay as an address carries them."""

import pytest

from inspector.presenters.whatif import Choice, form, parse_choice


def test_no_settings_are_the_default():
    assert parse_choice({}) == (Choice(), {})
    assert Choice().query() == ""


def test_defaults_that_were_typed_are_left_out_of_the_address():
    choice, errors = parse_choice({"profile": "current", "policy": "contextguard", "buffer": "auto"})
    assert (choice, errors) == (Choice(), {})


@pytest.mark.parametrize(
    ("typed", "window"), [("200000", "200000"), ("200k", "200000"), ("1M", "1000000"), ("128,000", "128000")]
)
def test_a_window_can_be_typed_as_people_write_it(typed, window):
    assert parse_choice({"window": typed})[0].window == window


@pytest.mark.parametrize(
    ("name", "typed"),
    [("window", "12"), ("window", "lots"), ("window", "9" * 30), ("buffer", "120%"), ("cap", "nan"), ("factor", "-1")],
)
def test_a_value_that_is_not_allowed_is_left_out_and_explained(name, typed):
    choice, errors = parse_choice({name: typed, "floor": "1.2"})
    assert choice == Choice(floor="1.2")
    assert list(errors) == [name]


def test_unknown_names_are_answered_with_the_known_ones():
    _, errors = parse_choice({"policy": "magic", "profile": "newest"})
    assert "contextguard" in errors["policy"]
    assert "early" in errors["profile"]


def test_an_address_round_trips():
    choice = Choice(window="150000", buffer="10%", cap="3", profile="early", summary="share:high")
    query = dict(pair.split("=") for pair in choice.query()[1:].replace("%25", "%").replace("%3A", ":").split("&"))
    assert parse_choice(query)[0] == choice


def test_the_form_keeps_what_was_typed_beside_its_error():
    fields = form(Choice(), {"cap": "many"}, {"cap": "a number"}, {"cap": "5"})["fields"]
    cap = next(field for field in fields if field["name"] == "cap")
    assert (cap["value"], cap["error"], cap["placeholder"]) == ("many", "a number", "5")
