"""The jobs of a person with one session, each from its first click to its answer: on a real recording, where one is at
hand, and on a long one, which `make test` leaves out.

`STEPS` is the length of the long one; `make soak` takes 50,000.
"""

import os
import re

import pytest

from guard_core.recordings.formats import native
from tests.big_sessions import big_session
from tests.browser.conftest import drawn, followed, nodes, wait
from tests.plugins.tiers import mostly_long
from tests.services.databases import ROOT
from tests.waiting import until

REAL = ROOT.parent / "shared/samples/claude-code/long-2-compactions.jsonl"
STEPS = int(os.environ.get("STEPS", "5000"))
MOST_NODES = 2_000


@pytest.fixture(scope="module")
def known(served):
    """The address of each session, opened on the first use, and words that it holds."""
    addresses = {}

    def address(name: str) -> tuple[str, str]:
        is_real = name == "usual" and REAL.exists()
        if name not in addresses:
            steps = STEPS if name == "long" else 400
            content = REAL.read_bytes() if is_real else native.write(big_session(steps, max(steps // 200, 3)))
            addresses[name] = followed(served, served.upload(f"{name}.jsonl", content).headers["location"])
        return addresses[name], "option 1" if is_real else "Do the orders have the same problem?"

    return address


@pytest.fixture(params=mostly_long(["usual", "long"], short=["usual"]))
def session(request, known):
    return known(request.param)


def test_the_first_screen_says_what_happened_what_it_cost_and_what_would_have_avoided_it(page, known):
    address, _ = known("usual")

    def answered() -> bool:
        page.goto(address)
        drawn(page)
        return "Other settings are being replayed" not in page.inner_text("#answers")

    until(answered)
    rows = page.locator("#answers dt, #answers dd")
    assert all(box["y"] + box["height"] <= 900 for box in (row.bounding_box() for row in rows.all()))
    cost = page.locator("#answers dd").nth(1)
    lost = page.locator("#answers dd").nth(2).inner_text()
    compaction = re.search(r"ompaction (\d+)", lost)
    assert compaction is None or f"Compaction {compaction[1]} " in cost.inner_text()
    cost.locator("summary").click()
    assert "compactions saved" in cost.inner_text() or "compactions cost" in cost.inner_text()


def test_why_it_compacted_here(page, session):
    address, _ = session
    page.goto(address)
    drawn(page)
    assert page.locator(".verdict-sentence").inner_text()
    page.keyboard.press("2")
    page.wait_for_url(re.compile("steps"))
    page.locator("#step").wait_for()
    before = page.get_attribute("#step", "data-at")
    page.keyboard.press("]")
    wait(page, "before => document.getElementById('step').dataset.at !== before", before)
    page.locator("#step .badge-compaction").first.wait_for()
    assert re.search(r"\d", page.locator(".inequality").first.inner_text())
    values, sources = page.locator(".term-value"), page.locator(".terms .source")
    assert values.count() >= sources.count() > 0
    assert nodes(page) < MOST_NODES


def test_what_the_model_saw_and_what_was_lost(page, session):
    address, words = session
    page.goto(address)
    page.keyboard.press("3")
    page.wait_for_url(re.compile("/c/1/"))
    page.keyboard.press("f")
    page.wait_for_url(re.compile("show="))
    page.keyboard.press("j")
    page.locator("[data-read]:focus").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/messages/|/part/"))
    page.goto(address + "facts")
    page.fill("#facts-q", words)
    page.press("#facts-q", "Enter")
    page.locator("#lane svg").first.wait_for()
    assert re.search("step|request", page.locator("#lane").inner_text())
    assert nodes(page) < MOST_NODES


def test_where_the_tokens_go_and_how_good_the_estimate_is(page, session):
    address, _ = session
    page.goto(address + "steps?at=20")
    page.keyboard.press("c")
    page.wait_for_url(re.compile(r"context\?at=20"))
    page.keyboard.press("j")
    page.wait_for_url(re.compile(r"context\?at=21"))
    assert nodes(page) < MOST_NODES
    page.locator("a.context-tile, .context-tile a").first.click()
    page.wait_for_url(re.compile("steps|messages"))
    page.keyboard.press("9")
    page.wait_for_url(re.compile("estimator"))
    drawn(page)
    assert "%" in page.locator("main").inner_text()
    assert nodes(page) < MOST_NODES


def test_what_the_settings_should_be(page, session):
    address, _ = session
    page.goto(address)
    drawn(page)
    page.keyboard.press("w")
    page.select_option("#set-policy", "codex")
    page.wait_for_url(re.compile("policy=codex"))
    page.locator("#comparison-title").wait_for()
    page.locator(".replay-results a", has_text="Compare").first.or_(page.locator("a[href*='/compare?']").first).click()
    page.wait_for_url(re.compile("/compare"))
    drawn(page)
    assert re.search("diverge at step|same requests", page.locator("main").inner_text())
    page.goto(address + "?policy=codex")
    page.get_by_role("link", name="Which setting would have avoided overflows?").click()
    page.wait_for_url(re.compile("/sweeps/new"))
    page.wait_for_load_state()
    with page.expect_response(re.compile("/sweeps/new.*policy=contextguard")):
        page.select_option("#policy", "contextguard")
    page.locator("#axis1 option[value=buffer]").wait_for(state="attached")
    page.fill("#values1", "10%, 30%")
    page.get_by_role("button", name="Start the sweep").click()
    page.locator("#recommended").wait_for()
    assert page.locator("#recommended").inner_text()
    assert nodes(page) < MOST_NODES
