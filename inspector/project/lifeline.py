"""A process that ends with the one that started it, at once and whatever it is doing."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

ORPHANED = 3  # exit code
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(heard: Callable[[], object] = lambda: None) -> None:
    """Watch standard input, a pipe whose other end the parent alone holds; a byte that comes through it calls `heard`.

    The end of the pipe is the end of the parent, however it died. On Linux the kernel also kills this process when the
    thread that started it ends: a thread here must first be given its turn, which a long call into C can keep from it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_listen, args=(heard,), name="lifeline", daemon=True).start()


def _listen(heard: Callable[[], object]) -> None:
    while os.read(0, 4096):
        heard()
    os._exit(ORPHANED)
