"""The list of running agents, as it looks."""

from __future__ import annotations

import json

from guard_core.streaming import Client
from tests.browser.looks import check_looks
from tests.builders import model, session, user
from tests.inspector.streamed import lines_of


def test_a_long_name_widens_no_page(open_page, served):
    long = session(user("Go"), model("Done."), title="w" * 300, agent="a" * 200, model="m" * 200, window=180_000)
    client = Client(served.origin)
    client.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines_of(long)))
    assert client.wait(60)
    for width in (360, 1024, 1440):
        page = open_page(width=width)
        page.goto("/running/")
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_agents_appear_while_the_page_is_open(page, served):
    page.add_init_script(
        """window.shown = [];
        window.Notification = class {
          static permission = "granted";
          static requestPermission() { return Promise.resolve("granted"); }
          constructor(title, options) { window.shown.push([title, options.body]); }
        };"""
    )
    page.goto("/running/")
    page.get_by_role("button", name="Notify me").click()
    page.get_by_role("button", name="Do not notify").wait_for()
    for name, count in (("Nightly invoices", 171_000), ("Review of the parser", 40_000)):
        lines = lines_of(session(user("Go"), model("Done."), title=name, window=180_000, model="claude-opus-4-5"))
        for line in lines:
            if "calls" in line:
                line["calls"]["prompt_tokens"] = count
        client = Client(served.origin)
        client.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        assert client.wait(60)
    page.get_by_role("link", name="Review of the parser").wait_for()
    rows = page.get_by_role("row").all_inner_texts()  # other tests have sessions there, too
    places = [next(n for n, row in enumerate(rows) if row.startswith(name)) for name in ("Nightly", "Review")]
    assert places == sorted(places), "fullest first"
    page.get_by_role("status").filter(has_text="Nightly invoices: near miss, step 1").wait_for()
    assert ["Nightly invoices", "near miss, step 1"] in page.evaluate("window.shown")
    check_looks(page, "running")
