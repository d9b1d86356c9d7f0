"""Measures every policy on one session: processor time of its replay and of its row, and the memory of the process.

    python -m tests.benchmarks.measure_policies [--steps 2500] [--window 200000] [--policy NAME ...]

The session has four messages a step, and its provider is simulated. The slowest policies come first.
"""

from __future__ import annotations

import argparse
import resource
import time

from guard_core.findings.facts import Facts
from guard_core.outcomes.comparing import candidates, compared
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries
from tests.benchmarks.test_engine_speed import ANSWER, CALL, RESULT, USER


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2_500)
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--policy", nargs="*", default=[])
    args = parser.parse_args()
    calls = tuple(ModelCall(at=4 * number + 3) for number in range(args.steps))
    facts = Facts.of(Session(events=(USER, CALL, RESULT, ANSWER) * args.steps, calls=calls, usage_ratio=2.0))
    chosen = [item for item in candidates() if not args.policy or item.kind.name in args.policy]
    rows, before = [], time.process_time()
    for row in compared(facts, chosen, window=args.window, summarizer=FixedSummaries(2_000)):
        now = time.process_time()
        assert row.candidate is not None
        done = row.problem or f"{row.outcome.compactions if row.outcome else 0:,} compactions"
        rows.append((now - before, row.candidate.title, done))
        before = now
    for seconds, title, done in sorted(rows, reverse=True):
        print(f"{seconds:8.3f} s  {title:<44} {done}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{sum(row[0] for row in rows):8.3f} s  {facts.ledger.event_count:,} events; at most {most:,} MB")


if __name__ == "__main__":
    main()
