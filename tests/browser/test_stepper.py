"""The stepper by keyboard and by mouse."""

import re

import pytest

from guard_core.recordings.formats import native
from tests.browser.conftest import followed, nodes, shot, wait
from tests.builders import model, session, user


@pytest.fixture
def stepper(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=21")
    page.wait_for_selector('.step[aria-current="step"]')
    return page


ASKED = re.compile(r"steps\?at=")


def shown(page) -> int:
    return int(page.get_attribute("#step", "data-at"))


def press(page, key: str, expected: int) -> None:
    page.keyboard.press(key)
    page.wait_for_selector(f'#step[data-at="{expected}"]')


def test_keys_go_through_steps_compactions_and_ends(stepper):
    press(stepper, "j", 22)
    press(stepper, "ArrowDown", 23)
    press(stepper, "k", 22)
    press(stepper, "]", 38)
    press(stepper, "]", 86)
    press(stepper, "[", 38)
    press(stepper, "End", 144)
    press(stepper, "Home", 1)
    assert stepper.url.endswith("steps?at=1")


def test_keys_go_through_user_turns_and_findings(stepper):
    stepper.keyboard.press("Shift+J")
    wait(stepper, "Number(document.getElementById('step').dataset.at) > 21")
    turn = shown(stepper)
    press(stepper, "k", turn - 1)
    press(stepper, "}", 38)
    stepper.keyboard.press("Shift+BracketRight")
    wait(stepper, "Number(document.getElementById('step').dataset.at) > 38")
    press(stepper, "{", 38)


def test_the_list_the_strip_and_the_title_follow_the_step(stepper):
    before = stepper.evaluate("document.querySelector('[data-cursor]').style.left")
    press(stepper, "End", 144)
    stepper.wait_for_selector('.step[data-step="144"][aria-current="step"]')
    assert stepper.evaluate("document.querySelector('[data-cursor]').style.left") != before
    assert stepper.title().startswith("Step 144")
    assert stepper.inner_text("#announce") == "step 144 of 144"
    assert stepper.locator(".step[aria-current]").count() == 1


def test_the_same_key_again_shows_what_was_fetched_ahead_and_else_asks(stepper):
    asked = []
    stepper.on("request", lambda request: asked.append(request.url[-5:]) if "hx-boosted" in request.headers else None)
    with stepper.expect_response(re.compile("at=23")) as ahead:
        press(stepper, "j", 22)
    ahead.value.finished()
    press(stepper, "j", 23)
    assert stepper.title().startswith("Step 23 ")
    assert stepper.url.endswith("at=23")
    assert stepper.inner_text("#announce").startswith("step 23 ")
    press(stepper, "k", 22)
    assert asked == ["at=22", "at=22"]
    stepper.go_back()
    stepper.wait_for_selector('#step[data-at="23"]')


def test_keys_that_come_faster_than_steps_are_all_counted_with_few_requests(stepper):
    asked = []
    stepper.on("request", lambda request: asked.append(request.url[-6:]) if "steps?at=" in request.url else None)
    stepper.route(ASKED, lambda route: None)  # no answer as long as keys are pressed
    with stepper.expect_request(re.compile("at=22")):
        stepper.keyboard.press("j")
    for key in "j" * 9:
        stepper.keyboard.press(key)
    stepper.unroute(ASKED)  # what is unanswered goes to the server then
    stepper.wait_for_selector('#step[data-at="31"]')
    assert stepper.url.endswith("at=31")
    assert asked[:2] == ["?at=22", "?at=31"], "the first, and all others together"
    protocol = stepper.context.new_cdp_session(stepper)
    protocol.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
    protocol.send("Network.emulateNetworkConditions", slow)
    for key in ("k", "Home", "j", "j", "]", "k"):  # a compaction is looked for from the step that is shown then
        stepper.keyboard.press(key)
    stepper.wait_for_selector('#step[data-at="37"]')
    stepper.go_back()
    stepper.wait_for_selector('#step[data-at="38"]')
    protocol.send("Network.emulateNetworkConditions", {**slow, "latency": 0})


def test_playing_goes_on_from_a_step_that_a_key_showed(stepper):
    with stepper.expect_response(re.compile("at=23")) as ahead:
        press(stepper, "j", 22)
    ahead.value.finished()
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#step[data-at="24"]')
    stepper.keyboard.press("Space")


def test_back_returns_to_the_step_before(stepper):
    press(stepper, "j", 22)
    stepper.go_back()
    stepper.wait_for_selector('#step[data-at="21"]')


def test_the_page_is_not_copied_at_each_step(stepper):
    """Going back loads it anew: nothing reads the copy that htmx would write, as text, of all that is shown."""
    copied = "addEventListener('htmx:beforeHistorySave', () => (window.copied = true))"
    stepper.evaluate(copied)
    press(stepper, "j", 22)
    assert stepper.url.endswith("at=22")
    assert not stepper.evaluate("window.copied")


def test_g_takes_a_step_number(stepper):
    stepper.keyboard.press("g")
    stepper.keyboard.type("100")
    stepper.keyboard.press("Enter")
    stepper.wait_for_selector('#step[data-at="100"]')
    assert "at=100" in stepper.url


def test_letters_typed_into_a_field_are_not_shortcuts(stepper):
    stepper.keyboard.press("g")
    stepper.keyboard.press("j")
    assert shown(stepper) == 21


def test_shortcuts_can_be_switched_off(stepper):
    stepper.keyboard.press("?")
    stepper.wait_for_selector("dialog#shortcuts[open]")
    stepper.uncheck("[data-shortcuts-switch]")
    stepper.keyboard.press("Escape")
    stepper.keyboard.press("j")
    stepper.reload()
    stepper.keyboard.press("j")
    assert shown(stepper) == 21


def test_numbers_open_the_tabs_and_escape_goes_back(stepper):
    stepper.keyboard.press("3")
    stepper.wait_for_url(re.compile(r"/c/1/$"))
    stepper.keyboard.press("Escape")
    stepper.wait_for_url(re.compile(r"steps\?at=38"))
    stepper.wait_for_selector('#step[data-at="38"]')
    stepper.keyboard.press("Escape")
    stepper.wait_for_url(re.compile(r"/s/[0-9a-f-]{36}/$"))


def focused(page) -> str:
    """The message of the table of a compaction that is read."""
    return page.evaluate("document.activeElement.matches('[data-read]') ? document.activeElement.innerText.trim() : ''")


def test_keys_read_what_a_compaction_kept_summarised_and_dropped(page, sessions):
    page.goto(sessions("long-coding") + "c/2/?show=summarised")
    names = [name.strip() for name in page.locator("[data-read]").all_inner_texts()]
    pressed = []
    for key in ("j", "j", "ArrowDown", "k", "ArrowUp"):
        page.keyboard.press(key)
        pressed.append(focused(page))
    assert pressed == [names[at] for at in (0, 1, 2, 1, 0)]
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.locator("[data-read]:focus").scroll_into_view_if_needed()
        shot(page, f"compaction-reader-{width}")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/messages/\d+/parts/1"))
    page.go_back()
    page.keyboard.press("[")
    page.wait_for_url(re.compile(r"/c/1/"))


def test_past_the_last_row_the_next_rows_of_a_compaction_follow(page, sessions):
    page.goto(sessions("long-coding") + "c/2/?show=summarised")
    later = page.locator("[data-read-later]")
    assert later.count() == 1
    page.locator("[data-read]").last.focus()
    page.keyboard.press("j")
    page.wait_for_url(re.compile("from="))
    page.locator("[data-read-earlier]").wait_for()
    page.keyboard.press("j")
    assert focused(page) == page.locator("[data-read]").first.inner_text().strip()
    page.keyboard.press("k")
    page.locator("[data-read-earlier]").wait_for(state="detached")


def test_r_reads_the_message_that_has_the_focus_or_the_first(page, sessions):
    page.goto(sessions("long-coding") + "c/2/?show=summarised")
    links = [page.locator("[data-read]").nth(at).get_attribute("href") for at in (0, 1)]
    assert links[0] != links[1]
    for pressed, link in (("r", links[0]), ("jjr", links[1])):
        for key in pressed:
            page.keyboard.press(key)
        page.wait_for_url(f"**{link}")
        page.go_back()
        page.locator("[data-read]").first.wait_for()


def test_e_shows_all_of_a_cut_text_of_a_compaction(page, sessions):
    page.goto(sessions("long-coding") + "c/2/")
    page.keyboard.press("e")
    page.wait_for_url(re.compile("text=all"))


def test_r_and_e_are_off_with_the_shortcuts_on_the_page_of_a_compaction(page, sessions):
    page.goto(sessions("long-coding") + "c/2/")
    page.evaluate("localStorage.setItem('shortcuts-off', '1')")
    before = page.url
    page.keyboard.press("r")
    page.keyboard.press("e")
    page.wait_for_timeout(300)
    assert page.url == before


def test_an_arrow_scrolls_a_compaction_until_a_row_is_read(page, sessions):
    page.goto(sessions("long-coding") + "c/2/")
    page.keyboard.press("ArrowDown")
    assert focused(page) == ""
    page.keyboard.press("j")
    assert focused(page) != ""


def test_a_click_in_the_list_shows_that_step(stepper):
    stepper.click('.step[data-step="25"]')
    stepper.wait_for_selector('#step[data-at="25"]')
    assert stepper.locator('.step[data-step="25"]').get_attribute("aria-current") == "step"


def test_a_click_on_the_strip_goes_there(stepper):
    box = stepper.locator("#strip").bounding_box()
    stepper.mouse.click(box["x"] + box["width"] * 0.752, box["y"] + 20)
    stepper.wait_for_selector('#step[data-at="109"]')
    assert "at=109" in stepper.url


def test_a_scrolled_list_loads_its_rows(page, big):
    page.goto(big + "steps?at=1")
    page.evaluate("document.querySelector('[data-list-pane]').scrollTop = 28 * 4000")
    page.wait_for_selector('.step[data-step="4001"]')
    page.click('.step[data-step="4011"]')
    page.wait_for_selector('#step[data-at="4011"]')
    assert nodes(page) < 2000


def test_more_of_a_long_part_comes_in_place(page, sessions):
    page.goto(sessions("small-window") + "steps?at=6")
    more = page.get_by_role("link", name="more characters").last
    before = page.locator("#messages").inner_text()
    more.click()
    longer = "length => document.getElementById('messages').innerText.length > length + 5000"
    wait(page, longer, len(before))


def test_it_works_without_javascript(open_page, sessions):
    page = open_page(java_script_enabled=False)
    page.goto(sessions("timing-gap") + "steps?at=48")
    page.click("a[title='next step (j)']")
    assert "180,018 ≥ 180,000" in page.inner_text("#inspector")


def test_the_other_side_changes_the_list_and_the_strip_too(page, sessions):
    page.goto(sessions("timing-gap") + "steps?at=40&window=100000")
    count = page.inner_text('.step[data-step="40"] .step-tokens')
    line = page.get_attribute(".strip-line", "d")
    page.click("text=as replayed")
    page.wait_for_url(re.compile("side=replayed"))
    page.wait_for_selector(".strip.is-modelled")
    assert page.inner_text('.step[data-step="40"] .step-tokens') not in (count, f"≈{count}")
    assert page.get_attribute(".strip-line", "d") != line
    page.click('.step[data-step="41"]')
    page.wait_for_selector('#step[data-at="41"]')
    assert "side=replayed" in page.url


def test_an_address_of_a_step_that_is_not_there_becomes_that_of_the_one_shown(page, sessions):
    page.goto(sessions("timing-gap") + "steps?at=9999&side=replayed")
    assert "There is no step 9,999; showing step 55, the last." in page.locator("#step .notice").inner_text()
    wait(page, "new URL(location.href).searchParams.get('at') === '55'")
    assert "side=replayed" in page.url


def test_the_focus_stays_on_its_row_while_more_rows_are_loaded(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=1")
    last = page.locator("#steps").get_attribute("data-to")
    page.locator(f"#steps [data-step='{last}']").focus()
    wait(page, "last => Number(document.getElementById('steps').dataset.to) > Number(last)", last)
    wait(page, "last => document.activeElement.dataset.step === last", last)


def test_a_key_opens_the_reader_of_the_first_message_and_not_of_what_is_folded(page, sessions):
    page.goto(sessions("timing-gap") + "steps?at=10")
    page.keyboard.press("r")
    page.wait_for_selector("#messages [data-reader]")
    page.click("#messages [data-reader] >> text=markdown")
    page.wait_for_selector("#messages .markdown")
    assert page.locator(".fixed [data-reader]").count() == 0


def test_a_part_that_was_opened_is_folded_again_with_the_focus_where_it_was(page, sessions):
    page.goto(sessions("timing-gap") + "steps?at=10")
    part = page.locator("#messages .part").first
    before = part.inner_text()
    for _ in range(2):
        page.keyboard.press("r")
        part.get_by_text("markdown", exact=True).click()
        part.locator(".markdown").wait_for()
        part.get_by_role("button", name="Fold").click()
        assert part.inner_text() == before
        assert page.evaluate("document.activeElement.dataset.key") == "r"
        assert page.locator(".htmx-request").count() == 0, "no request is under way: a followed page would wait for it"
    part.locator("[data-key=r]").click()
    page.set_viewport_size({"width": 320, "height": 700})
    part.get_by_role("button", name="Fold").wait_for()
    page.goto(page.get_by_text("Link to this part").get_attribute("href"))
    assert page.get_by_role("button", name="Fold").count() == 0, "a page of its own is not folded"


def test_what_the_server_does_not_answer_changes_neither_the_address_nor_what_is_said(stepper):
    address = stepper.url
    stepper.route(re.compile(r"/strip\?|at=22|at=100"), lambda route: route.fulfill(status=503))
    stepper.keyboard.press("W")
    stepper.wait_for_selector("#errors .notice")
    stepper.keyboard.press("Space")
    stepper.wait_for_selector('#play:text("Stop")')
    stepper.wait_for_selector('#play:text("Play")')
    stepper.evaluate("document.dispatchEvent(new CustomEvent('step:choose', { detail: { step: 100 } }))")
    stepper.wait_for_timeout(300)
    assert (stepper.url, shown(stepper), stepper.inner_text("#announce")) == (address, 21, "step 21 of 144")
    # The browser and htmx note each status themselves; an error that nothing catches would be noted beside them.
    stepper.seen.console[:] = [said for said in stepper.seen.console if not re.search("503|htmx", said)]


# Where the first letter of an element is: a share of its width, from the left.
FIRST_LETTER = """(element) => {
  const letter = document.createRange();
  letter.setStart(element.firstChild, 0);
  letter.setEnd(element.firstChild, 1);
  const { left, width } = element.getBoundingClientRect();
  return (letter.getBoundingClientRect().right - left) / width;
}"""


def test_text_from_right_to_left_begins_at_the_right_and_is_cut_at_its_end(page, served):
    words = "למה נדחס ההקשר של השיחה הזאת לפני הזמן? " * 12
    answer = served.upload("right.jsonl", native.write(session(user(words), model("כי"), title=words)))
    page.goto(followed(served, answer.headers["location"]) + "steps?at=1")
    for place in (".crumbs a", ".step-label", "#messages pre"):
        assert 0.9 < page.locator(place).first.evaluate(FIRST_LETTER) <= 1.01, place


def test_the_list_of_a_page_that_becomes_wide_shows_the_step(open_page, sessions):
    page = open_page(width=360)
    page.goto(sessions("long-coding") + "steps?at=100")
    assert not page.locator("#steps").is_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    row = page.locator('#steps [data-step="100"]')
    wait(page, "() => document.querySelector('[data-list-pane]').scrollTop > 1000")
    assert row.is_visible()
    assert row.bounding_box()["y"] < 900
