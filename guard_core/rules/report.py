"""An explanation as JSON: what `explain --json` prints of a session."""

from __future__ import annotations

from typing import Any

from guard_core.rules.explanation import Explanation
from guard_core.rules.inference import Interval
from guard_core.rules.words import headline
from guard_core.sessions import Session


def report(session: Session, explanation: Explanation) -> dict[str, Any]:
    """The explanation of a session, all its fields. Steps and messages count from 0, figures are tokens."""
    pairs = list(zip(explanation.stretches, explanation.rules, strict=False))
    return {
        "session": session.source_id,
        "title": session.title,
        "agent": session.agent,
        "sentence": headline(explanation),
        "compared": explanation.compared,
        "rule": None if explanation.rule is None else _fields(explanation.rule),
        "rules": [
            {"from": stretch.start, "to": stretch.stop - 1, "model": stretch.model, **_fields(rule)}
            for stretch, rule in pairs
        ],
        "compactions": [_fields(item) for item in explanation.compactions],
        "missed": [_fields(item) for item in explanation.missed],
        "kept": [_fields(item) for item in explanation.kept],
        "inference": [_inferred(interval) for interval in explanation.inference],
        "agreement": {"auto": explanation.auto, "agrees": explanation.agrees},
    }


def _inferred(interval: Interval) -> dict[str, Any]:
    """An interval with its last step instead of the step after it."""
    values = _fields(interval)
    return {"from": values.pop("start"), "to": values.pop("stop") - 1, **values}


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}
