"""A file with many sessions by hand: find, sort, untick, keep."""

from __future__ import annotations

import pytest

from guard_core.recordings.formats import native
from tests.browser.conftest import nodes, shot
from tests.browser.looks import check_looks
from tests.builders import model, session, user
from tests.services.server import running
from tests.waiting import until

COUNT = 125


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A server, and the address of a file's report with 125 sessions: every fifth is about deployments."""
    with running(tmp_path_factory.mktemp("many")) as started:
        values = [
            session(
                *[user(f"question {n}"), model("answer")] * (n % 7 + 1),
                title=f"{'Deploy' if n % 5 == 0 else 'Session'} {n:03}",
                model="gpt-4o" if n % 2 else "claude-sonnet-4-5",
            )
            for n in range(COUNT)
        ]
        answer = started.upload("many.jsonl", b"".join(native.write_all(values)))
        place = answer.headers["location"]
        until(lambda: f"{COUNT} sessions in this file" in started.get(place).text)
        yield started, place


@pytest.mark.long
def test_the_choice_is_accessible_and_fits(open_page, many):
    """What most pages show, `test_looks.py` holds to the same."""
    server, place = many
    page = open_page(server=server)
    page.goto(place)
    page.get_by_role("button", name="Show more").wait_for()
    assert nodes(page) < 2_000
    check_looks(page, "choose")


def test_sessions_are_found_sorted_unticked_and_the_rest_is_kept(open_page, many):
    server, place = many
    page = open_page(server=server)
    page.goto(place)
    rows = page.locator(".choose-table tbody tr")
    assert rows.count() == 100
    assert page.locator(".choose-table tbody input:checked").count() == 100
    page.get_by_role("button", name="Messages").click()
    assert rows.first.locator("td").nth(3).inner_text() == "14"
    page.get_by_label("Find sessions of this file").fill("deploy")
    assert rows.count() == 25
    page.get_by_role("button", name="Untick all").click()
    page.get_by_label("Find sessions of this file").fill("")
    page.get_by_role("button", name="Keep 100 of 125").click()
    page.get_by_text("25 sessions deleted").wait_for()
    shot(page, "choose-kept")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("125 sessions").first.wait_for()
