"""What a screen reader is given to say when a part of a page is replaced: what the answer shows, and no more."""

import os
import signal
from itertools import pairwise
from urllib.parse import urlencode, urlparse

from tests.browser.conftest import drawn, followed, wait
from tests.browser.test_growing_session import grown
from tests.services.server import held_worker

SAID = "words => document.getElementById('announce').textContent.includes(words)"
# Every change of the texts that are read out by themselves, from the moment at which this is run.
HEAR = """() => {
  window.heard = [];
  const live = "[role=status], [role=alert], [aria-live=polite]";
  new MutationObserver((changes) => changes.forEach(({ target }) => {
    const region = (target.closest ? target : target.parentElement)?.closest(live);
    if (region?.textContent.trim()) window.heard.push(region.textContent.trim());
  })).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_a_changed_setting_says_what_the_replay_would_have_done(page, sessions):
    page.goto(sessions("timing-gap"))
    drawn(page)
    page.fill("#set-window", "100000")
    page.keyboard.press("Enter")
    wait(page, SAID, "Replayed under ContextGuard")
    said, caption = (page.locator(place).inner_text().split() for place in ("#announce", "#timeline figcaption"))
    assert said == caption


def test_a_filter_of_the_list_says_which_sessions_are_left(page, sessions):
    sessions("timing-gap")
    page.goto("/")
    page.get_by_label("Title, model, agent or format").fill("Timing gap")
    wait(page, SAID, "Sessions 1 to 1 of 1")
    page.get_by_label("Title, model, agent or format").fill("no such title")
    wait(page, SAID, "No session matches")


def test_a_search_says_how_many_matches_there_are(page, sessions):
    page.goto(sessions("long-coding") + "search?q=test")
    page.get_by_label("Words in any message").fill("tenant manager")
    page.keyboard.press("Enter")
    wait(page, SAID, "match")


def test_the_list_that_goes_anywhere_says_what_enter_opens(page):
    page.goto("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("trigg")
    wait(page, SAID, "Enter opens Triggers")
    page.keyboard.type("er of nothing")
    wait(page, SAID, "No results for")


def test_the_progress_of_a_sweep_is_said_now_and_then_and_its_end_as_well(page, served, sessions):
    key = sessions("timing-gap").split("/")[2]
    form = {"session": key, "policy": "contextguard", "axis1": "buffer", "values1": "0, 10%, 40%"}
    worker = held_worker(served)
    try:
        answer = served.post("/sweeps/new", urlencode(form).encode())
        page.goto(urlparse(answer.headers["location"]).path)
        page.evaluate(HEAR)
        wait(page, SAID, "0 of 3 replays")
        swapped = page.locator("#sweep").element_handle()
        wait(page, "old => !old.isConnected", swapped)  # the same words came once more
        assert page.evaluate("window.heard") == [page.locator("#announce").inner_text()]
    finally:
        os.kill(worker, signal.SIGCONT)
    page.locator("#recommended").wait_for()
    wait(page, SAID, page.locator("#sweep .verdict-sentence").inner_text())


def test_new_steps_are_said_now_and_then_and_counted_each(page, served):
    def grow(turns: int) -> str:
        return served.upload("said.jsonl", grown(turns, "said")).headers["location"]

    path = followed(served, grow(2))
    grow(3)
    page.goto(path)
    page.evaluate(HEAR.replace("region.textContent.trim());", "performance.now());"))  # when, instead of what
    for turns in range(4, 10):
        grow(turns)
        page.locator("[data-growth-words]", has_text=f"{turns - 3} new step").wait_for()
    wait(page, SAID, "6 new steps.")
    heard = page.evaluate("window.heard")
    assert len(heard) > 1
    assert min(later - earlier for earlier, later in pairwise(heard)) > 9_900  # milliseconds; a pause is of ten seconds
