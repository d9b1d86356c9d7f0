"""The overview: its chart, its table, its what-if."""

import re
from uuid import uuid4

import msgspec
import pytest

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from tests.browser.conftest import drawn, followed, shot, wait
from tests.browser.looks import STYLED, check_looks
from tests.builders import model, session, tool_result, user
from tests.plugins.tiers import mostly_long
from tests.waiting import until


@pytest.fixture
def overview(page, sessions):
    page.goto(sessions("timing-gap"))
    drawn(page)
    return page


def test_the_chart_offers_nothing_that_leaves_this_machine(overview):
    assert overview.locator(".modebar").count() == 1
    titles = overview.eval_on_selector_all(".modebar-btn", "all => all.map(one => one.dataset.title)")
    assert titles
    assert not [title for title in titles if re.search("share|cloud|send|plotly", title, re.IGNORECASE)]


def test_the_last_answer_is_on_the_first_screen_below_a_chart_with_every_row(overview):
    def is_answered() -> bool:
        overview.reload()
        drawn(overview)
        return "being replayed" not in overview.inner_text("#answers")

    until(is_answered)
    assert overview.locator("#timeline .figure-h4").count() == 1
    box = overview.locator("#answers dd").last.bounding_box()
    assert box["y"] + box["height"] <= 900


def test_a_click_on_a_point_opens_its_step(overview):
    layer = overview.locator("#timeline .nsewdrag").first.bounding_box()
    overview.mouse.move(layer["x"] + layer["width"] * 0.5, layer["y"] + layer["height"] * 0.5)
    overview.wait_for_selector(".hoverlayer text")
    overview.mouse.click(layer["x"] + layer["width"] * 0.5, layer["y"] + layer["height"] * 0.5)
    overview.wait_for_url(re.compile(r"steps\?at=2\d"))


def test_hovering_says_tokens_share_and_step(overview):
    layer = overview.locator("#timeline .nsewdrag").first.bounding_box()
    overview.mouse.move(layer["x"] + layer["width"] * 0.5, layer["y"] + layer["height"] * 0.5)
    overview.wait_for_selector(".hoverlayer text")
    label = overview.locator(".hoverlayer").text_content()
    assert re.search(r"[\d.]+k tokens \(\d+\s%\) at step 28", label), label
    assert "step 28" in label


def test_without_javascript_there_is_a_picture_instead_of_the_chart(open_page, sessions):
    page = open_page(java_script_enabled=False)
    page.goto(sessions("timing-gap") + "?window=100000")
    assert page.locator(".picture .picture-recorded").first.is_visible()
    assert page.locator(".picture .picture-replayed").first.is_visible()
    assert not page.locator("[data-plot]").is_visible()
    assert "Drawing" not in page.inner_text("body")
    shot(page, "overview-no-script", full_page=True)


def test_in_print_the_picture_stands_for_the_chart(overview):
    assert not overview.locator(".picture").is_visible()
    overview.emulate_media(media="print")
    assert overview.locator(".picture").is_visible()
    assert not overview.locator("[data-plot]").is_visible()
    shot(overview, "overview-print", full_page=True)


def test_the_page_ends_where_the_longer_of_its_columns_ends(overview):
    drawn(overview)
    ends = "[...document.querySelectorAll('.replay, .replay > *')].map((item) => item.getBoundingClientRect().bottom)"
    page, *columns = overview.evaluate(ends)
    assert abs(page - max(columns)) < 2


def test_on_a_phone_a_picture_of_the_replay_stays_above_the_settings(open_page, sessions):
    page = open_page(360, 640)
    page.goto(sessions("timing-gap"))
    drawn(page)
    page.focus("#set-summary")
    inside = """id => {
      const [seen, field] = [".settings-picture", id].map((one) => document.querySelector(one).getBoundingClientRect());
      return seen.top >= 0 && seen.bottom <= field.top && field.bottom <= innerHeight;
    }"""
    wait(page, inside, "#set-summary")
    assert page.locator(".settings-picture").bounding_box()["y"] == 0, "the bar does not stay above it"
    before = page.locator("#timeline-lines .picture-replayed").get_attribute("d")
    page.focus("#set-window")
    page.fill("#set-window", "100000")
    page.wait_for_url(re.compile("window=100000"))
    wait(page, inside, "#set-window")
    assert page.locator("#timeline-lines .picture-replayed").get_attribute("d") != before


