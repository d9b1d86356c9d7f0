"""A session in stretches: calls in a row of one model, one version of the agent and one context window."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import msgspec

from guard_core import defaults
from guard_core.rules.base import Stretch
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows import models
from guard_core.windows.agent_windows import has_default, taken_by_agent
from guard_core.windows.window_evidence import Status, judge_session, stated_windows

NOTHING: Mapping[str, Sourced] = {}


def stretches_of(
    session: Session, window: Sourced | None = None, by_model: Mapping[str, Sourced] = NOTHING
) -> tuple[Stretch, ...]:
    """The stretches of a session, in order; one that is empty where it has no call. `window`: that of its main model,
    typed in by the user; `by_model`: those of single models.

    An agent uses the window that it knows of, not the limit that its provider states in refusing."""
    session = msgspec.structs.replace(session, refusals=())
    versions, starts = session.versions, [at for at, _ in session.versions]
    model = models.main_model(session) or session.model
    in_file = session.window if window is None else None
    stated = stated_windows(session) if in_file is not None else []
    changes: list[tuple[int, str, str]] = []
    for step, call in enumerate(session.calls):
        place = bisect_right(starts, call.at) - 1
        version = versions[place][1] if place >= 0 else ""
        name = call.model or (changes[-1][2] if changes else model)
        is_new = bool(stated) and step > 0 and stated[step] != stated[step - 1]
        if not changes or is_new or (version, name) != changes[-1][1:]:
            changes.append((step, version, name))
    if not changes:
        version = versions[0][1] if versions else ""
        sourced = window or _known(session, judge_session(session).sourced)
        return (Stretch(0, 0, version, model, sourced, settings=session.settings, guarded_by=session.guarded_by),)
    judged = judge_session(session)
    is_doubted = window is None and judged.status is Status.DOUBTED
    stops = [*(start for start, _, _ in changes[1:]), len(session.calls)]
    main, own = window or _known(session, judged.sourced), ("", model)
    largest_by: dict[str, int] = {}  # the largest prompt that each model answered, in tokens
    for call in session.calls:
        largest_by[call.model] = max(largest_by.get(call.model, 0), call.prompt_tokens or 0)
    windows = {
        name: by_model.get(name)
        or (main if name in own else _window_of(session, name, largest_by.get(name, 0), window))
        for name in {name for _, _, name in changes}
    }
    stretches = []
    for (start, version, name), stop in zip(changes, stops, strict=True):
        largest = max(call.prompt_tokens or 0 for call in session.calls[start:stop])
        largest = largest or session.mean_prompt_tokens or 0
        own_window = windows[name]
        if in_file is not None and stated:
            own_window = msgspec.structs.replace(in_file, value=stated[start])
        doubted = is_doubted and own_window == main
        stretches.append(
            Stretch(start, stop, version, name, own_window, largest, session.settings, doubted, session.guarded_by)
        )
    return tuple(stretches)


def _window_of(session: Session, model: str, largest: int, typed: Sourced | None) -> Sourced | None:
    """The window of another model than the main one: from the file, else the table's; where nothing has it, the one
    that was typed, None without. `largest` is its largest prompt in tokens."""
    if typed is None and session.window is not None and session.window.value > 0:
        return session.window
    looked_up = models.context_window(model) or Sourced(defaults.WINDOW, Provenance.ASSUMED, models.UNKNOWN)
    return _known(session, taken_by_agent(session.agent_format, model, looked_up, largest, session.version)) or typed


def _known(session: Session, window: Sourced) -> Sourced | None:
    """The window, None where it is a mere assumption and not what the agent takes by default."""
    is_default = has_default(session.agent_format, session.version)
    return window if window.source is not Provenance.ASSUMED or is_default else None
