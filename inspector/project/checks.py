"""System checks: what a person should know before the server starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register

from inspector.project import environment

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@register(Tags.security, deploy=False)
def loopback_only(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Without login only this machine may reach the server."""
    if settings.BIND in LOOPBACK or settings.BIND.startswith("127.") or environment.flag("LOGIN_PROXY"):
        return []
    return [
        Error(
            f"BIND={settings.BIND} would expose every session to the network, as there is no login.",
            id="inspector.E001",
        )
    ]
