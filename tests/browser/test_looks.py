"""Every page is accessible and fits, in each theme and at each width. `make test` looks at three of them."""

import pytest

from tests.browser.conftest import RELATED, drawn, nodes, shot
from tests.browser.looks import check_looks, complaints
from tests.plugins.tiers import mostly_long

PAGES = {
    "home": ("", "/"),
    "overview": ("long-coding", ""),
    "what-if": ("timing-gap", "?window=100000"),
    "table": ("timing-gap", "?table=1"),
    "step": ("long-coding", "steps?at=38"),
    "step-gone": ("timing-gap", "steps?at=51&show=gone"),
    "replayed-step": ("timing-gap", "steps?at=40&side=replayed&window=100000"),
    "sub-agents": (RELATED, "steps?at=3"),
    "search": ("long-coding", "search?q=test"),
    "recorded-compaction": ("long-coding", "c/2/"),
    "replayed-compaction": ("timing-gap", "c/1/?side=replayed"),
    "compactions-together": ("long-coding", "c/1/compare?with=recorded/2&with=recorded/3"),
    "facts": ("long-coding", "facts?q=test"),
    "replayed-facts": ("timing-gap", "facts?show=details&side=replayed&window=100000"),
    "comparison": ("small-window", "policies"),
    "context": ("long-coding", "context"),
    "replayed-context": ("timing-gap", "context?at=40&side=replayed&window=100000"),
    "policies": ("", "/policies/"),
    "connect": ("", "/connect/"),
    "rule": ("long-coding", "rule"),
    "gallery-step": ("", "/gallery/step"),
    "policy": ("", "/policies/hermes"),
    "error": ("timing-gap", "?cap=many"),
    "missing": ("timing-gap", "c/99/"),
}
USUAL = ["home", "overview", "step", "recorded-compaction", "facts", "comparison", "context"]
OWN = ["step", "step-gone", "replayed-step", "sub-agents", "recorded-compaction", "replayed-compaction", "search"]
CHARTS = ["overview", "what-if"]
# Texts that something else lies on, at the place where they are seen: what a scrolling box cuts off is not seen.
COVERED = """() => {
  const covered = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('.visually-hidden')) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    let { left, top, right, bottom } = range.getClientRects()[0] ?? {};
    for (let box = element; box; box = box.parentElement) {
      if (getComputedStyle(box).overflow === 'visible') continue;
      const clip = box.getBoundingClientRect();
      [left, top] = [Math.max(left, clip.left), Math.max(top, clip.top)];
      [right, bottom] = [Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
    }
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    if (!(right - left > 3 && bottom - top > 3 && y > 0 && y < innerHeight && x > 0 && x < innerWidth)) continue;
    const seen = document.elementFromPoint(x, y);
    if (!seen || seen.contains(element) || element.contains(seen)) continue;
    covered.push(walker.currentNode.data.trim().slice(0, 40));
  }
  return covered;
}"""

# Cursors and bars whose ground has the colour of what they are on.
INVISIBLE = """() => {
  const ground = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll('.strip-cursor, .waterfall-track i')]
    .filter((one) => getComputedStyle(one).backgroundColor === ground)
    .map((one) => one.closest('li, nav, div').textContent.trim());
}"""


# Words of tables that are cut in two by the end of a line; a path may be.
BROKEN = r"""() => {
  const broken = [];
  for (const cell of document.querySelectorAll('main :is(th, td):not(.context-path)')) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data } = walker.currentNode;
      for (const { 0: word, index } of data.matchAll(/[\p{L}\d#]{2,20}/gu)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, index);
        range.setEnd(walker.currentNode, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
      }
    }
  }
  return broken;
}"""

KEY_COLOURS = "all => all.map(one => getComputedStyle(one).backgroundColor)"
FILLED = "() => document.querySelector('[data-plot]').data.filter(one => /^messages/.test(one.name ?? ''))"


def visit(page, sessions, name: str) -> None:
    sample, path = PAGES[name]
    page.goto((sessions(sample) if sample else "") + path)
    if page.locator("[data-figure]").count():
        drawn(page)
    if name == "comparison":
        page.locator("#policies").wait_for()  # at first its progress may be shown
    if name == "missing":
        page.seen.console.clear()  # the browser notes the status itself


@pytest.mark.parametrize("name", mostly_long(PAGES, short=USUAL))
def test_it_is_accessible_and_fits_in_every_theme_and_at_every_width(page, sessions, name):
    visit(page, sessions, name)
    if name in CHARTS:
        assert page.locator("[data-plot] svg.main-svg:not([aria-hidden=true])").count() == 0
    check_looks(page, name)


def test_the_bar_fits_at_every_width_with_room_for_where_one_is(page, sessions):
    visit(page, sessions, "overview")
    for width in (320, 400, 480, 561, 600, 721, 760, 800, 861, 1000, 1001, 1100):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.querySelector('.topbar').scrollWidth <= innerWidth"), width
        assert page.locator(".crumbs a").bounding_box()["width"] >= 80, width


