"""The estimator page in a real browser."""

import re

import pytest

from tests.browser.conftest import drawn, wait
from tests.browser.looks import check_looks


@pytest.fixture
def visit(open_page, sessions):
    """Opens the page of a long session and stays until the job has measured it."""

    def opener():
        page = open_page()
        page.goto(sessions("long-coding") + "estimator")
        page.wait_for_selector("#scatter")
        drawn(page)
        return page

    return opener


@pytest.mark.long
def test_it_is_accessible_and_fits(visit):
    """What most pages show, `test_looks.py` holds to the same."""
    check_looks(visit(), "estimator", full_page=True)


def test_no_table_has_to_be_scrolled_sideways_on_a_narrow_screen(visit):
    page = visit()
    page.set_viewport_size({"width": 320, "height": 800})
    wide = "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText.slice(0, 80))"
    assert page.eval_on_selector_all(".table-wrap", wide) == []


def test_arrow_keys_read_the_calls_and_enter_opens_one(visit):
    page = visit()
    page.focus("[data-plot]")
    page.keyboard.press("Home")
    wait(page, "/^step 1: recorded [0-9,]+, estimated/.test(document.getElementById('announce').textContent)")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"steps\?at=2$"))


def test_the_figure_opens_as_a_table_in_place(visit):
    page = visit()
    page.click("text=View as table")
    page.wait_for_selector("#table tbody tr")
    assert page.locator("#table tbody tr").count() == 50


def test_a_large_error_is_not_cut_on_a_narrow_screen(visit):
    page = visit()
    page.set_viewport_size({"width": 320, "height": 700})
    cell = page.locator(".errors-table td").nth(2)
    for words in ("+163.59\u00a0%", "+12,163.59\u00a0%"):
        cell.evaluate("(cell, words) => (cell.textContent = words)", words)
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), words
