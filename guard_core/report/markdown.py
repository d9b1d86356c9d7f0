"""A report as Markdown, for an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from guard_core.report.document import Report, Side
from guard_core.report.markup import visible
from guard_core.report.words import (
    COMPACTION_HEADS,
    compaction_row,
    figures,
    forecast_row,
    hidden_words,
    main_side,
    provenance,
    side_title,
    title_of,
)

# Whatever could begin markup, a formula, a link, a mention of a person or of an issue, or at the beginning a list.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~@$&]|(?<=:)/|(?<=www)\.|^[-+]|(?<=^\d)[.)]", re.IGNORECASE)
MOST_ROWS = 50  # compactions that are listed


def escaped(text: str) -> str:
    """Text that no reader of Markdown takes for markup, on one line."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", " ".join(visible(text).split()))


def markdown(report: Report) -> str:
    """The report in short: verdict, figures, findings, compactions, what it rests on."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(title_of(report))}"
    yield ""
    yield f"**{escaped(main_side(report).verdict.sentence)}**"
    for remark in report.remarks:
        where = f"Step {remark.step + 1:,}: " if remark.step >= 0 else ""
        yield from ("", f"> {where}{escaped(remark.text)}")
    for side in report.sides:
        yield from _side(report, side)
    yield from ("", "## The agent's own rule", "", escaped(report.rule.sentence))
    yield from ("", "## What this rests on", "")
    yield from (f"- {escaped(sentence)}" for sentence in report.assumptions)
    if report.forecast:
        yield ""
        yield from table_lines(
            ("forecast", "predictions", "mean error", "95 % within"), map(forecast_row, report.forecast)
        )
    yield ""
    yield " ".join(escaped(words) for words in (hidden_words(report), *provenance(report)) if words)


def _side(report: Report, side: Side) -> Iterator[str]:
    yield from ("", f"## {escaped(side_title(side))}", "")
    yield from table_lines(("figure", "value", "source"), figures(report, side))
    if side.findings:
        yield ""
        yield from (f"- {item.severity}: {escaped(item.sentence)}" for item in side.findings)
    yield from ("", escaped(side.facts.sentence))
    if side.compactions:
        yield ""
        yield from table_lines(("no.", *COMPACTION_HEADS[1:]), map(compaction_row, side.compactions[:MOST_ROWS]))
        if (more := side.outcome.compactions - MOST_ROWS) > 0:
            yield from ("", f"{more:,} more compactions are not listed.")


def table_lines(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table of texts; the heads are Markdown already."""
    heads = tuple(heads)
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    """Text in a row of a table, which is one line of Markdown: its lines are kept by marks."""
    return "<br>".join(map(escaped, text.splitlines() or [""]))
