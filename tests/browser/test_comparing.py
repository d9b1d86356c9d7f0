"""From a what-if to the same two sides on one axis, stepped through with keys."""

import re

import pytest

from tests.browser.conftest import drawn
from tests.browser.looks import check_looks


def test_a_replay_is_compared_on_one_axis_and_stepped_through_with_keys(page, sessions):
    page.goto(sessions("timing-gap") + "?window=100000")
    page.get_by_role("link", name="Compare on one axis").click()
    page.wait_for_url(re.compile("/compare/"))
    drawn(page)
    first = int(page.input_value("#at"))
    page.keyboard.press("j")
    page.wait_for_url(re.compile(rf"at={first + 1}#step$"))
    assert page.locator("#step tbody tr").count() == 2
    page.locator("#step tbody th a").nth(1).click()
    page.wait_for_url(re.compile(rf"steps\?.*at={first + 1}.*side=replayed"))


@pytest.mark.long
def test_a_comparison_and_the_answers_look_right_everywhere(page, sessions):
    """What most pages show, `test_looks.py` holds to the same."""
    address = sessions("timing-gap")
    page.goto(address + "?window=100000")
    page.get_by_role("link", name="Compare on one axis").click()
    page.wait_for_url(re.compile("/compare/"))
    drawn(page)
    check_looks(page, "compare")
    page.goto(address + "avoid")
    check_looks(page, "avoid")
