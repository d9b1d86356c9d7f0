"""A badge for a README: the verdict of a report in few words, as SVG."""

from __future__ import annotations

from guard_core.findings.claims import ERROR, WARNING
from guard_core.report.document import Report
from guard_core.report.markup import tag
from guard_core.report.words import main_side

COLOURS = {ERROR: "#b3261e", WARNING: "#8a5a00"}  # white text on them has a contrast of at least 4.5
CALM = "#00694e"
LETTER = 6.6  # pixels of a character at 11 px: ours, wide enough for the usual sans-serif fonts
HEIGHT = 20


def badge(report: Report) -> str:
    """`compaction | 4 compactions, 0 overflows`, in the colour of the verdict."""
    side = main_side(report)
    outcome = side.outcome
    right = ", ".join(
        f"{count:,} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((outcome.compactions, "compaction"), (outcome.overflows, "overflow"))
    )
    return two_parts("compaction", right, COLOURS.get(side.verdict.severity, CALM))


def two_parts(left: str, right: str, colour: str = CALM) -> str:
    """Two texts beside each other, the right one on a colour."""
    first, second = (round(LETTER * len(text)) + 12 for text in (left, right))
    return tag(
        "svg",
        tag("title", f"{left}: {right}"),
        tag("rect", width=first, height=HEIGHT, fill="#4a4f57"),
        tag("rect", x=first, width=second, height=HEIGHT, fill=colour),
        tag("text", left, x=first / 2, y=14),
        tag("text", right, x=first + second / 2, y=14),
        xmlns="http://www.w3.org/2000/svg",
        width=first + second,
        height=HEIGHT,
        role="img",
        fill="#ffffff",
        font_family="Verdana,DejaVu Sans,sans-serif",
        font_size=11,
        text_anchor="middle",
    ).html
