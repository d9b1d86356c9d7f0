"""Measures the page of facts of a very long session: the first time, and for texts that were not asked for before.

    python -m tests.benchmarks.measure_facts [--steps 50000] [--megabytes 200] [--file PATH]

Starts a server of its own, sends the file as `measure_large` does, waits for the text index, and prints milliseconds
from the request to the whole answer, with and without a typed text.
"""

from __future__ import annotations

import os
import time

from tests.benchmarks.measure_large import chosen_recording, ended, send_file, wait_for
from tests.services.server import Running, running

TEXTS = ("a text that is nowhere", "src/", "error", "Never rename", "test")


def timed(server: Running, path: str) -> float:
    """Milliseconds of one page."""
    started = time.perf_counter()
    answer = server.get(path)
    assert answer.status == 200, answer.status
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    """Print the figures."""
    with chosen_recording(__doc__, 50_000) as (path, folder), running(folder / "data") as server:
        job, _, _ = send_file(server, path)
        page = wait_for(lambda: ended(server, job), 1.0).rstrip("/")
        wait_for(lambda: "being prepared" not in server.get(f"{page}/search?q=x").text, 1.0)
        print(f"load of the machine {os.getloadavg()[0]:.1f} (1 minute, {os.cpu_count()} cores)")
        print(f"overview            {timed(server, f'{page}/'):8.0f} ms, again {timed(server, f'{page}/'):.0f} ms")
        for query in ("", "?show=details", *(f"?q={text.replace(' ', '+')}" for text in TEXTS)):
            address = f"{page}/facts{query}"
            print(f"facts{query:<26}{timed(server, address):8.0f} ms, again {timed(server, address):.0f} ms")


if __name__ == "__main__":
    main()
