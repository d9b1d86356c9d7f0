"""Sessions are hostile text: nothing in one runs, loads or links anywhere."""

import re

import pytest

from guard_core.recordings.formats import native
from tests.browser.conftest import drawn, followed, shot
from tests.builders import model, session, tool_call, tool_result, user

SCRIPT = "<script>document.title='XSS'</script><img src=https://evil.invalid/x onerror=\"document.title='XSS'\">"
HTMX = '<div hx-get="https://evil.invalid/" hx-trigger="load"><a href="https://evil.invalid/">out</a></div>'
BIDI = "\u202egnp.exe \x1b[31mred\x1b[0m \u200bzero"


@pytest.fixture(scope="module")
def hostile(served):
    events = []
    for turn in range(12):
        events += [
            user(f"{SCRIPT} {HTMX} {BIDI} {turn}"),
            tool_call(f"<b onclick=x>{turn}</b>", f"c{turn}", path=SCRIPT),
            tool_result({SCRIPT: HTMX, "n": turn}, f"<i>{turn}</i>", f"c{turn}"),
            model(f"{HTMX} %{{customdata}} {turn}", reasoning=SCRIPT),
        ]
    value = session(
        *events, system=SCRIPT, title=f"%{{y}} {SCRIPT}", agent=SCRIPT, model="<a href='https://evil.invalid'>m"
    )
    answer = served.upload("hostile.jsonl", native.write(value))
    assert "location" in answer.headers, answer.text[:300]
    return followed(served, answer.headers["location"])


@pytest.mark.parametrize(
    "path", ["", "?window=300", "steps?at=10", "steps?at=10&window=300&side=replayed", "c/1/?window=300&side=replayed"]
)
def test_nothing_in_a_session_runs_or_leads_out(page, hostile, path):
    page.goto(hostile + path)
    if page.locator("[data-figure]").count():
        drawn(page)
        page.focus("[data-plot]")
        page.keyboard.press("End")
    for summary in page.locator("summary").all():
        summary.click()
    shot(page, f"hostile-{re.sub('[^a-z]+', '-', path) or 'overview'}")
    assert "XSS" not in page.title().replace("document.title='XSS'", "")
    assert (
        page.evaluate(
            "document.querySelectorAll('a[href*=evil], [src*=evil], [hx-get*=evil], [onclick], [onerror]').length"
        )
        == 0
    )


def test_characters_that_hide_or_turn_text_are_marked(page, hostile):
    page.goto(hostile + "steps?at=10")
    text = page.inner_text("#messages")
    assert "⟨U+202E⟩" in text
    assert "␛[31m" in text
    assert "\u202e" not in text


@pytest.fixture(scope="module")
def long_named(served):
    """A session whose tool has a name of 180 characters."""
    name = "tool_" + "x" * 175
    value = session(user("Look"), tool_call(name, "c1"), tool_result("Done " * 400, name, "c1"), model("Done"))
    return followed(served, served.upload("long-named.jsonl", native.write(value)).headers["location"])


@pytest.mark.parametrize("path", ["", "steps?at=1", "context"])
def test_a_long_name_of_a_tool_widens_no_page(open_page, long_named, path):
    page = open_page(width=360)
    page.goto(long_named + path)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
