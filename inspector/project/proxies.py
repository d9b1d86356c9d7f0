"""What a proxy says of a request is believed from the proxies in PROXIES alone, and taken away from everyone else."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from inspector.project.body_limit import App, Message, Receive, Send

FORWARDED = "x-forwarded-"  # -for, -proto, -host, -user: what proxies add


class Proxies:
    """Removes headers of proxies that are none of ours; from ours it takes address and scheme of the client.

    `sso_header` is the name under which a proxy hands on who has signed in, "" for none.
    """

    def __init__(self, app: App, proxies: Sequence[str], sso_header: str = "") -> None:
        self._networks = [ipaddress.ip_network(name, strict=False) for name in proxies]
        self._sso = sso_header.lower()
        self._believing: Any = ProxyHeadersMiddleware(app, trusted_hosts=list(proxies))
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif self._is_ours(scope.get("client")):
            await self._believing(scope, receive, send)
        else:
            scope["headers"] = [(name, value) for name, value in scope["headers"] if not self._is_of_proxy(name)]
            await self._app(scope, receive, send)

    def _is_ours(self, client: tuple[str, int] | None) -> bool:
        """Is a client in one of the networks of our proxies; one without an address is not."""
        try:
            address = ipaddress.ip_address(client[0] if client else "")
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def _is_of_proxy(self, name: bytes) -> bool:
        """Is it a header that only a proxy may set: where a request came from, or who has signed in."""
        plain = name.decode("latin-1").lower().replace("_", "-")  # Django takes the two for one
        return plain.startswith(FORWARDED) or (bool(self._sso) and plain == self._sso.replace("_", "-"))
