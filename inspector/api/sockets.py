"""Sockets: hints out. A frame from outside never ends the connection with a traceback."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from inspector.jobs import hints
from inspector.models import Import, default_project

LOOK_EVERY = 0.15  # seconds between two looks at the row while somebody watches
LONGEST_WATCH = 3600.0  # seconds
MAX_BAD_FRAMES = 20


class SafeConsumer(AsyncWebsocketConsumer):
    """Answers what it does not understand with an error frame, and closes after MAX_BAD_FRAMES of them."""

    bad_frames = 0

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self.bad_frames += 1
        if self.bad_frames >= MAX_BAD_FRAMES:
            await self.close(code=1008)
            return
        await self.send(text_data='{"error":"this socket only sends; it takes no messages"}')


class NoSuchSocket(SafeConsumer):
    """Closes sockets of unknown paths, which channels would answer with a server error."""

    async def connect(self) -> None:
        await self.close(code=4404)


class ImportConsumer(SafeConsumer):
    """Says "changed" whenever an import changed. The page then fetches the status by HTTP."""

    async def connect(self) -> None:
        self.job_id = UUID(str(self.scope["url_route"]["kwargs"]["pk"]))
        self.nudge = asyncio.Event()
        if await self._look() is None:
            await self.close(code=4404)
            return
        await self.channel_layer.group_add(hints.group(self.job_id), self.channel_name)
        await self.accept()
        self.watcher = asyncio.create_task(self._watch())

    async def disconnect(self, code: int) -> None:
        if watcher := getattr(self, "watcher", None):
            watcher.cancel()
            await self.channel_layer.group_discard(hints.group(self.job_id), self.channel_name)

    async def changed(self, event: dict[str, Any]) -> None:
        self.nudge.set()

    async def _watch(self) -> None:
        seen: tuple[Any, ...] | None = None
        end = asyncio.get_running_loop().time() + LONGEST_WATCH
        while asyncio.get_running_loop().time() < end:
            found = await self._look()
            if found is None:
                break
            if found != seen:
                seen = found
                await self.send(text_data='{"changed":true}')
            if found[0] in (Import.State.DONE, Import.State.FAILED, Import.State.CANCELLED):
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self.nudge.wait(), LOOK_EVERY)
            self.nudge.clear()
        await self.close()

    @database_sync_to_async
    def _look(self) -> tuple[Any, ...] | None:
        imports = Import.objects.of(default_project())
        return imports.filter(pk=self.job_id).values_list("state", "phase", "done").first()
