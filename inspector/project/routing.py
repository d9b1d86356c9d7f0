"""Sockets by path, behind an origin check of scheme, host and port."""

from __future__ import annotations

from typing import Any

from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from django.urls import path, re_path

from inspector.api.auth import same_origin
from inspector.api.sockets import ImportConsumer, NoSuchSocket, SafeConsumer, SessionConsumer, StreamConsumer
from inspector.project.body_limit import App, Message, Receive, Send

STREAMS = "/ws/streams/"


class OriginCheck:
    """Lets a socket through only from a page of this very server; a missing or malformed origin is refused. A program
    names no page: it may open the sockets of STREAMS, which ask who it is.

    Channels' own validator compares host names without ports, and fails with an error on a malformed origin.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        is_program = b"origin" not in headers and scope["path"].startswith(STREAMS)
        if is_program or same_origin(headers):
            await self.app(scope, receive, send)
        else:
            denier: Any = WebsocketDenier()
            await denier(scope, receive, send)


def _application(consumer: type[SafeConsumer]) -> Any:
    """A consumer as what a path leads to: the types of Django know views of HTTP only."""
    return consumer.as_asgi()


sockets = OriginCheck(
    URLRouter(
        [
            path("ws/imports/<uuid:pk>/", _application(ImportConsumer)),
            path("ws/sessions/<uuid:pk>/", _application(SessionConsumer)),
            path("ws/streams/<str:name>/", _application(StreamConsumer)),
            re_path(r"^.*$", _application(NoSuchSocket)),
        ]
    )
)
