"""The thresholds of many sessions as a report of tables."""

from __future__ import annotations

from guard_core import __version__
from guard_core.corpus import TriggerRow
from guard_core.report import Table, TableReport, sealed
from guard_core.report.tables import Value
from guard_core.rules.evidence import UNSAID, Cause, automatic
from inspector.pages.shared.numbers import counted
from inspector.pages.triggers.analysis import TriggersAnalysis

MOST_ROWS = 500  # that are listed
HEADS = (
    *("agent", "version", "model", "window", "count", "sessions", "automatic", "unknown trigger", "manual"),
    *("sliding window", "none at", "one at"),
)
RULE_HEADS = ("threshold", "formula", "explained", "with count")
INTERVAL = (
    "The real threshold lies between the largest count at which there was no compaction (“none at”) and the smallest "
    "at which there was one (“one at”); counts are recorded or recomputed by the rule that the row names."
)


def report_of(analysis: TriggersAnalysis, level: str) -> TableReport:
    """One row per agent, version, model and window, with the interval of its threshold and the formula in it."""
    rows = analysis.rows
    sessions = {session for row in rows for session in row.sessions}
    about = f"{counted(len(sessions), 'session')}, {counted(len(rows), 'row')}"
    explained, compactions = sum(row.explained for row in rows), sum(row.fired for row in rows)
    sentences = [f"Known formulas explain {explained:,} of {counted(compactions, 'compaction')} with a count."]
    if against := sum(row.contradiction for row in rows):
        sentences.append(f"In {counted(against, 'row')} no single threshold fits all checks.")
    table = Table(
        heading="Thresholds",
        heads=(*HEADS, *RULE_HEADS),
        numeric=(3, *range(5, 13), 14, 15),
        rows=tuple(map(_row, rows[:MOST_ROWS])),
        most=len(rows),
        note=INTERVAL,
    )
    titles = tuple(dict.fromkeys(filter(None, analysis.titles.values()))) if level == "names" else ()
    return sealed(
        TableReport(
            engine_version=__version__,
            level=level,
            kind="triggers",
            about=about,
            sentences=tuple(sentences),
            sessions=titles[:MOST_ROWS],
            tables=(table,),
            assumptions=("A window or setting that a file does not name is assumed as the rule of its agent does.",),
        )
    )


def _row(row: TriggerRow) -> tuple[Value, ...]:
    key, formula = row.key, row.formula
    counts = row.compactions
    unsaid = sum(counts.get(cause, 0) for cause in UNSAID)
    sums = [automatic(counts), unsaid, counts.get(Cause.MANUAL, 0), counts.get(Cause.SLIDING, 0)]
    bounds = [None if place is None else place[0] for place in (row.above, row.at_most)]
    rule = (None, "") if formula is None else (formula.threshold, formula.formula)
    named = (key.agent, key.version, key.model, key.window, key.counter)
    return (*named, len(row.sessions), *sums, *bounds, *rule, row.explained, row.fired)
