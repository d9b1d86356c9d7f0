"""The gallery in a real browser: played, filtered, opened; a scenario made; a step read; also without JavaScript."""

from __future__ import annotations

import re

import pytest

from inspector.pages.gallery.presenter import PAGE
from tests.browser.conftest import nodes
from tests.browser.looks import check_looks
from tests.plugins.tiers import mostly_long

SESSION = re.compile(r"/s/[0-9a-f-]{36}/")
PAGES = {
    "gallery": "/gallery/?policy=contextguard&profile=current",
    "gallery-empty": "/gallery/?policy=contextguard&profile=tail&profile=fixed",
    "gallery-two": "/gallery/?policy=contextguard&profile=early&profile=current&show=failure&sort=-peak",
    "gallery-none": "/gallery/?policy=contextguard&profile=current&q=zebra",
    "gallery-new": "/gallery/new",
    "gallery-plan": "/gallery/new?from=Stress_200k_100Turns_MixedWorkload",
    "gallery-step": "/gallery/step",
    "gallery-later": "/gallery/step?scenario=Stress_200k_ToolHeavy&at=24",
}


@pytest.fixture(scope="module")
def played(chromium, served):
    """The tables of two choices are there."""
    page = chromium.new_page(base_url=served.origin)
    for profiles in (("current",), ("early", "current")):
        page.goto("/gallery/")
        for name in ("tail", "early", "current", "fixed"):
            page.get_by_label(name, exact=True).set_checked(name in profiles)
        page.get_by_role("button", name=re.compile(r"Run \d")).first.click()
        page.wait_for_selector("#gallery table")
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_long(PAGES, short=["gallery", "gallery-new", "gallery-step"]))
def test_it_is_accessible_and_fits_in_every_theme_and_at_every_width(page, played, name):
    """What most pages show, `test_looks.py` holds to the same."""
    page.goto(PAGES[name])
    check_looks(page, name)


def test_the_whole_table_fits_a_wide_window(page, played):
    page.goto(PAGES["gallery"])
    assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.table-wrap'))") <= 0
    assert page.locator("tbody tr").count() == PAGE
    assert nodes(page) < 2_000
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "q"


def test_a_failure_is_found_opened_and_explained(page, played):
    page.goto(PAGES["gallery"])
    page.locator(".filters a", has_text="loop").click()
    page.wait_for_url("**show=loop**")
    page.get_by_role("button", name="Open Stress_8k_HeavyToolDefinitions as a session").click()
    page.wait_for_url(SESSION)
    page.get_by_role("link", name="Steps").first.click()
    page.get_by_role("link", name="How one step works").click()
    page.wait_for_url("**/gallery/step?scenario=Stress_8k_HeavyToolDefinitions**")
    assert page.locator(".stage").count() == 9


def test_sorting_and_going_back_keep_the_table(page, played):
    page.goto(PAGES["gallery"])
    page.get_by_role("link", name="Peak").click()
    page.wait_for_selector('th[aria-sort="descending"]')
    page.go_back()
    page.wait_for_selector("th:not([aria-sort]) >> text=Peak")
    assert page.locator("tbody tr").first.inner_text().startswith("Stress_200k_NormalConversation")


def test_the_preview_follows_the_typing_and_the_session_is_made(page):
    page.goto("/gallery/new")
    page.get_by_label("Context window").fill("8k")
    page.locator(".outcome", has_text="20 compactions").wait_for()
    assert "window=8k" in page.url
    page.get_by_role("textbox", name="Turns").fill("5000")
    page.get_by_role("link", name="Turns is a whole number from 1 to 1,000").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("6")
    with page.expect_response(lambda answer: "Made" in answer.url):
        page.get_by_label("Name").fill("Made by hand")
    page.get_by_role("button", name="Create session").click()
    page.wait_for_url(SESSION)
    assert page.locator("h1").inner_text() == "Made by hand"


def test_a_step_is_read_with_the_keyboard(page):
    page.goto("/gallery/step?scenario=Stress_200k_ToolHeavy&at=21")
    page.keyboard.press("j")
    page.wait_for_url("**at=22")
    page.locator('a[href="#stage-5"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#stage-5")
    assert "given to the summariser" in page.locator("#stage-5").inner_text()


def test_it_works_without_javascript(open_page, played):
    page = open_page(java_script_enabled=False)
    page.goto("/gallery/")
    page.get_by_label("none", exact=True).check()
    page.get_by_label("contextguard", exact=True).uncheck()
    page.get_by_role("button", name=re.compile(r"Run \d")).first.click()
    page.wait_for_selector("#gallery table")
    page.goto("/gallery/new")
    page.get_by_label("Context window").fill("4k")
    page.get_by_role("button", name="Preview").click()
    assert "csrf" not in page.url
    assert "window 4,000" in page.locator("#preview h2").inner_text()
    page.get_by_role("button", name="Create session").click()
    page.wait_for_url(re.compile("/(s|imports)/"))
