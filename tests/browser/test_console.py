"""The browser has nothing to complain about, whatever is done on a page. That it opens without a word, every test of a
page asserts in its end (`open_page`)."""

import re

import pytest

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


@pytest.mark.parametrize(
    ("address", "field", "values"),
    [
        ("/", "#filter-q", ("a", "ab", "abc")),
        ("/triggers/", "#filter-since", ("2026-01-01", "2026-01-02", "2026-01-03")),
        ("/gallery/new", "[name=title]", ("a", "ab", "abc")),
    ],
)
def test_what_is_changed_while_an_answer_is_on_its_way_is_asked_for_behind_it(page, sessions, address, field, values):
    sessions("timing-gap")
    page.goto(address)
    page.evaluate("window.shown = []")
    page.evaluate("addEventListener('htmx:afterSwap', ({ detail }) => shown.push(detail.xhr.responseURL), true)")
    held = []
    page.route(re.compile(r"\?"), lambda route: route.fallback() if held else held.append(route))
    for value in values:
        page.fill(field, value)
        page.locator(field).blur()
        page.wait_for_timeout(400)  # for longer than the form waits for more
    with page.expect_request(lambda request: values[-1] in request.url):
        held[0].continue_()
    page.wait_for_url(re.compile(values[-1]))
    assert page.seen.console == []
    page.wait_for_load_state("networkidle")
    (shown,) = {url for url in page.evaluate("shown") if "?" in url}  # an answer has several parts
    assert re.search(rf"={values[-1]}(&|$)", shown), "the answer between is not shown"
