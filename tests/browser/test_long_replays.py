"""A replay that takes long, as a person sees it: progress, a cancel, what to do then."""

from __future__ import annotations

import re
from io import BytesIO

import pytest

from guard_core.simulator.big_files import write_claude_code
from tests.browser.conftest import followed
from tests.browser.looks import complaints
from tests.services.server import Running

STEPS = 3_000
SLOW = "?policy=codex&window=1009"  # each step compacts, at about a thousandth of a second: many looks at the progress


@pytest.fixture(scope="module")
def session(served: Running) -> str:
    out = BytesIO()
    write_claude_code(out, steps=STEPS, size=0, seed=9)
    return followed(served, served.upload("long.jsonl", out.getvalue()).headers["location"])


def test_a_replay_shows_progress_and_can_be_cancelled_changed_and_run_again(page, session):
    page.goto(session + SLOW)
    page.locator("progress").wait_for()
    page.get_by_text(re.compile(rf"[\d,]+ of {STEPS:,} steps replayed")).wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Replay cancelled.").wait_for()
    assert page.locator("progress").count() == 0
    assert page.get_by_label("Context window", exact=True).first.input_value() == "1009"
    assert complaints(page) == []
    page.wait_for_timeout(1_500)  # longer than a wait page takes to ask again
    assert page.get_by_text("Replay cancelled.").is_visible(), "nothing starts by itself"
    page.get_by_role("link", name="Run again").click()
    page.locator("progress").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Policy").select_option("none")
    page.get_by_role("button", name="Replay").click()
    page.locator(".verdict-sentence").wait_for()
    assert "policy=none" in page.url
