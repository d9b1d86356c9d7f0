"""Hints: "import or session X changed", and nothing else. They may be lost; whoever gets one reads the database."""

from __future__ import annotations

import logging
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

log = logging.getLogger(__name__)


def group(key: UUID | str) -> str:
    """The name of the channel group whose members hear of an import or a session."""
    return f"changes.{UUID(str(key)).hex}"


def send(key: UUID | str) -> None:
    """Tell watchers on this and other machines. Without Redis the layer does not leave this process, so watchers
    look at the row themselves a few times a second (api.sockets.HintConsumer)."""
    if not settings.REDIS_URL:
        return
    try:
        if (layer := get_channel_layer()) is not None:
            async_to_sync(layer.group_send)(group(key), {"type": "changed"})
    except Exception:
        log.warning("a hint was not sent; watchers will notice the change when they next poll", exc_info=True)
