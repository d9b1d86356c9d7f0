"""A process that ends with the one that started it, at once and whatever it is doing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from guard_core.orphans import die_with_parent

ORPHANED = 3  # exit code


def end_with_parent(heard: Callable[[], object] = lambda: None) -> None:
    """Watch standard input, a pipe whose other end the parent alone holds; a byte that comes through it calls `heard`.

    The end of the pipe is the end of the parent, however it died. On Linux the kernel also kills this process when the
    thread that started it ends: a thread here must first be given its turn, which a long call into C can keep from it.
    """
    die_with_parent()
    threading.Thread(target=_listen, args=(heard,), name="lifeline", daemon=True).start()


def _listen(heard: Callable[[], object]) -> None:
    """The process ends with the pipe, whatever its other threads do."""
    while os.read(0, 4096):
        heard()
    os._exit(ORPHANED)
