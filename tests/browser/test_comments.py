"""Commenting in a browser: on a step, seen in the list, on the strip and at the part of a message."""

from __future__ import annotations

import msgspec

from guard_core.recordings.formats import native
from tests.browser.conftest import followed, wait
from tests.browser.looks import check_looks
from tests.builders import bundled

LONG = "Here the agent read the same file again, although step 12 had it.\n\n" + "unbroken" * 30


def test_a_step_is_commented_on_and_the_pages_with_comments_are_accessible(page, served):
    own = msgspec.structs.replace(bundled("small-window"), title="Commented")
    base = followed(served, served.upload("commented.jsonl", native.write(own)).headers["location"])
    page.goto(f"{base}steps?at=3")
    panel = page.locator("#comments")
    panel.get_by_label("Name").fill("Ada")
    panel.get_by_label("New comment").fill(LONG)
    panel.get_by_role("button", name="Comment").click()
    page.wait_for_url("**/steps?at=3#comment-*")
    assert page.locator("article.comment:target").is_visible()
    assert page.locator("[data-step='3'] .step-comments").inner_text().strip().startswith("1")
    panel.locator("summary", has_text="Reply").click()
    panel.get_by_label("Reply").fill("It was cut from the request before.")
    panel.get_by_role("button", name="Reply").click()
    page.locator("article.is-answer").wait_for()
    page.emulate_media(media="print")  # what was said, and nothing to write with
    assert page.locator("article.is-answer").is_visible()
    for name in ("Comment", "Reply", "Resolve"):
        assert not panel.get_by_role("button", name=name, exact=True).is_visible()
    assert not panel.get_by_label("New comment").is_visible()
    page.emulate_media(media="screen")
    check_looks(page, "comments-step")
    page.goto(f"{base}c/1/")
    page.get_by_label("New comment").fill("Too early")
    page.get_by_role("button", name="Comment").click()
    page.wait_for_url("**#comment-*")
    page.get_by_role("button", name="Resolve").click()
    page.get_by_text("resolved").first.wait_for()
    page.goto(f"{base}comments")
    check_looks(page, "comments-list", full_page=True)


def test_what_is_written_stays_with_its_step_until_it_is_stored(page, sessions):
    address = sessions("long-coding") + "steps?at=21"
    field = page.get_by_label("New comment")
    page.goto(address)
    page.wait_for_selector('.step[aria-current="step"]')
    field.fill(LONG)
    page.get_by_role("link", name="next step").first.click()
    page.wait_for_selector("#step[data-at='22']")
    assert field.input_value() == ""
    page.get_by_role("link", name="previous step").first.click()
    page.wait_for_selector("#step[data-at='21']")
    assert field.input_value() == LONG
    page.route("**/comments*", lambda route: route.fulfill(status=503, body="away"))
    page.get_by_role("button", name="Comment").click()
    page.get_by_text("away").wait_for()
    page.seen.console.clear()  # the browser notes the status itself
    page.unroute("**/comments*")
    page.goto(address)
    wait(page, "text => document.getElementById('comment-new').value === text", LONG)
    page.get_by_role("button", name="Comment").click()
    page.wait_for_url("**#comment-*")
    assert field.input_value() == ""
