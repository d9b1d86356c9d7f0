"""The whole suite, in two commands. `make test`: what is short of it, beside each other the pages and the rest of the
application on SQLite, walks through it in a browser, the engine, and what a second database may change on PostgreSQL
with Redis. `make long`
(`--long` alone): the rest, on both, and at last what measures time, alone.

What a second database may change, `second_database.py` says of each test, and which tests are long, `tiers.py`. The
folders of WITHOUT_DATABASE, whose tests can reach no database at all, are not even collected there, and `test_run.py`
holds them to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import IO, NamedTuple

from tests.plugins.neighbours import Unavailable, check_whole, find_postgres, find_redis

SPEED_TESTS = "tests/benchmarks"  # wrong beside other processes
WITHOUT_DATABASE = ("tests/guard_core", "tests/properties", "tests/plugins")
SERVED = ("tests/browser", "tests/services")  # these wait for other processes half of the time
PAGES = "tests/inspector/pages"
SHORT, LONG = "--short", "--long"
# Each process of `make test` collects only the tests that it runs: to collect all of them takes 15 seconds of a
# processor and more. Of `make long` most are SERVED: its tests go to whichever process is free.
WITH_DATABASE = tuple(f"--ignore={folder}" for folder in (SPEED_TESTS, *WITHOUT_DATABASE))
UNSERVED = tuple(f"--ignore={folder}" for folder in SERVED)
PARALLEL = ("-n", "3", "-p", "tests.plugins.scheduling", f"--ignore={SPEED_TESTS}")
AGAIN = ("--second-database", *WITH_DATABASE)
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
    if arguments and arguments != [LONG]:
        chosen = postgres if os.environ.get("TEST_DATABASE_URL") else ""
        return run(Run("", tuple(arguments), chosen), redis)
    print(what_answers(postgres, redis), flush=True)
    with tempfile.TemporaryDirectory(prefix="inspector-shared-") as shared:  # a first start serves both databases
        os.environ["TEST_SHARED_DIR"] = shared
        for each in plan_long(postgres) if arguments else plan(postgres):
            if failed := run_beside(each, redis):
                return failed
    return 0


def what_answers(postgres: str, redis: str) -> str:
    """What the suite runs on, and what is left out, in a sentence."""
    missing = [name for name, url in (("PostgreSQL", postgres), ("Redis", redis)) if not url]
    if not missing:
        return "PostgreSQL and Redis answer: the suite runs on SQLite, and beside it on PostgreSQL."
    left_out = "; it runs on SQLite alone" if not postgres else ""
    return f"No {' and no '.join(missing)} answers on this machine: the suite goes on without{left_out}."


def plan(postgres: str) -> list[list[Run]]:
    """The runs of `make test`: each list runs beside each other, one list after the other."""
    runs = [
        Run("The pages, on SQLite:", (PAGES, SHORT)),
        Run("The rest of the application, on SQLite:", (*WITH_DATABASE, *UNSERVED, f"--ignore={PAGES}", SHORT)),
        Run("Walks through it in a browser, and its servers, on SQLite:", (*SERVED, SHORT)),
        Run("The engine and the formats:", (*WITHOUT_DATABASE, SHORT)),
    ]
    if postgres:
        runs.append(Run("What a second database may change, on PostgreSQL:", (*AGAIN, SHORT), postgres))
    return [runs]


def plan_long(postgres: str) -> list[list[Run]]:
    """The runs of `make long`, as those of `plan`."""
    runs = [Run("What is long, on SQLite:", (*PARALLEL, LONG))]
    if postgres:
        runs.append(Run("What is long, on PostgreSQL:", (*AGAIN, LONG), postgres))
    return [runs, [Run("What measures time, alone:", (SPEED_TESTS,))]]


def run_beside(runs: list[Run], redis: str) -> int:
    """Run them all at once; the first exit code that is no 0. What the first prints is seen at once, what the others
    print once they have ended."""
    first, *others = runs
    print(first.title, flush=True)
    with ExitStack() as stack:
        started = []
        for each in others:
            output = stack.enter_context(tempfile.TemporaryFile("w+"))
            started.append((each, output, stack.enter_context(start(each, redis, output))))
        codes = [run(first, redis)]
        for each, output, process in started:
            codes.append(process.wait())
            output.seek(0)
            print(each.title, output.read(), sep="\n", flush=True)
    return next(filter(None, codes), 0)


def run(each: Run, redis: str) -> int:
    with start(each, redis) as process:
        return process.wait()


def start(each: Run, redis: str, output: IO[str] | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "TEST_DATABASE_URL": each.postgres, "TEST_REDIS_URL": redis}
    # Without compiled modules every process of every run rewrites the assertions of all tests: two thirds of its start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", *each.arguments]
    return subprocess.Popen(command, env=environment, stdout=output, stderr=output, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
