"""Whether pages of a server may watch folders of its machine."""

from __future__ import annotations

from django.conf import settings

from inspector.project import environment


def is_offered() -> bool:
    """Not where others than the person who runs the server reach its pages."""
    return not (settings.TEAM or environment.flag("LOGIN_PROXY"))
