"""Checks a report: its digest and its sums by itself; every figure against the recording that it was made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import GuardError
from guard_core.recordings.formats import native
from guard_core.report.building import ReportOptions, build
from guard_core.report.document import Report, ReportBridge, ReportParameters, decode, digest_of, encode, schema_of
from guard_core.report.extracts import extract
from guard_core.report.tables import SCHEMA as TABLES
from guard_core.report.tables import TableReport, decode_tables
from guard_core.sessions import Session
from guard_core.version import __version__

# What the author of a report wrote, what redaction changed, and what follows from either.
_OF_THE_AUTHOR = ("title", "remarks", "hidden", "digest")
_OF_AN_ENGINE = ("digest", "engine_version")  # what differs wherever another version computed


class WrongFigure(NamedTuple):
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


class Verified(NamedTuple):
    """What came of a check: what is not so, and the version of the engine that made the report."""

    differences: list[WrongFigure]
    engine_version: str

    @property
    def is_of_this_engine(self) -> bool:
        """Were sentences compared, too: those of another engine say the same in other words."""
        return self.engine_version == __version__


def verify(report: Report | TableReport, sessions: Sequence[Session] | None = None) -> list[WrongFigure]:
    """What does not hold; empty where everything does (see `verify_document`)."""
    return verify_document(encode(report), sessions).differences


def verify_document(data: bytes, sessions: Sequence[Session] | None = None) -> Verified:
    """What does not hold of a report as it is written. Without sessions only what the document says of itself is
    checked: its digest, and that every bridge adds up. With them the report is made again and compared: all that it
    says, or where another version of the engine made it the figures and names that both versions give.

    Raises GuardError for what is not a report, and for sessions where it is about several of them.
    """
    is_tables = schema_of(data) == TABLES
    report = decode_tables(data) if is_tables else decode(data)
    differences = [] if (digest := digest_of(data)) == report.digest else [WrongFigure("digest", report.digest, digest)]
    if isinstance(report, Report):
        differences += _of_bridges(report)
    if sessions is not None:
        differences += _against(report, msgspec.json.decode(data), sessions)
    return Verified(differences, report.engine_version)


def _against(report: Report | TableReport, document: dict[str, Any], sessions: Sequence[Session]) -> list[WrongFigure]:
    """What of a document is not as a report of its recording would say it."""
    make: Callable[[Session], Report | TableReport]
    if isinstance(report, Report):
        place, digest = "session.digest", report.session.digest
        make = partial(build, options=_options(report.asked, report.level))
    elif (origin := report.made) is not msgspec.UNSET:
        place, digest = "made.digest", origin.digest
        make = partial(extract, options=_options(origin.asked, report.level), part=origin.part)
    else:
        raise GuardError("a report of tables is about several sessions; it is checked without a recording")
    digests = [native.digest(session) for session in sessions]
    is_ours = report.engine_version == __version__
    differences = [] if digest in digests else [WrongFigure(place, digest, digests)]
    if differences and (is_ours or len(sessions) != 1):
        return differences
    session = sessions[0 if differences else digests.index(digest)]  # another version may have read the file otherwise
    compared = _Comparison(is_redacted=bool(report.hidden), is_ours=is_ours)
    return [*differences, *compared.of("", _figures(document), _figures(msgspec.to_builtins(make(session))))]


def _options(asked: ReportParameters, level: str) -> ReportOptions:
    """What a report was made with."""
    return ReportOptions(
        policy=asked.policy,
        settings=asked.settings,
        summary=asked.summary,
        window=asked.window,
        rule=asked.rule,
        chosen=asked.chosen,
        level=level,
    )


def _of_bridges(report: Report) -> Iterator[WrongFigure]:
    for side in report.sides:
        for item in side.compactions:
            if item.bridge is not None:
                yield from _sums(f"sides.{side.name}.compactions.{item.index}.bridge", item.bridge)
                after = sum(part.after for part in item.bridge.parts)
                if after != item.after:
                    yield WrongFigure(f"sides.{side.name}.compactions.{item.index}.after", item.after, after)


def _sums(place: str, bridge: ReportBridge) -> Iterator[WrongFigure]:
    """The parts of a bridge whose sum is not what they end at."""
    for part in bridge.parts:
        after = part.before + part.grown - part.removed + part.inserted + part.unexplained
        if after != part.after:
            yield WrongFigure(f"{place}.{part.name}.after", part.after, after)


def _figures(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _OF_THE_AUTHOR}


class _Comparison(NamedTuple):
    """How a document is compared. Text in which something was redacted cannot be; neither can the sentences, digests
    and unknown fields of another engine."""

    is_redacted: bool
    is_ours: bool

    def of(self, place: str, reported: Any, expected: Any) -> Iterator[WrongFigure]:
        """The leaves that differ."""
        if isinstance(reported, dict) and isinstance(expected, dict):
            keys = [key for key in expected if key in reported and key not in _OF_AN_ENGINE]
            if self.is_ours:
                keys = list(dict.fromkeys([*expected, *reported]))
            pairs = [(str(key), reported.get(key), expected.get(key)) for key in keys]
        elif _is_list(reported) and _is_list(expected) and len(reported) == len(expected):
            pairs = [(str(number), *pair) for number, pair in enumerate(zip(reported, expected, strict=True))]
        else:
            if reported != expected and not self._is_unlike(reported, expected):
                yield WrongFigure(place.removeprefix("."), reported, expected)
            return
        for name, left, right in pairs:
            yield from self.of(f"{place}.{name}", left, right)

    def _is_unlike(self, reported: Any, expected: Any) -> bool:
        """Are these texts that say nothing by being different."""
        if self.is_redacted and isinstance(reported, str) and isinstance(expected, str) and STUB in reported:
            return True
        return not self.is_ours and _is_text(reported) and _is_text(expected)


def _is_text(value: Any) -> bool:
    """Is it a sentence, or a list of sentences; a name has no space."""
    return all(map(_is_text, value)) if _is_list(value) else isinstance(value, str) and (" " in value or not value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


STUB = "[redacted "
