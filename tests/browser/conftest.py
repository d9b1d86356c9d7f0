"""A real browser against the served application: one server and one browser for the folder, one page for each test."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from tests.services.server import Answer, Running, running
from tests.waiting import PATIENCE, until

FOLDER = Path(__file__).parent
SCREENSHOTS = FOLDER / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
RELATED = "sub-agents"  # not a bundled sample: made by `_related`
FORGET = "() => { localStorage.clear(); sessionStorage.clear(); }"
VIOLATIONS = "addEventListener('securitypolicyviolation', e => (window.violations ??= []).push(e.violatedDirective))"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.browser)
    if "check_looks" in item.function.__code__.co_names:  # which asks more of a page in `make long`
        item.add_marker(pytest.mark.long("more"))


@dataclass
class Seen:
    """What a page said and asked for while a test used it."""

    origin: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    received: int = 0

    def __post_init__(self) -> None:
        self._heard = {
            "console": self._message,
            "pageerror": lambda error: self.console.append(str(error)),
            "request": self._request,
            "response": self._response,
        }

    def watch(self, page) -> None:
        for event, hear in self._heard.items():
            page.on(event, hear)

    def leave(self, page) -> None:
        for event, hear in self._heard.items():
            page.remove_listener(event, hear)

    def _message(self, message) -> None:
        place = message.location.get("url", "")
        idle = place.endswith("/favicon.ico")  # asked for by the address where pages wait: it has no icon of its own
        # A page that is still open when its server has ended asks once more whether the session has grown.
        idle |= urlparse(place).path.endswith("/growth") and "ERR_CONNECTION_REFUSED" in message.text
        if message.type in ("error", "warning") and not idle:
            self.console.append(f"{message.text} ({place})")

    def _request(self, request) -> None:
        own = (self.origin, "ws" + self.origin.removeprefix("http"), "data:", "blob:")
        if not request.url.startswith(own):
            self.foreign.append(request.url)

    def _response(self, response) -> None:
        self.received += int(response.headers.get("content-length", 0))


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("browsed")) as started:
        yield started


@pytest.fixture(scope="package")
def chromium():
    """The browser of the system. Without one the tests are skipped, and with CI set they fail."""
    if CHROMIUM is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "no chromium on this machine: install the package chromium"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Pages:
    """Pages by their kind, used again by the next test: in a new one, fetching and compiling the scripts anew costs six
    times what the page does."""

    def __init__(self, chromium) -> None:
        self._chromium = chromium
        self._idle: dict[str, list[Any]] = {}

    def take(self, **kind: Any):
        """A page of a window with these options, as if nobody had used it."""
        idle = self._idle.setdefault(repr(kind), [])
        if idle:
            return idle.pop()
        context = self._chromium.new_context(**kind)
        context.add_init_script(VIOLATIONS)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.idle, page.kind = idle, kind
        return page

    def give_back(self, page, server: Running) -> None:
        """What the page remembered goes; it waits at an address of its server, where it keeps its process."""
        if page.is_closed() or server.process.poll() is not None:
            page.context.close()
            return
        page.unroute_all()
        page.evaluate(FORGET)
        page.goto(f"{server.origin}/healthz")
        page.emulate_media(media="null", color_scheme=page.kind["color_scheme"])
        page.set_viewport_size(page.kind["viewport"])
        page.context.clear_cookies()
        page.idle.append(page)


@pytest.fixture(scope="package")
def pages(chromium) -> Pages:
    return Pages(chromium)


@pytest.fixture
def open_page(pages, served: Running, pytestconfig: pytest.Config) -> Iterator[Callable]:
    """Opens pages of a size and theme. In the end none of them may have complained or asked anywhere else."""
    opened = []

    def opener(width: int = 1440, height: int = 900, theme: str = "light", server: Running = served, **more):
        size = {"width": width, "height": height}
        page = pages.take(viewport=size, color_scheme=theme, base_url=server.origin, **more)
        page.seen, page.is_short = Seen(server.origin), pytestconfig.getoption("short")
        page.seen.watch(page)
        opened.append((page, page.seen, server))
        return page

    yield opener
    complaints = []
    for page, seen, server in opened:
        broken = [] if page.is_closed() else page.evaluate("window.violations ?? []")
        complaints += [*seen.console, *seen.foreign, *broken]
        seen.leave(page)
        pages.give_back(page, server)
    assert complaints == []


@pytest.fixture
def page(open_page):
    return open_page()


@pytest.fixture(scope="package")
def sessions(served: Running) -> Callable[[str], str]:
    """The address of a sample session, opened on the first use."""
    known: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in known:
            answer = _related(served) if name == RELATED else served.post(f"/samples/{name}/")
            known[name] = followed(served, answer.headers["location"])
        return known[name]

    return address


def _related(served: Running) -> Answer:
    """A session whose tool call started another one that is here, and one that is not."""
    from guard_core.recordings.formats import native
    from guard_core.sessions import SubAgent
    from tests.builders import model, session, tool_call, tool_result, user

    agent = session(user("Look"), model("Found"), source_id="a1", parent="m", title="Sub-agent a1")
    answer = served.upload("agent.jsonl", native.write(agent))
    followed(served, answer.headers["location"])
    started = (SubAgent("a1", "c1", 1), SubAgent("a2", "c2", 3))
    events = [event for id in ("c1", "c2") for event in (tool_call("Task", id), tool_result("Done", "Task", id))]
    main = session(user("Go"), *events, model("Done"), source_id="m", sub_agents=started, title="Main")
    return served.upload("main.jsonl", native.write(main))


@pytest.fixture(scope="package")
def big(served: Running, pytestconfig: pytest.Config) -> str:
    """The address of a session of 6,000 steps: far more than a page shows, or a chart has points. `make test` looks at
    one zoom alone, for which there are points enough in 1,500."""
    from guard_core.recordings.formats import native
    from tests.big_sessions import big_session

    steps = 1_500 if pytestconfig.getoption("short") else 6_000
    answer = served.upload("big.jsonl", native.write(big_session(steps, 30)))
    assert "location" in answer.headers, (answer.status, answer.text[:300])
    return followed(served, answer.headers["location"])


def followed(served: Running, location: str, seconds: float = PATIENCE) -> str:
    """The session that an import ends in."""
    path = urlparse(location).path

    def target() -> str:
        answer = served.get(path)
        place = urlparse(answer.headers.get("location", path)).path
        return place if re.fullmatch(r"/s/[0-9a-f-]{36}/", place) else ""

    return until(target, seconds)


def drawn(page, selector: str = "[data-figure]") -> None:
    """Wait until the figure is there."""
    page.wait_for_selector(f"{selector}[data-drawn]")


def nodes(page) -> int:
    return page.evaluate("document.querySelectorAll('*').length")


def wait(page, expression: str, argument=None) -> None:
    """Wait until a JavaScript function of the page is true; the page itself may not evaluate text."""
    until(lambda: page.evaluate(expression, argument))


def shot(page, name: str, **more) -> None:
    """A screenshot to look at, where SCREENSHOTS is set (`make screenshots`); git ignores the folder."""
    if not os.environ.get("SCREENSHOTS"):
        return
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", **more)
