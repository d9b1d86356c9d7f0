"""Measures reports: making one, its files, and what each view of it costs the server while several people read it.

    python -m tests.benchmarks.measure_reports [--steps 50000] [--megabytes 20] [--file PATH] [--level text]

The cost of a view is processor time of all processes of the server, so it does not depend on what else runs here.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

from tests.benchmarks.measure_large import chosen_recording, ended, family, send_file, wait_for
from tests.services.server import Running, running

READERS, VIEWS = 10, 30  # people at once, and how often each opens the report
FILES = ("report.html", "report.json", "report.csv", "report.md", "badge.svg")
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(root: int) -> float:
    """Of a process and all that it started and that still live."""
    total = 0
    for pid in family(root):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def published(server: Running, session: str, level: str) -> str:
    """A report of the session, published; its address."""
    form = urlencode({"level": level, "lifetime": "1d"}).encode()
    path = server.post(f"{session}share", form).headers["location"]
    begun = time.monotonic()
    wait_for(lambda: "being created" not in server.get(path).text, 0.1)
    print(f"made in {time.monotonic() - begun:24.1f} s")
    answer = server.post(f"{path}publish")
    link = re.search(r"/r/[\w-]{43}/", answer.text)
    if link is None:
        sys.exit(f"it was not published: {answer.status} {answer.text[:500]}")
    return link[0]


def read_together(server: Running, path: str) -> None:
    """Several readers at once; what each view costs."""
    server.get(path)
    statuses: list[int] = []

    def read() -> None:
        statuses.extend(server.request("GET", path).status for _ in range(VIEWS))

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    before, begun = processor_seconds(server.process.pid), time.monotonic()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    seconds = processor_seconds(server.process.pid) - before
    assert set(statuses) == {200}, set(statuses)
    print(
        f"{path.rpartition('/')[2] or 'page':<16}{1000 * seconds / len(statuses):8.1f} ms of processor time a view, "
        f"{READERS} readers, {len(statuses)} views in {time.monotonic() - begun:.1f} s"
    )


def main() -> None:
    level = "text"
    if "--level" in sys.argv:
        place = sys.argv.index("--level")
        level = sys.argv[place + 1]
        del sys.argv[place : place + 2]
    with chosen_recording(__doc__, 50_000) as (path, folder), running(folder / "data", DATABASE_URL="") as server:
        job, _, _ = send_file(server, path)
        session = wait_for(lambda: ended(server, job), 0.1)
        link = published(server, session, level)
        for name in FILES:
            print(f"{name:<16}{len(server.get(link + name).body):>12,} bytes")
        for name in ("", *FILES):
            read_together(server, link + name)
        print(f"load of the machine {os.getloadavg()[0]:.1f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
