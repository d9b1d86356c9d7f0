"""Sockets by path, behind an origin check of scheme, host and port."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path, re_path

from inspector.api.sockets import ImportConsumer, NoSuchSocket, SafeConsumer
from inspector.project.body_limit import App, Message, Receive, Send


class OriginCheck:
    """Lets a socket through only from a page of this very server; a missing or malformed origin is refused.

    Channels' own validator compares host names without ports, and fails with an error on a malformed origin.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if same_origin(dict(scope["headers"])):
            await self.app(scope, receive, send)
        else:
            denier: Any = WebsocketDenier()
            await denier(scope, receive, send)


def same_origin(headers: dict[bytes, bytes]) -> bool:
    """Is the page's origin this server as the request addressed it (or PUBLIC_URL), scheme, host and port."""
    try:
        origin = urlparse(headers.get(b"origin", b"").decode("ascii"))
        host = headers.get(b"host", b"").decode("ascii").lower()
        found = f"{origin.scheme}://{origin.netloc}".lower()
        name = urlparse(f"//{host}").hostname or ""
    except (ValueError, UnicodeDecodeError):
        return False
    if settings.PUBLIC_URL:
        return found == settings.PUBLIC_URL.rstrip("/").lower()
    allowed = {item.strip("[]").lower() for item in settings.ALLOWED_HOSTS}
    return name in allowed and found == f"http://{host}"


def _application(consumer: type[SafeConsumer]) -> Any:
    """A consumer as what a path leads to: the types of Django know views of HTTP only."""
    return consumer.as_asgi()


sockets = OriginCheck(
    URLRouter(
        [
            path("ws/imports/<uuid:pk>/", _application(ImportConsumer)),
            re_path(r"^.*$", _application(NoSuchSocket)),
        ]
    )
)
