"""Measures what it costs a server to append some lines to a long session.

    python -m tests.benchmarks.measure_appends [--steps 50000] [--lines 20] [--times 20]

Starts a server of its own on SQLite with an empty data folder, imports a session of so many steps as a stream, waits
until it has nothing left to do, and posts batches one after the other. Measured: the answer of each batch, and the
processor time of the server and of its workers, which take up what the pages of the session need afterwards. Nothing
fails here: figures for people.
"""

from __future__ import annotations

import argparse
import http.client
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import urlparse

from tests.benchmarks.measure_large import percentile
from tests.benchmarks.measure_streams import Agent
from tests.benchmarks.measure_traces import spent
from tests.big_sessions import big_session
from tests.inspector.streamed import lines_of
from tests.services.server import Running, running
from tests.waiting import PATIENCE

BATCH = 1_000  # lines, the most that one batch may have
QUIET = 3.0  # seconds in which nothing may use a processor before it counts as idle


def measure(server: Running, steps: int, lines: int, times: int) -> None:
    """Stream a session, then append to it."""
    written = lines_of(big_session(steps + lines * times, 0))
    every, more = written[: -lines * times], written[-lines * times :]
    address = urlparse(server.origin)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    agent = Agent("long", every)
    for first in range(0, len(every), BATCH):
        agent.post(connection, first, every[first : first + BATCH])
    _wait_until_idle(server)
    connection.close()  # the server has ended it by now; the next request opens another
    before, answers = spent(server), []
    for number in range(times):
        begun = time.monotonic()
        agent.post(connection, len(every) + number * lines, more[number * lines : (number + 1) * lines])
        answers.append(time.monotonic() - begun)
    at_once = spent(server)
    _wait_until_idle(server)
    after = spent(server)
    print(f"stored before                      {len(every):8,} lines, {steps:,} steps; {times:,} batches of {lines:,}")
    middle, most = percentile(answers, 0.5) * 1000, max(answers) * 1000
    print(f"answered                           {middle:8.0f} ms p50, {most:.0f} ms at most")
    print(f"CPU of the server                  {(at_once.server - before.server) / times * 1000:8.0f} ms a batch")
    print(f"CPU of the workers, also later     {(after.workers - before.workers) / times * 1000:8.0f} ms a batch")


def _wait_until_idle(server: Running) -> None:
    """Wait until the server and its workers have used next to no processor time for a while."""
    until = time.monotonic() + PATIENCE
    used = spent(server)
    while time.monotonic() < until:
        time.sleep(QUIET)
        now = spent(server)
        if now.server + now.workers - used.server - used.workers < 0.05 * QUIET:
            return
        used = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 50_000), ("lines", 20), ("times", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="measure-") as folder, running(Path(folder) / "data") as server:
        measure(server, chosen.steps, chosen.lines, chosen.times)
    print(f"load of the machine                {os.getloadavg()[0]:8.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
