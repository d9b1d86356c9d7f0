"""Measures a server under fire: other pages beside slow replays, and memory before, while and after a long session.

    python -m tests.benchmarks.measure_load [--steps 40000] [--megabytes 200] [--file PATH]

Starts a server of its own with an empty data folder, uploads one session, looks at it, replays it under settings that
compact at every step, waits a minute, and asks a restarted server again. Nothing fails here: figures for people.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tests.benchmarks.measure_large import (
    Sampler,
    at_rest,
    chosen_recording,
    ended,
    percentile,
    proportional,
    send_file,
    wait_for,
)
from tests.services.server import Running, running

SLOW = ("?buffer=0", "?window=1000", "?profile=tail", "?window=1000&buffer=0")  # up to one compaction at every step
SETTINGS, STEPS_OPENED = 5, 40
MINUTE = 60.0
BETWEEN = 0.3  # seconds between checks at a page that waits


def measure_memory(server: Running, path: Path) -> str:
    """Upload one session, look at it as a person does, leave it alone for a minute; its address."""
    server.get("/")
    at_rest(server)
    before = proportional(server.process.pid)
    with Sampler(server, []) as seen:
        job, _, _ = send_file(server, path)
        session = wait_for(lambda: ended(server, job), 0.2)
        imported, most = proportional(server.process.pid), max(seen.proportional)
        server.get(session)
        for number in range(1, SETTINGS + 1):
            server.get(f"{session}?factor=1.{number}")
        for number in range(1, STEPS_OPENED + 1):
            server.get(f"{session}steps?at={number * 50}")
    looked = proportional(server.process.pid)
    print(f"memory before                      {before:8.0f} MB, all processes, proportional")
    print(f"memory at most while importing     {most - before:+8.0f} MB")
    print(f"memory when imported               {imported - before:+8.0f} MB")
    print(f"memory at most                     {max(seen.proportional) - before:+8.0f} MB, with the looks")
    print(f"memory when looked at              {looked - before:+8.0f} MB")
    _print_pages(seen, "beside the import and the looks")
    _after_a_minute(server, before)
    return session


def measure_replays(server: Running, session: str) -> None:
    """Ask for slow replays at once, and for other pages meanwhile."""
    before = proportional(server.process.pid)
    seconds: dict[str, float] = {}
    threads = [threading.Thread(target=_replay, args=(server, session + query, seconds)) for query in SLOW]
    with Sampler(server, []) as seen:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for path, taken in seconds.items():
        print(f"replayed {path.removeprefix(session):<26}{taken:8.1f} s until its page")
    print(f"memory at most while replaying     {max(seen.proportional) - before:+8.0f} MB")
    _print_pages(seen, "beside the replays")
    _after_a_minute(server, before)


def measure_second_look(server: Running, session: str) -> None:
    """Ask for a slow replay again, of a server that has just started: its result is stored."""
    seconds: dict[str, float] = {}
    _replay(server, session + SLOW[1], seconds)
    print(f"again after a restart              {seconds[session + SLOW[1]]:8.1f} s until its page")


def _replay(server: Running, path: str, seconds: dict[str, float]) -> None:
    started = time.monotonic()
    while 'id="replay"' in server.get(path).text:
        time.sleep(BETWEEN)
    seconds[path] = time.monotonic() - started


def _print_pages(seen: Sampler, when: str) -> None:
    for path, delays in seen.delays.items():
        p50, p95 = percentile(delays, 0.5) * 1000, percentile(delays, 0.95) * 1000
        print(f"GET {path:<31}{p50:8.0f} ms p50, {p95:.0f} ms p95, {max(delays) * 1000:.0f} ms at most, {when}")


def _after_a_minute(server: Running, before: float) -> None:
    time.sleep(MINUTE)
    print(f"memory a minute after              {proportional(server.process.pid) - before:+8.0f} MB")


def main() -> None:
    with chosen_recording(__doc__, 40_000) as (path, folder):
        with running(folder / "data") as server:
            session = measure_memory(server, path)
            measure_replays(server, session)
        with running(folder / "data") as server:
            measure_second_look(server, session)
        print(f"load of the machine                {os.getloadavg()[0]:8.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
