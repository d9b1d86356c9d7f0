"""A compaction report: what a session's pages conclude, as one document that can be kept, rendered, sent and verified.

`document` has the schema, `building` makes a report of a session, `levels` takes session text out of it; `html`,
`markdown`, `sheet` and `badge` render it, and `verifying` recomputes it.
`tables` has the schema of reports of comparisons, sweeps and thresholds, which `table_pages` renders;
`extracts` makes one of a compaction or a decision.
"""

from guard_core.report.badge import badge
from guard_core.report.building import ReportOptions, build
from guard_core.report.document import Report, decode, encode, sealed
from guard_core.report.extracts import extract
from guard_core.report.html import page
from guard_core.report.levels import LEVELS, at_level
from guard_core.report.markdown import markdown
from guard_core.report.sheet import sheet
from guard_core.report.table_pages import tables_badge, tables_markdown, tables_page, tables_sheet
from guard_core.report.tables import ChartLine, ReportPart, Table, TableReport
from guard_core.report.verifying import WrongFigure, verify, verify_document

__all__ = [
    "LEVELS",
    "ChartLine",
    "Report",
    "ReportOptions",
    "ReportPart",
    "Table",
    "TableReport",
    "WrongFigure",
    "at_level",
    "badge",
    "build",
    "decode",
    "encode",
    "extract",
    "markdown",
    "page",
    "sealed",
    "sheet",
    "tables_badge",
    "tables_markdown",
    "tables_page",
    "tables_sheet",
    "verify",
    "verify_document",
]
