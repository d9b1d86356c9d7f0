"""Giving memory back to the system: what a process has freed stays with it unless it says so."""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Any

from guard_core.tokens import tokenizer


def release() -> None:
    """Drop what can be loaded again, too: for a process that has nothing to do."""
    tokenizer.load.cache_clear()
    trim()


def trim() -> None:
    """Give freed memory back, from the middle of the heap, too (glibc gives back its end only)."""
    gc.collect()
    if (give_back := getattr(_libc(), "malloc_trim", None)) is not None:
        give_back(0)


@cache
def _libc() -> Any:
    try:
        return ctypes.CDLL(None)
    except OSError:
        return None
