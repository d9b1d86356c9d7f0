"""The size limit of request bodies, kept in plain ASGI in front of Django.

Django spools a whole body to disk before any view or middleware runs, even for an address that does not exist; so
the declared length is checked first and the bytes are counted as they come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from inspector.project.trouble import trouble_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Allowed = Callable[[Message], Awaitable[bool]]  # of a scope
App = Callable[[Any, Any, Any], Awaitable[None]]  # of scope, receive and send; each library has other types for them

UPLOAD_PATHS = ("/recordings/",)
BATCH_PATHS = ("/api/v1/", "/v1/traces", "/v1/logs")
ENVELOPE_BYTES = 64 * 1024  # what multipart adds around a file
DRAIN_SECONDS = 30  # ours, and a guess: 34 MB at 10 Mbit/s


class BodyTooLarge(Exception):
    """More bytes came than were allowed."""


class BodyLimit:
    """Answers 413 before the body is read when it is declared too large, and stops reading when it grows too large."""

    def __init__(self, app: App, *, upload: int, other: int, batch: int = 0, may_send: Allowed | None = None) -> None:
        """Limits in bytes. `may_send`: whether a request may have a larger one than `other`; without it each may."""
        self.app, self.upload, self.other, self.may_send = app, upload, other, may_send
        self.batch = batch or other

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        limit, setting = await self._limit(scope)
        body = _LimitedBody(receive, limit)
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not (stated.isdigit() and int(stated[:20]) <= limit and len(stated) <= 20):
            await _refuse(body, send, setting)
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, body.receive, watched_send)
        except BodyTooLarge:
            if not started:
                await _refuse(body, send, setting)
        except OSError as error:  # Django spools the body to disk before any of its own code can answer
            trouble = trouble_of(error)
            if started or trouble is None:
                raise
            await _answer(body, send, trouble.status, f"{trouble.words}\n")

    async def _limit(self, scope: Message) -> tuple[int, str]:
        """In bytes, and the setting that it is."""
        path = scope["path"]
        is_upload, is_batch = path in UPLOAD_PATHS, path.startswith(BATCH_PATHS)
        if scope["method"] != "POST" or not (is_upload or is_batch):
            return self.other, "MAX_BODY_BYTES"
        if self.may_send is not None and not await self.may_send(scope):
            return self.other, "MAX_BODY_BYTES"
        return (self.upload + ENVELOPE_BYTES, "MAX_UPLOAD_BYTES") if is_upload else (self.batch, "MAX_BATCH_BYTES")


class _LimitedBody:
    """The body of a request as it comes in: up to `limit` bytes."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self.limit = receive, limit
        self._seen, self._has_ended = 0, False

    async def receive(self) -> Message:
        """Raises BodyTooLarge."""
        message = await self._receive()
        self._seen += len(message.get("body") or b"")
        self._has_ended = not message.get("more_body")
        if self._seen > self.limit:
            raise BodyTooLarge
        return message

    async def drain(self) -> None:
        """Let the rest come in, unread: twice the limit in all at most, and for DRAIN_SECONDS."""
        self.limit *= 2
        with suppress(BodyTooLarge, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self._has_ended:
                    await self.receive()


async def _refuse(body: _LimitedBody, send: Send, setting: str) -> None:
    text = f"The request is larger than the limit of {body.limit:,} bytes (setting {setting}). Nothing was stored.\n"
    await _answer(body, send, 413, text)


async def _answer(body: _LimitedBody, send: Send, status: int, text: str) -> None:
    """The answer goes out at once, for a client that asked before it sends (`Expect: 100-continue`). The connection is
    closed after the rest of the body: most clients read no answer while they send, and would see it reset."""
    content = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(content)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-robots-tag", b"noindex, nofollow"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    await body.drain()
    await send({"type": "http.response.body"})
