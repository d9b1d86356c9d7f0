"""The size limit of request bodies, kept in plain ASGI in front of Django.

Django spools a whole body to disk before any view or middleware runs, even for an address that does not exist; so
the declared length is checked first and the bytes are counted as they come.
"""

from __future__ import annotations

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
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not (stated.isdigit() and int(stated[:20]) <= limit and len(stated) <= 20):
            await _refuse(send, limit, setting)
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, _counted(receive, limit), watched_send)
        except BodyTooLarge:
            if not started:
                await _refuse(send, limit, setting)
        except OSError as error:  # Django spools the body to disk before any of its own code can answer
            trouble = trouble_of(error)
            if started or trouble is None:
                raise
            await _drained(receive, limit)
            await _answer(send, trouble.status, f"{trouble.words}\n")

    async def _limit(self, scope: Message) -> tuple[int, str]:
        """In bytes, and the setting that it is."""
        path = scope["path"]
        is_upload, is_batch = path in UPLOAD_PATHS, path.startswith(BATCH_PATHS)
        if scope["method"] != "POST" or not (is_upload or is_batch):
            return self.other, "MAX_BODY_BYTES"
        if self.may_send is not None and not await self.may_send(scope):
            return self.other, "MAX_BODY_BYTES"
        return (self.upload + ENVELOPE_BYTES, "MAX_UPLOAD_BYTES") if is_upload else (self.batch, "MAX_BATCH_BYTES")


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body") or b"")
        if seen > limit:
            raise BodyTooLarge
        return message

    return counted


async def _drained(receive: Receive, limit: int) -> None:
    """Let the rest of the body come in, unread: a browser that is still sending does not read an answer."""
    rest = _counted(receive, limit)
    with suppress(BodyTooLarge):
        while (message := await rest())["type"] == "http.request" and message.get("more_body"):
            pass


async def _refuse(send: Send, limit: int, setting: str) -> None:
    await _answer(
        send, 413, f"The request is larger than the limit of {limit:,} bytes (setting {setting}). Nothing was stored.\n"
    )


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-robots-tag", b"noindex, nofollow"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
