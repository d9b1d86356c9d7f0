"""Sweeps in a real browser: started from the form, drawn as a heat map, opened at a cell."""

import re
from urllib.parse import urlencode, urlparse

import pytest

from tests.browser.looks import check_looks


@pytest.fixture(scope="module")
def swept(served, sessions) -> str:
    """The address of a sweep, some of whose settings overflow."""
    key = sessions("timing-gap").split("/")[2]
    form = {"session": key, "policy": "contextguard", "axis1": "buffer", "values1": "0, 10%, 40%"}
    body = urlencode({**form, "axis2": "window", "values2": "20k, 60k, 200k"})
    answer = served.post("/sweeps/new", body.encode())
    assert answer.status == 302, answer.text[:500]
    return urlparse(answer.headers["location"]).path


def drawn(page, address: str) -> None:
    page.goto(address)
    page.locator(".heat-table").wait_for()


@pytest.mark.long
def test_it_is_accessible_and_fits(page, swept):
    """What most pages show, `test_looks.py` holds to the same."""
    drawn(page, swept)
    page.reload()  # the answer as a whole page
    page.locator(".heat-table").wait_for()
    check_looks(page, "sweep", full_page=True)


def test_the_figures_of_its_sessions_fit_a_narrow_page(open_page, swept):
    page = open_page(width=360)
    drawn(page, swept)
    sessions = page.locator(".table-wrap:has(.sweep-sessions)")
    assert sessions.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_the_trade_offs_fit_a_narrow_page(open_page, swept):
    page = open_page(width=360)
    drawn(page, swept)
    trade_offs = page.locator(".table-wrap:has([aria-labelledby=trade-title])")
    assert trade_offs.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@pytest.mark.long
@pytest.mark.parametrize("address", ["/sweeps/", "/sweeps/new"])
def test_list_and_form_are_accessible_and_fit(page, swept, address):
    """What most pages show, `test_looks.py` holds to the same."""
    page.goto(address)
    check_looks(page, "sweeps" if address == "/sweeps/" else "sweep-new", full_page=True)


def test_a_sweep_is_started_by_hand_and_shows_its_heat_map_when_it_is_done(page, sessions):
    page.goto(f"/sweeps/new?session={sessions('timing-gap').split('/')[2]}")
    page.fill("#values1", "10%:30%:10%")
    page.get_by_role("button", name="Start the sweep").click()
    page.wait_for_url(re.compile(r"/sweeps/[0-9a-f-]{36}/$"))
    page.locator("#recommended").wait_for()
    assert page.locator(".heat-table thead tr:last-child th").all_text_contents() == ["cap", "10%", "20%", "30%"]


def test_another_policy_brings_its_settings_without_a_new_page(page, sessions):
    page.goto(f"/sweeps/new?session={sessions('timing-gap').split('/')[2]}")
    page.evaluate("window.same = true")
    page.select_option("#policy", "codex")
    page.locator("summary", has_text="Codex").wait_for()
    assert page.evaluate("window.same")


def test_a_preset_fills_the_form(page, served, sessions):
    address = sessions("timing-gap")
    name = "Early, of a small window " + "unbroken" * 4
    body = urlencode({"name": name, "query": "?profile=early&window=60000&cap=3&summary=share:low"})
    assert served.post(f"{address}presets", body.encode()).status == 302
    page.goto(f"/sweeps/new?session={address.split('/')[2]}")
    page.locator(".saved-queries > summary").click()
    page.get_by_role("link", name="Early, of").click()
    page.wait_for_url(re.compile("cap"))
    assert [page.input_value(f"#{field}") for field in ("profile", "window", "settings")] == ["early", "60000", "cap=3"]
    assert "Early, of" in page.text_content(".saved-queries > summary")
    page.fill("#values1", "10%, 20%")
    check_looks(page, "sweep-new-preset", full_page=True)
    page.get_by_role("button", name="Start the sweep").click()
    page.wait_for_url(re.compile(r"/sweeps/[0-9a-f-]{36}/$"))


def test_a_cell_of_the_heat_map_opens_its_replay(page, swept):
    drawn(page, swept)
    page.locator(".heat-table td a").first.click()
    page.wait_for_url(re.compile(r"/s/[0-9a-f-]{36}/\?"))


def test_without_scripts_the_heat_map_is_the_same(open_page, swept):
    page = open_page(java_script_enabled=False)
    page.goto(swept)
    assert page.locator(".heat-table td[style*='background']").count() == 9
