"""The largest request of a session, in words."""

from __future__ import annotations

from inspector.models import Session


def peak_source(session: Session) -> str:
    """Where the largest request's tokens come from, in a word; "" where the provider counted it."""
    return "" if session.peak_source == "recorded" else "modelled" if session.reported_calls else "estimated"
