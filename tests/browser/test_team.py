"""Team mode in a browser: an owner invites somebody, who makes an account, signs in, and is given another role.

The pages of accounts and the team are accessible and fit in every theme and at every width.
"""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import wait
from tests.browser.looks import FITS, check_looks, show
from tests.services.server import running
from tests.waiting import until

PASSWORD = "correct horse battery"


@pytest.fixture
def server(tmp_path):
    with running(tmp_path / "team", TEAM="1") as started:
        yield started


def sign_up(page, link: str, name: str) -> None:
    """Make an account by the link of an invitation."""
    page.goto(link)
    page.locator("input[name=name]").fill(name)
    page.locator("input[name=password1]").fill(PASSWORD)
    page.locator("input[name=password2]").fill(PASSWORD)
    page.locator("main button.btn-primary").click()
    page.get_by_role("link", name="Default").wait_for()


def test_somebody_is_invited_signs_in_and_is_given_another_role(open_page, server):
    first = until(lambda: re.search(r"/join/[\w-]{43,}/", "".join(server.output)))[0]
    owner, invited = open_page(server=server), open_page(server=server)
    owner.goto(first)
    check_looks(owner, "join")
    sign_up(owner, first, "olga")
    owner.goto("/team/")
    owner.get_by_label("Invite as").select_option("viewer")
    owner.get_by_role("button", name="Create a link").click()
    link = owner.get_by_label("Send this link").input_value()
    sign_up(invited, link, "vera")
    invited.goto("/account/")
    check_looks(invited, "account")
    for width in (600, 760, 1000):
        show(invited, width, "light")
        wait(invited, FITS)
    invited.get_by_role("button", name="Sign out").click()
    invited.goto("/login/")
    check_looks(invited, "login")
    invited.locator("input[name=username]").fill("vera")
    invited.locator("input[name=password]").fill(PASSWORD)
    invited.get_by_role("button", name="Sign in").click()
    invited.get_by_text("editors and owners of this project import them").wait_for()
    assert invited.get_by_role("button", name="Import").count() == 0
    check_looks(invited, "empty-for-viewers")
    owner.goto("/team/")
    owner.get_by_label("Role of vera").select_option("editor")
    owner.locator("li", has_text="vera").get_by_role("button", name="Save").click()
    owner.locator("select[aria-label='Role of vera'] option[selected][value=editor]").wait_for(state="attached")
    check_looks(owner, "team")
    owner.goto("/team/audit")
    check_looks(owner, "audit")
    invited.goto("/")
    invited.get_by_role("button", name="Import", exact=True).wait_for()


def test_a_comment_that_is_being_written_does_not_stay_behind_a_sign_out(open_page, server):
    link = until(lambda: re.search(r"/join/[\w-]{43,}/", "".join(server.output)))[0]
    page = open_page(server=server)
    sign_up(page, link, "olga")
    page.goto("/")
    page.locator("form[action^='/samples/'] button").first.click()
    page.wait_for_url(re.compile("/s/"))
    page.goto(re.sub(r"(/s/[^/]+/).*", r"\1steps?at=2", page.url))
    page.get_by_label("New comment").fill("Ask vera about this")
    page.goto("/account/")
    drafts = "Object.keys(sessionStorage).filter(key => key.startsWith('draft ')).length"
    assert page.evaluate(drafts) == 1
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(lambda url: not url.endswith("/account/"))
    assert page.evaluate(drafts) == 0
