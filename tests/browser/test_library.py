"""The front page and the text search by hand: the empty state, filters, renaming, tags, one undo, a hit that opens."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from guard_core.recordings.formats import native
from tests.browser.conftest import nodes, wait
from tests.browser.looks import check_looks
from tests.builders import model, session, user
from tests.plugins.tiers import mostly_long
from tests.services.server import Running, running
from tests.waiting import until

TITLES = ("Alpha deploy", "Beta deploy", "Gamma notes")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server without any session."""
    with running(tmp_path_factory.mktemp("bare")) as started:
        yield started


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with three sessions and their texts in the index."""
    with running(tmp_path_factory.mktemp("library")) as started:
        for title in TITLES:
            value = session(user(f"where is the {title} needle?"), model("<b>here</b>"), title=title, window=600)
            started.upload(f"{title}.jsonl", native.write(value))
        until(lambda: all(title in started.get("/search?q=needle").text for title in TITLES))
        yield started


def titles(page) -> list[str]:
    return page.locator(".row-title > a:first-child").all_inner_texts()


@pytest.mark.long
def test_the_empty_state_is_accessible_and_fits(open_page, bare):
    """What most pages show, `test_looks.py` holds to the same."""
    page = open_page(server=bare)
    page.goto("/")
    check_looks(page, "empty", full_page=True)


@pytest.mark.parametrize(
    "address", mostly_long(["/", "/?q=none", "/search", "/search?q=needle"], short=["/", "/search?q=needle"])
)
def test_list_and_search_are_accessible_and_fit(open_page, library, address):
    page = open_page(server=library)
    page.goto(address)
    page.locator("main details").evaluate_all("all => all.forEach(one => { one.open = true })")
    check_looks(page, f"library-{re.sub(r'[^a-z]', '', address) or 'list'}", full_page=True)


def test_typing_narrows_the_list_and_the_address_keeps_it(open_page, library):
    page = open_page(server=library)
    page.goto("/")
    page.fill("#filter-q", "deploy")
    wait(page, "() => document.querySelectorAll('.row-title').length === 2")
    assert page.url.endswith("/?q=deploy")  # without the fields that are empty
    page.reload()
    assert titles(page) == ["Beta deploy", "Alpha deploy"]
    page.locator("thead a", has_text="Session").click()
    wait(page, "() => document.querySelector('.row-title > a').textContent === 'Alpha deploy'")
    assert "sort=title" in page.url


def test_a_session_is_renamed_where_it_stands(open_page, library):
    page = open_page(server=library)
    page.goto("/?q=gamma")
    page.locator(".row-title").hover()
    page.get_by_role("link", name="Rename Gamma notes").click()
    page.locator("input[name=title]").fill("Gamma, renamed")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert titles(page) == ["Gamma, renamed"]
    assert "q=gamma" in page.url


def test_a_title_that_is_kept_leaves_the_page_and_the_focus_where_they_were(open_page, library):
    page = open_page(server=library)
    page.goto("/?q=beta")
    page.evaluate("window.isSame = true")
    rename = page.get_by_role("link", name="Rename Beta deploy")
    rename.focus()
    page.keyboard.press("Enter")
    title = page.locator("input[name=title]")
    title.wait_for()
    wait(page, "() => document.activeElement.name === 'title'")
    page.keyboard.press("Escape")
    wait(page, "() => document.activeElement.ariaLabel === 'Rename Beta deploy'")
    assert title.count() == 0
    assert page.evaluate("window.isSame") is True
    assert page.url.endswith("/?q=beta")


def test_chosen_sessions_are_tagged_deleted_and_brought_back_at_once(open_page, library):
    page = open_page(server=library)
    page.goto("/?q=deploy")
    assert not page.locator("#bulk").is_visible()
    page.locator("[data-pick-all]").check()
    page.fill("#bulk-tags", "release")
    with page.expect_navigation():
        page.get_by_role("button", name="Tag", exact=True).click()
    assert page.locator(".tag", has_text="#release").count() == 2
    page.locator("[data-pick-all]").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Delete").click()
    assert titles(page) == []
    with page.expect_navigation():
        page.get_by_role("button", name="Undo").click()
    assert len(titles(page)) == 2


def test_a_hit_opens_the_step_that_has_it(open_page, library):
    page = open_page(server=library)
    page.goto("/")
    page.fill("#text-q", '"alpha deploy needle"')
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator("mark").all_inner_texts() == ["Alpha deploy needle"]
    with page.expect_navigation():
        page.locator(".hit a").click()
    assert page.locator("#m1").is_visible()


def test_a_full_page_of_sessions_stays_small(open_page, library):
    page = open_page(server=library)
    page.goto("/")
    formats = page.locator(".formats *").count()
    assert formats
    assert nodes(page) - formats < 560  # 25 rows, the filters and their menus, help and the palette of every page
