"""The question for a window, by hand: beside the verdict, with and without a mistake, undone again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall
from tests.browser.looks import check_looks
from tests.builders import model, session, user
from tests.plugins.tiers import mostly_long

CALL = ModelCall(at=1, response=1, prompt_tokens=60_000, model="model-of-our-own")
OPEN = replace(session(user("hello"), model("here"), title="open window", calls=(CALL,), model=CALL.model), window=None)


@pytest.fixture(scope="module")
def asked(served) -> str:
    """The address of a session whose window nobody knows."""
    return served.upload("open.json", native.write(OPEN)).headers["location"]


@pytest.mark.long
def test_the_question_is_accessible_and_fits_with_a_mistake_as_well(page, asked):
    """What most pages show, `test_looks.py` holds to the same."""
    page.goto(asked + "?window_typed=many")
    assert page.locator("#window-question").get_by_role("alert").is_visible()
    check_looks(page, "window")


def test_one_field_sets_the_window_and_one_button_takes_it_back(open_page, asked):
    page = open_page()
    page.goto(asked)
    page.get_by_label("Set it for all sessions of model-of-our-own").fill("100k")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator("#window-question").get_by_role("status").inner_text().startswith("Window 100,000 tokens")
    with page.expect_navigation():
        page.get_by_role("button", name="Undo").click()
    assert "Window unknown" in page.locator("#window-question").inner_text()


@pytest.mark.parametrize("width", mostly_long([1440, 360], short=[360]))
def test_what_was_set_is_not_hidden_by_the_header(open_page, asked, width):
    page = open_page(width, 500)
    for address in ("?window_typed=many#window-question", "?window_typed=several#window-question"):
        page.goto(asked + address)
        assert below_the_header(page)
    page.goto(asked)
    page.get_by_label("Set it for all sessions of model-of-our-own").fill("100k")
    for button in ("Set", "Undo"):
        assert below_the_header(page)
        with page.expect_navigation():
            page.get_by_role("button", name=button, exact=True).click()


def below_the_header(page) -> bool:
    """Is the question not covered by what stays at the top."""
    header, question = (page.locator(name).bounding_box() for name in (".topbar", "#window-question"))
    return question["y"] >= header["y"] + header["height"]


@pytest.mark.parametrize("width", mostly_long([1440, 360], short=[360]))
def test_a_window_that_is_none_is_said_where_it_was_typed(open_page, sessions, width):
    page = open_page(width, 700)
    page.goto(sessions("timing-gap"))
    page.locator(".window-edit summary").click()
    page.locator(".window-form").get_by_label("Context window").fill("many")
    with page.expect_navigation():
        page.locator(".window-form").get_by_role("button", name="Save").click()
    words = page.locator("#window-stated-error")
    assert words.inner_text() == "A window is a number of tokens such as 200000, 200k or 1M, not 'many'."
    assert is_seen(page, words)
    assert page.locator("#window-stated").input_value() == "many"


def test_a_wrong_setting_of_a_replay_is_said_beside_the_button_too(open_page, sessions):
    page = open_page(360, 700)
    page.goto(f"{sessions('timing-gap')}?policy=codex")
    page.locator("#set-window").fill("many")
    button = page.get_by_role("button", name="Replay", exact=True)
    button.click()
    words = page.locator("#settings [data-fresh=error]")
    words.get_by_text("Not replayed: correct Context window.").wait_for()
    assert is_seen(page, words)


def is_seen(page, words) -> bool:
    """Are these words on the screen, and not covered by what stays at its top."""
    box = words.bounding_box()
    middle = [box["x"] + 5, box["y"] + box["height"] / 2]
    return words.evaluate("(words, [x, y]) => words.contains(document.elementFromPoint(x, y))", middle)
