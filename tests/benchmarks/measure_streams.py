"""Measures how soon viewers hear of what running agents stream.

    python -m tests.benchmarks.measure_streams [--streams 20] [--rate 2.5] [--seconds 30] [--viewers 20] [--pages 2]

Starts a server of its own on SQLite with an empty data folder. Each agent posts batches of one event or call at a fixed
rate; viewers hold the socket of a session page, spread over the streams. Measured: the answer of a batch, and the time
from the moment an agent begins to post a batch to the first push after it that a viewer of its stream receives. A push
says no number: where one takes longer than the agent waits between two batches, it also counts for the later batch, and
the time is too short. Beside them are pages in a real browser, every second one with "Follow": measured is the time
from the moment an agent begins to post a model call to the paint of a page that counts it, or of a followed one that
shows it. Without Chromium there are none. Of each kind of page the growth of its heap is printed, after its garbage is
collected. `--seconds 3600` is the growth of an hour: memory and CPU are those of a server and pages that have run for
so long. Nothing fails here: figures for people.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from playwright.sync_api import Page, sync_playwright
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.benchmarks.measure_large import percentile, proportional
from tests.benchmarks.measure_traces import spent
from tests.big_sessions import big_session
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.inspector.streamed import lines_of
from tests.services.server import Running, running
from tests.waiting import PATIENCE

AFTER = 5.0  # seconds in which the last pushes may still come
BEGUN = 3  # lines that make a session: the header, a question, an answer
# What a page has painted, over all pages of the tab: when, in milliseconds since the epoch, and how many steps. The
# task after a frame is not earlier than its paint.
WATCH = """
  const painted = JSON.parse(sessionStorage.getItem("painted") ?? "[]");
  const note = (steps) => requestAnimationFrame(() => setTimeout(() => {
    painted.push([performance.timeOrigin + performance.now(), steps]);
    sessionStorage.setItem("painted", JSON.stringify(painted));
  }));
  addEventListener("DOMContentLoaded", () => {
    const box = document.querySelector("[data-growth]");
    const words = box.querySelector("[data-growth-words]");
    const known = Number(box.dataset.steps);
    note(known);
    // A followed page is to show a step: words that count it are too little.
    const isFollowed = sessionStorage.getItem("follow-session") === box.dataset.growth;
    const isSaid = () => !isFollowed && /^[0-9]/.test(words.textContent);
    const said = () => isSaid() && note(known + Number.parseInt(words.textContent, 10));
    new MutationObserver(said).observe(words, { childList: true });
    new MutationObserver(() => note(Number(box.dataset.steps))).observe(box, { attributeFilter: ["data-steps"] });
  });
