"""The memory of this process: a limit, so that what needs more fails here and the system does not end some other
process for it, and work without searches for garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KILOBYTE = 1024  # the unit of /proc/self/status, whatever it says


def limit(size: int) -> None:
    """Let this process hold at most `size` bytes of data: more is a MemoryError. Without effect where the system has no
    such limit."""
    try:
        import resource  # there is none on Windows
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (size if most == resource.RLIM_INFINITY else min(size, most), most))


@contextmanager
def limited_growth(size: int) -> Iterator[None]:
    """The same for a while: what it holds now, and `size` bytes more; a lower limit that there is stays."""
    try:
        import resource  # there is none on Windows
    except ImportError:
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    if held := held_data():
        limits = (bound for bound in (before, most, held + size) if bound != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def held_data() -> int:
    """Bytes of data that this process holds, as RLIMIT_DATA counts them; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((_KILOBYTE * int(line.split()[1]) for line in lines if line.startswith("VmData:")), 0)


@contextmanager
def without_collections() -> Iterator[None]:
    """No search for garbage in the block, where no other thread runs. A replay makes hundreds of thousands of objects,
    none of them in a cycle, and each search looks at them again."""
    stops = gc.isenabled() and threading.active_count() == 1
    if stops:
        gc.disable()
    try:
        yield
    finally:
        if stops:
            gc.enable()
