"""The rule page: after a setting was saved, by keys, and on a narrow screen."""

import re

from guard_core.recordings.formats import native
from tests.browser.conftest import followed
from tests.browser.looks import FITS
from tests.builders import transcript


def test_the_heading_of_a_saved_setting_is_below_the_bar(page, served):
    answer = served.upload("rule.jsonl", native.write(transcript()))
    page.goto(followed(served, answer.headers["location"]) + "rule")
    page.fill("[name='set.max_output_tokens']", "91000")
    page.click("text=Save for all Claude Code sessions")
    page.wait_for_url("**#set-title")
    page.get_by_text("Saved for all sessions of Claude Code in this project: max output tokens 91,000").wait_for()
    bar = page.locator(".topbar").bounding_box()
    heading = page.locator("#set-title").bounding_box()
    assert heading["y"] >= bar["y"] + bar["height"]


def test_the_check_goes_through_steps_and_compactions_by_keys(page, served):
    answer = served.upload("rule.jsonl", native.write(transcript()))
    page.goto(followed(served, answer.headers["location"]) + "rule?at=2")
    for key, at in {"j": 3, "k": 2, "]": 4}.items():
        page.keyboard.press(key)
        page.wait_for_url(re.compile(rf"at={at}#flow"))
    assert page.locator(".rule-hypotheses li").count(), "formulas that explain the compactions, as long as they may be"
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate(FITS)