"""


@dataclass
class Agent:
    """One stream: when each batch was begun, and how long its answer took, in seconds."""

    name: str
    lines: list[dict[str, Any]]
    session: str = ""
    begun: list[float] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)  # the same by the clock of the day, as pages have it
    answers: list[float] = field(default_factory=list)

    def post(self, connection: http.client.HTTPConnection, first: int, lines: list[dict[str, Any]]) -> None:
        body = json.dumps({"first": first, "lines": lines})
        connection.request("POST", f"/api/v1/sessions/{self.name}/events", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {text[:300]!r}")
        self.session = json.loads(text).get("session", self.session)

    def run(self, connection: http.client.HTTPConnection, rate: float, offset: float, seconds: float) -> None:
        """Post a line at a time at fixed moments; one that is late does not put off those behind it."""
        start = time.monotonic() + offset
        for number, line in enumerate(self.lines[BEGUN:]):
            moment = start + number / rate
            if moment > start + seconds:
                return
            time.sleep(max(0.0, moment - time.monotonic()))
            self.begun.append(time.monotonic())
            self.moments.append(time.time())
            self.post(connection, BEGUN + number, [line])
            self.answers.append(time.monotonic() - self.begun[-1])


@dataclass
class Viewer:
    """The socket of a page about one session, and when pushes came."""

    agent: Agent
    socket: ClientConnection
    pushes: list[float] = field(default_factory=list)

    def listen(self) -> None:
        try:
            while True:
                self.socket.recv()
                self.pushes.append(time.monotonic())
        except ConnectionClosed:
            return

    def delays(self) -> tuple[list[float], int]:
        """Seconds from each batch to the first push after it, and of how many batches no push came."""
        pushes, seconds, missed = iter(self.pushes), [], 0
        push = next(pushes, None)
        for begun in self.agent.begun:
            while push is not None and push < begun:
                push = next(pushes, None)
            if push is None:
                missed += 1
            else:
                seconds.append(push - begun)
        return seconds, missed


@dataclass
class Shown:
    """A page about one session."""

    agent: Agent
    page: Page
    heap: float = 0.0  # megabytes before the first batch

    def held(self) -> float:
        """Megabytes of the page's heap, without garbage."""
        protocol = self.page.context.new_cdp_session(self.page)
        try:
            protocol.send("HeapProfiler.collectGarbage")
            return float(protocol.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
        finally:
            protocol.detach()

    def growth(self) -> float:
        """Megabytes by which the heap has grown since the first batch."""
        return self.held() - self.heap

    def delays(self) -> list[float]:
        """Seconds from the moment each model call was begun to be posted to the first paint that counts it."""
        painted = sorted(tuple(some) for some in json.loads(self.page.evaluate("sessionStorage.painted")))
        lines = self.agent.lines
        calls = sum("calls" in line for line in lines[:BEGUN])
        seconds = []
        for line, begun in zip(lines[BEGUN:], self.agent.moments, strict=False):
            calls += "calls" in line
            if "calls" in line and (later := [moment for moment, steps in painted if steps >= calls]):
                seconds.append(later[0] / 1000 - begun)
        return seconds


@contextmanager
def pages_of(server: Running, agents: list[Agent]) -> Iterator[list[Shown]]:
    """A page for each of some agents in one browser, every second one followed; none without Chromium."""
    if not agents or CHROMIUM is None:
        yield []
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        shown = []
        for number, agent in enumerate(agents):
            page = browser.new_context().new_page()
            page.add_init_script(WATCH)
            page.goto(f"{server.origin}/s/{agent.session}/")
            if number % 2:
                page.evaluate(
                    "sessionStorage['follow-session'] = document.querySelector('[data-growth]').dataset.growth"
                )
                page.reload()
            shown.append(Shown(agent, page))
        for one in shown:
            one.heap = one.held()
        yield shown
        browser.close()


def measure(server: Running, streams: int, rate: float, seconds: float, viewers: int, pages: int) -> None:
    address = urlparse(server.origin)
    lines = lines_of(big_session(int(rate * seconds) // 3 + BEGUN, 0))
    agents = [Agent(f"agent-{number}", lines) for number in range(streams)]
    connections = [http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE) for _ in agents]
    for agent, connection in zip(agents, connections, strict=True):
        agent.post(connection, 0, lines[:BEGUN])
    watching = [Viewer(agent, _socket(server, agent)) for agent in (agents * viewers)[:viewers]]
    listeners = [threading.Thread(target=viewer.listen) for viewer in watching]
    with pages_of(server, agents[::-1][:pages]) as shown:
        for connection in connections:  # the server has ended those that waited for the browser: they are opened anew
            connection.close()
        before, memory, started = spent(server), proportional(server.process.pid), time.monotonic()
        senders = [
            threading.Thread(target=agent.run, args=(connection, rate, number / rate / streams, seconds))
            for number, (agent, connection) in enumerate(zip(agents, connections, strict=True))
        ]
        for thread in (*listeners, *senders):
            thread.start()
        for thread in senders:
            thread.join()
        taken = time.monotonic() - started
        time.sleep(AFTER)
        after = spent(server)
        counted = [delay for page in shown[::2] for delay in page.delays()]
        followed = [delay for page in shown[1::2] for delay in page.delays()]
        growths = [[page.growth() for page in some] for some in (shown[::2], shown[1::2])]
    for viewer in watching:
        viewer.socket.close()
    for thread in listeners:
        thread.join()
    answers = [seconds for agent in agents for seconds in agent.answers]
    seen = [viewer.delays() for viewer in watching]
    delays = [delay for some, _ in seen for delay in some]
    print(f"batches                            {len(answers):8,} in {taken:.1f} s, {len(answers) / taken:.1f} a second")
    _print("answered", answers)
    _print("heard by a viewer", delays)
    _print("counted on a painted page", counted)
    _print("shown on a followed page", followed)
    print(f"batches without a push             {sum(missed for _, missed in seen):8,} of {len(delays):,} heard")
    print(f"pushes                             {sum(len(viewer.pushes) for viewer in watching):8,}, {viewers} viewers")
    print(f"CPU of the server                  {(after.server - before.server) / taken:8.2f} cores")
    print(f"CPU of the workers                 {(after.workers - before.workers) / taken:8.2f} cores")
    for what, growth in zip(("pages", "followed pages"), growths, strict=True):
        if growth:
            print(f"{f'heap of {what}':<35}{max(growth):+8.1f} MB at most, aim 50 MB in an hour")
    print(f"memory                             {proportional(server.process.pid) - memory:+8.0f} MB, all processes")


def _socket(server: Running, agent: Agent) -> ClientConnection:
    path = f"{server.origin.replace('http', 'ws')}/ws/sessions/{agent.session}/"
    return connect(path, origin=server.origin, open_timeout=PATIENCE)  # type: ignore[arg-type]


def _print(what: str, seconds: list[float]) -> None:
    if seconds:
        p50, p95 = percentile(seconds, 0.5) * 1000, percentile(seconds, 0.95) * 1000
        print(f"{what:<35}{p50:8.0f} ms p50, {p95:.0f} ms p95, {max(seconds) * 1000:.0f} ms at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("streams", 20), ("rate", 2.5), ("seconds", 30.0), ("viewers", 20), ("pages", 2)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="measure-") as folder, running(Path(folder) / "data") as server:
        measure(server, chosen.streams, chosen.rate, chosen.seconds, chosen.viewers, chosen.pages)
    print(f"load of the machine                {os.getloadavg()[0]:8.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
