"""A real browser against the served application: one server and one browser for the folder, one page for each test."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.services.server import PATIENCE, Running, running, until

FOLDER = Path(__file__).parent
SCREENSHOTS = FOLDER / "screenshots"
AXE = FOLDER / "vendor/axe-4.14.1.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
VIOLATIONS = "addEventListener('securitypolicyviolation', e => (window.violations ??= []).push(e.violatedDirective))"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.browser)


@dataclass
class Seen:
    """What a page said and asked for while a test used it."""

    origin: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    received: int = 0

    def watch(self, page) -> None:
        page.on("console", lambda message: self.console.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self._request(request.url))
        page.on("response", self._response)

    def _request(self, url: str) -> None:
        if not url.startswith((self.origin, "ws" + self.origin.removeprefix("http"), "data:", "blob:")):
            self.foreign.append(url)

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


@pytest.fixture
def open_page(chromium, served: Running) -> Iterator[Callable]:
    """Opens pages of a size and theme. In the end none of them may have complained or asked anywhere else."""
    opened = []

    def opener(width: int = 1440, height: int = 900, theme: str = "light", server: Running = served, **more):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, base_url=server.origin, **more
        )
        context.add_init_script(VIOLATIONS)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        seen = Seen(server.origin)
        seen.watch(page)
        opened.append((context, page, seen))
        page.seen = seen
        return page

    yield opener
    for context, page, seen in opened:
        violations = page.evaluate("window.violations ?? []")
        context.close()
        assert seen.console == []
        assert seen.foreign == []
        assert violations == []


@pytest.fixture
def page(open_page):
    return open_page()


@pytest.fixture(scope="package")
def sessions(served: Running) -> Callable[[str], str]:
    """The address of a sample session, opened on the first use."""
    known: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in known:
            known[name] = followed(served, served.post(f"/samples/{name}/").headers["location"])
        return known[name]

    return address


@pytest.fixture(scope="package")
def big(served: Running) -> str:
    """The address of a session of 50,000 steps."""
    from guard_core.recordings import native
    from guard_core.simulator.samples import big_session

    answer = served.upload("big.jsonl", native.write(big_session()))
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
    """A screenshot to look at; git ignores the folder."""
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", **more)