@pytest.mark.parametrize("name", mostly_long(OWN, short=["step", "search"]))
def test_nothing_covers_a_text_on_a_phone_however_far_it_is_scrolled(open_page, sessions, name):
    page = open_page(360, 700)
    visit(page, sessions, name)
    for place in range(0, 4_000, 350):
        page.evaluate("y => [document.documentElement, document.body].forEach(box => box.scrollTo(0, y))", place)
        assert page.evaluate(COVERED) == [], place


def test_the_history_of_a_fact_fits_a_narrow_page(open_page, sessions):
    page = open_page(width=360)
    page.goto(sessions("long-coding") + "facts?q=the")
    lane = page.locator("#lane .table-wrap")
    assert lane.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_the_classes_of_a_request_fit_a_narrow_page(open_page, sessions):
    page = open_page(width=360)
    visit(page, sessions, "context")
    assert page.eval_on_selector(".table-wrap:has(.context-classes)", "e => e.scrollWidth - e.clientWidth") <= 0


@pytest.mark.parametrize("name", mostly_long(["context", "facts", "recorded-compaction", "rule"], short=["context"]))
def test_no_word_of_a_table_is_cut_in_two_on_a_phone(open_page, sessions, name):
    page = open_page(width=360)
    visit(page, sessions, name)
    assert page.eval_on_selector_all("main table", "all => all.length") > 0
    assert page.evaluate(BROKEN) == []


def test_no_term_of_the_help_reaches_into_its_meaning_on_a_phone(open_page):
    page = open_page(width=360)
    page.goto("/help/")
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    assert page.eval_on_selector_all("dt", wide) == []


@pytest.mark.parametrize("name", ["overview", "step", "recorded-compaction", "context", "compactions-together"])
def test_forced_colours_keep_lines_and_text(open_page, sessions, name):
    page = open_page(forced_colors="active")
    visit(page, sessions, name)
    shot(page, f"{name}-forced")
    assert complaints(page) == []
    assert page.evaluate(INVISIBLE) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_forced_colours_keep_what_only_a_colour_says(open_page, sessions, theme):
    page = open_page(theme=theme, forced_colors="active")
    visit(page, sessions, "context")
    fills = page.eval_on_selector_all(".context-area", "all => all.map(one => getComputedStyle(one).fill)")
    keys = page.eval_on_selector_all("#context tbody .context-key", KEY_COLOURS)
    assert len(set(fills)) == len(fills) > 4
    assert set(fills) <= set(keys)
    visit(page, sessions, "overview")
    lanes = {shape["fillcolor"] for shape in page.evaluate(FILLED)}
    assert len(lanes) > 1, "what is sent and what is not"


def test_reduced_motion_leaves_nothing_moving(open_page, sessions):
    page = open_page(reduced_motion="reduce")
    visit(page, sessions, "overview")
    assert page.evaluate("document.getAnimations().length") == 0


SIX_THOUSAND = [
    "",
    "?table=5000",
    "steps?at=4000",
    "steps?at=4000&side=replayed",
    "c/21/",
    "c/5/?side=replayed",
    "context?at=4000",
    "facts",
    "rule",
    "estimator",
    "policies",
    "search?q=orders",
    "share",
    "?zoom=3001-3400",
]


@pytest.mark.parametrize(
    "path", mostly_long(SIX_THOUSAND, short=["", "steps?at=4000", "c/21/", "context?at=4000", "facts"])
)
def test_the_pages_of_a_session_of_six_thousand_steps_stay_small(open_page, big, path):
    page = open_page()
    page.goto(big + path)
    if page.locator("[data-figure]").count():
        drawn(page)
    shot(page, f"big-{path.split('?')[0].strip('/').replace('/', '-') or 'overview'}")
    assert nodes(page) < 2_000
    assert page.seen.received < 700_000


CUT = """() => [...document.querySelectorAll("main *")]
  .filter((box) => box.checkVisibility() && !box.matches(".visually-hidden"))
  .filter((box) => getComputedStyle(box).overflowX !== "visible" && getComputedStyle(box).textOverflow !== "ellipsis")
  .filter((box) => box.scrollHeight > box.clientHeight + 2 || box.scrollWidth > box.clientWidth + 2)
  .map((box) => box.className || box.tagName)"""


@pytest.mark.parametrize("name", ["compactions-together", "recorded-compaction", "facts", "what-if", "context", "rule"])
def test_on_paper_nothing_is_cut_off_and_there_is_nothing_to_press(open_page, sessions, name):
    page = open_page(794, 1123)
    visit(page, sessions, name)
    page.emulate_media(media="print")
    shot(page, f"{name}-print", full_page=True)
    assert page.evaluate(CUT) == []
    assert page.locator("main button:visible, main input:visible:not([type=hidden]), main .btn:visible").count() == 0


def test_print_has_no_chrome(open_page, sessions):
    page = open_page()
    visit(page, sessions, "overview")
    page.emulate_media(media="print")
    assert not page.locator(".topbar").is_visible()
    assert page.locator(".verdict-sentence").is_visible()


def test_what_compactions_left_of_instructions_fits_a_narrow_page(open_page, sessions):
    page = open_page(width=360)
    visit(page, sessions, "compactions-together")
    open_work = page.locator(".table-wrap:has([aria-labelledby=open-title])")
    assert open_work.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert open_work.locator("th[scope=row]").first.bounding_box()["width"] > 250
