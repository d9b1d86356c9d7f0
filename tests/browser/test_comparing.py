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


def test_no_figure_of_a_comparison_is_cut_off_on_a_narrow_screen(page, sessions):
    page.set_viewport_size({"width": 360, "height": 740})
    sides = "&".join(f"side={sessions(name).strip('/').removeprefix('s/')}" for name in ("timing-gap", "long-coding"))
    page.goto(f"/compare/?{sides}")
    page.locator("#figures-title").wait_for()
    wide = "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText.slice(0, 80))"
    assert page.eval_on_selector_all(".table-wrap", wide) == []


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
