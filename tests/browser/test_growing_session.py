"""A session that grows while somebody looks at it."""

import re
from itertools import pairwise

from guard_core.recordings.formats import native
from tests.browser.conftest import drawn, followed, wait
from tests.browser.looks import check_looks
from tests.builders import model, session, user


def grown(turns: int, source_id: str = "growing") -> bytes:
    events = [event for n in range(turns) for event in (user(f"request {n}"), model(f"answer {n}"))]
    return native.write(session(*events, source_id=source_id, started_at=1.0))


def test_new_steps_are_said_shown_and_followed_until_one_steps_back(page, served):
    path = followed(served, served.upload("growing.jsonl", grown(3)).headers["location"])
    page.goto(f"{path}steps?at=3")
    notice = page.locator("[data-growth]")
    assert not notice.is_visible()
    assert followed(served, served.upload("growing.jsonl", grown(4)).headers["location"]) == path
    page.locator("[data-growth-words]", has_text="1 new step.").wait_for()
    check_looks(page, "growing-session")
    with page.expect_websocket():  # it has grown: from then on it hears of the next one at once
        page.get_by_role("link", name="Show", exact=True).click()
    page.wait_for_url(re.compile(r"at=4"))
    assert not notice.is_visible()
    served.upload("growing.jsonl", grown(5))
    page.locator("[data-growth-words]", has_text="1 new step.").wait_for()
    page.get_by_label("Follow").check()
    page.wait_for_url(re.compile(r"at=5"))
    served.upload("growing.jsonl", grown(7))
    page.wait_for_url(re.compile(r"at=7"))
    page.goto(f"{path}steps?at=2")
    served.upload("growing.jsonl", grown(8))
    wait(page, "document.querySelector('[data-growth-words]').textContent === '1 new step.'")
    assert page.url.endswith("at=2"), "who has stepped back is not taken away"
    assert not page.get_by_label("Follow").is_checked()
    page.evaluate("sessionStorage['followed-to'] = '7'")  # as if the eighth step had come while the page was on its way
    page.goto(f"{path}steps?at=7")
    page.wait_for_url(re.compile(r"at=8"))
    assert page.get_by_label("Follow").is_checked()


def test_a_page_of_a_running_session_counts_steps_without_asking_and_rests_out_of_sight(page, served):
    def grow(turns: int) -> str:
        return served.upload("pushed.jsonl", grown(turns, "pushed")).headers["location"]

    def seen(is_hidden: bool) -> None:
        page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            is_hidden,
        )

    path = followed(served, grow(2))
    sockets = []
    page.on("websocket", lambda socket: sockets.append(socket))  # a built-in method is not taken
    page.goto(path)
    page.wait_for_event("response", lambda answer: "/growth?" in answer.url)
    assert not sockets, "a session that has not grown is asked for now and then"
    grow(3)
    page.route("**/growth?*", lambda route: None)  # never answered
    with page.expect_websocket():
        page.goto(path)
    for turns, said in ((4, "1 new step."), (5, "2 new steps.")):
        grow(turns)
        page.locator("[data-growth-words]", has_text=said).wait_for()
    *_, socket = sockets
    assert not socket.is_closed()
    with socket.expect_event("close"):
        seen(is_hidden=True)
    with page.expect_websocket():
        seen(is_hidden=False)


def test_a_page_hears_of_new_steps_at_once_from_when_it_is_followed(page, served):
    page.goto(followed(served, served.upload("at-rest.jsonl", grown(2, "at rest")).headers["location"]))
    page.evaluate("document.querySelector('[data-growth]').hidden = false")
    with page.expect_websocket(timeout=5_000):
        page.get_by_label("Follow").check()


def test_a_followed_page_waits_while_it_is_in_use_and_says_when_the_server_is_away(page, served):
    def grow(turns: int) -> str:
        return served.upload("used.jsonl", grown(turns, "used")).headers["location"]

    def says(text: str) -> None:
        page.locator("[data-growth-words]", has_text=text).wait_for()

    page.goto(followed(served, grow(2)))
    field = page.locator("#settings [name=window]")
    grow(3)
    page.get_by_label("Follow").click()  # at which the page may be loaded anew, with the box in it
    says("Following")
    page.route("**/growth?*", lambda route: route.abort("connectionrefused"))
    says("The server does not answer; trying again.")
    page.unroute("**/growth?*")
    says("Following")
    field.fill("190000")
    for turns, said in ((4, "1 new step."), (5, "2 new steps.")):  # the second by a page that has stayed
        grow(turns)
        says(said)
    page.keyboard.press("End")
    page.keyboard.type("2")
    field.blur()
    says("Following")
    assert field.input_value() == "1900002", "what was sent is in the address"
    page.get_by_text("Change the window").click()
    other = page.locator("#window-stated")
    before = other.input_value()
    other.fill("12345")
    other.blur()
    for turns, said in ((6, "1 new step."), (7, "2 new steps.")):
        grow(turns)
        says(said)
    other.fill(before)  # nothing is left to send
    other.blur()
    says("Following")


