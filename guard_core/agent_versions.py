"""Versions of agents as numbers that can be compared."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version (2.1.14-beta: 2, 1, 14); empty where it has none."""
    match = re.match(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})", version)
    return tuple(map(int, match[1].split("."))) if match else ()
