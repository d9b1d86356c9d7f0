"""Measures the session list with many sessions: every filter, every sort, the text search, bulk tag, delete and undo.

    python -m tests.benchmarks.measure_list [--sessions 10000]

Runs on SQLite, or on PostgreSQL and Redis where TEST_DATABASE_URL and TEST_REDIS_URL name them, against a server of its
own whose database is filled with made rows. Prints milliseconds from the request to the whole answer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from tests.benchmarks.measure_pages import fragment, told
from tests.services.databases import neighbours_of
from tests.services.server import ROOT, Running, clean_environment, running

TIMES = 7
FILL = """
import django, hashlib, random, sys
django.setup()
from datetime import UTC, datetime, timedelta
from django.db import transaction
from inspector.models import Recording, Session, Tag, default_project
from inspector.models.sessions import ENGINE
count, chance = int(sys.argv[1]), random.Random(7)
agents, models = ["claude", "codex", "adk", ""], ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", ""]
formats = ["claude-code", "codex", "adk", "opencode"]
with transaction.atomic():  # the worker sweeps recordings without sessions
    recordings = Recording.objects.of(default_project()).bulk_create([
        Recording(sha256=hashlib.sha256(str(n).encode()).hexdigest(), name=f"session-{n}.jsonl",
                  size=chance.randrange(10_000, 90_000_000)) for n in range(count)], batch_size=400)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    sessions = Session.objects.of(default_project()).bulk_create([
        Session(recording=recording, title=f"{chance.choice(['Deploy', 'Mend', 'Review', 'Look into'])} service {n}",
                format=chance.choice(formats), agent=chance.choice(agents), model=chance.choice(models), window=200_000,
                window_source="model table", started_at=begin + timedelta(minutes=n), events=0,
                calls=chance.randrange(500), reported_calls=chance.randrange(2), turns=chance.randrange(40),
                compactions=chance.randrange(3),
                prompt_tokens_max=chance.randrange(220_000), prompt_tokens_sum=chance.randrange(10_000_000),
                peak_tokens=chance.randrange(220_000), peak_source="recorded", severity=chance.randrange(3),
                verdict="4 compactions, no overflow. Without any: peak 124 % of the window, 25 calls over it.",
                kinds=chance.choice([" needed ", " loop overflow ", " needless near_miss "]), assessed_by=ENGINE,
                assessed_window=200_000, overflows=chance.randrange(5) // 4, near_misses=chance.randrange(4) // 3,
                loops=chance.randrange(30) // 29,
                fallbacks=chance.randrange(20) // 19) for n, recording in enumerate(recordings)], batch_size=400)
for name in ("kept", "check", "team-a"):
    Tag.objects.of(default_project()).create(name=name).sessions.add(*chance.sample(sessions, count // 10))
from django.db import connection
if connection.vendor == "postgresql":
    connection.cursor().execute("ANALYZE")
"""
ADDRESSES = (
    "",
    "severity=error",
    "severity=error&severity=warning",
    "kind=needless",
    "q=service+77",
    "q=deploy+gpt",
    "agent=codex",
    "model=gpt-5",
    "format=adk",
    "tag=kept",
    "has=compaction",
    "has=overflow",
    "has=near-miss",
    "has=loop",
    "has=fallback",
    "has=no-usage",
    "has=overflow&has=loop",
    "since=2026-01-03&until=2026-01-05",
    "min_size=20&max_size=40",
    "min_peak=90",
    *(
        f"sort=-{name}"
        for name in (
            "title",
            "verdict",
            "added",
            "agent",
            "model",
            "date",
            "size",
            "calls",
            "turns",
            "peak",
            "compactions",
        )
    ),
    "page=200",
)


def fill(data: Path, count: int, script: str = FILL) -> None:
    """Run a script over the database of a data folder with a number of sessions."""
    environment = {**clean_environment(), **neighbours_of(data), "DATA_DIR": str(data)}
    environment["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    subprocess.run([sys.executable, "-c", script, str(count)], cwd=ROOT, env=environment, check=True)


def delays(server: Running, path: str, times: int = TIMES, part: str = "sessions") -> list[float]:
    """Milliseconds of some requests for a part of the page, as a click on a head or a filter asks for it."""
    spent = []
    for _ in range(times):
        started = time.monotonic()
        answer = server.get(path, **fragment(part))
        assert answer.status == 200, (path, answer.status)
        spent.append((time.monotonic() - started) * 1000)
    return spent


def act(server: Running, name: str, path: str, **fields: str) -> str:
    started = time.monotonic()
    answer = server.post(path, urlencode(fields).encode())
    assert answer.status == 302, (name, answer.status, answer.text[:300])
    print(f"{name:<34}{(time.monotonic() - started) * 1000:8.0f} ms")
    return answer.headers["location"]


def measure(server: Running) -> None:
    whole: list[float] = []
    for address in ADDRESSES:
        times = delays(server, f"/?{address}")
        whole += times
        told(f"/?{address}", times)
    told("all of these", whole)
    told("the whole page", [*delays(server, "/")])
    act(server, "tag all 10 % of a filter", "/sessions/bulk", action="tag", tags="new", all="1", list="?tag=kept")
    act(server, "tag all", "/sessions/bulk", action="tag", tags="every", all="1", list="?")
    place = act(server, "delete all of a filter", "/sessions/bulk", action="delete", all="1", list="?has=compaction")
    act(server, "undo", "/sessions/restore", undo=place.partition("undo=")[2], list="?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    count = parser.parse_args().sessions
    with tempfile.TemporaryDirectory(prefix="measure-list-") as name:
        data = Path(name) / "data"
        with running(data) as server:
            database = "PostgreSQL" if os.environ.get("TEST_DATABASE_URL") else "SQLite"
            fill(data, count)
            print(f"{count:,} sessions on {database}; load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
            measure(server)


if __name__ == "__main__":
    main()
