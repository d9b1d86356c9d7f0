"""Hints: "import or session X changed", and nothing else. They may be lost; whoever gets one reads the database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from threading import Lock
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

log = logging.getLogger(__name__)

# Ours: what stores a line or an import waits no longer for a hint, on which nothing depends.
SECONDS = 0.5  # for Redis to take one
AGAIN = 5.0  # seconds without any after one that it did not take: viewers look at their rows meanwhile


def group(key: UUID | str) -> str:
    """The name of the channel group whose members hear of an import or a session."""
    return f"changes.{UUID(str(key)).hex}"


def listen(key: UUID | str, nudge: Callable[[], object]) -> None:
    """Call `nudge`, from whatever thread, when an import or a session changes in this process."""
    with _lock:
        _here.setdefault(group(key), []).append(nudge)


def forget(key: UUID | str, nudge: Callable[[], object]) -> None:
    """Call it no longer."""
    with _lock:
        left = [other for other in _here.pop(group(key), ()) if other is not nudge]
        if left:
            _here[group(key)] = left


_here: dict[str, list[Callable[[], object]]] = {}
_lock = Lock()
_silent_until: dict[str, float] = {}  # by the address of a Redis that did not take a hint, by the monotonic clock


def send(key: UUID | str) -> None:
    """Notify watchers in this process, and with Redis those of others. What another process changes without it they see
    as they look at the row themselves a few times a second (api.sockets.HintConsumer)."""
    with _lock:
        nudges = tuple(_here.get(group(key), ()))
    for nudge in nudges:
        nudge()
    if settings.REDIS_URL and time.monotonic() >= _silent_until.get(settings.REDIS_URL, 0.0):
        try:
            async_to_sync(_to_others)(group(key))
        except Exception as error:  # of Redis or of what connects to it
            _silent_until[settings.REDIS_URL] = time.monotonic() + AGAIN
            log.warning(
                "a hint was not sent (%s: %s); watchers will notice the change when they next poll",
                type(error).__name__,
                str(error) or f"no answer within {SECONDS:g} seconds",
            )


async def _to_others(name: str) -> None:
    """Whoever sends a hint waits no longer than this for a Redis that does not answer."""
    if (layer := get_channel_layer()) is not None:
        await asyncio.wait_for(layer.group_send(name, {"type": "changed"}), SECONDS)
