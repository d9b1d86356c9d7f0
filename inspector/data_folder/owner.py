"""Who uses the data folder: at most one server, and no other process while a command needs the folder for itself.

Two locks of the file system (flock): one on the folder, which all who use it share and which is exclusive while its
files are replaced; one on `server.lock`, which names the server that holds it. A lock ends with the last process that
holds it, however that ends, so a process that is gone leaves no locks behind, and no clock is asked.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

log = logging.getLogger(__name__)

SERVER_LOCK = "server.lock"
PATIENCE = 2.0  # seconds that the last process of a killed server may take to end (tests/services/test_orphans.py)
LOOK_EVERY = 0.05


class CommandRefused(Exception):
    """A command does not begin, and changed nothing; the text is for a person."""


class Holder(msgspec.Struct, frozen=True):
    """A server that runs on a data folder, as it wrote it down."""

    pid: int
    host: str  # name of the machine
    address: str  # http://127.0.0.1:8000/
    since: str

    @classmethod
    def here(cls, address: str) -> Holder:
        return cls(os.getpid(), socket.gethostname(), address, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")

    def __str__(self) -> str:
        return f"the server at {self.address} (process {self.pid} on {self.host}, since {self.since})"


class FolderLocks:
    """Held until it is closed, or until this process and those that were given `files` have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder_file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.files: tuple[int, ...] = (self._folder_file,)

    def close(self) -> None:
        for file in self.files:
            os.close(file)
        self.files = ()

    def take_alone(self) -> bool:
        """Have the folder for this process alone; False where another one uses it."""
        return _try_lock(self._folder_file, fcntl.LOCK_EX)

    def share(self) -> None:
        """Let others use the folder at the same time. Raises CommandRefused where a command keeps it for itself."""
        if not _lock(self._folder_file, fcntl.LOCK_SH):
            raise CommandRefused(in_use(self.folder))

    def serve(self, holder: Holder) -> None:
        """Be the one server of the folder. Raises CommandRefused, which says who is."""
        file = os.open(self.folder / SERVER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self.files = (*self.files, file)
        if not _lock(file, fcntl.LOCK_EX):
            raise CommandRefused(in_use(self.folder))
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(holder), 0)


def alone(folder: Path) -> FolderLocks:
    """The folder for this process alone. Raises CommandRefused, which says who uses it."""
    refuse_served(folder)
    locks = FolderLocks(folder)
    if locks.take_alone():
        return locks
    locks.close()
    raise CommandRefused(in_use(folder))


def beside(folder: Path) -> FolderLocks:
    """The folder, shared with its other users. Raises CommandRefused where a command has it for itself."""
    locks = FolderLocks(folder)
    locks.share()
    return locks


def refuse_served(folder: Path) -> None:
    """Raise CommandRefused where a server runs on the folder; the server is left alone."""
    end = time.monotonic() + PATIENCE
    while serving(folder):
        if time.monotonic() > end:
            raise CommandRefused(in_use(folder))
        time.sleep(LOOK_EVERY)


def in_use(folder: Path) -> str:
    """One sentence on who uses the folder."""
    holder = serving(folder)
    if holder is not None:
        return f"The data folder {folder} is used by {holder}. Stop it first, or choose another folder with DATA_DIR."
    return f"The data folder {folder} is used by another command of this program. Wait until it has finished."


def serving(folder: Path) -> Holder | None:
    """The server that runs on a folder."""
    try:
        file = os.open(folder / SERVER_LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if _try_lock(file, fcntl.LOCK_SH):
            return None
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Holder)
    except msgspec.DecodeError:
        return None
    finally:
        os.close(file)


def _lock(file: int, kind: int) -> bool:
    end = time.monotonic() + PATIENCE
    while not _try_lock(file, kind):
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_EVERY)
    return True


def _try_lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP):
            raise
        log.warning("the file system of the data folder does not support locks: do not start a second server on it")
    return True