def test_a_page_without_steps_shows_the_first_one_by_itself(page, served):
    asked = native.write(session(user("request 0"), source_id="begins", started_at=1.0))
    path = followed(served, served.upload("begins.jsonl", asked).headers["location"])
    page.goto(path)
    page.get_by_role("heading", name="No model calls in this recording").wait_for()
    served.upload("begins.jsonl", grown(1, "begins"))
    page.get_by_role("link", name="Steps 1").wait_for()
    assert not page.get_by_label("Follow").is_checked()
    served.upload("begins.jsonl", grown(2, "begins"))
    page.locator("[data-growth-words]", has_text="1 new step.").wait_for()
    page.get_by_role("link", name="Steps 1").wait_for()


def test_what_is_typed_while_a_followed_page_loads_anew_stays(page, served):
    def grow(turns: int) -> str:
        return served.upload("typed.jsonl", grown(turns, "typed")).headers["location"]

    def says(text: str) -> None:
        page.locator("[data-growth-words]", has_text=text).wait_for()

    address = served.origin + followed(served, grow(2))
    page.goto(address)
    grow(3)
    page.get_by_label("Follow").check()
    says("Following")
    field = page.locator("#settings [name=window]")
    field.scroll_into_view_if_needed()
    place = field.bounding_box()
    with page.expect_request(address):
        page.route(address, lambda route: None)  # the new page is long in coming
        grow(4)
    page.mouse.click(place["x"] + 20, place["y"] + 8)  # a locator would wait for that page
    page.keyboard.type("150000")
    says("1 new step.")
    assert field.input_value() == "150000"
    page.unroute(address)
    field.blur()  # what was typed is sent, and the page follows again
    says("Following")
    assert field.input_value() == "150000"


def test_a_followed_page_shows_new_steps_in_place(page, served):
    def grow(turns: int) -> str:
        return served.upload("placed.jsonl", grown(turns, "placed")).headers["location"]

    path = followed(served, grow(12))
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    page.goto(f"{path}?zoom=1-11")
    page.locator("[data-growth-words]", has_text="Following").wait_for()
    page.get_by_role("link", name="View as table").click()
    page.locator("#table caption", has_text="of 12;").wait_for()
    page.evaluate("window.before = history.length")
    grow(13)
    page.locator("#table caption", has_text="of 13;").wait_for()
    wait(page, "document.querySelector('[data-plot]').layout.xaxis.range[1] < 12")
    assert page.locator("[data-strip]").get_attribute("data-last") == "11", "what is zoomed stays so"
    wait(page, "document.getElementById('announce').textContent === '13 steps'")
    page.get_by_role("link", name="all", exact=True).click()
    wait(page, "document.querySelector('[data-plot]').layout.xaxis.range[1] > 13")
    grow(14)
    page.locator("#table caption", has_text="of 14;").wait_for()
    wait(page, "document.querySelector('[data-plot]').calcdata.some((points) => points.at(-1).x === 14)")
    assert page.locator("[data-growth-words]").inner_text() == "Following: new steps are shown as they come."
    assert page.evaluate("before === history.length"), "the page is the same, with no more to go back to"
    page.goto(f"{path}steps?at=14")
    page.evaluate("window.isSame = true")
    grow(15)
    page.wait_for_url(re.compile("at=15"))
    assert page.locator("#steps [aria-current]").inner_text().startswith("15")
    assert page.get_by_role("link", name="all 15").is_visible()
    assert page.title().startswith("Step 15")
    assert page.evaluate("isSame")


def test_a_followed_page_goes_on_where_the_clock_is_set_back(page, served):
    def grow(turns: int) -> str:
        return served.upload("clock.jsonl", grown(turns, "clock")).headers["location"]

    page.add_init_script("window.back = 0; const now = Date.now; Date.now = () => now() - back")
    path = followed(served, grow(3))
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    with page.expect_websocket():
        page.goto(f"{path}steps?at=3")
    page.get_by_label("Follow").focus()
    page.evaluate("document.activeElement.blur(); back = 3_600_000")  # at once: no question comes between
    for turns in (4, 5):
        grow(turns)
        page.wait_for_url(re.compile(f"at={turns}"))


def test_a_followed_page_whose_replay_is_under_way_is_loaded_anew(page, served):
    path = followed(served, served.upload("slow.jsonl", grown(3, "slow")).headers["location"])
    page.goto(f"{path}steps?at=3")
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    page.reload()
    page.locator("[data-growth-words]", has_text="Following").wait_for()

    def progress(route):
        if route.request.headers.get("hx-target") == "grown":
            route.fulfill(status=200, headers={"HX-Reswap": "outerHTML"}, body="how far the replay is")
        else:
            route.fallback()

    page.route(f"**{path}steps?*", progress)
    with page.expect_request(lambda request: request.is_navigation_request() and "at=4" in request.url):
        served.upload("slow.jsonl", grown(4, "slow"))
    page.locator("#step[data-at='4']").wait_for()


