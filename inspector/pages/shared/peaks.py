"""The largest request of a session, in words."""

from __future__ import annotations

from inspector.models import Session


def peak_source(session: Session) -> str:
    """Where the largest request's tokens come from, in a few words; "" where the provider counted it."""
    if session.peak_source == "recorded" and session.counts_characters:
        return "perhaps characters"
    return "" if session.peak_source == "recorded" else "modelled" if session.reported_calls else "estimated"
