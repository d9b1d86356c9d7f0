"""Giving memory back to the system: what a process has freed stays with it unless it says so."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

# mallopt(3). Fixed values: by default glibc raises both thresholds with the largest piece that was freed, so that
# columns come to lie in the heap, and it gives every thread a heap of its own, whose free memory no other thread uses.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_PIECE = 128 * 1024  # bytes
COLUMN = 1024 * 1024  # bytes; a column of 50,000 steps has 400,000
SPARE = 8 * COLUMN
GROWN = 20_000_000  # bytes; giving back takes tens of milliseconds
_after_trim = 0
_at_start = 0


def keep_little(piece: int = _PIECE, spare: int = _PIECE) -> None:
    """Let the allocator give back what is freed, as soon as it can. At the start of a process, before its threads.

    A piece of more than `piece` bytes is given back at once, and comes anew each time, page by page; of the others up
    to `spare` bytes stay, until `give_back`. A process that answers people from columns takes COLUMN and SPARE: an
    overview of 50,000 steps, which makes a hundred of them, costs it a third less.
    """
    if (choose := getattr(_libc(), "mallopt", None)) is not None:
        for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, piece), (_TRIM_THRESHOLD, spare)):
            choose(option, value)


@contextmanager
def loading() -> Iterator[None]:
    """Modules are imported in the block. What stays for good is never searched for garbage: not while it is loaded,
    which takes a tenth of a start, and not at the end of the process, where it takes a quarter of all."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def note_start() -> None:
    """Call what the process holds now, modules above all, its size at the start: none of it is garbage."""
    global _after_trim, _at_start
    _at_start = _after_trim = resident()


def grown_by(size: int) -> bool:
    """Has the process grown by more than this many bytes since its start?"""
    return _at_start > 0 and resident() - _at_start > size


def release() -> None:
    """Drop what can be loaded again, and give memory back."""
    from guard_core.tokens import tokenizer  # who never counts tokens does not load it

    tokenizer.load.cache_clear()
    trim()


def trim_if_grown(besides: int = 0, by: int = GROWN) -> None:
    """Give memory back after a piece of work, where the process has grown by more than `by` bytes since the last time,
    `besides` bytes that are in use now: what is kept on purpose is not a reason to search for garbage."""
    global _after_trim
    if (now := resident() - besides) - _after_trim > by:
        trim()
        _after_trim = resident() - besides
    _after_trim = min(_after_trim, now)


def trim() -> None:
    """Free what only cycles hold, which takes a tenth of a second in a process that has shown pages, and give back."""
    gc.collect()
    give_back()


def give_back() -> None:
    """Give freed memory back, from the middle of the heap, too (glibc gives back its end only)."""
    if (trim_heap := getattr(_libc(), "malloc_trim", None)) is not None:
        trim_heap(0)


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@cache
def _libc() -> Any:
    try:
        return ctypes.CDLL(None)
    except OSError:
        return None
