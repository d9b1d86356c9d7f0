"""The report of a comparison, whatever is compared: tables with a column for each side, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guard_core import __version__
from guard_core.report import ChartLine, Table, TableReport, sealed
from guard_core.report.tables import Value


def beside(heading: str, name: str, letters: Sequence[str], rows: Iterable[Sequence[Value]], note: str = "") -> Table:
    """A table whose rows have a name, under the head `name`, and a number of each side."""
    return Table(
        heading=heading,
        heads=(name, *letters),
        numeric=tuple(range(1, len(letters) + 1)),
        rows=tuple(map(tuple, rows)),
        note=note,
    )


def compared(
    kind: str,
    level: str,
    names: Iterable[str],
    titles: Iterable[str],
    tables: Iterable[Table],
    *,
    sentences: Iterable[str],
    assumptions: Iterable[str],
    lines: Iterable[ChartLine] = (),
) -> TableReport:
    """`names` say what each side is; the `titles` of their sessions are left out below the level "names"."""
    return sealed(
        TableReport(
            engine_version=__version__,
            level=level,
            kind=kind,
            about="; ".join(names),
            sentences=tuple(sentences),
            sessions=tuple(dict.fromkeys(titles)) if level == "names" else (),
            lines=tuple(lines),
            tables=tuple(tables),
            assumptions=tuple(assumptions),
        )
    )
