"""Sockets: hints out, lines of streams in. A frame from outside never ends the connection with a traceback."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error

from inspector.accounts.scopes import project_of
from inspector.api.auth import project_of_socket, too_many_of_socket
from inspector.api.streaming import BAD, Reply, bad, failed, later, reply_to
from inspector.jobs import hints
from inspector.models import Import, Project, Session
from inspector.models.prepared import Select, Slot
from inspector.streams.messages import BadMessage, check_name, from_json

LONGEST_WATCH = 3600.0  # seconds
MAX_BAD_FRAMES = 20


_SESSION = Select(
    Session.objects.of(Slot(Session, "project"))
    .filter(pk=Slot(Session, "id"), deleted=None)
    .values_list("calls", "events", "revision")
)


class SafeConsumer(AsyncWebsocketConsumer):
    """Answers what it does not understand with an error frame, and closes after MAX_BAD_FRAMES of them."""

    bad_frames = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_if_there(message: Any) -> None:
            with suppress(OSError):  # the client has just left, which `receive` says next
                await send(message)

        await super().__call__(scope, receive, send_if_there)

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


class HintConsumer(SafeConsumer):
    """Says "changed" whenever what a row shows has changed; the page then asks by HTTP. The row is looked at on every
    hint, and without one every `look_every` seconds, for hints may be lost."""

    look_every = 0.15  # seconds
    pause = 0.05  # seconds between checks at least, however many hints come
    quiet, look_rarely = LONGEST_WATCH, 2.0  # seconds without a change after which it looks that often without a hint

    async def connect(self) -> None:
        self.key = UUID(str(self.scope["url_route"]["kwargs"]["pk"]))
        self.nudge = asyncio.Event()
        if await self._look() is None:
            await self.close(code=4404)
            return
        await self.channel_layer.group_add(hints.group(self.key), self.channel_name)
        self.listener = partial(asyncio.get_running_loop().call_soon_threadsafe, self.nudge.set)
        hints.listen(self.key, self.listener)
        await self.accept()
        self.watcher = asyncio.create_task(self._watch())

    async def disconnect(self, code: int) -> None:
        if watcher := getattr(self, "watcher", None):
            watcher.cancel()
            hints.forget(self.key, self.listener)
            await self.channel_layer.group_discard(hints.group(self.key), self.channel_name)

    async def changed(self, event: dict[str, Any]) -> None:
        self.nudge.set()

    async def _watch(self) -> None:
        seen: tuple[Any, ...] | None = None
        clock = asyncio.get_running_loop().time
        begun = last = clock()
        while clock() < begun + LONGEST_WATCH:
            state = await self._look()
            if state is None:
                break
            if state != seen:
                seen, last = state, clock()
                await self.send(text_data=msgspec.json.encode(self.message(state)).decode())
            if self.has_ended(state):
                break
            await asyncio.sleep(self.pause)
            every = self.look_every if clock() < last + self.quiet else self.look_rarely
            with suppress(TimeoutError):
                await asyncio.wait_for(self.nudge.wait(), every - self.pause)
            self.nudge.clear()
        await self.close()

    def has_ended(self, state: tuple[Any, ...]) -> bool:
        """Will the row not change any more."""
        return False

    def message(self, state: tuple[Any, ...]) -> dict[str, Any]:
        """What the page hears of the row, as it was just read."""
        return {"changed": True}

    @database_sync_to_async
    def _look(self) -> tuple[Any, ...] | None:
        project = project_of(self.scope)
        return None if project is None else self.state_in(project)  # None: not signed in, or not any more

    def state_in(self, project: Project) -> tuple[Any, ...] | None:
        """What is shown of the row; None where the project has no such row."""
        raise NotImplementedError


class ImportConsumer(HintConsumer):
    """Of an import, until it has ended."""

    def has_ended(self, state: tuple[Any, ...]) -> bool:
        return state[0] in (Import.State.DONE, Import.State.FAILED, Import.State.CANCELLED)

    def state_in(self, project: Project) -> tuple[Any, ...] | None:
        imports = Import.objects.of(project)
        return imports.filter(pk=self.key).values_list("state", "phase", "done").first()


class SessionConsumer(HintConsumer):
    """Of a session whose agent works: pages open this once it has grown before their eyes. It stays open while the
    agent waits for a tool or its user, so that the step after a long pause is shown as soon as any other."""

    look_every, pause = 0.45, 0.2
    quiet = 60.0

    def message(self, state: tuple[Any, ...]) -> dict[str, Any]:
        """With the number of steps: a page need not ask whether one is new."""
        return {**super().message(state), "steps": state[0]}

    def state_in(self, project: Project) -> tuple[Any, ...] | None:
        return _SESSION.first(project=project.pk, id=self.key)


class StreamConsumer(SafeConsumer):
    """Takes the messages of a stream (`streams.messages`), one per frame, and answers each with what HTTP answers, and
    its `status`. A frame is taken when the one before is answered, so a sender that is too fast has to wait.
    """

    async def connect(self) -> None:
        self.name = str(self.scope["url_route"]["kwargs"]["name"])
        if await self._project() is None:
            await self.close(code=4403)
        else:
            await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        reply = await database_sync_to_async(answer_to)(self.scope, self.name, text_data)
        if reply is None:
            await self.close(code=4403)
            return
        await self.send(text_data=msgspec.json.encode({"status": reply.status, **reply.body}).decode())
        self.bad_frames += reply.status == BAD
        if self.bad_frames >= MAX_BAD_FRAMES:
            await self.close(code=1008)

    @database_sync_to_async
    def _project(self) -> Project | None:
        return project_of_socket(self.scope)


def answer_to(scope: Any, name: str, text: str | None) -> Reply | None:
    """What a frame of the stream `name` is answered with, a binary one if `text` is None; None where whoever opened
    the socket may not send any more. For a thread: it uses the database."""
    try:
        project = project_of_socket(scope)
        if project is None:
            return None
        if (refused := too_many_of_socket(scope)) is not None:
            return later(refused)
        if text is None:
            raise BadMessage("a message is a text frame; this one is binary")
        return reply_to(project, check_name(name), from_json(text.encode("utf-8", "replace")))
    except BadMessage as error:
        return bad(error)
    except (Error, OSError) as error:
        return failed(error)
