"""Keys: zoom of strip and chart, playing, what leads elsewhere, and keys of one's own."""

import re

import pytest

from tests.browser.conftest import drawn, shot, wait
from tests.browser.looks import check_looks, complaints
from tests.plugins.tiers import mostly_long
from tests.waiting import until

SHOWN = "() => Number(document.getElementById('step').dataset.at)"


@pytest.fixture
def stepper(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=21")
    page.wait_for_selector('.step[aria-current="step"]')
    return page


def strip(page) -> tuple[int, int]:
    """The steps that the strip shows."""
    return int(page.get_attribute("#strip", "data-first")), int(page.get_attribute("#strip", "data-last"))


def zoomed(page, key: str, first: int, last: int) -> None:
    page.keyboard.press(key)
    page.wait_for_selector(f'#strip[data-first="{first}"][data-last="{last}"]')


def change(page, action: str, key: str) -> None:
    """Give an action another key, in the list."""
    page.locator("[data-help]").click()
    option = page.locator("[data-shortcuts-form] option").filter(has_text=re.compile(rf"^{action} \("))
    page.select_option("[data-shortcuts-form] select", value=option.get_attribute("value"))
    page.fill("[data-shortcuts-form] input", key)
    page.get_by_role("button", name="Change").click()
    page.wait_for_selector("[data-shortcuts-words]:has-text(':')")
    page.keyboard.press("Escape")


def test_keys_zoom_and_move_the_strip_and_the_address_follows(page, big):
    page.goto(big + "steps?at=3000")
    zoomed(page, "W", 1500, 4499)
    assert "zoom=1500-4499" in page.url
    zoomed(page, "D", 2250, 5249)
    zoomed(page, "A", 1500, 4499)
    page.reload()
    assert strip(page) == (1500, 4499)
    assert page.locator(".strip-words").inner_text().startswith("steps 1,500 to 4,499")
    zoomed(page, "S", 1, 6000)
    assert "zoom" not in page.url


def test_a_click_on_a_zoomed_strip_goes_to_the_step_below_it_and_the_strip_follows_the_step(page, big):
    page.goto(big + "steps?at=3000&zoom=2901-3100")
    box = page.locator("#strip").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.752, box["y"] + 20)
    page.wait_for_selector('#step[data-at="3051"]')
    page.keyboard.press("Home")
    page.wait_for_selector('#strip[data-first="1"][data-last="200"]')
    assert page.locator("[data-cursor]").is_visible()


def test_wheel_and_drag_zoom_the_strip(page, big):
    page.goto(big + "steps?at=1")
    box = page.locator("#strip").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.wheel(0, -120)
    wait(page, "() => document.getElementById('strip').dataset.first > 1")
    first, last = strip(page)
    assert last - first + 1 == 3000
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20, steps=5)
    page.mouse.up()
    wait(page, "last => Number(document.getElementById('strip').dataset.last) < last", last)
    assert abs(strip(page)[1] - strip(page)[0] - 750) <= 5
    assert page.evaluate(SHOWN) == 1  # a drag is not a click


def test_the_chart_shows_what_the_strip_shows_and_the_other_way_round(page, big):
    page.goto(big)
    drawn(page)
    zoomed(page, "W", 1501, 4500)
    ranged = "([low, high]) => { const [a, b] = document.querySelector('[data-plot]').layout.xaxis.range; "
    ranged += "return a > low - 200 && b < high + 200; }"
    wait(page, ranged, [1501, 4500])
    page.keyboard.press("W")
    wait(page, ranged, [2251, 3750])
    area = page.locator("#timeline .nsewdrag").first.bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.4, area["y"] + 80)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.6, area["y"] + 80, steps=5)
    page.mouse.up()
    wait(page, "() => document.getElementById('strip').dataset.last < 3700")
    page.reload()
    drawn(page)
    assert page.evaluate(ranged.replace("=> {", "=> {", 1), list(strip(page)))


def test_a_zoomed_page_shows_its_steps_without_javascript(open_page, big):
    page = open_page(java_script_enabled=False)
    page.goto(big + "?zoom=1001-1100")
    words = {" ".join(text.split()) for text in page.locator(".picture text").all_text_contents()}
    assert {"step 1,001", "step 1,100"} <= words
    page.locator(".strip-zoom a[title^='zoom out']").click()
    page.wait_for_url(re.compile("zoom=951-1150"))


