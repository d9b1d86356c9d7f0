"""A session in stretches: calls in a row of one model, one version of the agent and one context window."""

from __future__ import annotations

from bisect import bisect_right

from guard_core import models
from guard_core.rules.base import Stretch
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.window_evidence import judge_session


def stretches_of(session: Session, window: Sourced | None = None) -> tuple[Stretch, ...]:
    """The stretches of a session, in order; one that is empty where it has no call. `window`: typed in by the user."""
    versions, starts = session.versions, [at for at, _ in session.versions]
    model = models.main_model(session) or session.model
    found: list[tuple[int, str, str]] = []
    for step, call in enumerate(session.calls):
        place = bisect_right(starts, call.at) - 1
        version = versions[place][1] if place >= 0 else ""
        name = call.model or (found[-1][2] if found else model)
        if not found or (version, name) != found[-1][1:]:
            found.append((step, version, name))
    if not found:
        version = versions[0][1] if versions else ""
        return (Stretch(0, 0, version, model, _window_of(session, model, window), settings=session.settings),)
    stops = [*(start for start, _, _ in found[1:]), len(session.calls)]
    windows = {name: _window_of(session, name, window) for name in {name for _, _, name in found}}
    stretches = []
    for (start, version, name), stop in zip(found, stops, strict=True):
        largest = max(call.prompt_tokens or 0 for call in session.calls[start:stop])
        stretches.append(Stretch(start, stop, version, name, windows[name], largest, session.settings))
    return tuple(stretches)


def _window_of(session: Session, model: str, window: Sourced | None) -> Sourced | None:
    """The window of a model in this session: typed, from the file, else the table's; None where nothing has it."""
    if window is not None:
        return window
    if model in ("", models.main_model(session), session.model):
        judged = judge_session(session).sourced
        return None if judged.source is Provenance.ASSUMED else judged
    if session.window is not None and session.window.value > 0:
        return session.window
    looked_up = models.context_window(model)
    return None if looked_up is None or looked_up.source is Provenance.ASSUMED else looked_up
