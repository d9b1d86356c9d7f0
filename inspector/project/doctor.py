"""`compaction-inspector doctor`: what keeps an installation from its work, or will. It changes nothing."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

OK, NOTE, BAD = "ok", "note", "bad"
# Before it two processes that write at the same moment can damage a database in WAL mode: https://sqlite.org/wal.html
SQLITE_WITHOUT_RACE = (3, 51, 3)
PRIVATE = 0o077  # bits that only the owner may have


class DoctorLine(NamedTuple):
    """One thing that was looked at."""

    state: str
    about: str
    words: str


def doctor() -> int:
    """Print what was found; 1 where something is bad. Raises ImproperlyConfigured."""
    import django  # with its settings, which the command line may change

    django.setup()
    lines = list(examined())
    for line in lines:
        print(f"{line.state:<5} {line.about}: {line.words}")
    bad = sum(line.state == BAD for line in lines)
    print(
        f"{bad} of {len(lines)} lines {'needs' if bad == 1 else 'need'} attention."
        if bad
        else "Nothing needs attention."
    )
    return int(bool(bad))


def examined(check: Callable[[], None] | None = None) -> Iterator[DoctorLine]:
    """Everything, in the order in which it depends on one another. `check`: of the database file, by default that of
    a start."""
    yield from _program()
    yield from _settings()
    yield from _folder()
    yield from _database(check)
    yield from _neighbours()
    yield from _single_sign_on()


def _program() -> Iterator[DoctorLine]:
    from guard_core import __version__

    yield DoctorLine(OK, "program", f"version {__version__}, Python {sys.version.split()[0]}")
    from guard_core.tokens.tokenizer import count

    yield DoctorLine(OK, "tokenizer", f"its vocabulary is there (tokens of “compaction”: {count(['compaction'])[0]})")


def _settings() -> Iterator[DoctorLine]:
    from django.conf import settings
    from django.core.checks import run_checks

    messages = run_checks(include_deployment_checks=settings.SECURE)
    for message in messages:
        yield DoctorLine(BAD if message.is_serious() else NOTE, "settings", " ".join(str(message.msg).split()))
    if not messages:
        mode, address = "on" if settings.TEAM else "off", settings.PUBLIC_URL or "no PUBLIC_URL"
        yield DoctorLine(OK, "settings", f"team mode {mode}, {address}")
    if settings.TEAM and not settings.SECURE and settings.BIND not in ("127.0.0.1", "::1", "localhost"):
        yield DoctorLine(
            NOTE, "settings", "passwords travel without TLS: put a proxy in front, and set PUBLIC_URL=https://…"
        )
    if settings.SSO_HEADER and not settings.PROXIES:
        yield DoctorLine(BAD, "settings", "SSO_HEADER is set without PROXIES, so that it is always ignored")


def _folder() -> Iterator[DoctorLine]:
    from django.conf import settings

    from inspector.data_folder.owner import serving
    from inspector.project import health

    folder = Path(settings.DATA_DIR)
    for path in (folder, folder / "secret-key"):
        if path.exists() and path.stat().st_mode & PRIVATE:
            yield DoctorLine(BAD, "data folder", f"{path} can be read by other users: chmod go= {path}")
    if not os.access(folder, os.W_OK):
        yield DoctorLine(BAD, "data folder", f"{folder} cannot be written to")
    full = health.disk()
    yield DoctorLine(BAD if full else OK, "disk", full or f"there is room in {folder}")
    holder = serving(folder)
    yield DoctorLine(OK, "server", f"{holder} runs" if holder else "none runs on this data folder")


def _database(check: Callable[[], None] | None) -> Iterator[DoctorLine]:
    from django.conf import settings
    from django.db import Error, connection

    from inspector.data_folder import opening
    from inspector.data_folder.owner import CommandRefused
    from inspector.data_folder.versions import is_outdated
    from inspector.models import Account, Recording
    from inspector.models.recordings import STREAM

    if connection.vendor == "sqlite":
        is_new = sqlite3.sqlite_version_info >= SQLITE_WITHOUT_RACE
        words = "" if is_new else ", which has a race between two writers (fixed in 3.51.3): use PostgreSQL for a team"
        yield DoctorLine(OK if is_new else NOTE, "SQLite", sqlite3.sqlite_version + words)
    try:
        (check or opening.check)()
        if is_outdated():
            yield DoctorLine(NOTE, "database", "its tables are older; the next start copies and upgrades it")
            return
        files = Recording.unscoped.exclude(sha256__startswith=STREAM).order_by("-created")
        missing = [row.name for row in files[:1_000] if not row.path.exists()]
        lonely = settings.TEAM and not Account.objects.exists()
    except (Error, CommandRefused) as error:
        yield DoctorLine(BAD, "database", " ".join(str(error).split()))
        return
    yield DoctorLine(OK, "database", f"{connection.vendor} answers, and its tables are those of this version")
    if missing:
        yield DoctorLine(
            BAD, "recordings", f"the bytes of {len(missing):,} of the newest 1,000 are not in the data folder"
        )
    if lonely:
        yield DoctorLine(NOTE, "accounts", "there is none yet: the next start prints a link for creating the first one")


def _neighbours() -> Iterator[DoctorLine]:
    from django.conf import settings

    if not settings.REDIS_URL:
        return
    from redis import Redis, RedisError

    try:
        Redis.from_url(settings.REDIS_URL, socket_timeout=3, socket_connect_timeout=3).ping()
        yield DoctorLine(OK, "Redis", "answers")
    except (RedisError, OSError) as error:
        yield DoctorLine(BAD, "Redis", f"does not answer ({type(error).__name__}): pages learn of changes late")


def _single_sign_on() -> Iterator[DoctorLine]:
    from django.conf import settings

    from inspector.accounts import oidc

    if not settings.OIDC_ISSUER:
        return
    try:
        oidc.begin("https://localhost/")  # which asks the provider to describe itself, and nothing more
        yield DoctorLine(OK, "single sign-on", f"{settings.OIDC_ISSUER} answers")
    except oidc.SignInFailed as failed:
        yield DoctorLine(BAD, "single sign-on", f"{settings.OIDC_ISSUER}: {failed}")
    except ImportError:
        pass  # which the settings above have said
