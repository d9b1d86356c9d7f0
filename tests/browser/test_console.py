"""The browser has nothing to complain about, on any page of a session and whatever is done there."""

import re

import pytest

from tests.browser.conftest import drawn, wait

PAGES = [
    "",
    "?window=100000&side=replayed",
    "?cap=many",
    "?table=1",
    "steps?at=49",
    "steps?at=40&side=replayed&window=100000",
    "steps?at=9999",
    "c/1/",
    "c/1/?side=replayed",
    "estimator",
    "search?q=pods",
]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_a_session_opens_without_a_word_in_the_console(page, sessions, path):
    page.goto(sessions("timing-gap") + path)
    if page.locator("[data-figure]").count():
        drawn(page)
    page.wait_for_load_state("networkidle")
    assert page.seen.console == []


def test_changing_settings_back_and_forth_leaves_nothing_in_the_console(page, sessions):
    page.goto(sessions("timing-gap"))
    drawn(page)
    for field, typed in (("window", "5"), ("window", "64000"), ("buffer", "x"), ("buffer", "30%"), ("floor", "9")):
        page.fill(f"#set-{field}", "")
        page.locator(f"#set-{field}").press_sequentially(typed, delay=120)
    wait(page, "document.querySelector('[data-fresh=error]').innerText.includes('floor')")
    page.fill("#set-floor", "")
    page.wait_for_url(re.compile(r"window=64000&buffer=30%25$"))
    page.click("text=View as table")
    page.wait_for_selector(".chart-table")
    page.click("#what-if >> text=Reset")
    page.wait_for_url(re.compile(r"/s/[0-9a-f-]{36}/$"))
    page.wait_for_load_state("networkidle")
    assert page.seen.console == []
