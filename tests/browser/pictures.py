"""The pictures of the README and of the page Help: taken anew by `make pictures`, from the bundled samples.

python -m tests.browser.pictures
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.services.server import PATIENCE, Running, running, until

FOLDER = Path(__file__).parents[2] / "static/pictures"
WIDTH, HEIGHT = 1280, 760
SAMPLE = "long-coding"


class Picture(NamedTuple):
    """A page of the sample's session, below its address, and what is there once it is complete."""

    name: str
    address: str
    shows: str  # a selector


PICTURES = (
    Picture("overview", "", "[data-figure][data-drawn]"),
    Picture("step", "steps?at=40", "h1, h2"),
    Picture("compaction", "c/1/", "h1"),
    Picture("context", "context", "h1"),
    Picture("facts", "facts", "h1"),
    Picture("policies", "policies", ".trend"),
)


def session_of(server: Running) -> str:
    """The address of the sample's session."""
    answer = server.post(f"/samples/{SAMPLE}/")
    where = answer.headers["location"]
    return (
        where
        if where.startswith("/s/")
        else str(until(lambda: re.search(r"/s/[0-9a-f-]{36}/", _landing(server, where))[0]))
    )


def _landing(server: Running, where: str) -> str:
    answer = server.get(where)
    return answer.headers.get("location", "") + answer.text


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "data", DATABASE_URL="") as server:
        session = server.origin + session_of(server)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.set_default_timeout(PATIENCE * 1000)
            for picture in PICTURES:
                page.goto(session + picture.address)
                page.wait_for_selector(picture.shows)
                page.wait_for_timeout(1_000)  # for what the page still draws
                page.screenshot(path=FOLDER / f"{picture.name}.png")
                print(FOLDER / f"{picture.name}.png")
            browser.close()


if __name__ == "__main__":
    main()