COVERED = """() => [...document.querySelector("main").querySelectorAll(
    "a, button, input, select, h1, h2, dt, dd, label, li, td, th, figcaption")]
  .filter((item) => item.checkVisibility() && item.getBoundingClientRect().width)
  .filter((item) => {
    item.scrollIntoView({ block: "center", inline: "center" });
    const box = item.getBoundingClientRect();
    const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return !(hit && (item.contains(hit) || hit.contains(item)));
  })
  .map((item) => item.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize(
    "path",
    mostly_long(
        ["", "?window=100000&table=1", "?policy=none&cap=many", "?floor=9"], short=["", "?window=100000&table=1"]
    ),
)
def test_on_a_phone_nothing_covers_anything(open_page, sessions, path):
    page = open_page(360, 800)
    page.goto(sessions("timing-gap") + path)
    drawn(page)
    assert page.evaluate(COVERED) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("width", [700, 800, 1440])
def test_what_is_scrolled_to_is_not_below_the_bar(overview, width):
    overview.set_viewport_size({"width": width, "height": 500})
    for name in ("#timeline [data-plot]", "#findings-title"):
        overview.evaluate("scrollTo(0, document.body.scrollHeight)")
        overview.evaluate("name => document.querySelector(name).scrollIntoView()", name)
        above = "name => document.querySelector(name).getBoundingClientRect().top"
        bar = overview.locator(".topbar").bounding_box()
        assert overview.evaluate(above, name) >= max(0, bar["y"] + bar["height"]) - 1, name


def test_on_a_phone_few_steps_have_few_ticks_at_whole_steps(open_page, sessions):
    page = open_page(360, 800)
    page.goto(sessions("timing-gap") + "?zoom=1-12")
    drawn(page)
    ticks = page.locator("[data-plot] .xtick text").all_text_contents()
    assert 2 <= len(ticks) <= 6, ticks
    assert all(tick.isdigit() for tick in ticks), ticks
    assert len(set(ticks)) == len(ticks), ticks


def test_a_chart_is_drawn_again_for_a_page_that_becomes_narrow_and_wide_again(open_page, big):
    page = open_page()
    page.goto(big)
    drawn(page)

    def shows() -> list[float]:
        plot = "document.querySelector('.js-plotly-plot')"
        shown = f"{plot}.data.filter(item => item.hovertext && item.mode.includes('text')).length"
        return page.evaluate(f"[{plot}._fullLayout.margin.r, {shown}]")

    wide = shows()
    page.set_viewport_size({"width": 360, "height": 800})
    until(lambda: shows()[0] < wide[0])
    assert shows()[1] == 0 < wide[1], "thirty numbers would lie on one another"
    page.set_viewport_size({"width": 1440, "height": 900})
    until(lambda: shows() == wide)


LEGEND = """() => [...document.querySelectorAll("[data-legend] button")].map((entry) => {
  const drawing = entry.querySelector("path").getBoundingClientRect();
  return [entry.textContent, Math.max(drawing.width, drawing.height) > 4];
})"""
DRAWN = """name => document.querySelector("#timeline .js-plotly-plot").data
  .find((one) => one.name === name).visible !== false"""


def test_each_entry_of_the_legend_has_its_mark_and_shows_or_hides_what_it_names(overview):
    entries = overview.evaluate(LEGEND)
    assert {"recorded prompt tokens", "compaction", "context window"} <= {name for name, _ in entries}
    assert all(has_mark for _, has_mark in entries)
    entry = overview.get_by_role("button", name="compaction", exact=True)
    entry.focus()
    overview.keyboard.press("Enter")
    wait(overview, f"name => !({DRAWN})(name)", "compaction")
    overview.fill("#set-window", "150000")  # what is hidden stays so under other settings
    overview.wait_for_url(re.compile("window=150000"))
    overview.get_by_role("button", name="context window of the replay", exact=True).wait_for()
    assert entry.get_attribute("aria-pressed") == "false"
    assert not overview.evaluate(DRAWN, "compaction")
    entry.click()
    wait(overview, DRAWN, "compaction")


def test_the_chart_takes_the_height_that_the_window_leaves_and_its_labels_stay_apart(overview):
    rows = """() => {
      const box = (item) => item.getBoundingClientRect();
      const main = box(document.querySelector("#timeline .nsewdrag"));
      const labels = [...document.querySelectorAll("#timeline .figure-label-edge")].map(box);
      const places = labels.filter(({ left }) => left > main.right).map(({ top }) => top);
      places.sort((one, other) => one - other);
      return [main.height, Math.min(...places.slice(1).map((place, index) => place - places[index]))];
    }"""
    heights = []
    for height in (700, 1000):
        overview.set_viewport_size({"width": 1440, "height": height})
        plot = "document.querySelector('#timeline [data-plot]')"
        # As it is drawn: plotly forgets the height that it was given a tenth of a second after a window has changed.
        wait(overview, f"{plot}._fullLayout.height === {plot}.clientHeight")
        main, gap = overview.evaluate(rows)
        assert gap > 14
        heights.append(main)
    assert heights[0] < heights[1]


def test_a_replay_with_more_rows_takes_none_of_the_height_of_the_lines(open_page, sessions):
    page = open_page(height=700)
    page.goto(sessions("timing-gap") + "?policy=none")
    drawn(page)
    box = "document.querySelector('#timeline .nsewdrag').getBoundingClientRect().height"
    before = page.evaluate(box)
    visible = "document.querySelector('#timeline .js-plotly-plot').layout.yaxis2.visible"
    assert not page.evaluate(visible)
    page.select_option("#set-policy", "contextguard")
    wait(page, visible)
    assert abs(page.evaluate(box) - before) < 2


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_moves_when_the_chart_is_drawn(open_page, sessions, width):
    page, held = open_page(width), []
    page.route("**/plotly-basic*", lambda route: held.append(route))
    page.goto(sessions("timing-gap"), wait_until="domcontentloaded")  # a script that does not come delays the rest
    wait(page, STYLED)
    below = "document.querySelector('#answers').getBoundingClientRect().top"
    before = page.evaluate(below)
    until(lambda: page.evaluate("true") and held)  # the driver hears of requests while it is spoken to
    held.pop().continue_()
    drawn(page)
    page.get_by_role("button", name="recorded prompt tokens", exact=True).wait_for()
    assert page.evaluate(below) == before
    page.unroute_all()


def test_arrow_keys_read_the_points_and_enter_opens_one(overview):
    overview.focus("[data-plot]")
    overview.keyboard.press("End")
    overview.keyboard.press("ArrowLeft")
    wait(overview, "document.getElementById('announce').textContent.includes('step 54: ')")
    overview.keyboard.press("Enter")
    overview.wait_for_url(re.compile(r"steps\?at=54"))


def test_arrow_keys_read_the_estimate_where_nothing_was_counted(page, served):
    turns = [event for n in range(4) for event in (user(f"request {n}"), model(f"answer {n}"))]
    whole = session(*turns, source_id="half counted", started_at=1.0)
    calls = tuple(
        msgspec.structs.replace(call, prompt_tokens=None) if n in (1, 2) else call for n, call in enumerate(whole.calls)
    )
    half = native.write(msgspec.structs.replace(whole, calls=calls))
    page.goto(followed(served, served.upload("half.jsonl", half).headers["location"]))
    drawn(page)
    page.focus("[data-plot]")
    for key, said in (
        ("Home", "^step 1: recorded prompt tokens [^,]*$"),
        ("ArrowRight", "^step 2: estimated prompt tokens [^,]*$"),
        ("ArrowRight", "^step 3: estimated prompt tokens [^,]*$"),
        ("End", "^step 4: recorded prompt tokens [^,]*$"),
        ("ArrowLeft", "^step 3: estimated"),
    ):
        page.keyboard.press(key)
        wait(page, "said => new RegExp(said).test(document.getElementById('announce').textContent)", said)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"steps\?at=3"))


def test_labels_are_beside_their_lines_and_titles_above_their_rows(overview):
    """They are words of the page: to measure them is what costs plotly the most after its lines."""
    places = """() => {
      const plot = document.querySelector("#timeline .js-plotly-plot");
      const { top, right } = plot.querySelector(".nsewdrag").getBoundingClientRect();
      const { _fullLayout: { yaxis, yaxis3, margin } } = plot;
      const box = (name, words) => [...plot.querySelectorAll(`.figure-label-${name}`)]
        .find((item) => item.textContent.startsWith(words)).getBoundingClientRect();
      const edge = box("edge", "window 200k");
      const title = box("row", "messages, recorded");
      return {
        off: (edge.top + edge.bottom) / 2 - top - yaxis.l2p(200000),
        right: edge.left - right,
        above: yaxis3._offset - margin.t + top - title.bottom,
        annotations: plot.querySelectorAll(".annotation").length,
      };
    }"""
    for width in (1440, 1000):
        overview.set_viewport_size({"width": width, "height": 900})
        wait(overview, f"() => Math.abs(({places})().right - 6) < 2")
        found = overview.evaluate(places)
        assert abs(found["off"]) < 2
        assert abs(found["above"]) < 2
        assert found["annotations"] == 0
    overview.set_viewport_size({"width": 360, "height": 900})
    wait(overview, "!document.querySelector('#timeline .figure-label-edge')")


def test_a_changed_setting_is_replayed_at_once_and_stands_in_the_address(overview):
    old = overview.inner_text("#comparison-title + span")
    overview.fill("#set-window", "100000")
    overview.wait_for_url(re.compile(r"\?window=100000$"))
    wait(overview, "old => document.querySelector('#comparison-title + span').innerText !== old", old)
    assert "window 100,000" in overview.inner_text("#comparison-title + span")
    drawn(overview)
    assert overview.evaluate("document.activeElement.id") == "set-window"
    assert overview.input_value("#set-window") == "100000"


def test_a_slider_writes_into_its_field_and_typing_moves_the_slider(overview):
    slider = overview.locator('[data-slider="set-cap"]')
    before = float(slider.input_value())
    slider.focus()
    slider.press("ArrowRight")
    overview.wait_for_url(re.compile(r"cap="))
    assert float(overview.input_value("#set-cap")) > before
    overview.fill("#set-cap", "3")
    overview.wait_for_url(re.compile(r"cap=3$"))
    assert slider.input_value() == "3"


def test_the_chart_stays_while_its_data_change(overview):
    overview.evaluate("window.kept = document.querySelector('.js-plotly-plot')")
    overview.select_option("#set-profile", "early")
    overview.wait_for_url(re.compile("profile=early"))
    drawn(overview)
    assert overview.evaluate("window.kept.isConnected")
    threshold = overview.evaluate("window.kept.data.find(item => item.name === 'ContextGuard threshold').y")
    assert overview.evaluate("window.kept.layout.yaxis.range[1]") > 0
    assert threshold


def test_an_answer_to_changed_settings_takes_no_part_of_the_drawing_or_the_legend_away(overview):
    overview.evaluate("""() => {
      window.taken = [];
      document.addEventListener("htmx:beforeCleanupElement", ({ target }) => window.taken.push(target));
    }""")
    entry = overview.locator("[data-legend] button", has_text="context window")
    entry.click()
    overview.fill("#set-window", "90000")
    overview.wait_for_url(re.compile(r"\?window=90000$"))
    drawn(overview)
    assert overview.evaluate("window.taken.some((element) => element.id === 'timeline')")
    inside = "window.taken.filter((element) => element.closest('[data-plot], [data-legend]')).length"
    assert overview.evaluate(inside) == 0
    overview.locator("[data-legend] button", has_text="compaction").first.click()
    assert overview.locator("[data-legend] [aria-pressed=false]").all_text_contents() == ["compaction"]


def test_a_drawing_computes_the_styles_of_the_page_fewer_times_than_it_has_colours(overview):
    protocol = overview.context.new_cdp_session(overview)
    protocol.send("Performance.enable")

    def computed():
        metrics = protocol.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "RecalcStyleCount")

    colours = overview.evaluate("Object.keys(document.querySelector('[data-plot]').layout.meta.palette).length")
    before = computed()
    overview.evaluate("""async () => {
      const plot = document.querySelector("[data-plot]");
      const drawn = new Promise((resolve) => plot.once("plotly_afterplot", resolve));
      document.dispatchEvent(new CustomEvent("themechange"));
      await drawn;
    }""")
    assert computed() - before < colours
    protocol.detach()


def test_the_chart_comes_before_the_words_and_its_points_once(overview):
    held, asked = [], []
    overview.route(lambda url: "window=90000" in url and "figure.json" not in url, lambda route: held.append(route))
    overview.on("request", lambda request: asked.append(request.url) if "figure.json" in request.url else None)
    words = overview.inner_text("#comparison-title + span")
    window = "document.querySelector('#timeline .figure-label-edge').textContent"
    overview.fill("#set-window", "90000")
    wait(overview, f"{window} === 'replay window 90k'")
    assert overview.inner_text("#comparison-title + span") == words
    held.pop().continue_()
    overview.wait_for_url(re.compile(r"\?window=90000$"))
    drawn(overview)
    assert overview.inner_text("#comparison-title + span").endswith("window 90,000")
    assert overview.evaluate(window) == "replay window 90k"
    assert len(asked) == 1
    overview.unroute_all()


def test_results_are_replaced_without_a_look_at_each_of_their_elements(overview):
    looked_at = """() => {
      window.passed = 0;
      document.addEventListener("htmx:beforeCleanupElement", ({ target }) => {
        window.passed += target.matches("#results *");
      });
    }"""
    overview.evaluate(looked_at)
    before = overview.inner_text("#results")
    overview.fill("#set-window", "90000")
    overview.press("#set-window", "Enter")
    wait(overview, "text => document.getElementById('results').innerText !== text", before)
    assert overview.evaluate("window.passed") == 0


def test_a_sent_address_shows_the_same_replay(overview, open_page):
    overview.fill("#set-buffer", "40%")
    overview.wait_for_url(re.compile(r"buffer=40%25"))
    other = open_page()
    other.goto(overview.url)
    assert other.input_value("#set-buffer") == "40%"
    assert other.inner_text(".comparison") == overview.inner_text(".comparison")


# Milliseconds between keys, without and with answers in between, and milliseconds that an answer takes longer.
@pytest.mark.parametrize(
    ("pause", "latency"), mostly_long([(20, 0), (20, 700), (320, 0), (320, 700)], short=[(20, 0), (320, 700)])
)
def test_what_is_typed_stays_as_typed_however_slow_the_answers_are(overview, pause, latency):
    network = overview.context.new_cdp_session(overview)
    slow = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    overview.focus("#set-window")
    overview.keyboard.type("64000", delay=pause)
    overview.keyboard.press("Tab")
    overview.keyboard.type("10%", delay=pause)
    overview.wait_for_url(re.compile(r"\?window=64000&buffer=10%25$"))
    assert (overview.input_value("#set-window"), overview.input_value("#set-buffer")) == ("64000", "10%")
    assert overview.evaluate("document.activeElement.id") == "set-buffer"
    assert overview.inner_text("#comparison-title + span").endswith("window 64,000, buffer 10%")
    network.detach()


def test_the_last_settings_win_over_answers_that_come_later(overview):
    overview.evaluate("""() => {
      const form = document.getElementById("settings");
      for (const window of ["30000", "50000", "70000"]) {
        form.elements.window.value = window;
        form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
      }
    }""")
    overview.wait_for_url(re.compile(r"\?window=70000$"))
    overview.wait_for_load_state("networkidle")
    assert overview.url.endswith("?window=70000")
    assert "window 70,000" in overview.inner_text("#comparison-title + span")


def test_fields_that_the_profile_ignores_are_off_and_say_why(overview):
    overview.fill("#set-cap", "3")
    overview.wait_for_url(re.compile("cap=3"))
    overview.select_option("#set-profile", "tail")
    overview.wait_for_url(re.compile(r"\?profile=tail$"))
    assert overview.is_disabled("#set-cap")
    assert overview.inner_text("#note-cap") == "not used by profile tail"
    assert overview.is_enabled("#set-window")
    overview.select_option("#set-profile", "current")
    overview.wait_for_url(re.compile(r"\?cap=3$"))
    assert overview.is_enabled("#set-cap")


def test_what_was_typed_comes_back_with_the_policy_that_has_the_field(overview):
    overview.fill("#set-buffer", "15%")
    overview.wait_for_url(re.compile("buffer=15%25"))
    overview.select_option("#set-policy", "none")
    overview.wait_for_url(re.compile(r"\?policy=none$"))
    overview.wait_for_selector("#set-buffer", state="detached")
    overview.select_option("#set-policy", "contextguard")
    overview.wait_for_url(re.compile(r"\?buffer=15%25$"))
    assert overview.input_value("#set-buffer") == "15%"


def test_the_chart_is_in_view_while_settings_change(overview):
    overview.focus("#set-floor")
    seen = "document.querySelector('#timeline .nsewdrag').getBoundingClientRect()"
    assert overview.evaluate(f"{seen}.top >= 0 && {seen}.bottom <= innerHeight")


def test_a_setting_that_is_not_allowed_is_one_line_beside_its_field(overview):
    address, chart = overview.url, overview.inner_text("#headline")
    overview.fill("#set-cap", "many")
    wait(overview, "document.getElementById('note-cap').innerText.includes('a number from 0 to 100')")
    assert overview.get_attribute("#set-cap", "aria-invalid") == "true"
    assert overview.locator("#overview", has_text="a number from 0 to 100").count() == 1
    assert (overview.url, overview.inner_text("#headline")) == (address, chart)
    overview.fill("#set-cap", "3")
    overview.wait_for_url(re.compile("cap=3"))
    assert overview.get_attribute("#set-cap", "aria-invalid") is None
    assert overview.inner_text("#note-cap") == "upper limit of the correction factor"


def test_another_policy_brings_its_own_settings_and_leaves_the_focus_where_it_was(overview):
    overview.focus("#set-policy")
    for _ in range(presses_to(overview, "codex")):  # past others: no answer to one of them may take the choice back
        overview.keyboard.press("ArrowDown")
    overview.wait_for_url(re.compile("policy=codex"))
    overview.wait_for_selector("#set-limit")
    assert overview.evaluate("document.activeElement.id") == "set-policy"
    assert overview.input_value("#set-policy") == "codex"
    assert overview.locator("#set-buffer").count() == 0
    overview.fill("#set-limit", "80k")
    overview.wait_for_url(re.compile("limit=80000"))
    assert overview.input_value("#set-limit") == "80k"


def test_a_preset_is_saved_with_the_settings_as_they_are_by_now(overview):
    overview.locator("details.saved-queries > summary").click()
    overview.fill("#set-cap", "3")
    overview.wait_for_url(re.compile("cap=3"))
    overview.wait_for_selector("#saved-help:has-text('cap 3')")  # in the answer that changed the address
    overview.fill("#saved-name", "Corrected at most three times, " + "unbroken" * 3)
    overview.get_by_role("button", name="Save", exact=True).click()
    current = overview.locator("[data-fresh=saved-current]")
    current.filter(has_text="Corrected").wait_for()
    drawn(overview)
    menu = overview.locator("details.saved-queries").first
    menu.get_by_role("link", name="Corrected").wait_for()  # it stays open
    overview.fill("#set-cap", "2")
    overview.wait_for_selector("#saved-help:has-text('cap 2')")
    assert current.text_content() == ""
    shot(overview, "overview-presets")
    overview.set_viewport_size({"width": 360, "height": 800})
    menu.scroll_into_view_if_needed()
    shot(overview, "overview-presets-360")
    overview.locator("summary", has_text="Rename Corrected").press("Enter")
    field = overview.get_by_role("textbox", name="New name of Corrected")
    field.fill("Corrected by halves, " + "unbroken" * 3)
    assert overview.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(overview, "overview-preset-renamed-360")
    field.press("Enter")
    overview.wait_for_url(re.compile("cap=2#saved"))  # what is shown stays, whatever the preset stands for
    drawn(overview)
    overview.get_by_role("link", name="Corrected by halves").wait_for()
    delete = overview.get_by_role("button", name="Delete Corrected")
    delete.click()
    undo = overview.get_by_role("button", name="Undo")
    undo.wait_for()
    drawn(overview)
    assert overview.get_by_role("link", name="Corrected").count() == 0
    for width in (360, 1440):
        overview.set_viewport_size({"width": width, "height": 900})
        undo.scroll_into_view_if_needed()
        assert overview.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shot(overview, f"overview-preset-deleted-{width}")
    undo.click()
    overview.wait_for_url(re.compile("cap=2#saved"))
    overview.get_by_role("link", name="Corrected").wait_for()
    delete.click()
    undo.wait_for()


def presses_to(page, policy: str) -> int:
    """How many presses of a key lead down to a policy."""
    places = "policy => [...document.querySelector('#set-policy').options].findIndex(item => item.value === policy)"
    return page.evaluate(places, policy) - page.evaluate("document.querySelector('#set-policy').selectedIndex")


def test_a_choice_made_while_the_form_is_being_replaced_is_not_lost(overview):
    overview.evaluate("""() => {
      const before = document.getElementById("set-policy");
      document.addEventListener("htmx:afterSwap", () => {
        const select = document.getElementById("set-policy");
        if (select === before || select.value !== "claude-code") return;
        select.value = "codex";
        select.dispatchEvent(new Event("change", { bubbles: true }));
      });
    }""")
    overview.select_option("#set-policy", "claude-code")
    overview.wait_for_url(re.compile("policy=codex"))
    overview.wait_for_selector("#set-limit")


def test_the_tabs_keep_the_settings(overview):
    overview.fill("#set-window", "60000")
    overview.wait_for_url(re.compile(r"window=60000"))
    wait(overview, "document.querySelector('.tabs a:nth-child(2)').search === '?window=60000'")
    overview.click(".tabs a:nth-child(2)")
    overview.wait_for_selector("#step")
    assert "window=60000" in overview.url


def test_leaving_a_field_by_a_slow_click_on_a_link_opens_the_link(overview):
    overview.fill("#set-window", "60000")
    overview.wait_for_url(re.compile(r"window=60000"))
    wait(overview, "document.querySelector('.tabs a:nth-child(2)').search === '?window=60000'")
    overview.click(".tabs a:nth-child(2)", delay=600)  # milliseconds between button down and up
    overview.wait_for_selector("#step")


def test_reset_gives_the_default_replay_back(overview):
    overview.fill("#set-cap", "1")
    overview.wait_for_url(re.compile(r"cap=1"))
    overview.click("text=Reset")
    overview.wait_for_url(re.compile(r"/s/[0-9a-f-]{36}/$"))
    assert overview.input_value("#set-cap") == ""


def test_the_chart_can_be_read_as_a_table_that_opens_in_view(overview):
    overview.click("text=View as table")
    overview.wait_for_selector(".chart-table tbody tr")
    wait(overview, "document.activeElement.matches('.chart-table')")
    seen = "document.querySelector('.chart-table').getBoundingClientRect()"
    assert overview.evaluate(f"{seen}.top >= 48 && {seen}.top < innerHeight / 2")
    assert overview.locator(".chart-table tbody tr").count() == 40
    overview.locator(".chart-table tbody tr >> nth=38 >> a").click()
    overview.wait_for_url(re.compile(r"steps\?at=39"))


def test_a_closed_table_leaves_the_focus_where_it_was_opened(overview):
    overview.click("text=View as table")
    overview.wait_for_selector(".chart-table tbody tr")
    overview.click("text=Close the table")
    wait(overview, "document.activeElement.id === 'open-table'")
    assert overview.locator(".chart-table").count() == 0


def test_a_finding_leads_to_its_step(overview):
    overview.locator(".finding-links a").first.click()
    overview.wait_for_selector('#step[data-at="49"]')


def test_a_zoom_fetches_the_points_between(page, big):
    page.goto(big)
    drawn(page)
    zoom = "Plotly.relayout(document.querySelector('[data-plot]'), {'xaxis.range[0]': 100, 'xaxis.range[1]': 300})"
    with page.expect_response(re.compile("figure.json")) as answer:
        page.evaluate(zoom)
    assert "from=100&to=300" in answer.value.url
    wait(page, "document.querySelector('[data-plot]').layout.xaxis.range[1] < 302")


def test_the_theme_is_kept_and_the_chart_follows_without_a_reload(overview):
    line = "document.querySelector('[data-plot]').data.find(item => item.name === 'recorded prompt tokens').line.color"
    before = overview.evaluate(line)
    overview.click("[data-theme-toggle]")
    wait(overview, f"before => {line} !== before", before)
    assert overview.evaluate(line) == "rgb(86, 180, 233)"
    overview.reload()
    assert overview.get_attribute("html", "data-theme") == "dark"


def test_a_window_of_ones_own_is_shown_with_its_source_and_everything_is_computed_anew(page, served):
    place = followed(served, served.upload("own.jsonl", own_window()).headers["location"])
    page.goto(place)
    drawn(page)
    before = page.inner_text(".kpi .value")
    page.get_by_text("Change the window").click()
    page.fill("#window-stated", "50k")
    page.get_by_label("this session only").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("set for this session, instead of").wait_for()
    drawn(page)
    shot(page, "window-own", full_page=True)
    assert page.inner_text(".kpi .value") != before
    facts = page.locator("#overview .facts")
    assert facts.locator("[data-source=user]").count() == 1
    assert "set for this session, instead of" in facts.inner_text()
    page.get_by_text("Change the window").click()
    page.get_by_role("button", name=re.compile("^Use .* for this session only again$")).click()
    wait(page, "before => document.querySelector('.kpi .value')?.innerText === before", before)
    assert page.locator("#overview .facts [data-source=user]").count() == 0


def own_window() -> bytes:
    """A session that no other test changes."""
    return native.write(SAMPLES["small-window"].build()).replace(b"access log", f"access log {uuid4().hex}".encode())


def test_a_session_without_model_calls_says_what_is_known(page, served):
    value = session(user("hello " * 200), tool_result("found " * 900, "grep", "c1"), user("thanks"), title="Notes")
    place = followed(served, served.upload("silent.jsonl", native.write(value)).headers["location"])
    page.goto(place)
    assert page.get_by_text("No model calls in this recording").is_visible()
    assert page.locator("[data-figure]").count() == 0
    check_looks(page, "without-calls", full_page=True)
