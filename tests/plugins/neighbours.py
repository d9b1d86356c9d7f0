"""PostgreSQL and Redis for the tests: which ones answer, and what is said where they do not."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlparse

REDIS_URL = "redis://127.0.0.1:6379/15"
REDIS_DATABASES = 16  # of a Redis as it comes
# Where the PostgreSQL of a test machine lets people in; the last is what libpq itself would take (PGHOST, a socket).
POSTGRES = (
    "postgresql://postgres@127.0.0.1:5432",
    "postgresql://root@127.0.0.1:5432",
    "postgresql://postgres:postgres@127.0.0.1:5432",
    "postgresql://",
)
MAY_CREATE = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"


class Unavailable(Exception):
    """A neighbour that must be there is not; the sentence says which and what to do."""


def find_postgres() -> str:
    """The address of a PostgreSQL that lets this user make databases; empty where none does.

    TEST_DATABASE_URL names one, and then no other is tried.
    """
    if given := os.environ.get("TEST_DATABASE_URL"):
        base, _, name = given.rpartition("/")
        if not name or not _takes_databases(base):
            raise Unavailable("TEST_DATABASE_URL names no PostgreSQL that answers and lets its user make databases.")
        return given
    base = next((base for base in POSTGRES if _takes_databases(base)), "")
    return f"{base}/inspector_{os.getpid()}" if base else ""  # two runs at once do not meet


def find_redis() -> str:
    """The address of a Redis; empty where none answers. TEST_REDIS_URL names one."""
    given = os.environ.get("TEST_REDIS_URL")
    if _says_pong(given or REDIS_URL):
        return given or REDIS_URL
    if given:
        raise Unavailable("TEST_REDIS_URL names no Redis that answers.")
    return ""


def check_whole(postgres: str, redis: str) -> None:
    """In CI both must answer, so that nothing is left out unseen. Raises Unavailable."""
    missing = [name for name, url in (("PostgreSQL", postgres), ("Redis", redis)) if not url]
    if missing and os.environ.get("CI"):
        raise Unavailable(
            f"CI is set, and no {' and no '.join(missing)} answers on this machine: nothing was tested. Start the "
            "services, or name them by TEST_DATABASE_URL and TEST_REDIS_URL."
        )


def redis_of(worker: str) -> str:
    """The Redis database of one process of the run (`gw0`, `gw1`, …), counted down from the one that was given."""
    url = os.environ.get("TEST_REDIS_URL", "")
    base, _, number = url.rpartition("/")
    if not base or not number.isdigit() or not worker:
        return url
    return f"{base}/{(int(number) - int(worker.removeprefix('gw'))) % REDIS_DATABASES}"


def _takes_databases(base: str) -> bool:
    import psycopg

    try:
        with psycopg.connect(f"{base}/postgres", connect_timeout=2) as connection:
            return connection.execute(MAY_CREATE).fetchone() == (True,)
    except psycopg.OperationalError:
        return False


def _says_pong(url: str) -> bool:
    parts = urlparse(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))  # one with a password is there as well
    except OSError:
        return False
