"""The browser has nothing to complain about, whatever is done on a page. That it opens without a word, every test of a
page asserts in its end (`open_page`)."""

import re

from tests.browser.conftest import drawn, wait


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
