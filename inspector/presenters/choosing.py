"""The sessions of one file, to choose from."""

from __future__ import annotations

from typing import Any

from inspector.models import Session
from inspector.presenters.numbers import DASH


def row(session: Session) -> dict[str, Any]:
    """One session as the page and its script show it; texts are shown, numbers sort. Tokens: the largest prompt."""
    started = session.started_at
    return {
        "id": str(session.pk),
        "url": session.get_absolute_url(),
        "title": session.title,
        "model": session.model or DASH,
        "started": f"{started:%Y-%m-%d %H:%M}" if started else DASH,
        "messages": session.events,
        "calls": session.calls,
        "peak": session.prompt_tokens_max,
        "compactions": session.compactions,
    }
