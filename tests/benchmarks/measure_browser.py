"""Measures a 50,000-step session in a real browser; prints one line per figure, for people.

    python -m tests.benchmarks.measure_browser [--steps 50000] [--megabytes 200] [--file PATH]

A page is opened with an empty cache each time, in a window whose own parts are loaded. Times are from the key or the
navigation to what is painted; beside them is what the browser and the server computed for it (CPU time), which a busy
machine changes less. Every page is opened once for its bytes and nodes, which are the same on every machine.

What the worker still does after an import, counting tokens above all, is waited for: it takes one of two cores.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from tests.benchmarks.measure_large import chosen_recording, ended, family, percentile, send_file, wait_for
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.services.server import running
from tests.waiting import PATIENCE

OPENED = 7  # times, each with an empty cache
PRESSED = 40
CHANGED = 20
TICKS = os.sysconf("SC_CLK_TCK")  # of processor time, a second
PAGES = (
    "",
    "steps?at=25000",
    "c/100/",
    "context?at=25000",
    "rule",
    "policies",
    "facts",
    "estimator",
    "search?q=payload",
    "comments",
    "share",
    "avoid",
)
# Typed texts whose lanes are drawn, by how many messages of the made recording have them: one, 536, and as many as a
# lane may have (inspector/storage/snippets.py); and one that none has.
LANES = ("Task 1000", "payload_insert", "query_cancel", "nothing of the kind")
OTHERS = ("/", "/policies/", "/policies/contextguard", "/gallery/", "/gallery/step", "/triggers/", "/sweeps/", "/help/")
# What the page remembers of itself: when a chart was drawn, a step shown and a changed setting answered in words,
# counted from the key that asked for it. A paint follows the frame; the task after it is not earlier than the paint.
# Who waits for one of these does so in the page: to look again and again would be work of the page, too.
WATCH = """
  window.seen = { drawn: [], shown: [], worded: [], busy: 0 };
  let asked = 0;
  let came = () => {};
  const painted = (list) => requestAnimationFrame(() => setTimeout(() => {
    list.push(performance.now() - asked);
    came();
  }));
  window.seen.until = async (kinds, counts) => {
    while (kinds.some((kind, place) => window.seen[kind].length <= counts[place])) {
      await new Promise((resolve) => { came = resolve; });
    }
    return kinds.map((kind, place) => window.seen[kind][counts[place]]);
  };
  addEventListener("keydown", (event) => { asked = event.timeStamp; }, true);
  const lists = { step: "shown", chart: "worded" };
  const settled = ({ detail }) => detail.target.id in lists && painted(window.seen[lists[detail.target.id]]);
  addEventListener("htmx:afterSettle", settled, true);
  new MutationObserver((changes) => changes.some(({ target }) => target.dataset.drawn) && painted(window.seen.drawn))
    .observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn"] });
  new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { window.seen.busy += duration; }))
    .observe({ type: "longtask", buffered: true });
"""


class Figure(NamedTuple):
    """What one thing took: milliseconds until it was painted, and of processor time in the page and in the server."""

    painted: float
    page: float
    server: float


class Measured:
    """A page and its server."""

    def __init__(self, browser: Any, web: int, **context: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900}, **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.add_init_script(WATCH)
        self.web = web
        self.received = 0
        self.protocol = self.context.new_cdp_session(self.page)
        self.protocol.send("Performance.enable", {"timeDomain": "threadTicks"})  # else the time that its tasks last
        self.protocol.send("Network.enable")
        self.protocol.on("Network.loadingFinished", self._finished)

    def _finished(self, event: dict[str, Any]) -> None:
        self.received += int(event["encodedDataLength"])

    def busy(self) -> float:
        """Milliseconds of processor time that the page has computed for."""
        metrics = self.protocol.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    def after(self, act: Callable[[], Any], *kinds: str) -> list[Figure]:
        """What an action takes until the page has drawn a chart (`drawn`), shown a step (`shown`), said in words what a
        changed setting changes (`worded`); the processor times are those until it has done all of them."""
        counts = self.page.evaluate("kinds => kinds.map((kind) => window.seen[kind].length)", kinds)
        page, server = self.busy(), processor_time(self.web)
        act()
        times = self.page.evaluate("([kinds, counts]) => window.seen.until(kinds, counts)", [kinds, counts])
        computed = self.busy() - page, processor_time(self.web) - server
        return [Figure(float(painted), *computed) for painted in times]


def processor_time(pid: int) -> float:
    """Milliseconds that a process has computed for."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return 1000 * (int(words[11]) + int(words[12])) / TICKS


def renderer_memory() -> float:
    """Proportional megabytes of the largest process of the browser that shows pages."""
    held = [0.0]
    for pid in family(os.getpid()):
        try:
            if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
                held.append(int(words[words.index("Pss:") + 1]) / 1024)
        except OSError:
            continue
    return max(held)


def line(name: str, figures: list[Figure], aim: str) -> None:
    painted, page, server = zip(*figures, strict=True)
    computed = f"CPU {statistics.median(page):5.0f} page {statistics.median(server):5.0f} server"
    print(
        f"{name:<30}{statistics.median(painted):7.0f} ms p50 {percentile(list(painted), 0.95):7.0f} p95"
        f"   {computed}, {len(figures)} times, aim {aim}",
        flush=True,
    )


