"""Measures the triggers page with many sessions: 50 rows, thousands of compactions, a change of the threshold.

    python -m tests.benchmarks.measure_triggers [--sessions 10000]

Runs on SQLite, or on PostgreSQL where TEST_DATABASE_URL names it, against a server of its own whose database is filled
with made rows. Prints milliseconds from the request to the whole answer.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from tests.benchmarks.measure_list import delays, fill
from tests.benchmarks.measure_pages import told
from tests.services.server import running

EVIDENCE = """
import django, random, sys
django.setup()
from guard_core.packing import encode
from inspector.models import RuleExplanation, Session, default_project
from tests.guard_core.corpus.evidence import fired, stretch
chance = random.Random(7)
rows = list(Session.objects.of(default_project()).order_by("started_at"))
made = []
for number, row in enumerate(rows):
    minor = 14 + 50 * number // len(rows)
    threshold = 155_000 if minor < 21 else 167_000
    moment = row.started_at.timestamp()
    checks = []
    for step in range(chance.randrange(7)):
        passed, count = threshold - chance.randrange(1, 4_000), threshold + chance.randrange(3_000)
        checks.append(fired(count, passed, step=20 * step, time=moment + 600 * step))
    item = stretch(str(row.pk), *checks, passed=threshold - chance.randrange(1, 4_000), version=f"2.1.{minor}")
    made.append(RuleExplanation(session=row, revision=1, basis="", body=b"", evidence=encode((item.evidence,))))
RuleExplanation.unscoped.bulk_create(made, batch_size=400)
"""
ADDRESSES = ("", "agent=Claude+Code", "tag=kept", "since=2026-01-03&until=2026-01-05")
FILES = ("rows.csv", "compactions.csv", "triggers.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    count = parser.parse_args().sessions
    with tempfile.TemporaryDirectory(prefix="measure-triggers-") as name:
        data = Path(name) / "data"
        with running(data) as server:
            database = "PostgreSQL" if os.environ.get("TEST_DATABASE_URL") else "SQLite"
            fill(data, count)
            fill(data, count, EVIDENCE)
            print(f"{count:,} sessions on {database}; load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
            for address in ADDRESSES:
                told(f"/triggers/?{address}", delays(server, f"/triggers/?{address}", part="triggers"))
            for file in FILES:
                told(f"/triggers/{file}", delays(server, f"/triggers/{file}", times=3))


if __name__ == "__main__":
    main()
