"""Measures the pages of a 50,000-step session and the small sample against a real server; prints figures for people.

    python -m tests.benchmarks.measure_pages [--steps 50000] [--megabytes 200] [--file PATH]

Size and nodes of each page, the first view after a start, a changed setting, a step to the next, twenty changed
settings at once with /healthz beside them, and the memory of the web process after them.
"""

from __future__ import annotations

import os
import threading
import time
from html.parser import HTMLParser

from tests.benchmarks.measure_large import chosen_recording, ended, percentile, proportional, send_file, wait_for
from tests.services.server import Running, running

AT_ONCE = 20


class _Nodes(HTMLParser):
    """Counts elements."""

    count = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.count += 1


def nodes(text: str) -> int:
    parser = _Nodes()
    parser.feed(text)
    return parser.count


def timed(server: Running, path: str, **headers: str) -> tuple[float, bytes]:
    """Milliseconds from the request to the whole answer, and the answer."""
    started = time.monotonic()
    answer = server.get(path, **headers)
    assert answer.status == 200, (path, answer.status, answer.text[:300])
    return (time.monotonic() - started) * 1000, answer.body


def told(name: str, delays: list[float]) -> None:
    ordered = sorted(delays)
    print(
        f"{name:<34}{ordered[len(ordered) // 2]:8.0f} ms p50, {percentile(ordered, 0.95):.0f} ms p95, of {len(ordered)}"
    )


def fragment(target: str) -> dict[str, str]:
    return {"HX-Request": "true", "HX-Target": target}


def measure_pages(server: Running, session: str) -> None:
    web = server.process.pid
    started = proportional(web)
    delay, body = timed(server, session)
    print(f"overview, first view              {delay:8.0f} ms")
    for name, path in {"overview": session, "steps": f"{session}steps?at=25000"}.items():
        delay, body = timed(server, path)
        print(f"{name:<34}{delay:8.0f} ms, {len(body):,} bytes, {nodes(body.decode()):,} elements")
    told(
        "a changed setting",
        [timed(server, f"{session}?factor=1.{n:02d}", **fragment("overview"))[0] for n in range(1, 21)],
    )
    told(
        "a step to the next", [timed(server, f"{session}steps?at={n * 611}", **fragment("step"))[0] for n in range(60)]
    )
    beside(server, session)
    print(f"memory of web and worker          {proportional(web) - started:+8.0f} MB since before the first view")


def beside(server: Running, session: str) -> None:
    """Twenty changed settings at once, and what /healthz takes meanwhile."""
    delays: list[float] = []
    changed = [f"{session}?buffer={20_000 + n}" for n in range(AT_ONCE)]
    threads = [
        threading.Thread(target=lambda path=path: delays.append(timed(server, path, **fragment("overview"))[0]))
        for path in changed
    ]
    for thread in threads:
        thread.start()
    health: list[float] = []
    while any(thread.is_alive() for thread in threads):
        health.append(timed(server, "/healthz")[0])
        time.sleep(0.02)
    told(f"{AT_ONCE} changed settings at once", delays)
    told("/healthz beside them", health)


def main() -> None:
    with chosen_recording(__doc__, 50_000) as (path, folder):
        with running(folder / "data") as server:
            job, _, _ = send_file(server, path)
            session = wait_for(lambda: ended(server, job), 0.1)
        with running(folder / "data") as server:
            server.get("/")
            measure_pages(server, session)
            print(f"load of the machine {os.getloadavg()[0]:.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
