"""Who asks, of what is not a request of Django's: a socket, or an upload whose body has not been read yet."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import parse_cookie

from inspector.accounts import access, keys
from inspector.accounts.access import Caller
from inspector.models import Project, default_project


def project_of(scope: Any) -> Project | None:
    """The project that whoever opened a socket may look at; None where none is signed in there any more, or the key may
    not read. Asked at every look, a socket ends with the session that opened it. Without team mode there is one
    project."""
    if not settings.TEAM:
        return default_project()
    caller = caller_of(scope)
    return caller.project if access.may(caller, access.LOOK, "GET") else None


async def may_send(scope: Any) -> bool:
    """May whoever sends this request upload a large body: the bytes of anyone else are not even taken."""
    return not settings.TEAM or await sync_to_async(_may_send)(scope)


def _may_send(scope: Any) -> bool:
    """A thread asks, outside of what Django takes for a request, so its connections are looked after here."""
    close_old_connections()  # as at the begin of a request
    try:
        return access.may(caller_of(scope), access.SEND, "POST")
    finally:
        close_old_connections()


def caller_of(scope: Any) -> Caller:
    """Who asks, by a key or by the session of a browser."""
    headers = {name.decode("latin-1").title(): value.decode("latin-1") for name, value in scope["headers"]}
    text = keys.given(headers)
    if text is not None:
        return Caller(key=keys.opened_by(text))
    cookies = parse_cookie(headers.get("Cookie", ""))
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookies.get(settings.SESSION_COOKIE_NAME))
    request: Any = SimpleNamespace(session=session)  # all that Django asks of a request here
    return access.caller_of_session(get_user(request), session)
