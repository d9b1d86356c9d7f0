"""Measures a very large upload against a real server: time to the first chart, to the end, memory, disk, other pages.

    python -m tests.benchmarks.measure_large [--steps 50000] [--megabytes 200] [--file PATH]

Starts a server of its own with an empty data folder, makes the file, sends it over a socket as the upload form does,
looks at the pages of its session while its tokens are counted, and prints one line per figure. Nothing fails on time
here; the figures are for people.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import uuid4

from guard_core.simulator.big_files import write_claude_code
from tests.services.server import Running, running

SAMPLE_EVERY = 0.05  # seconds between checks at the resident memory; ten times that at the proportional memory
PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes
VISIT_EVERY = 0.5  # seconds between two visits to other pages, as by somebody who works with them
ASK_EVERY = 0.2  # seconds between checks whether it is complete; a page asks once a second
BLOCK = 1 << 20
PATIENCE = 600.0  # seconds
LOOKED_AT = ("", "steps?at=20000", "context?at=20000", "?buffer=30000", "rule", "policies")  # pages of the session
GIVEN_BACK = 60.0  # seconds after the last look, when memory must be given back


class Sampler:
    """Looks at memory and disk, and opens other pages, until it is stopped."""

    def __init__(self, server: Running, folders: list[Path]) -> None:
        self.server, self.folders = server, folders
        self.resident: list[float] = []  # megabytes
        self.proportional: list[float] = []  # megabytes
        self.fullest = ""  # what each process held when all together held most
        self.disk: list[int] = []
        self.delays: dict[str, list[float]] = {"/": [], "/healthz": []}
        self.over = threading.Event()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._look, self._visit)]

    def __enter__(self) -> Sampler:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _look(self) -> None:
        number = 0
        while not self.over.wait(SAMPLE_EVERY):
            self.resident.append(resident(self.server.process.pid))
            if (number := number + 1) % 10 == 0:
                held = proportional_by_process(self.server.process.pid)
                self.proportional.append(sum(megabytes for _, megabytes in held))
                if self.proportional[-1] == max(self.proportional):
                    self.fullest = ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in held)
                self.disk.append(sum(size_of(folder) for folder in self.folders))

    def _visit(self) -> None:
        while not self.over.wait(VISIT_EVERY):
            for path, delays in self.delays.items():
                started = time.monotonic()
                status = self.server.get(path).status
                delays.append(time.monotonic() - started)
                assert status == 200, (path, status)


def resident(root: int) -> float:
    """Resident megabytes of a process and all below it: cheap to ask for."""
    pages = 0
    for pid in family(root):
        with suppress(OSError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE / 2**20


def proportional(root: int) -> float:
    """Their proportional megabytes: what they share is counted once. Walks all their pages."""
    return sum(megabytes for _, megabytes in proportional_by_process(root))


def proportional_by_process(root: int) -> list[tuple[str, float]]:
    """The module that each process runs, and its proportional megabytes."""
    held = []
    for pid in family(root):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kilobytes = int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]
            held.append((words[words.index("-m") + 1] if "-m" in words else words[0], kilobytes / 1024))
    return held


def at_rest(server: Running) -> None:
    """Wait until the processes have loaded what they load at their start: for a second none has grown."""
    last, since = 0.0, time.monotonic()
    while time.monotonic() - since < 1:
        now = resident(server.process.pid)
        if now > last + 1:
            last, since = now, time.monotonic()
        time.sleep(SAMPLE_EVERY)


def family(root: int) -> list[int]:
    """A process and all below it."""
    processes = [root]
    for pid in processes:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                processes += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return processes


def size_of(folder: Path) -> int:
    """Bytes below a folder, of files that are gone but open too."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total


def send_file(server: Running, path: Path) -> tuple[dict[str, Any], float, float]:
    """Send a file as the form does; the answer, the moment of its last byte, and of the answer."""
    if not server.token:
        server._fetch_token()
    boundary = uuid4().hex
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    tail = f"\r\n--{boundary}--\r\n".encode()
    address = urlparse(server.origin)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    connection.putrequest("POST", "/recordings/")
    headers = {
        "Cookie": server.cookie,
        "X-CSRFToken": server.token,
        "Origin": server.origin,
        "Accept": "application/json",
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(len(head) + path.stat().st_size + len(tail)),
    }
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(head)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            connection.send(block)
    connection.send(tail)
    last = time.monotonic()
    response = connection.getresponse()
    body = response.read()
    answered = time.monotonic()
    connection.close()
    assert response.status == 201, body[:500]
    (item,) = json.loads(body)["imports"]
    return item, last, answered


def wait_for(condition: Callable[[], Any], every: float) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(every)
    raise SystemExit("it did not end in time")