@contextmanager
def opened(browser: Any, web: int, origin: str) -> Iterator[Measured]:
    measured = Measured(browser, web, base_url=origin)
    wait_until_idle(os.getpid(), 0.3)  # a new window of the browser loads what is its own
    try:
        yield measured
    finally:
        measured.context.close()


def measure(browser: Any, web: int, origin: str, session: str, middle: int = 25_000) -> None:
    """Print every figure of a session."""
    overview, memory, received, long_tasks = [], [], [], []
    for _ in range(OPENED):
        with opened(browser, web, origin) as one:
            server = processor_time(web)
            one.page.goto(session)
            drawn = float(one.page.evaluate("window.seen.until(['drawn'], [0])")[0])
            overview.append(Figure(drawn, one.busy(), processor_time(web) - server))
            memory.append(renderer_memory())
            received.append(one.received)
            long_tasks.append(float(one.page.evaluate("window.seen.busy")))
    line("open the overview, chart drawn", overview, "1,200 ms")
    print(f"{'renderer, overview':<30}{max(memory):7.0f} MB proportional, aim 250 MB")
    print(f"{'transferred, overview':<30}{max(received) / 1000:7.0f} kB without a cache, aim 700 kB")
    print(f"{'long tasks, overview':<30}{statistics.median(long_tasks):7.0f} ms, aim 300 ms")
    with opened(browser, web, origin) as one:
        keyboard = one.page.keyboard
        one.page.goto(f"{session}steps?at={middle}")
        one.page.wait_for_selector('.step[aria-current="step"]')
        steps = [one.after(lambda: keyboard.press("j"), "shown")[0] for _ in range(PRESSED)]
        line("step key to paint", steps, "80 ms p95")
        ends = [one.after(lambda key=key: keyboard.press(key), "shown")[0] for key in ("Home", "End") * (CHANGED // 2)]
        line("first and last step", ends, "150 ms p95")
        one.page.goto(session)
        wait_for(lambda: one.page.evaluate("window.seen.drawn.length"), 0.01)
        zooms = [one.after(lambda key=key: keyboard.press(key), "drawn")[0] for key in "WWWWDDASSSS" * 2]
        line("zoom to new points", zooms, "200 ms")
        charts, words = [], []
        for number in range(CHANGED):
            one.page.fill("#set-window", f"{199_000 - 1_000 * number}")
            chart, worded = one.after(lambda: one.page.press("#set-window", "Enter"), "drawn", "worded")
            charts.append(chart)
            words.append(worded)
        line("what-if, the chart", charts, "150 ms p95")
        line("what-if, all of the words", words, "none yet")
        print(f"{'renderer, after all that':<30}{renderer_memory():7.0f} MB proportional, aim 250 MB")
    with opened(browser, web, origin) as one:  # a text is typed on the page of facts, once its instructions are there
        one.page.goto(f"{session}facts")
        wait_until_idle(web)
    for typed in LANES:  # a second look at one would find its places in memory
        print_lane(browser, web, origin, session, typed)
    print(f"{'page':<34}{'kB':>6}{'nodes':>8}   aim 700 kB, 2,000 nodes")
    for path in (*(session + name for name in PAGES), *OTHERS):
        with opened(browser, web, origin) as one:
            one.page.goto(path)
            one.page.wait_for_timeout(1_500)  # for what comes after the page
            nodes = one.page.evaluate("document.querySelectorAll('*').length")
            name = path.removeprefix(session) or "overview"
            print(f"{name:<34}{one.received / 1000:6.0f}{nodes:8,}", flush=True)


def print_lane(browser: Any, web: int, origin: str, session: str, typed: str) -> None:
    """One figure: a page of facts with a typed text; beside it whether the page has its lane, or why not."""
    with opened(browser, web, origin) as one:
        server = processor_time(web)
        one.page.goto(f"{session}facts?{urlencode({'q': typed})}")
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        wait_for(lambda: one.page.evaluate(painted), 0.01)
        figure = Figure(float(one.page.evaluate(painted)), one.busy(), processor_time(web) - server)
        said = one.page.locator("#lane-title + .badge, main .notice").first.inner_text()
    line(f"lane of “{typed}”", [figure], f"500 ms: {said}")


def wait_until_idle(root: int, seconds: float = 10) -> None:
    """Return once a process and all below it have computed less than a twentieth of so many seconds. Ten are longer
    than the worker of a server waits between two jobs: what follows an import is done."""
    before: dict[int, float] = {}
    while True:
        now = processor_times(root)
        if before and sum(spent - before.get(pid, 0.0) for pid, spent in now.items()) < 50 * seconds:
            return
        before = now
        time.sleep(seconds)


def processor_times(root: int) -> dict[int, float]:
    """Milliseconds that a process and each below it have computed for."""
    times = {}
    for pid in family(root):
        with suppress(OSError):  # it has ended
            times[pid] = processor_time(pid)
    return times


def main() -> None:
    with chosen_recording(__doc__, 50_000) as (path, folder), running(folder / "data") as server:
        job, _, _ = send_file(server, path)
        session = wait_for(lambda: ended(server, job), 0.1)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            server.get(session)
            wait_until_idle(server.process.pid)
            for _ in range(2):
                measure(browser, server.process.pid, server.origin, session)
                print(f"load of the machine {os.getloadavg()[0]:.1f} ({os.cpu_count()} cores)")
            browser.close()


if __name__ == "__main__":
    main()
