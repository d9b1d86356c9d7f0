"""The largest request of a session, in words."""

from __future__ import annotations

from inspector.models import Session

IN_CHARACTERS = "usage_in_characters"  # the kind of the finding that says so


def counts_characters(session: Session) -> bool:
    """Do the recorded counts seem to be of characters, so that no figure made of them is in tokens."""
    return f" {IN_CHARACTERS} " in session.kinds


def peak_source(session: Session) -> str:
    """Where the largest request's tokens come from, in a few words; "" where the provider counted it."""
    if session.peak_source == "recorded" and counts_characters(session):
        return "perhaps characters"
    return "" if session.peak_source == "recorded" else "modelled" if session.reported_calls else "estimated"
