"""The compactions of a report as comma-separated values, which no spreadsheet computes."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import Any

from guard_core.report.document import Report

FORMULA_SIGNS = "=+-@\t\r\n"  # a spreadsheet computes what begins so; the full-width forms, too
COLUMNS = (
    "side",
    "policy",
    "compaction",
    "step",
    "trigger",
    "evidence",
    "before",
    "before_source",
    "after",
    "after_source",
    "count",
    "threshold",
    "agreement",
    "reason",
    "instructions_lost",
)


def sheet(report: Report) -> str:
    """One line for each listed compaction. Compactions and steps count from 1, as on pages."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for side in report.sides:
        for item in side.compactions:
            own = {
                "side": side.name,
                "policy": side.policy,
                "compaction": item.index + 1,
                "step": "" if item.step < 0 else item.step + 1,
            }
            writer.writerow([cell(own[name] if name in own else getattr(item, name)) for name in COLUMNS])
    return file.getvalue()


def cell(value: Any) -> Any:
    """A value that a spreadsheet shows and does not compute."""
    if not isinstance(value, str):
        return "" if value is None else value
    begin = unicodedata.normalize("NFKC", value.lstrip(" \u00a0")[:1])
    return f"'{value}" if begin and begin in FORMULA_SIGNS else value
