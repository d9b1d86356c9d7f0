"""A report of tables: two recordings or replays beside each other, a sweep, the thresholds of many sessions, or one
compaction or decision of a session (`extracts`).

It is one JSON object, as a report of a session is (`document`). Whoever makes it has computed what it says: the
figures of its tables are numbers, so that a reader can compute with them, and everything that is said of them is a
sentence. `digest` is the SHA-256 of the document with an empty `digest`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from guard_core.report.document import Hidden, Remark, ReportParameters, decode_as

SCHEMA = "compaction-inspector/table-report"
VERSION = 1  # raise it when a reader of the version before would misread a document
LEVELS = ("numbers", "names")
Value = str | int | float | None


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table. `numeric` are the places of columns of numbers, `marked` those of rows that are pointed out; `most`
    says how many rows there were, where not all are here."""

    heading: str
    heads: tuple[str, ...]
    numeric: tuple[int, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    marked: tuple[int, ...] = ()
    most: int | None = None


class ChartLine(msgspec.Struct, frozen=True):
    """One line of a chart: prompt tokens over steps (from 0); of a long session the smallest and largest of each
    stretch. `marks` are the steps of its compactions."""

    label: str
    steps: tuple[int, ...]
    tokens: tuple[int, ...]
    marks: tuple[int, ...]


class ReportPart(msgspec.Struct, frozen=True):
    """One compaction of the last side, or the decision before one call; `number` counts from 0."""

    kind: Literal["compaction", "decision"]
    number: int


class ReportOrigin(msgspec.Struct, frozen=True):
    """What a report of a part of one session was made of, so that it can be made again. `digest` is that of the
    session."""

    digest: str
    part: ReportPart
    asked: ReportParameters


class TableReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of tables. `about` says what it is in one line, `sentences` what follows from it, the first one first;
    `sessions` are those that it is about, as its level names them."""

    schema: str = SCHEMA
    version: int = VERSION
    engine_version: str
    level: str
    kind: str  # comparison, compactions, sweep, triggers, compaction, decision
    about: str
    title: str = ""
    remarks: tuple[Remark, ...] = ()
    sentences: tuple[str, ...]
    sessions: tuple[str, ...]
    lines: tuple[ChartLine, ...] = ()
    tables: tuple[Table, ...]
    assumptions: tuple[str, ...]
    made: ReportOrigin | msgspec.UnsetType = msgspec.UNSET  # of a part of one session
    hidden: tuple[Hidden, ...] | None = None  # what was redacted; null: nothing was looked for
    digest: str = ""


def decode_tables(data: bytes) -> TableReport:
    """A report of tables from its JSON. Raises GuardError for anything else."""
    return decode_as(data, TableReport, SCHEMA, VERSION)


def title_of_tables(report: TableReport) -> str:
    """What a report is called."""
    return report.title or report.about


def shown(value: Value) -> str:
    """A value of a table as people read it."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else value


def provenance_of_tables(report: TableReport) -> list[str]:
    """What made the report, and its digest."""
    digest = f"Report SHA-256 {report.digest}." if report.digest else ""
    return [f"Engine {report.engine_version}.", *([digest] if digest else [])]
