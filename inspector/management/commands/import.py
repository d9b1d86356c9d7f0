"""`manage.py import PATH...`: read files and whole folders, one line each; a bad one does not stop the others."""
# ruff: noqa: N999 - the name is the command's

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from guard_core.cli import window_size
from guard_core.errors import GuardError, UnknownFormat
from guard_core.plain_text import plain
from guard_core.recordings import detect
from guard_core.recordings.formats.opencode.storage import Storage, is_storage
from guard_core.recordings.reading.folders import pack, session_folders
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.source import ByteSource
from inspector.data_folder.opening import open_folder
from inspector.ingest.companions import add, arranged, bring
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import report_of
from inspector.ingest.unpacking import outcomes_of
from inspector.ingest.uploads import Received, receive
from inspector.jobs.indexing import index_everything
from inspector.management.checks import WITHOUT_PAGES
from inspector.management.refusals import refusals
from inspector.models import Import, Project, default_project
from inspector.models.projects import DEFAULT_SLUG
from inspector.models.recordings import WAL
from inspector.pages.imports.choosing import known_words
from inspector.pages.shared.numbers import counted
from inspector.project.worker import Heartbeat

CHUNK = 1 << 20  # bytes
PATIENCE = 3600.0  # seconds for a file that another worker took
LOOK_EVERY = 0.3  # seconds between checks at the progress, on a terminal


Leave = Callable[[str], object]  # hears of what is left out


class GivenFile(NamedTuple):
    """A file of the command line, or one found in a folder of it."""

    path: Path
    named: bool  # on the command line, not found in a folder
    wal: Path | None = None  # the write-ahead log of a database
    aside: str = ""  # why it is not read
    export: Callable[[Leave | None], bytes] | None = None  # of the session, where the path only names it
    pieces: tuple[Path, ...] = ()  # the files of a session, where the path is its folder


