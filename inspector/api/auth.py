"""Who may use what programs use: one function for HTTP and one for sockets.

In local mode there is no login, and only programs of this machine may ask. In team mode `accounts.gate` has decided who
asks, by a key or a login, before a view is called. In both, a browser names the page that it asks from (`Origin`), and
that page must be of this very server.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlparse

from django.conf import settings

from inspector.accounts import access, scopes
from inspector.accounts.limits import TooMany, spend_change
from inspector.models import Project, default_project

OTHER_PAGE = "Pages from other servers may not use this API."
REFUSED = "Only programs on this machine and pages of this server may use the API: this server has no login."


class RequestNotAllowed(Exception):
    """Who asks may not."""


def project_of_caller(request: Any) -> Project:
    """The project that a request of a program is about. Raises RequestNotAllowed."""
    headers = {b"host": request.get_host().encode()}
    if (origin := request.headers.get("Origin")) is not None:
        headers[b"origin"] = origin.encode("utf-8", "replace")
    if settings.TEAM:
        allowed = request.key is not None or origin is None or same_origin(headers)
    else:
        allowed = is_local(request.META.get("REMOTE_ADDR", ""), headers)
    if not allowed:
        raise RequestNotAllowed(OTHER_PAGE if settings.TEAM else REFUSED)
    project: Project = request.project
    return project


def project_of_socket(scope: Any) -> Project | None:
    """The project that lines of a socket are stored in; None where whoever opened it may not send any. Asks the
    database."""
    headers = dict(scope["headers"])
    if not settings.TEAM:
        address, _ = scope.get("client") or ("", 0)
        return default_project() if is_local(address, headers) else None
    caller = scopes.caller_of(scope)
    return caller.project if access.may(caller, access.SEND, "POST") else None


def too_many_of_socket(scope: Any) -> TooMany | None:
    """Count a frame of a socket like a request; why it is refused where there were too many. Asks the database."""
    return spend_change(scopes.caller_of(scope)) if settings.TEAM else None


def is_local(address: str, headers: Mapping[bytes, bytes]) -> bool:
    """Does a request come from this machine, and from no page of another server."""
    try:
        loopback = ip_address(address).is_loopback
    except ValueError:
        return False
    return loopback and (b"origin" not in headers or same_origin(headers))


def same_origin(headers: Mapping[bytes, bytes]) -> bool:
    """Is the page's origin this server as the request addressed it (or PUBLIC_URL), scheme, host and port."""
    try:
        origin = urlparse(headers.get(b"origin", b"").decode("ascii"))
        host = headers.get(b"host", b"").decode("ascii").lower()
        given = f"{origin.scheme}://{origin.netloc}".lower()
        name = urlparse(f"//{host}").hostname or ""
    except (ValueError, UnicodeDecodeError):
        return False
    if settings.PUBLIC_URL:
        return given == settings.PUBLIC_URL.rstrip("/").lower()
    allowed = {item.strip("[]").lower() for item in settings.ALLOWED_HOSTS}
    return name in allowed and given == f"http://{host}"
