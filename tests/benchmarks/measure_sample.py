"""Measures a file from the drop to the drawn chart in a real browser, on an empty server; prints one line a run.

python -m tests.benchmarks.measure_sample FILE [--runs 3]
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.services.server import running

DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  const now = Date.now();
  window.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  return now;
}"""


def drawn_after(page, path: Path, data: str) -> tuple[float, float]:
    """Seconds from the drop to the overview's first byte shown, and to its drawn chart."""
    started = page.evaluate(DROP, [path.name, data]) / 1000
    page.wait_for_url("**/s/**", wait_until="commit", timeout=60_000)
    shown = time.time()
    page.wait_for_selector("[data-figure] .main-svg .trace", state="attached", timeout=60_000)
    return shown - started, time.time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="measure-sample-"))
    content = chosen.file.read_bytes()
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    try:
        with running(folder / "data") as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
            for run in range(chosen.runs):
                page = browser.new_context().new_page()
                page.goto(server.origin)
                fresh = base64.b64encode(content + b"\n" * (run + 1)).decode()  # other bytes: another recording
                shown, drawn = drawn_after(page, chosen.file, fresh)
                print(f"overview after {shown:.2f} s, chart drawn after {drawn:.2f} s, load {os.getloadavg()[0]:.1f}")
            browser.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
