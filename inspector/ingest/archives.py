"""A ZIP archive that is no recording itself: the folder in it, unpacked into files with names of our own.

Names of entries say where a file lay; none becomes a path. All is unpacked, counted and checked before anything of it
is imported (`unpacking`).
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from django.conf import settings

from guard_core.errors import DamagedRecording, LimitExceeded, RecordingError, UnknownFormat
from guard_core.recordings import detect
from guard_core.recordings.formats.opencode.storage import NAME, Storage, storages_in
from guard_core.recordings.reading.file_bytes import ZIP_MAGIC
from guard_core.recordings.reading.folders import pack_files, session_folders
from guard_core.recordings.reading.limits import MIB, Limits
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.zip_entries import ZipEntries, ZipEntry, entry_names
from inspector.ingest.uploads import CHUNK, Received, receive

MOST_FILES = 20_000  # as many as static/js/upload.js sends of a folder
MOST_NAME = 1_000  # characters of a path; ours: agents' are far shorter
ASKED = Limits(inflated_bytes=64 * MIB)  # of an entry, in memory, to find out whether a format has such archives
LOOSE = "a piece of OpenCode's storage folder that belongs to no session in it"
LINK = "a symbolic link, which is not followed"
NESTED = "a ZIP archive inside a ZIP archive, which is not unpacked: import it by itself"
_DRIVE = re.compile(r"[A-Za-z]:")


class UnpackedFile(NamedTuple):
    """A file of an archive: its path in there, and its bytes, or why there are none."""

    path: str
    received: Received | None
    aside: str = ""
    refused: str = ""


def is_folder(path: Path) -> bool:
    """Is this file a ZIP archive that no recording format knows, or one that holds more than the sessions in it that
    have a folder each?"""
    with path.open("rb") as file:
        if file.read(len(ZIP_MAGIC)) != ZIP_MAGIC:
            return False
    try:
        with ByteSource.open(path, limits=ASKED) as source:
            detect(source)
        return _holds_more(path)
    except UnknownFormat:
        return True
    except RecordingError:
        pass
    return False


def _holds_more(path: Path) -> bool:
    """Has an archive files outside the folders of its sessions? The format that knows these would not read them."""
    with path.open("rb") as file:
        names = [name for name in entry_names(file, path.stat().st_size) if not name.endswith(("/", "\\"))]
    folders = tuple(f"{folder}/" if folder else "" for folder in session_folders(names))
    return bool(folders) and not all(name.startswith(folders) or _is_of_macos(name) for name in names)


def unpacked(
    archive: Path, name: str, folder: Path, reading: Callable[[int, int], None], *, strict: bool = True
) -> list[UnpackedFile]:
    """The files in an archive in the order of their paths, those that are one session together as an archive again.

    They go to a folder that the caller removes. `reading` hears how many of the packed bytes are unpacked, and of how
    many; `strict`: a damaged piece of a session refuses it. Raises LimitExceeded (entries, or bytes above
    MAX_UPLOAD_BYTES) and DamagedRecording (broken, encrypted, a name outside the folder, no file).
    """
    most, size = settings.MAX_UPLOAD_BYTES, archive.stat().st_size
    # A log may repeat itself: only the bytes of all entries count, and their limit is met first.
    limits = Limits(inflated_bytes=most + 2 * MIB, inflation_ratio=most)
    files: list[UnpackedFile] = []
    with archive.open("rb") as stream:
        entries = ZipEntries(stream, size, limits)
        if entries.damage:
            raise DamagedRecording("the ZIP archive is damaged or cut off: pack the folder again")
        total, packed = _Total(most), 0
        for path, entry in sorted(_places(entries.entries, Path(name).stem).items()):
            if stat.S_ISLNK(entry.mode):
                files.append(UnpackedFile(path, None, LINK))
                continue
            blocks = total.counted(entries.blocks(entry.name))
            first = next((block for block in blocks if block), None)
            if first is not None:  # else the file is empty
                files.append(_unless_nested(path, receive(chain([first], blocks), path, folder)))
            packed += entry.packed
            reading(packed, size)
    if not files:
        raise DamagedRecording("the ZIP archive holds no file with anything in it")
    return _sessions_together(_stored_together(files, folder, strict), folder)


class _Total:
    """Counts the bytes of all entries while they are unpacked, whatever the archive declares."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    def counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._bytes += len(block)
            if self._bytes > self._most:
                raise LimitExceeded(
                    f"the ZIP archive unpacks to more than the limit of {self._most:,} bytes (setting "
                    "MAX_UPLOAD_BYTES); import its folder instead, where the limit holds for each file"
                )
            yield block