@pytest.mark.long
def test_a_zoomed_page_is_accessible_and_fits(page, big):
    """What most pages show, `test_looks.py` holds to the same."""
    page.goto(big + "steps?at=3000&zoom=2901-3100")
    check_looks(page, "zoomed")


def test_space_plays_the_steps_and_stops(stepper):
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#step[data-at="23"]')
    stepper.wait_for_selector('#play:text("Stop")')
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#play:text("Play")')
    at = stepper.evaluate(SHOWN)
    stepper.wait_for_timeout(1_600)
    assert stepper.evaluate(SHOWN) == at
    assert f"at={at}" in stepper.url


def test_another_key_stops_playing_and_so_does_the_last_step(stepper):
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#step[data-at="22"]')
    stepper.keyboard.press("k")
    stepper.wait_for_selector('#play:text("Play")')
    stepper.keyboard.press("End")
    stepper.wait_for_selector('#step[data-at="144"]')
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#play:text("Play")')


def test_space_scrolls_a_pane_that_has_the_focus(stepper):
    def scrolled() -> bool:  # on a busy machine a single press was once without effect
        stepper.focus("#messages-pane")
        stepper.keyboard.press("Space")
        return stepper.evaluate("document.getElementById('messages-pane').scrollTop > 0")

    until(scrolled)
    assert stepper.inner_text("#play") == "Play"


def test_an_own_key_takes_the_place_of_the_default_and_the_list_shows_it(stepper):
    change(stepper, "next step", "x")
    stepper.keyboard.press("x")
    stepper.wait_for_selector('#step[data-at="22"]')
    assert stepper.locator("[title='next step (x)']").count() >= 1
    stepper.reload()
    stepper.keyboard.press("j")
    stepper.keyboard.press("x")
    stepper.wait_for_selector('#step[data-at="23"]')
    stepper.goto("/help/")
    assert stepper.locator(".keys kbd[data-default=j]").last.inner_text() == "x"
    stepper.keyboard.press("?")
    shot(stepper, "keys-changed")
    assert complaints(stepper) == []


def test_two_actions_exchange_their_keys_and_the_defaults_come_back(stepper):
    change(stepper, "next step", "k")
    stepper.keyboard.press("k")
    stepper.wait_for_selector('#step[data-at="22"]')
    stepper.keyboard.press("j")
    stepper.wait_for_selector('#step[data-at="21"]')
    stepper.keyboard.press("?")
    stepper.get_by_role("button", name="Use the defaults").click()
    stepper.keyboard.press("Escape")
    stepper.keyboard.press("j")
    stepper.wait_for_selector('#step[data-at="22"]')


def test_the_key_of_the_list_can_be_changed_too(stepper):
    change(stepper, "this list", "h")
    stepper.keyboard.press("?")
    assert stepper.locator("dialog#shortcuts[open]").count() == 0
    stepper.keyboard.press("h")
    stepper.wait_for_selector("dialog#shortcuts[open]")


@pytest.mark.parametrize("width", [1440, 360])
def test_each_shortcut_of_the_list_can_be_read(open_page, width):
    """Also beside the action that has nine keys."""
    page = open_page(width=width)
    page.goto("/help/")
    page.keyboard.press("?")
    page.wait_for_selector("dialog#shortcuts[open]")
    widths = page.evaluate("[...document.querySelectorAll('#shortcuts dd')].map((words) => words.clientWidth)")
    assert min(widths) > 150
    assert page.evaluate("document.querySelector('#shortcuts').scrollHeight") < 2_000


def test_a_key_that_is_pressed_while_a_step_is_on_its_way_is_not_lost(stepper):
    stepper.route("**/steps?at=20", lambda route: (stepper.wait_for_timeout(300), route.continue_()))
    stepper.keyboard.press("k")
    stepper.keyboard.press("End")
    stepper.wait_for_selector('#step[data-at="144"]')
    assert stepper.url.endswith("at=144")


