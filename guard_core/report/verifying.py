"""Checks a report: its digest and its sums by itself; every figure against the recording that it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import GuardError
from guard_core.recordings.formats import native
from guard_core.report.building import Options, build
from guard_core.report.document import Asked, Bridge, Report, sealed
from guard_core.report.extracts import extract
from guard_core.report.tables import TableReport, sealed_tables
from guard_core.sessions import Session
from guard_core.version import __version__

# What the author of a report wrote, what redaction changed, and what follows from either.
_OF_THE_AUTHOR = ("title", "remarks", "hidden", "digest")


class Difference(NamedTuple):
    """What of a report is not so: where in the document, what it says, and what is right."""

    place: str
    reported: Any
    expected: Any

    def __str__(self) -> str:
        return f"{self.place}: the report says {self._short(self.reported)}, recomputed {self._short(self.expected)}"

    @staticmethod
    def _short(value: Any) -> str:
        text = msgspec.json.encode(value).decode()
        return text if len(text) <= 80 else f"{text[:79]}…"


def verify(report: Report, sessions: Sequence[Session] | None = None) -> list[Difference]:
    """What does not hold; empty where everything does. Without sessions only what the document says of itself is
    checked: its digest, and that every bridge adds up."""
    differences = list(_of_itself(report))
    if sessions is None:
        return differences
    session = next((item for item in sessions if native.digest(item) == report.session.digest), None)
    if session is None:
        digests = [native.digest(item) for item in sessions]
        return [*differences, Difference("session.digest", report.session.digest, digests)]
    if report.engine_version != __version__:
        return [*differences, Difference("engine_version", report.engine_version, __version__)]
    expected = _figures(build(session, _options(report.asked, report.level)))
    return [*differences, *_compared("", _figures(report), expected, is_redacted=bool(report.hidden))]


def verify_tables(report: TableReport, sessions: Sequence[Session] | None = None) -> list[Difference]:
    """The same for a report of tables. Only that of a part of one session can be held against a recording.

    Raises GuardError for sessions where the report is no such part.
    """
    digest = sealed_tables(report).digest
    differences = [] if digest == report.digest else [Difference("digest", report.digest, digest)]
    if sessions is None:
        return differences
    made = report.made
    if made is msgspec.UNSET:
        raise GuardError("a report of tables is about several sessions; it is checked without a recording")
    session = next((item for item in sessions if native.digest(item) == made.digest), None)
    if session is None:
        return [*differences, Difference("made.digest", made.digest, [native.digest(item) for item in sessions])]
    if report.engine_version != __version__:
        return [*differences, Difference("engine_version", report.engine_version, __version__)]
    expected = _figures(extract(session, _options(made.asked, report.level), made.part))
    return [*differences, *_compared("", _figures(report), expected, is_redacted=bool(report.hidden))]


def _options(asked: Asked, level: str) -> Options:
    """What a report was made with."""
    return Options(
        policy=asked.policy,
        settings=asked.settings,
        summary=asked.summary,
        window=asked.window,
        rule=asked.rule,
        chosen=asked.chosen,
        level=level,
    )


def _of_itself(report: Report) -> Iterator[Difference]:
    if (digest := sealed(report).digest) != report.digest:
        yield Difference("digest", report.digest, digest)
    for side in report.sides:
        for item in side.compactions:
            if item.bridge is not None:
                yield from _sums(f"sides.{side.name}.compactions.{item.index}.bridge", item.bridge)
                after = sum(part.after for part in item.bridge.parts)
                if after != item.after:
                    yield Difference(f"sides.{side.name}.compactions.{item.index}.after", item.after, after)


def _sums(place: str, bridge: Bridge) -> Iterator[Difference]:
    for part in bridge.parts:
        after = part.before + part.grown - part.removed + part.inserted + part.unexplained
        if after != part.after:
            yield Difference(f"{place}.{part.name}.after", part.after, after)


def _figures(report: Report | TableReport) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(report)
    return {name: value for name, value in values.items() if name not in _OF_THE_AUTHOR}


def _compared(place: str, reported: Any, expected: Any, *, is_redacted: bool) -> Iterator[Difference]:
    """The leaves that differ. Text in which something was redacted cannot be compared."""
    if isinstance(reported, dict) and isinstance(expected, dict):
        keys: Iterable[str] = dict.fromkeys([*expected, *reported])
        pairs = [(str(key), reported.get(key), expected.get(key)) for key in keys]
    elif isinstance(reported, list | tuple) and isinstance(expected, list | tuple) and len(reported) == len(expected):
        pairs = [(str(number), *pair) for number, pair in enumerate(zip(reported, expected, strict=True))]
    else:
        is_stub = is_redacted and isinstance(reported, str) and isinstance(expected, str)
        if reported != expected and not (is_stub and STUB in reported):
            yield Difference(place.removeprefix("."), reported, expected)
        return
    for name, left, right in pairs:
        yield from _compared(f"{place}.{name}", left, right, is_redacted=is_redacted)


STUB = "[redacted "
