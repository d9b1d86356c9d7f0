"""What ends by itself, removed once a day: sessions of browsers, and counts of limits."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings

from inspector.accounts import limits


def drop_ended() -> None:
    """Remove sessions that have expired, and counts whose window is over."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    limits.drop_ended()
