"""The pictures of the README and of the page Help: taken anew by `make pictures`, from the bundled samples.

python -m tests.browser.pictures
"""

from __future__ import annotations

import base64
import re
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.services.server import Running, running
from tests.waiting import PATIENCE, until

FOLDER = Path(__file__).parents[2] / "static/pictures"
WIDTH, HEIGHT = 1280, 760
SAMPLE = "long-coding"
COLOURS = 256  # of a picture: as many as fit a byte, which makes its file a third as large
# The red, green, blue and opacity of each pixel of a PNG in base64, in base64 again.
PIXELS = """async (png) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const drawing = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  drawing.drawImage(picture, 0, 0);
  const { data } = drawing.getImageData(0, 0, picture.width, picture.height);
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
}"""


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


def small_png(page: Any) -> bytes:
    """A picture of a page in the colours that it has most; each other one becomes the nearest of these."""
    blank = page.context.browser.new_page()  # the policy of the page does not let it read data
    pixels = base64.b64decode(blank.evaluate(PIXELS, base64.b64encode(page.screenshot()).decode()))
    blank.close()
    rgb = np.frombuffer(pixels, dtype=np.uint8).reshape(-1, 4)[:, :3]
    colours, which, counts = np.unique(rgb, axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts, kind="stable")[:COLOURS]]
    distances = np.square(colours[:, None].astype(np.int32) - palette[None].astype(np.int32)).sum(axis=2)
    return _png(palette, distances.argmin(axis=1).astype(np.uint8)[which].reshape(HEIGHT, WIDTH))


def _png(palette: NDArray[np.uint8], rows: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels that are places in a palette (https://www.w3.org/TR/png-3/)."""
    header = struct.pack(
        ">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0
    )  # bits of a pixel; of a palette; the rest has no choice
    lines = np.hstack([np.zeros((HEIGHT, 1), dtype=np.uint8), rows])  # each begins with its filter: none
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


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
                (FOLDER / f"{picture.name}.png").write_bytes(small_png(page))
                print(FOLDER / f"{picture.name}.png")
            browser.close()


if __name__ == "__main__":
    main()
