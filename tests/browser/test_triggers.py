"""The triggers page in a real browser."""

import re

import msgspec
import pytest

from guard_core.recordings.formats import native
from tests.browser.conftest import followed
from tests.browser.looks import check_looks
from tests.builders import transcript


@pytest.fixture(scope="module")
def compacted(served):
    """A session with a compaction at 155,010."""
    session = msgspec.structs.replace(transcript(), started_at=1_780_000_000.0)
    answer = served.upload("triggered.jsonl", native.write(session))
    return followed(served, answer.headers["location"])


@pytest.fixture
def visit(open_page, compacted):
    def opener(**more):
        page = open_page(**more)
        page.goto("/triggers/?agent=Claude+Code")
        return page

    return opener


@pytest.mark.long
def test_it_is_accessible_and_fits(visit):
    """What most pages show, `test_looks.py` holds to the same."""
    check_looks(visit(), "triggers", full_page=True)


def test_a_filter_changes_rows_and_address_without_a_new_page(visit):
    page = visit()
    page.evaluate("window.same = true")
    page.select_option("#filter-model", "claude-opus-4-5-20251101")
    page.wait_for_url(re.compile(r"model=claude-opus-4-5-20251101"))
    assert page.evaluate("window.same")
    assert page.locator(".triggers-table tbody tr").count() >= 1


def test_a_dot_opens_its_step(visit, compacted):
    page = visit()
    dots = page.locator(f".counts-links a[href^='{compacted}']")
    assert dots.count() == 1
    dots.click()
    page.wait_for_url(re.compile(re.escape(compacted) + r"steps\?at=4$"))


def test_without_scripts_the_page_has_rows_dots_and_a_button_to_filter(visit):
    page = visit(java_script_enabled=False)
    assert page.locator(".counts .dots").count() >= 1
    assert page.locator("noscript button, .triggers-filters button").count() == 1


APART = """() => {
  const boxes = [...document.querySelectorAll(".triggers-days i")].map((day) => day.getBoundingClientRect());
  const shown = boxes.filter((box) => box.width).sort((one, other) => one.left - other.left);
  return shown.length > 1 && shown.every((box, at) => at === 0 || shown[at - 1].right < box.left);
}"""


def test_the_days_above_the_strips_are_legible_at_every_width(served, visit):
    later = msgspec.structs.replace(transcript(), started_at=1_790_000_000.0, source_id="later", title="later")
    followed(served, served.upload("later.jsonl", native.write(later)).headers["location"])
    page = visit()
    assert page.locator(".triggers-days i").count() > 2
    for width in (830, 1000, 1100, 1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(APART), width


def test_a_long_formula_is_not_cut_on_a_narrow_screen(visit):
    page = visit(width=320)
    long = "words => words.textContent = '155,000 = 200,000 - ' + '32,000 - '.repeat(9)"
    page.locator(".triggers-formula .num").first.evaluate(long)
    assert page.locator(".triggers-formula").first.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_the_fields_of_the_filters_are_of_one_height(visit):
    heights = "all => [...new Set(all.map((field) => field.getBoundingClientRect().height))]"
    assert visit().eval_on_selector_all("#filters :is(input, select)", heights) == [32]
