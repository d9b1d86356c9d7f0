"""The channel layer of team mode, for hints alone: a socket opens without Redis, too, and looks at its row itself."""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.exceptions import RedisError

from inspector.jobs.hints import SECONDS

log = logging.getLogger(__name__)
AWAY = (RedisError, OSError, TimeoutError)


class HintLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # channels_redis has no type information
    """What Redis does not take within SECONDS is left out: then no hint of other processes comes to that socket."""

    async def new_channel(self, prefix: str = "specific.") -> str:
        """The name of a channel of this process."""
        layer = self._get_layer()
        try:
            return str(await asyncio.wait_for(layer.new_channel(prefix), SECONDS))
        except AWAY as error:
            name = f"{layer.prefix}{prefix}{uuid4().hex}"
            layer.channels[name] = asyncio.Queue()
            _say(error)
            return name

    async def group_add(self, group: str, channel: str) -> None:
        """Hints of a group go to a channel."""
        try:
            await asyncio.wait_for(self._get_layer().group_add(group, channel), SECONDS)
        except AWAY as error:
            _say(error)

    async def group_discard(self, group: str, channel: str) -> None:
        """They go there no longer."""
        try:
            await asyncio.wait_for(self._get_layer().group_discard(group, channel), SECONDS)
        except AWAY as error:
            _say(error)


def _say(error: BaseException) -> None:
    log.warning("Redis does not take a socket (%s); it looks at its row itself", type(error).__name__)
