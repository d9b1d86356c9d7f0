"""The whole suite: everything on SQLite, then on PostgreSQL with Redis what a second database may change, and at last
what measures time, alone: by then `make test` has checked the types, too.

What that is, `second_database.py` says of each test. The folders of WITHOUT_DATABASE, whose tests can reach no database
at all, are not even collected there, and `test_run.py` holds them to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from tests.plugins.neighbours import Unavailable, check_whole, find_postgres, find_redis

PARALLEL = "3"  # processes: two wait for servers and a browser half of the time, and leave a small machine to the third
SPEED_TESTS = "tests/benchmarks"  # wrong beside other processes
WITHOUT_DATABASE = ("tests/guard_core", "tests/properties", "tests/plugins")
TOGETHER = ("-n", PARALLEL, "-p", "tests.plugins.scheduling", f"--ignore={SPEED_TESTS}")
AGAIN = ("--second-database", *(f"--ignore={folder}" for folder in WITHOUT_DATABASE))
REFUSED = 2


class Run(NamedTuple):
    """One run of pytest."""

    title: str
    arguments: tuple[str, ...]
    postgres: str = ""


def main(arguments: list[str]) -> int:
    try:
        postgres, redis = find_postgres(), find_redis()
        check_whole(postgres, redis)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return REFUSED
    if arguments:
        chosen = postgres if os.environ.get("TEST_DATABASE_URL") else ""
        return run(Run("", tuple(arguments), chosen), redis)
    print(told(postgres, redis), flush=True)
    for each in plan(postgres):
        print(each.title, flush=True)
        if failed := run(each, redis):
            return failed
    return 0


def told(postgres: str, redis: str) -> str:
    """What the suite runs on, and what is left out, in a sentence."""
    missing = [name for name, url in (("PostgreSQL", postgres), ("Redis", redis)) if not url]
    if not missing:
        return "PostgreSQL and Redis answer: the suite runs on SQLite, then on PostgreSQL."
    left_out = "; it runs on SQLite alone" if not postgres else ""
    return f"No {' and no '.join(missing)} answers on this machine: the suite goes on without{left_out}."


def plan(postgres: str) -> list[Run]:
    """The runs of the whole suite."""
    runs = [Run("Everything but what measures time, on SQLite:", TOGETHER)]
    if postgres:
        runs.append(Run("What a second database may change, on PostgreSQL:", (*TOGETHER, *AGAIN), postgres))
    return [*runs, Run("What measures time, alone:", (SPEED_TESTS,))]


def run(each: Run, redis: str) -> int:
    environment = {**os.environ, "TEST_DATABASE_URL": each.postgres, "TEST_REDIS_URL": redis}
    # Without compiled modules every process of every run rewrites the assertions of all tests: two thirds of its start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.call([sys.executable, "-m", "pytest", "-q", *each.arguments], env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
