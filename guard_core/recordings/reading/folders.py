"""Folders of sessions as zip archives, so that a folder is read as an archive of it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

from guard_core.errors import LimitExceeded
from guard_core.recordings.reading.limits import Limits

MOST_FILES = 5_000  # of one session; a whole home folder has more


def pack(folder: Path, target: Path, limits: Limits) -> None:
    """Write the files of a folder, in the order of their names, into a zip archive. Links are not followed.

    Raises LimitExceeded for more than MOST_FILES, or more bytes than a source may have.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if len(files) > MOST_FILES:
        raise LimitExceeded(f"a folder of {len(files):,} files (limit {MOST_FILES:,}): name the folder of one session")
    size = sum(path.stat().st_size for path in files)
    if size > limits.request_bytes:
        raise LimitExceeded(f"a folder of {size:,} bytes (limit {limits.request_bytes:,})")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in files:
            name = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            archive.writestr(name, path.read_bytes())