def test_c_takes_the_step_along_and_w_shows_the_steps_around_it(stepper, big):
    stepper.keyboard.press("j")
    stepper.wait_for_selector('#step[data-at="22"]')
    stepper.keyboard.press("c")
    stepper.wait_for_url(re.compile(r"context\?at=22"))
    stepper.goto(big + "steps?at=3000")
    stepper.keyboard.press("w")
    stepper.wait_for_url(re.compile(r"/\?zoom=2800-3199#what-if"))
    stepper.keyboard.press("w")
    wait(stepper, "() => document.activeElement.id === 'set-policy'")


TABS = ["context", "rule", "facts", "c/1/", "estimator", "policies", "comments", "share"]


@pytest.mark.parametrize("tab", mostly_long(TABS, short=["context", "c/1/"]))
def test_the_tabs_and_the_keys_of_every_page_of_a_session(page, sessions, tab):
    address = sessions("long-coding")
    for key, ending in {"1": "/", "2": "steps", "c": "context", "w": "/", "s": "share", "/": "search"}.items():
        page.goto(address + tab)
        if tab == "policies":
            page.locator("#policies").wait_for()  # at first its progress may be shown
            page.wait_for_load_state()  # the page then loads anew: it knows no keys before its scripts have run
        with page.expect_navigation(url=re.compile(rf"^[^?#]*{ending}([?#]|$)")):  # also to the page that is shown
            page.keyboard.press(key)


@pytest.mark.parametrize("path", ["/", "/triggers/"])
def test_f_goes_to_the_filter_of_a_list(page, sessions, path):
    sessions("long-coding")
    page.goto(path)
    page.keyboard.press("f")
    wait(page, "() => document.activeElement.matches('[id^=filter-]')")


def test_f_goes_through_the_filters_of_a_compaction(page, sessions):
    page.goto(sessions("long-coding") + "c/2/")
    seen = []
    for _ in range(3):
        page.keyboard.press("f")
        before = seen[-1] if seen else ""
        wait(page, "before => location.search !== before", before)
        seen.append(page.evaluate("location.search"))
    assert len(set(seen)) == 3


def test_f_goes_through_the_filters_of_the_step_list(stepper):
    """Each filter is a page of its own, which knows no keys before its scripts have run."""
    assert stepper.locator("#steps [data-step]").count() > 50
    stepper.keyboard.press("j")
    stepper.wait_for_selector('#step[data-at="22"]')
    stepper.keyboard.press("f")
    stepper.wait_for_selector("#steps[data-filter=turns]")
    stepper.wait_for_load_state()
    assert stepper.evaluate(SHOWN) == 22  # the filter takes the step along
    stepper.keyboard.press("f")
    stepper.wait_for_selector("#steps[data-filter=compactions]")
    stepper.wait_for_load_state()
    rows = stepper.locator("#steps [data-step]")
    assert rows.count() == 3
    rows.nth(1).click()
    stepper.wait_for_selector('#steps [data-step="86"][aria-current]')
    stepper.keyboard.press("j")
    stepper.wait_for_selector('#step[data-at="87"]')
    assert "list=compactions" in stepper.url
    check_looks(stepper, "filtered-steps")


def test_a_filtered_list_of_many_steps_scrolls_and_follows_the_step(page, big):
    page.goto(big + "steps?at=3000&list=turns")
    page.wait_for_selector("#steps[data-filter=turns]")
    page.evaluate("() => { document.querySelector('[data-list-pane]').scrollTop = 0; }")
    page.wait_for_selector('#steps[data-from="1"]')
    before = page.evaluate(SHOWN)
    page.keyboard.press("End")
    wait(page, "before => Number(document.getElementById('step').dataset.at) > before", before)
    wait(page, "() => Number(document.getElementById('steps').dataset.from) > 1")


def test_a_gallery_page_and_a_comparison_step_by_keys(page, sessions):
    page.goto("/gallery/step")
    page.keyboard.press("k")
    page.wait_for_url(re.compile("at=1$"))
    page.keyboard.press("j")
    page.wait_for_url(re.compile("at=2$"))
    key = sessions("long-coding").split("/")[2]
    page.goto(f"/compare?side={key}&side={key}%3Fpolicy%3Dcodex&at=5")
    page.keyboard.press("j")
    page.wait_for_url(re.compile("at=6"))
