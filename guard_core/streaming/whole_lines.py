"""Lines that are appended to a file whole or not at all: half a line would spoil the next one as well."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from io import FileIO


def append(file: FileIO, lines: bytes) -> None:
    """Append lines to an unbuffered file. Raises OSError where they do not fit; the file is as before then."""
    before = file.seek(0, os.SEEK_END)
    try:
        if file.write(lines) != len(lines):  # what still fitted on a full disk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise
