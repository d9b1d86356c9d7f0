"""The context window of a session: from the file, else from the model table, else assumed, always with its source."""

from __future__ import annotations

from guard_core.models import context_window
from guard_core.sessions import Session, Source, Sourced

DEFAULT_WINDOW = 200_000  # tokens; the window of most models that coding agents run on (spec/product.md)


def window_of(session: Session) -> Sourced:
    """The window in tokens and where it comes from."""
    if session.window is not None and session.window.value > 0:
        return session.window
    for name in dict.fromkeys([session.model, *(call.model for call in session.calls[-3:])]):
        if name and (found := context_window(name)):
            return found
    return Sourced(DEFAULT_WINDOW, Source.ASSUMED, "neither the file nor the model table knows it")
