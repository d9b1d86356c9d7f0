"""The window of a session in words: what it rests on, the question where that is too little, and how to change it."""

from __future__ import annotations

from typing import Any

from guard_core.errors import SettingError
from guard_core.windows.models import UNKNOWN
from guard_core.windows.window import parse_window
from guard_core.windows.window_evidence import Status, WindowJudgement
from inspector.models import Session
from inspector.pages.shared.numbers import counted

PLACEHOLDER = "200k"


def question(row: Session, judged: WindowJudgement, scope: str) -> dict[str, Any]:
    """What is wrong with the window, and whose window is asked for: "model" or "session"; empty where all is well."""
    why = "" if judged.note == UNKNOWN else f" ({judged.note})"
    words = {
        Status.ASSUMED: f"Window unknown, {judged.value:,} tokens assumed{why}.",
        Status.DOUBTED: f"Window doubtful: {judged.note}.",
        Status.CONTRADICTED: f"Window too small: {judged.note}.",
    }.get(judged.status)
    if words is None:
        return {}
    of_all = scope == "model"
    label = f"Set it for all sessions of {row.model}" if of_all else "Set it for this session"
    return {"words": words, "label": label, "scope": scope, "placeholder": PLACEHOLDER}


def answered(row: Session, sharing: int, before: str) -> dict[str, Any]:
    """What was just set for a model, and what an undo brings back; empty where nothing is set."""
    if row.window_override or not row.model_window:
        return {}
    words = f"Window {row.model_window:,} tokens, set for {row.model}: {counted(sharing, 'session')}."
    return {"words": words, "before": before if not complaint(before) else ""}


def complaint(typed: str) -> str:
    """Why what was typed is not a window; empty where it is one, or where nothing was typed."""
    if not typed.strip():
        return ""
    try:
        parse_window(typed)
    except SettingError as error:
        text = str(error)
        return f"{text[:1].upper()}{text[1:]}."
    return ""


def change(row: Session, scopes: tuple[str, ...]) -> dict[str, Any]:
    """The form that changes the window: for whom, and what each would have without the person's figure."""
    labels = {"model": f"all sessions of {row.model}", "session": "this session only"}
    stated = {"model": row.model_window, "session": row.window_override}
    without = {"model": row.window, "session": row.model_window or row.window}
    used = "session" if row.window_override else scopes[0]
    return {
        "scopes": [{"name": name, "label": labels[name], "on": name == used} for name in scopes],
        "value": stated[used] or "",
        "resets": [
            {"name": name, "label": f"Use {without[name]:,} for {labels[name]} again"}
            for name in scopes
            if stated[name]
        ],
    }
