"""Redaction of whole things: a session, and a report of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from guard_core.events import Event, Part, value_text
from guard_core.redaction.redactor import Redactor
from guard_core.report.document import Hidden, Report, sealed
from guard_core.report.tables import TableReport
from guard_core.sessions import Session

R = TypeVar("R", Report, TableReport)

# Fields of a report whose words are the engine's own; everything else may hold words of the session.
_ENGINES = frozenset(
    {"schema", "engine_version", "level", "asked", "digest", "kind", "severity", "prices", "source", "name"}
)


def learn_session(redactor: Redactor, session: Session, events: Iterable[Event] | None = None) -> None:
    """Find the values in all texts of a session, so that what quotes or cuts them is redacted, too."""
    for message in [
        *(session.events if events is None else events),
        *(m for c in session.compactions for m in c.messages),
    ]:
        for part in message.parts:
            _learn_part(redactor, part)
    for part in session.system or ():
        _learn_part(redactor, part)
    redactor.learn(session.title)


def _learn_part(redactor: Redactor, part: Part) -> None:
    for name in ("text", "arguments", "content", "value", "uri", "name"):
        value = getattr(part, name, None)
        if isinstance(value, str):
            redactor.learn(value)
        elif value is not None:
            redactor.learn(value_text(value))


def redacted_report(report: Report, redactor: Redactor) -> Report:
    """The report with stubs in all of its words, and a count of them by kind."""
    return sealed(_redacted(report, redactor))


def redacted_tables(report: TableReport, redactor: Redactor) -> TableReport:
    """The same for a report of tables."""
    return sealed(_redacted(report, redactor))


def _redacted(report: R, redactor: Redactor) -> R:
    values: dict[str, Any] = msgspec.to_builtins(report)
    changed = msgspec.convert(
        {name: _walked(redactor, name, value) for name, value in values.items()}, type=type(report)
    )
    hidden = tuple(Hidden(kind, count) for kind, count in redactor.hidden.items())
    return msgspec.structs.replace(changed, hidden=hidden)


def _walked(redactor: Redactor, name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value if name in _ENGINES else redactor.text(value)
    if isinstance(value, dict):
        return {
            key: item if name == "session" and key == "digest" else _walked(redactor, key, item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walked(redactor, name, item) for item in value]
    return value


def redacted_session(session: Session, redactor: Redactor) -> Session:
    """The session with stubs in its texts, arguments, results, names and titles. Counts stay as they were recorded."""
    learn_session(redactor, session)
    values: dict[str, Any] = msgspec.to_builtins(session)
    walked = {name: _in_session(redactor, name, value) for name, value in values.items()}
    return msgspec.convert(walked, type=Session)


# Fields of a session whose words are the format's own, or which pair its parts.
_STRUCTURE = frozenset(
    {
        "type",
        "role",
        "kind",
        "evidence",
        "source",
        "format",
        "id",
        "call_id",
        "source_id",
        "parent",
        "session",
        "call",
        "model",
        "mime",
    }
)


def _in_session(redactor: Redactor, name: str, value: Any) -> Any:
    if name in ("arguments", "content", "value", "metadata", "schema"):
        return redactor.value(value)
    if isinstance(value, str):
        return value if name in _STRUCTURE else redactor.text(value)
    if isinstance(value, dict):
        return {key: _in_session(redactor, key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_session(redactor, name, item) for item in value]
    return value
