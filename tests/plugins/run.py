"""The whole suite: on PostgreSQL and Redis where they answer, then what measures time, then all else on SQLite."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from urllib.parse import urlparse

PARALLEL = "2"  # processes; the rest of a small machine is left to the servers and the browser under test
DATABASE_TESTS = ("tests/inspector", "tests/services")
SPEED_TESTS = "tests/benchmarks"  # wrong beside other processes
POSTGRES_USERS = ("postgres", "root")
REDIS_URL = "redis://127.0.0.1:6379/15"


def main(arguments: list[str]) -> int:
    redis = os.environ.get("TEST_REDIS_URL") or (REDIS_URL if answers(REDIS_URL) else "")
    postgres = os.environ.get("TEST_DATABASE_URL") or find_postgres()
    if arguments:
        return run(arguments, database="", redis=redis)
    if os.environ.get("CI") and not (postgres and redis):
        print("PostgreSQL or Redis does not answer on 127.0.0.1: their tests cannot run here.", file=sys.stderr)
    whole = ["-n", PARALLEL, "--dist", "loadgroup", "--benchmark-disable", f"--ignore={SPEED_TESTS}"]
    runs = [
        ("What measures time, alone:", ["--benchmark-disable", SPEED_TESTS], ""),
        ("Everything else, on SQLite:", whole, ""),
    ]
    if postgres:
        runs.insert(0, ("What touches a database, on PostgreSQL:", ["-m", "not browser", *DATABASE_TESTS], postgres))
    else:
        print("No PostgreSQL answers on 127.0.0.1:5432 (or TEST_DATABASE_URL); the suite runs on SQLite.", flush=True)
    for title, chosen, database in runs:
        print(title, flush=True)
        if failed := run(chosen, database=database, redis=redis):
            return failed
    return 0


def run(arguments: list[str], *, database: str, redis: str) -> int:
    environment = {**os.environ, "TEST_DATABASE_URL": database, "TEST_REDIS_URL": redis}
    return subprocess.call([sys.executable, "-m", "pytest", "-q", *arguments], env=environment)


def find_postgres() -> str:
    """The address of a PostgreSQL on this machine that lets one of the usual users in without a password."""
    import psycopg

    for user in POSTGRES_USERS:
        try:
            with psycopg.connect(f"postgresql://{user}@127.0.0.1:5432/postgres", connect_timeout=2):
                return f"postgresql://{user}@127.0.0.1:5432/inspector_{os.getpid()}"  # two runs at once do not meet
        except psycopg.OperationalError:
            continue
    return ""


def answers(url: str) -> bool:
    parts = urlparse(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=1):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
