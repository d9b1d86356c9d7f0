"""The six things a new user does, in a real browser, from an empty start to a shared what-if."""

import base64
import re
from pathlib import Path

import pytest

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from inspector.pages.shared.requests import PAGE
from tests.browser.conftest import drawn, shot, wait
from tests.services.server import running

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared/samples"
SESSION = re.compile(r"/s/[0-9a-f-]{36}/$")
DROP = """([name, text]) => {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  for (const type of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def recording(path: str, sample: str) -> tuple[str, bytes]:
    """A recording that an agent wrote, where it is at hand; else one of the project's own."""
    real = REAL / path
    if real.is_file():
        return real.name, real.read_bytes()
    return f"{sample}.jsonl", native.write(SAMPLES[sample].build())


def drop(page, name: str, content: bytes) -> None:
    page.evaluate(DROP, [name, base64.b64encode(content).decode()])


@pytest.fixture
def visitor(open_page, tmp_path):
    """Somebody who opens the application for the first time."""
    with running(tmp_path / "new") as server:
        page = open_page(server=server)
        page.goto("/")
        yield page


def test_1_an_empty_start_offers_samples_a_drop_zone_a_picker_and_paste(visitor):
    assert visitor.locator("form[action^='/samples/'] button").count() == 5
    assert visitor.locator("[data-drop]").is_visible()
    assert visitor.locator("input[type=file]").count() >= 1
    assert visitor.locator("textarea[name=text]").is_visible()
    shot(visitor, "1-empty-light")
    visitor.locator("form[action^='/samples/'] button").nth(1).click()
    visitor.wait_for_url(SESSION)


@pytest.mark.parametrize(
    ("path", "sample"),
    [
        ("claude-code/long-2-compactions.jsonl", "long-coding"),
        ("adk/session-camel-token-threshold-4-compactions.json", "timing-gap"),
    ],
)
def test_2_a_dropped_file_becomes_a_session_with_an_import_report(page, path, sample):
    page.goto("/")
    drop(page, *recording(path, sample))
    page.wait_for_url(re.compile(r"/(s|imports)/"))
    page.wait_for_url(SESSION)
    drawn(page)
    shot(page, f"2-dropped-{sample}", full_page=True)
    page.click("text=Import report")
    page.wait_for_url(re.compile(r"/imports/.*report"))
    text = page.inner_text("main")
    assert all(word in text.lower() for word in ("format", "calls", "messages", "window"))
    shot(page, f"2-report-{sample}", full_page=True)


def test_3_the_overview_says_what_happened_and_shows_it(page, sessions):
    page.goto(sessions("long-coding"))
    drawn(page)
    assert "3 compactions" in page.inner_text(".verdict-sentence")
    names = page.evaluate("document.querySelector('[data-plot]').data.map(item => item.name)")
    assert {"recorded prompt tokens", "messages no longer sent, recorded", "context window", "compaction"} <= set(names)
    # The lines of ContextGuard belong to recordings of its own, and to a policy that was chosen.
    assert not {"heuristic estimate", "calibrated estimate", "ContextGuard threshold"} & set(names)
    assert page.locator(".kpi").count() == 4
    shot(page, "3-overview-light")


def test_4_a_step_shows_the_request_and_the_decision(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=38")
    page.keyboard.press("k")
    page.wait_for_selector('#step[data-at="37"]')
    assert page.locator("#messages article").count() == PAGE
    kinds = {"toolcall", "toolresult", "text"}
    assert all(page.locator(f".part-{kind}").count() for kind in kinds)
    assert page.locator(".term .source").count() >= 1
    assert "160,358 prompt tokens" in page.inner_text(".inequality")  # no rule is known: what was counted
    shot(page, "4-step-light")


def test_5_a_compaction_shows_before_after_summary_and_prompt(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=38")
    page.click("text=What this compaction did")
    page.wait_for_url(re.compile(r"/c/1/"))
    assert page.locator(".change").first.locator(".value").count() == 4
    shot(page, "5-recorded-compaction-light", full_page=True)
    page.keyboard.press("4")
    page.wait_for_url(re.compile(r"/c/1/\?side=replayed"))
    assert "[Conversation to summarize]" in page.inner_text("main")
    assert "What it never saw" in page.inner_text("main")
    shot(page, "5-replayed-compaction-light", full_page=True)


def test_6_other_settings_are_replayed_beside_the_recording(page, sessions):
    page.goto(sessions("healthy"))
    drawn(page)
    page.fill("#set-window", "120k")
    page.wait_for_url(re.compile(r"window=120000"))
    wait(page, "document.querySelector('[data-plot]').data.some(item => item.name.includes('modelled'))")
    row = page.locator(".comparison tbody tr", has_text="compactions")
    assert row.inner_text().split()[:2] == ["compactions", "0"]
    assert int(row.locator("td").nth(1).inner_text()) > 0
    shot(page, "6-what-if-light", full_page=True)
