"""A folder as a ZIP archive, for agents that keep a session in several files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.limits import Limits

MOST_FILES = 5_000  # of a folder; ours: a session has some, a whole home has more
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the time of every entry: the same folder gives the same bytes


def pack(folder: Path, target: Path, limits: Limits, files: Iterable[Path] | None = None) -> None:
    """Write the files of a folder, or only these of it, unpacked into a ZIP, below the folder's own name. Links are
    left out. Raises LimitExceeded, and DamagedRecording for a folder without files."""
    inside = sorted(folder.rglob("*") if files is None else files)
    inside = [path for path in inside if path.is_file() and not path.is_symlink()]
    if not inside:
        raise DamagedRecording(f"the folder {folder.name} has no files")
    if len(inside) > MOST_FILES:
        raise LimitExceeded(f"a folder of {len(inside):,} files (limit {MOST_FILES:,}): name the folder of one session")
    size = sum(path.stat().st_size for path in inside)
    if size > limits.request_bytes:
        raise LimitExceeded(
            f"a folder of {size:,} bytes (limit {limits.request_bytes:,}): name the folder of one session"
        )
    name = folder.resolve().name
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in inside:
            place = Path(name, path.relative_to(folder)).as_posix()
            archive.writestr(zipfile.ZipInfo(place, _BEGINNING), path.read_bytes())