def test_a_followed_page_stays_where_the_server_fails_and_tries_again(page, served):
    path = followed(served, served.upload("failing.jsonl", grown(3, "failing")).headers["location"])
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    page.reload()
    page.locator("[data-growth-words]", has_text="Following").wait_for()
    page.evaluate("window.isSame = true")
    page.route(f"**{path}*", lambda route: route.fulfill(status=500, body="Something went wrong"))
    page.route("**/growth?*", lambda route: route.fallback())
    served.upload("failing.jsonl", grown(4, "failing"))
    page.locator("[data-growth-words]", has_text="could not show the new steps; trying again").wait_for()
    page.unroute(f"**{path}*")
    page.locator("[data-growth][data-steps='4']").wait_for()
    page.locator("[data-growth-words]", has_text="Following").wait_for()
    assert page.evaluate("isSame")
    assert all("status of 500" in line for line in page.seen.console), page.seen.console
    page.seen.console.clear()


def test_a_page_that_is_loaded_anew_for_new_steps_stays_for_seconds_and_keeps_scroll_and_focus(page, served):
    def grow(turns: int) -> str:
        return served.upload("anew.jsonl", grown(turns, "anew")).headers["location"]

    path = followed(served, grow(30))
    page.set_viewport_size({"width": 1000, "height": 400})
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    loads = []
    page.on("request", lambda request: loads.append(request) if request.is_navigation_request() else None)
    page.goto(f"{path}context")
    page.locator("[data-growth-words]", has_text="Following").wait_for()
    page.locator("a[href*='/policies']", has_text="Policies").last.focus()
    page.evaluate("document.scrollingElement.scrollTop = 300")
    for turns in (31, 32, 33):
        grow(turns)
    page.locator("[data-growth][data-steps='33']").wait_for()
    wait(page, "document.scrollingElement.scrollTop === 300")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Policies"
    assert page.locator("[data-growth-words]").inner_text().startswith("Following")
    starts = [request.timing["startTime"] for request in loads]  # milliseconds
    assert all(after - before > 4_900 for before, after in pairwise(starts)), starts


def test_a_question_that_is_not_answered_does_not_keep_the_next_from_being_asked(page, served):
    page.goto(followed(served, served.upload("silent.jsonl", grown(2, "silent")).headers["location"]))
    page.evaluate("const { timeout } = AbortSignal; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 50)")
    silent = []
    page.route("**/growth?*", lambda route: route.fallback() if silent else silent.append(route))
    served.upload("silent.jsonl", grown(3, "silent"))
    page.locator("[data-growth-words]", has_text="1 new step.").wait_for()
    assert silent


def test_new_steps_are_asked_for_again_where_they_do_not_come(page, served):
    path = followed(served, served.upload("lost.jsonl", grown(2, "lost")).headers["location"])
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    page.goto(f"{path}steps?at=2")
    page.evaluate(
        """() => {
          const { timeout } = AbortSignal;
          const waits = [];
          AbortSignal.timeout = (wait) => {
            if (wait > 10_000) waits.push(wait); // the first of these is over soon
            return timeout.call(AbortSignal, wait > 10_000 && waits.length === 1 ? 100 : wait);
          };
        }"""
    )
    lost = []

    def lose_first(route):
        is_first = route.request.headers.get("hx-target") == "grown" and not lost
        return lost.append(route) if is_first else route.fallback()

    page.route("**/steps?*", lose_first)
    served.upload("lost.jsonl", grown(3, "lost"))
    page.wait_for_url(re.compile("at=3"))
    assert lost


def test_the_first_call_of_a_followed_session_is_shown_at_once(page, served):
    """Its overview has no chart yet to show it in place, and is loaded anew without the wait of the other pages."""
    first = native.write(session(user("request 0"), source_id="first", started_at=1.0))
    path = followed(served, served.upload("first.jsonl", first).headers["location"])
    page.add_init_script("performance.now = () => 100")  # milliseconds: for this page no time passes
    page.goto(path)
    page.evaluate("sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth")
    page.reload()
    served.upload("first.jsonl", grown(1, "first"))
    page.locator("#chart").wait_for()


def test_the_page_says_when_a_server_that_could_not_be_reached_answers_again(page, sessions):
    page.goto(sessions("small-window") + "steps?at=2")
    page.route("**/*", lambda route: route.abort("connectionrefused"))
    page.keyboard.press("j")
    notice = page.locator("#errors")
    notice.get_by_text("The server cannot be reached.").wait_for()
    assert notice.get_by_role("button").bounding_box()["height"] < 30, "its word is in one line"
    page.unroute("**/*")
    notice.get_by_text("The server answers again.").wait_for()
    page.seen.console.clear()


def test_changed_settings_that_found_no_server_are_replayed_once_it_answers(page, sessions):
    page.goto(sessions("timing-gap"))
    drawn(page)
    page.route("**/*", lambda route: route.abort("connectionrefused"))
    page.fill("#set-window", "90000")
    page.locator("#errors").get_by_text("The server cannot be reached.").wait_for()
    page.unroute("**/*")
    page.wait_for_url(re.compile(r"\?window=90000$"))
    drawn(page)
    assert page.inner_text("#comparison-title + span").endswith("window 90,000")
    assert page.inner_text("#errors") == ""
    page.seen.console.clear()
