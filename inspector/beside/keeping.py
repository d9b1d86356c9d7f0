"""The hook before a compaction: a copy of the transcript, with everything that is about to be compacted.

Claude Code gives a hook its event as JSON on standard input, with `transcript_path` (its documentation, "Hooks
reference", PreCompact). A hook that ends with exit code 2 would stop the compaction, so this one never does.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from inspector.beside.transcript import opened

MOST_BYTES = 1_000_000  # of the event that is read
MOST_COPIES = 50  # in the folder; the oldest go first
MOST_COPIED = 2_000_000_000  # bytes of all copies together; the newest one stays whatever its size
BLOCK = 1 << 20  # bytes that are copied at a time
AT_ONCE = 1 << 30  # the same where the system copies
UNFINISHED_SECONDS = 3_600  # ours: an agent waits for a hook for a minute; an older unfinished copy is a dead one's
SUFFIX, UNFINISHED = ".jsonl", ".part"


def keep(data: bytes, folder: Path, now: datetime) -> str:
    """Copy the transcript of a hook's event into the folder; a sentence that says where. `now`: in UTC.

    Raises ValueError for an event without a transcript, OSError where the file cannot be read or written.
    """
    try:
        event = json.loads(data[:MOST_BYTES])
    except RecursionError:
        raise ValueError("The event on standard input is nested too deeply.") from None
    except ValueError:
        raise ValueError("There is no event from Claude Code's hooks on standard input.") from None
    given = event.get("transcript_path") if isinstance(event, dict) else None
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError("The event names no transcript (transcript_path).")
    if not given.endswith(SUFFIX):
        raise ValueError(f"The event's transcript_path is not a {SUFFIX} file: {given[:200]!r}.")
    source = Path(given).expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9-]+", "-", source.name.removesuffix(SUFFIX))[:80]
    place = folder / f"{now:%Y%m%dT%H%M%SZ}-{name}{SUFFIX}"
    unfinished = place.with_suffix(f".{os.getpid()}{UNFINISHED}")
    try:
        with opened(source) as original, _created(unfinished) as copy:
            copy_bytes(original, copy, os.fstat(original.fileno()).st_size)
        os.replace(unfinished, place)
    finally:
        unfinished.unlink(missing_ok=True)
    _limit(folder, place)
    return f"The context before this compaction is in {place}."


def settings(command: list[str]) -> dict[str, Any]:
    """What Claude Code's settings.json needs for the status line and the hook; `command` is how this program is run."""

    def run(name: str) -> dict[str, Any]:
        return {"type": "command", "command": shlex.join([*command, name])}

    return {
        "statusLine": run("statusline"),
        "hooks": {"PreCompact": [{"matcher": "", "hooks": [run("keep")]}]},
    }


def this_command() -> list[str]:
    """How this program is run again from anywhere: the installed command, or the module of a checkout."""
    if (installed := shutil.which("compaction-inspector")) is not None:
        return [installed]
    return ["env", f"PYTHONPATH={Path(__file__).parents[2]}", sys.executable, "-m", "inspector.project.cli"]


def folder_of_copies() -> Path:
    """The folder of the copies: COPIES_DIR, else one of the user's data folder."""
    given = os.environ.get("COPIES_DIR", "").strip()
    data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    return Path(given or f"{data}/compaction-inspector/copies").expanduser()


def copy_bytes(original: BinaryIO, copy: BinaryIO, size: int) -> None:
    """What a file has now: one that grows while it is copied must not keep the agent waiting. Where it can, the system
    copies: two files of one file system may then share their blocks (Btrfs, XFS), and otherwise no byte passes through
    this process."""
    with suppress(AttributeError, OSError):  # not on this system, or not between these files
        while size > 0 and (count := os.copy_file_range(original.fileno(), copy.fileno(), min(size, AT_ONCE))):
            size -= count
    while size > 0 and (block := original.read(min(size, BLOCK))):
        copy.write(block)
        size -= len(block)


def _created(place: Path) -> BinaryIO:
    """A new file that only its owner reads; never one that is there."""
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _limit(folder: Path, newest: Path) -> None:
    """Remove the oldest copies, until number and bytes are within the limits, and what hooks left that were killed."""
    copies = sorted((path for path in folder.glob(f"*{SUFFIX}") if path != newest), reverse=True)
    now = newest.stat()
    left, total = MOST_COPIES - 1, now.st_size
    for path in copies:
        with suppress(OSError):  # the hook of another agent removes old copies, too
            total += path.stat().st_size
        left -= 1
        if left < 0 or total > MOST_COPIED:
            _remove(path)
    for path in folder.glob(f"*{UNFINISHED}"):
        with suppress(OSError):
            if now.st_mtime - path.stat().st_mtime > UNFINISHED_SECONDS:
                _remove(path)


def _remove(path: Path) -> None:
    """Remove an old file; one that cannot be removed is no reason to call the new copy a failure."""
    with suppress(OSError):
        path.unlink()
