"""Files that belong together: a database with its write-ahead log, and what agents keep next to their transcripts.

    arranged([("a", "state.db"), ("a", "state.db-wal"), ("a/tool-results", "x.txt")])
    -> [ImportUnit(0, wal=1), ImportUnit(2, aside="…")]

Decided by name and folder alone, before a byte is read. `add` then imports one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.data_folder.durable import synced_commits
from inspector.ingest import archives
from inspector.ingest.submitting import Inside, start_import, submit
from inspector.ingest.uploads import Received, add_log
from inspector.models import Import, Project
from inspector.models.recordings import WAL

STORED = ("ses_", "msg_", "prt_")  # how the files of OpenCode's storage folder are named
Place = tuple[str, str]  # folder ("" for a file that was named by itself), name


class ImportUnit(NamedTuple):
    """One file to import, or to leave aside with a reason. Numbers are places in the list of files."""

    file: int
    wal: int | None = None
    aside: str = ""


class ImportOutcome(NamedTuple):
    """What became of a file: its import, or the reason why it is left aside or refused."""

    name: str
    folder: str = ""  # within the folder that was dropped, or the archive
    job: Import | None = None
    aside: str = ""
    refused: str = ""


def arranged(files: Sequence[Place]) -> list[ImportUnit]:
    """What is one recording, in the order of the files."""
    number = {place: index for index, place in enumerate(files)}
    units = []
    for index, (folder, name) in enumerate(files):
        if name.endswith(WAL) and (folder, name.removesuffix(WAL)) in number:
            continue  # it comes with its database
        units.append(ImportUnit(index, number.get((folder, name + WAL)), _reason(folder, name)))
    return units


def add(
    project: Project,
    received: Received,
    *,
    strict: bool = True,
    window: int | None = None,
    unpacks: bool = False,
    inside: Inside | None = None,
) -> Import:
    """The import of one recording into a project; its bytes are on the disk when this returns. A log that is new or
    has grown makes its database be read again. `unpacks`, `inside` and what is raised are those of `submit`."""
    try:
        with synced_commits():
            recording = add_log(project, received)
            if recording is not None:
                return start_import(recording, strict=strict, window=window, inside=inside)
            return submit(project, received, strict=strict, window=window, unpacks=unpacks, inside=inside)
    finally:
        received.drop()


def bring(project: Project, received: Received, *, strict: bool = True, window: int | None = None) -> Import:
    """The import of a file that was given by itself. A ZIP archive that is no recording is to be unpacked: then a
    worker imports the folder in it."""
    try:
        unpacks = archives.is_folder(received.path)
    except BaseException:
        received.drop()
        raise
    return add(project, received, strict=strict, window=window, unpacks=unpacks)


def placed(job: Import, folder: str) -> Import:
    """The import of a file that lay in a folder."""
    if folder:
        job.folder = folder
        job.save(update_fields=["folder"])
    return job


def _reason(folder: str, name: str) -> str:
    """Why a file is not read; empty for one that is."""
    if name.endswith(WAL):
        return (
            f"the write-ahead log of a database, without the database: choose it together with {name.removesuffix(WAL)}"
        )
    if name.endswith("-shm"):
        return "SQLite's shared memory, which holds no part of a session"
    parts = folder.split("/")
    if "__MACOSX" in parts[:2]:
        return "what macOS notes of a file in an archive, which holds no part of a session"
    if "tool-results" in parts:
        return "an output that Claude Code moved out of the transcript; the model saw what the transcript holds of it"
    if name.startswith(STORED) and name.endswith(".json") and "storage" in parts:
        return (
            "a piece of OpenCode's storage folder: drop or choose the folder `storage` as a whole, or import the file "
            "that `opencode export` writes of a session"
        )
    if "subagents" in parts and name.endswith(".meta.json"):
        return "notes on a sub-agent; its transcript is the file beside this one"
    return ""