def first_chart(server: Running, job: dict[str, Any]) -> Callable[[], bool]:
    """Is there a chart with points for this import: its first look, or its session's overview."""

    def drawn() -> bool:
        if job["url"].startswith("/imports/") and "first-look" in server.get(job["url"]).text:
            return True
        return bool(ended(server, job))

    return drawn


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def measure(server: Running, path: Path) -> str:
    """Upload one file and print every figure; the address of its session."""
    server.get("/")
    at_rest(server)
    before, shared = resident(server.process.pid), proportional(server.process.pid)
    folders = [server.data_dir, server.data_dir.with_name("tmp")]
    disk = sum(size_of(folder) for folder in folders)
    with Sampler(server, folders) as seen:
        started = time.monotonic()
        job, last, answered = send_file(server, path)
        wait_for(first_chart(server, job), 0.03)
        charted = time.monotonic()
        page = wait_for(lambda: ended(server, job), ASK_EVERY)
        ready = time.monotonic()
    after = resident(server.process.pid)
    print(f"sent in                  {last - started:8.2f} s")
    print(f"answer after last byte   {answered - last:8.2f} s")
    print(f"first chart              {charted - last:8.2f} s after the last byte")
    print(f"complete                 {ready - last:8.2f} s after the last byte")
    print(
        f"memory, all processes    +{max(seen.resident) - before:7.0f} MB resident (from {before:.0f}), "
        f"+{max(seen.proportional) - shared:.0f} MB proportional (from {shared:.0f})"
    )
    print(f"processes at that moment {seen.fullest}")
    print(f"load of the machine      {os.getloadavg()[0]:8.1f} (1 minute, {os.cpu_count()} cores)")
    print(f"memory afterwards        +{after - before:7.0f} MB resident")
    print(
        f"disk at most             +{(max(seen.disk) - disk) / 1e6:7.0f} MB, "
        f"afterwards +{(sum(map(size_of, folders)) - disk) / 1e6:.0f} MB"
    )
    for name, delays in seen.delays.items():
        p50, p95 = percentile(delays, 0.5) * 1000, percentile(delays, 0.95) * 1000
        print(
            f"GET {name:<21}{p50:8.0f} ms p50, {p95:.0f} ms p95, {max(delays) * 1000:.0f} ms at most, of {len(delays)}"
        )
    look_at(server, page, shared)
    return page


def is_whole(server: Running, path: str) -> bool:
    """Is the answer the page itself, and not how far its replay is."""
    answer = server.get(path)
    assert answer.status == 200, (path, answer.status)
    return 'id="replay"' not in answer.text


def look_at(server: Running, page: str, idle: float) -> None:
    """Open the pages of the session, each until it is whole, and print what the processes hold above `idle`."""
    for name in LOOKED_AT:
        with Sampler(server, []) as seen:
            started = time.monotonic()
            wait_for(lambda path=page + name: is_whole(server, path), ASK_EVERY)
            taken = time.monotonic() - started
        held = f"+{max(seen.proportional, default=idle) - idle:.0f} MB ({seen.fullest})"
        print(f"look at {name or 'overview':<17}{taken:8.1f} s, {held}")
    with Sampler(server, []) as seen:
        time.sleep(GIVEN_BACK)
    print(f"{GIVEN_BACK:.0f} seconds later        +{seen.proportional[-1] - idle:.0f} MB ({seen.fullest} at most)")


def ended(server: Running, job: dict[str, Any]) -> str:
    if job["url"].startswith("/s/"):
        return str(job["url"])
    answer = server.get(job["url"])
    assert answer.status in (200, 302), answer.status
    assert "notice-error" not in answer.text, answer.text
    return answer.headers.get("location", "")


@contextmanager
def chosen_recording(description: str | None, steps: int) -> Iterator[tuple[Path, Path]]:
    """The recording that the command line names, or one made as it says, and a folder to work in; the folder goes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--megabytes", type=float, default=200.0, help="of 1,000,000 bytes, about")
    parser.add_argument("--file", type=Path, help="a file of your own instead of a made one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="measure-") as name:
        folder = Path(name)
        path = chosen.file or folder / "big.jsonl"
        if chosen.file is None:
            with path.open("wb") as out:
                write_claude_code(out, steps=chosen.steps, size=int(chosen.megabytes * 1_000_000))
        print(f"{path.stat().st_size:,} bytes")
        yield path, folder


def main() -> None:
    with chosen_recording(__doc__, 50_000) as (path, folder):
        os.environ["TMPDIR"] = str(folder / "tmp")  # of the server: what it leaves there is seen
        (folder / "tmp").mkdir()
        with running(folder / "data") as server:
            measure(server, path)


if __name__ == "__main__":
    main()