class Command(BaseCommand):
    help = (
        "Import session files, or all files of a folder. Exit code 1 when a file was rejected, 2 when no "
        "file was found."
    )
    requires_system_checks = WITHOUT_PAGES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder or ZIP archive with all its files"
        )
        parser.add_argument("--lenient", action="store_true", help="skip damaged lines instead of rejecting the file")
        parser.add_argument(
            "--window", type=window_size, help="context window in tokens, if it differs from what the file says"
        )
        parser.add_argument(
            "--project", default=DEFAULT_SLUG, metavar="SLUG", help="the project to import into (%(default)s)"
        )
        parser.add_argument("--no-index", action="store_true", help="leave the text index to a worker")

    def handle(self, *args: Any, **options: Any) -> None:
        with refusals():
            locks = open_folder()
        with closing(locks):
            self._import(options)

    def _import(self, options: dict[str, Any]) -> None:
        self.project = project_of(options["project"])
        outcomes: Counter[str] = Counter()
        for given in files(options["paths"]):
            outcomes.update(self._one(given, options))
        if not outcomes:
            raise CommandError("There is no file at these paths.", returncode=2)
        if not options["no_index"] and outcomes["imported"]:
            index_everything()
        self.stdout.write(", ".join(f"{number:,} {word}" for word, number in sorted(outcomes.items())))
        if outcomes["refused"]:
            raise CommandError(f"{counted(outcomes['refused'], 'file')} refused.", returncode=1)

    def _one(self, given: GivenFile, options: dict[str, Any]) -> Iterator[str]:
        """Import one file, or the folder in an archive, and say so in a line each; what became of it."""
        if given.aside:
            yield self._say(given.path, "skipped", given.aside)
            return
        try:
            whole = given.export is not None or given.pieces
            if not given.named and not whole and not is_session(given.path):
                yield self._say(given.path, "skipped", "not a supported format")
                return
            yield from self._outcomes(given.path, self._import_of(given, options))
        except (GuardError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            yield self._say(given.path, "refused", str(reason))

    def _outcomes(self, path: Path, job: Import) -> Iterator[str]:
        """Read what was added, unless it is here already; of an archive, what is in it."""
        if job.ended:
            yield self._say(path, "known", "is here already")
            return
        job = self._read(path, job)
        if job.state == Import.State.DONE and job.unpacks:
            yield from self.outcomes_in(path, job)
        else:
            yield self._outcome(path, job)

    def outcomes_in(self, path: Path, archive: Import) -> Iterator[str]:
        """Read the files of an archive that has been unpacked, as far as no worker of a server was faster."""
        read: set[UUID] = set()
        for outcome in outcomes_of(archive):
            place, job = path / outcome.folder / outcome.name, outcome.job
            if job is None:
                yield self._say(place, "skipped" if outcome.aside else "refused", outcome.aside or outcome.refused)
            elif job.pk in read or (job.ended and job.archive_id != archive.pk):
                yield self._say(place, "known", "is here already")
            else:
                read.add(job.pk)
                yield self._outcome(place, job if job.ended else self._read(place, job))

    def _read(self, path: Path, job: Import) -> Import:
        """An import when it has ended, here or in a worker."""
        with Heartbeat(str(job.pk)), ProgressLine(self, path, job):
            run_import(str(job.pk))
            return ended(job)

    def _outcome(self, path: Path, job: Import) -> str:
        """Say what became of a recording."""
        if job.state == Import.State.DONE and job.recording is not None:
            return self._say(path, "imported", f"{job.recording.format}, {_sessions(job)}")
        if job.left_aside:
            return self._say(path, "skipped", "not a supported format")
        place = f"line {job.line}: " if job.line else ""
        offer = ". With --lenient, damaged lines are skipped" if job.mendable else ""
        return self._say(path, "refused", place + (job.message or job.state).removesuffix(".") + offer)

    def _import_of(self, given: GivenFile, options: dict[str, Any]) -> Import:
        if given.export is not None:
            leave = partial(self._say, given.path, "left out") if options["lenient"] else None
            received = receive([given.export(leave)], given.path.name)
        else:
            received = take_folder(given.path, given.pieces) if given.pieces else take(given.path)
        if given.wal is not None:
            received = received._replace(wal=take(given.wal))
        bring_in = bring if given.named else add
        return bring_in(self.project, received, strict=not options["lenient"], window=options["window"])

    def _say(self, path: Path, word: str, reason: str) -> str:
        clear = "\r\x1b[K" if sys.stdout.isatty() else ""
        self.stdout.write(clear + plain(f"{word:>8}  {path}  {reason}"))
        return word


def project_of(slug: str) -> Project:
    """The project of this name. Raises CommandError."""
    if slug == DEFAULT_SLUG:
        return default_project()
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project {slug!r}.", returncode=2)
    return project


def _sessions(job: Import) -> str:
    """How many sessions there are in a file, and how many of them were here already."""
    report = report_of(job)
    if report is None:
        return counted(0, "session")
    known = known_words(report)
    return counted(len(report.sessions), "session") + (f": {known}" if known else "")


def take(path: Path) -> Received:
    """Copy a file into the data folder. Raises as `receive`."""
    with path.open("rb") as file:
        return receive(iter(lambda: file.read(CHUNK), b""), path.name)


def take_folder(folder: Path, pieces: tuple[Path, ...]) -> Received:
    """The files of a session as one archive in the data folder. Raises as `receive`, and LimitExceeded."""
    with TemporaryDirectory() as place:
        archive = Path(place, f"{folder.resolve().name}.zip")
        pack(folder, archive, Limits(), pieces)
        return take(archive)


def ended(job: Import) -> Import:
    """The import when it has ended: at once, unless the worker of a running server was faster to take it."""
    end = time.monotonic() + PATIENCE
    while True:
        job = Import.objects.row(job).select_related("recording").get()
        if job.ended or time.monotonic() > end:
            return job
        time.sleep(LOOK_EVERY)


class ProgressLine:
    """A line that counts while a file is read, on a terminal only."""

    def __init__(self, command: BaseCommand, path: Path, job: Import) -> None:
        self.command, self.path, self.job = command, path, job
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> None:
        if sys.stdout.isatty():
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _count(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self.job.refresh_from_db(fields=["phase", "done", "total"])
            path = plain(str(self.path))
            self.command.stdout.write(f"\r\x1b[K{self.job.phase:>8}  {path}  {self.job.percent} %", ending="")
            self.command.stdout.flush()
        connection.close()


def files(paths: list[Path]) -> Iterator[GivenFile]:
    """The files named, and those in the folders named, in a steady order. Links in folders are not followed."""
    for path in paths:
        if not path.is_dir():
            wal = path.with_name(path.name + WAL)
            if not (path.name.endswith(WAL) and path.with_name(path.name.removesuffix(WAL)) in paths):
                yield GivenFile(path, True, wal if wal.is_file() and wal.stat().st_size else None)
            continue
        whole = session_folders(
            Path(folder, name).relative_to(path).as_posix() for folder, _, names in os.walk(path) for name in names
        )
        held = {Path(path, name) for names in whole.values() for name in names}
        for folder, folders, names in os.walk(path):
            folders.sort()
            if is_storage(Path(folder)):
                storage = Storage.of(Path(folder))
                for place in storage.sessions:
                    yield GivenFile(Path(folder, place), False, export=partial(storage.export, place))
                folders.clear()
                continue
            inner = Path(folder).relative_to(path).as_posix()
            if pieces := whole.get("" if inner == "." else inner):
                yield GivenFile(Path(folder), False, pieces=tuple(Path(path, name) for name in pieces))
            inside = [item for item in (Path(folder, name) for name in sorted(names)) if item not in held]
            files_inside = [item for item in inside if item.is_file() and not item.is_symlink() and item.stat().st_size]
            place = str(Path(path.name, Path(folder).relative_to(path)).as_posix())
            for unit in arranged([(place, item.name) for item in files_inside]):
                log = None if unit.wal is None else files_inside[unit.wal]
                yield GivenFile(files_inside[unit.file], False, log, unit.aside)


def is_session(path: Path) -> bool:
    """Is a file of a folder meant to be read at all: damaged ones are, pictures and notes are not."""
    try:
        with ByteSource.open(path) as source:
            detect(source)
    except UnknownFormat:
        return False
    except GuardError:
        return True
    return True