def _places(entries: list[ZipEntry], name: str) -> dict[str, ZipEntry]:
    """The files of an archive by their paths. An archive without one folder around all gives its own name for it."""
    places: dict[str, ZipEntry] = {}
    for entry in entries:
        path = _path(entry)
        if entry.name.endswith(("/", "\\")):
            continue
        if path in places:
            raise DamagedRecording(
                f"the ZIP archive has two entries named {path[:80]!a}: unpack it, and import the folder"
            )
        places[path] = entry
    if len(places) > MOST_FILES:
        raise LimitExceeded(
            f"the ZIP archive has {len(places):,} files (limit {MOST_FILES:,}): import its folders one by one"
        )
    tops = {path.partition("/")[0] if "/" in path else "" for path in places if not _is_of_macos(path)}
    around = f"{name}/" if len(tops) != 1 or "" in tops else ""
    return {around + path: entry for path, entry in places.items()}


def _path(entry: ZipEntry) -> str:
    """Where an entry lies in the folder. Raises DamagedRecording for one outside, a long name, an encrypted entry."""
    name = entry.name.replace("\\", "/")  # some programs of Windows write them so
    parts = name.split("/")
    shown = ascii(entry.name[:80])
    if name.startswith("/") or ".." in parts or _DRIVE.match(name):
        raise DamagedRecording(f"the ZIP archive has an entry outside its folder, {shown}: nothing of it is read")
    if len(name) > MOST_NAME:
        raise LimitExceeded(f"the ZIP archive has a path of {len(name):,} characters (limit {MOST_NAME:,}), {shown}…")
    if entry.encrypted:
        raise DamagedRecording(f"the entry {shown} of the ZIP archive is encrypted: unpack it, and import the folder")
    return "/".join(part for part in parts if part not in ("", "."))


def _is_of_macos(path: str) -> bool:
    return path.startswith("__MACOSX/")


def _unless_nested(path: str, received: Received) -> UnpackedFile:
    """A file of an archive; its bytes go where it is another archive to unpack."""
    if not is_folder(received.path):
        return UnpackedFile(path, received)
    received.drop()
    return UnpackedFile(path, None, NESTED)


def _stored_together(files: list[UnpackedFile], folder: Path, strict: bool) -> list[UnpackedFile]:
    """Each session in a storage folder of OpenCode as the export that `import` and the page make of it, beside that
    folder. What else lies there is nothing of a session."""
    by_path = {file.path: file.received for file in files if file.received is not None}
    left = []
    for place, inside in storages_in(by_path).items():
        pieces = {path: by_path.pop(path) for path in inside}
        storage = Storage({path[len(place) + 1 :]: piece.path for path, piece in pieces.items()})
        left += [UnpackedFile(f"{place}/{piece}", None, LOOSE) for piece in storage.loose]
        for session in storage.sessions:
            path = place.removesuffix(NAME) + session.rpartition("/")[2]
            left += _export(storage, session, path, folder, strict)
        for piece in pieces.values():
            piece.drop()
    left += [file for file in files if file.received is None or file.path in by_path]
    return sorted(left, key=lambda file: file.path)


def _export(storage: Storage, session: str, path: str, folder: Path, strict: bool) -> Iterator[UnpackedFile]:
    """A session of a storage folder, and the damaged pieces that are left out of it."""
    damaged: list[str] = []
    try:
        yield UnpackedFile(path, receive([storage.export(session, None if strict else damaged.append)], path, folder))
    except RecordingError as error:
        yield UnpackedFile(path, None, refused=str(error))
    yield from (UnpackedFile(path, None, f"left out of the session: {reason}") for reason in damaged)


def _sessions_together(files: list[UnpackedFile], folder: Path) -> list[UnpackedFile]:
    """Each session that lies in several files as one archive, as `import` and the page make it of a folder."""
    by_path = {file.path: file.received for file in files if file.received is not None}
    together = []
    for place, inside in session_folders(by_path).items():
        together.append(_packed(place, {path: by_path[path].path for path in inside}, folder))
        for path in inside:
            by_path.pop(path).drop()
    left = [file for file in files if file.received is None or file.path in by_path]
    return sorted([*left, *together], key=lambda file: file.path)


def _packed(place: str, pieces: dict[str, Path], folder: Path) -> UnpackedFile:
    """The files of a session as one archive, below the name of their folder; one that is too large is left aside."""
    around, _, name = place.rpartition("/")
    path = folder / uuid4().hex
    start = len(around) + 1 if around else 0
    try:
        pack_files({inner[start:]: piece for inner, piece in pieces.items()}, path, Limits())
        with path.open("rb") as file:
            received = receive(iter(lambda: file.read(CHUNK), b""), f"{name}.zip", folder)
    except LimitExceeded as error:
        return UnpackedFile(f"{place}.zip", None, str(error))
    finally:
        path.unlink(missing_ok=True)
    return UnpackedFile(f"{place}.zip", received)
