"""Taking a data folder into use: who has it, whether its database is whole and of a known version, and its upgrade.

What is wrong is found before anything is changed. An upgrade of an SQLite database begins with a copy of it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from guard_core import __version__
from inspector.durable import sync_folder
from inspector.lease import Lease, Refused, in_use
from inspector.services.sweeping import CHECKS, sweep_alone

CHECKED_BYTES = 2**30  # of a database, checked page by page in 2 s; a larger one would keep the start waiting
COPIES = "backups"  # folder of the copies before upgrades
KEPT_COPIES = 3
UNFINISHED = ".part"
Applied = set[tuple[str, str]]  # migrations: app, name


def open_folder() -> Lease:
    """Check the data folder, bring its database up to date and sweep it; its lease, shared. Raises Refused."""
    lease = Lease(Path(settings.DATA_DIR))
    try:
        if lease.take_alone():
            check()
            upgrade()
            sweep_alone()
            lease.share()
        else:  # whoever uses the folder has checked it, and nothing may change under them
            lease.share()
            refuse_newer(MigrationRecorder(connection).applied_migrations())
            if _pending():
                raise Refused(f"The database must be upgraded, while no other process uses it. {in_use(lease.folder)}")
    except BaseException:
        lease.close()
        raise
    return lease


def check() -> None:
    """Raise Refused where the database is damaged or of a newer version. Nothing in the folder changes."""
    if connection.vendor != "sqlite":
        refuse_newer(MigrationRecorder(connection).applied_migrations())
        return
    path = database_path()
    if not path.exists() or not path.stat().st_size:
        return
    try:
        refuse_newer(read_database(path))
    except sqlite3.DatabaseError as error:
        raise Refused(f"The database {path} is damaged ({error}). Nothing was changed. {_remedy()}") from None


def database_path() -> Path:
    """The SQLite database."""
    return Path(connection.settings_dict["NAME"])


def read_database(path: Path) -> Applied:
    """The migrations that an SQLite database has seen, after a look at its pages. Raises sqlite3.DatabaseError."""
    with _aside(path) as aside, closing(sqlite3.connect(f"file:{quote(str(aside))}?mode=ro", uri=True)) as database:
        if path.stat().st_size <= CHECKED_BYTES:
            (finding,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if finding != "ok":
                raise sqlite3.DatabaseError(" ".join(finding.split()))
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return set()
        return set(database.execute("SELECT app, name FROM django_migrations"))


@contextmanager
def _aside(database: Path) -> Iterator[Path]:
    """The database by another name, with a copy of its log: SQLite writes files beside a database that it reads."""
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=CHECKS) as folder:
        link = Path(folder, database.name)
        try:
            os.link(database, link)
        except OSError:  # a file system without links
            yield database
            return
        log = database.with_name(database.name + "-wal")
        if log.exists():
            shutil.copyfile(log, link.with_name(log.name))
        yield link


def refuse_newer(applied: Iterable[tuple[str, str]]) -> None:
    """Raise Refused where a database has seen migrations that this version does not know."""
    known = set(MigrationExecutor(None).loader.disk_migrations)  # type: ignore[arg-type]
    labels = {config.label for config in apps.get_app_configs()}
    newer = sorted(name for app, name in applied if app in labels and (app, name) not in known)
    if newer:
        raise Refused(
            f"The data in {settings.DATA_DIR} is of a newer version of this program: this is {__version__}, which does "
            f"not know {newer[-1]} of its database. Nothing was changed. Update the program, or use another folder."
        )


def upgrade() -> None:
    """Apply what the database has not seen yet, with a copy before. Raises Refused where that fails."""
    if not _pending():
        return
    copy = _copy_database()
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Exception as error:
        reason = " ".join(str(error).split())
        way_back = f"The database as it was before is {copy}. {restore_words(copy)}" if copy else ""
        raise Refused(f"The database could not be upgraded ({reason}). {way_back}".strip()) from error


def _pending() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _copy_database() -> Path | None:
    """A copy of the SQLite database under the last migration that it has seen and the time; None of a new one."""
    applied = sorted(name for app, name in MigrationRecorder(connection).applied_migrations() if app == "inspector")
    if connection.vendor != "sqlite" or not applied:
        return None
    folder = Path(settings.DATA_DIR) / COPIES
    folder.mkdir(mode=0o700, exist_ok=True)
    for broken_off in folder.glob(f"*{UNFINISHED}"):
        broken_off.unlink()
    path = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{applied[-1]}.sqlite3"
    unfinished = path.with_suffix(UNFINISHED)
    try:
        copy_sqlite(database_path(), unfinished)
        os.replace(unfinished, path)
        sync_folder(folder)
    except (OSError, sqlite3.Error) as error:
        unfinished.unlink(missing_ok=True)
        raise Refused(
            f"The copy of the database that precedes an upgrade cannot be written to {folder} ({error}). Nothing was "
            "changed. Make room there."
        ) from error
    for old in copies()[KEPT_COPIES:]:
        old.unlink()
    return path


def copies() -> list[Path]:
    """The copies from before upgrades, the newest first."""
    return sorted((Path(settings.DATA_DIR) / COPIES).glob("*.sqlite3"), reverse=True)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database by SQLite's own means, to the disk, readable by its owner alone."""
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with (
        closing(sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def restore_words(file: object) -> str:
    """How a backup comes back."""
    return f"To bring it back: python manage.py restore {file} --replace"


def _remedy() -> str:
    newest = next(iter(copies()), None)
    if newest is None:
        return "To bring a backup back: python manage.py restore FILE --replace"
    return f"The newest copy here is from before an upgrade. {restore_words(newest)}"
