"""Waiting in a test for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # seconds until what must come is missing: no test may fail because a machine is slow
LOOK_EVERY = 0.05  # seconds between checks at what must come, at least
LOOK_RARELY = 0.3  # seconds, at most


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true value of the condition, looked for again and again; AssertionError after the time.

    Looking takes a quarter of the time at most: a page that is asked for costs the server that is waited for.
    """
    begun = time.monotonic()
    while (begin := time.monotonic()) < begun + seconds:
        if result := condition():
            return result
        time.sleep(min(max(LOOK_EVERY, 3 * (time.monotonic() - begin)), LOOK_RARELY))
    raise AssertionError("what was waited for did not come")
