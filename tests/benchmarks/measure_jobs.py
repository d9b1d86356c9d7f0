"""Measures how soon a long import obeys: cancelled in each phase, and its worker killed in each phase.

    python -m tests.benchmarks.measure_jobs [--steps 50000] [--megabytes 200] [--file PATH] [--only cancel|kill]

Runs on SQLite, or on PostgreSQL and Redis where TEST_DATABASE_URL and TEST_REDIS_URL name them. Each case has a server
of its own with an empty data folder. Printed, in seconds after the cancel or the kill: the answer to the cancel, the
import's word for it, the worker's hands empty, the texts gone; or the import taken up again, and complete. What must
not be (half a session, an import that runs for ever) ends the script with an error; a slow machine does not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from guard_core.simulator.big_files import write_claude_code
from tests.benchmarks.measure_large import ended, send_file
from tests.services.databases import query
from tests.services.server import Running, running

PATIENCE = 600.0  # seconds, for a machine that has other things to do
LOOK_EVERY = 0.01
STATE = "SELECT phase, done, total, attempts, state, first_look <> '' FROM inspector_import"
BUSY = (
    "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status = 'RUNNING' "
    "AND queue_name = 'import_recording'"
)
UNSWEPT = (
    "SELECT (SELECT count(*) FROM "
    "(SELECT sha256 FROM inspector_payload EXCEPT SELECT payload_id FROM inspector_event) AS unused) "
    "+ (SELECT count(*) FROM inspector_session WHERE ordinal < 0)"
)
LISTED = "SELECT count(*) FROM inspector_session WHERE deleted IS NULL"


class Stand(NamedTuple):
    """Where an import is."""

    phase: str
    done: int
    total: int
    attempts: int
    state: str
    looked: bool

    @property
    def half(self) -> bool:
        return self.done * 2 >= self.total


PLACES: dict[str, Callable[[Stand], bool]] = {
    "first look": lambda stand: stand.state == "running" and stand.phase == "parsed" and not stand.looked,
    "reading": lambda stand: stand.phase == "parsed" and stand.half,
    "counting": lambda stand: stand.phase == "counted" and stand.half,
    "storing": lambda stand: stand.phase == "indexed",
}


def stand(server: Running) -> Stand:
    return Stand(*query(server.data_dir, STATE)[0])


def number(server: Running, statement: str) -> int:
    return int(query(server.data_dir, statement)[0][0])


def wait_for(condition: Callable[[], Any], every: float = LOOK_EVERY) -> float:
    """The moment at which the condition became true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return time.monotonic()
        time.sleep(every)
    raise SystemExit("it did not come to an end")


def reach(server: Running, place: str) -> Stand:
    """Wait for a place in the import; where it stood then."""
    there: list[Stand] = []

    def reached() -> bool:
        now = stand(server)
        if PLACES[place](now) or now.state == "done":
            there.append(now)
        return bool(there)

    wait_for(reached, 0.002)
    return there[0]


def cancelled(server: Running, path: Path, place: str) -> str:
    job, *_ = send_file(server, path)
    met = reach(server, place)
    start = time.monotonic()
    server.post(job["url"] + "cancel")
    answered = time.monotonic()
    last = wait_for(lambda: stand(server).state in ("cancelled", "done"))
    idle = wait_for(lambda: not number(server, BUSY))
    state = stand(server).state
    sessions = number(server, LISTED)
    swept = wait_for(lambda: not number(server, UNSWEPT), 0.2)
    if sessions != (state == "done"):
        raise SystemExit(f"{sessions} sessions of an import that is {state}")
    figures = (answered - start, last - start, idle - start, swept - start)
    words = "answer {:.2f}, {}told {:.2f}, worker free {:.2f}, texts gone {:.2f}"
    late = "too late: it was complete first; " if met.state == "done" or state == "done" else ""
    return words.format(figures[0], late, *figures[1:])


def killed(server: Running, path: Path, place: str) -> str:
    job, *_ = send_file(server, path)
    reach(server, place)
    before = stand(server).attempts
    os.kill(server.workers()[0], signal.SIGKILL)
    start = time.monotonic()
    back = wait_for(lambda: stand(server).attempts > before or stand(server).state in ("done", "failed"))
    complete = wait_for(lambda: stand(server).state in ("done", "failed", "cancelled"), 0.2)
    state = stand(server).state
    if not (state == "done" and ended(server, job)):
        raise SystemExit(f"the import is {state}")
    wait_for(lambda: not number(server, UNSWEPT), 0.2)
    whole = "SELECT count(*), sum(events), (SELECT count(*) FROM inspector_event) FROM inspector_session"
    sessions, events, rows = query(server.data_dir, whole)[0]
    if (sessions, events) != (1, rows):
        raise SystemExit(f"{sessions} sessions with {events} events, of which {rows} are stored")
    return f"taken up again {back - start:.2f}, complete {complete - start:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--megabytes", type=float, default=200.0, help="of 1,000,000 bytes, about")
    parser.add_argument("--file", type=Path, help="a file of your own instead of a made one")
    parser.add_argument("--only", choices=("cancel", "kill"))
    parser.add_argument("--place", choices=tuple(PLACES))
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="measure-jobs-"))
    try:
        path = chosen.file or folder / "big.jsonl"
        if chosen.file is None:
            with path.open("wb") as out:
                write_claude_code(out, steps=chosen.steps, size=int(chosen.megabytes * 1_000_000))
        database = "PostgreSQL" if os.environ.get("TEST_DATABASE_URL") else "SQLite"
        print(f"{path.stat().st_size:,} bytes on {database}; load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
        for name, act in (("cancel", cancelled), ("kill", killed)):
            for place in PLACES if chosen.place is None else (chosen.place,):
                if chosen.only in (None, name):
                    data = folder / f"{name}-{place.replace(' ', '-')}"
                    with running(data) as server:
                        print(f"{name:<7}{place:<11}{act(server, path, place)}", flush=True)
                    shutil.rmtree(data)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
