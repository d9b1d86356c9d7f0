"""A folder as a ZIP archive, for agents that keep a session in several files."""

from __future__ import annotations

import re
import zipfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.limits import Limits

MOST_FILES = 5_000  # of a folder; ours: a session has some, a whole home has more
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the time of every entry: the same folder gives the same bytes
# The files of one session by their places in its folder, and one of them that such a folder has; `static/js/folders.js`
# has the same.
_KIMI_CLI = (
    re.compile(r"(?:subagents/[^/]+/)?(?:context(?:_[0-9a-z_]+)?|wire)\.jsonl"),
    re.compile(r"context(?:_[0-9]+)?\.jsonl"),
)
_MISTRAL_VIBE = (re.compile(r"CURRENT|meta\.json|(?:chunks|journal)/[^/]+\.jsonl?"), re.compile(r"CURRENT"))
_OLDER_VIBE = (re.compile(r"meta\.json|messages\.jsonl"), re.compile(r"messages\.jsonl"))
_KIMI_CODE = (re.compile(r"agents/[^/]+/wire\.jsonl"), re.compile(r"state\.json"))
_OPENHANDS = (
    re.compile(r"base_state\.json|events/event-[0-9]{5,18}-[0-9a-fA-F-]{8,}\.json"),
    re.compile(r"base_state\.json"),
)
_GPTME = (re.compile(r"conversation\.jsonl|views/compacted-[0-9]+\.jsonl"), re.compile(r"conversation\.jsonl"))
_KINDS = (_KIMI_CLI, _MISTRAL_VIBE, _OLDER_VIBE, _KIMI_CODE, _OPENHANDS, _GPTME)


def session_folders(paths: Iterable[str]) -> dict[str, list[str]]:
    """The folders that hold one session in several files, each with the paths of these; of paths with `/` in them."""
    every = sorted(paths)
    held: set[str] = set()
    folders: dict[str, list[str]] = {}
    for path in sorted(every, key=lambda path: (path.count("/"), path)):  # an outer folder before those in it
        folder, _, name = path.rpartition("/")
        inner = len(folder) + 1 if folder else 0  # where the path of a file within the folder begins
        for members, marker in _KINDS:
            if path not in held and folder not in folders and marker.fullmatch(name):
                inside = [other for other in _below(every, folder) if members.fullmatch(other[inner:])]
                if len(inside) > 1:
                    folders[folder] = inside
                    held.update(inside)
    return folders


def sessions_in(folder: Path) -> Iterator[Path]:
    """All files below a folder in the order of their names; of those that are one session together their folder."""
    places = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    whole = session_folders(places)
    held = {place for inside in whole.values() for place in inside}
    yield from (folder / place for place in sorted({*places, *whole} - held))


def _below(every: list[str], folder: str) -> list[str]:
    """Of sorted paths those in a folder, at any depth."""
    if not folder:
        return every
    return every[bisect_left(every, f"{folder}/") : bisect_left(every, f"{folder}0")]  # "0" comes next to "/"


def pack(folder: Path, target: Path, limits: Limits, files: Iterable[Path] | None = None) -> None:
    """Write the files of a folder, or only these of it, unpacked into a ZIP, below the folder's own name. Links are
    left out. Raises LimitExceeded, and DamagedRecording for a folder without files."""
    every = folder.rglob("*") if files is None else files
    inside = [path for path in every if path.is_file() and not path.is_symlink()]
    if not inside:
        raise DamagedRecording(f"the folder {folder.name} has no files")
    name = folder.resolve().name
    pack_files({str(PurePosixPath(name, path.relative_to(folder).as_posix())): path for path in inside}, target, limits)


def pack_files(files: Mapping[str, Path], target: Path, limits: Limits) -> None:
    """Write files unpacked into a ZIP, each under the place that it is given there. Raises LimitExceeded."""
    if len(files) > MOST_FILES:
        raise LimitExceeded(f"a folder of {len(files):,} files (limit {MOST_FILES:,}): name the folder of one session")
    size = sum(path.stat().st_size for path in files.values())
    if size > limits.request_bytes:
        raise LimitExceeded(
            f"a folder of {size:,} bytes (limit {limits.request_bytes:,}): name the folder of one session"
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for place in sorted(files):
            archive.writestr(zipfile.ZipInfo(place, _BEGINNING), files[place].read_bytes())
