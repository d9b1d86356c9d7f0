"""A report of tables as HTML, Markdown, comma-separated values and badge."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from guard_core.report.badge import two_parts
from guard_core.report.html import table, whole_page
from guard_core.report.markdown import escaped, table_lines
from guard_core.report.markup import Content, Markup, joined, tag
from guard_core.report.sheet import cell
from guard_core.report.svg import Scale, axis, path_of
from guard_core.report.tables import Table, TableReport, provenance_of_tables, shown, title_of_tables
from guard_core.report.words import redaction_words

KINDS = {
    "comparison": "Comparison",
    "compactions": "Compactions",
    "sweep": "Sweep",
    "triggers": "Thresholds",
    "compaction": "Compaction",
    "decision": "Decision",
}
LINE_CLASSES = ("a", "b", "c", "d")  # as many sides as a comparison has


def tables_page(report: TableReport) -> str:
    """The report as a page that needs nothing else."""
    return whole_page(f"{title_of_tables(report)} – compaction report", _body(report))


def _body(report: TableReport) -> Iterator[Content]:
    yield tag("h1", title_of_tables(report))
    kind = KINDS[report.kind]
    yield tag("p", f"{kind} · {report.about}" if report.title else kind, class_="muted")
    yield [
        tag("p", sentence, class_="verdict info" if not at else None) for at, sentence in enumerate(report.sentences)
    ]
    yield [tag("blockquote", item.text) for item in report.remarks]
    if report.lines:
        pairs = zip(LINE_CLASSES, report.lines, strict=False)
        key = [tag("span", tag("i", class_=f"side-{kind}"), line.label) for kind, line in pairs]
        yield tag("figure", tag("div", lines_chart(report), class_="wide"), tag("figcaption", key, class_="key"))
    for item in report.tables:
        yield tag("h2", item.heading)
        yield _table(item)
    yield tag("h2", "What this rests on")
    yield tag("ul", [tag("li", sentence) for sentence in (*report.assumptions, *_sessions(report))])
    yield tag("p", redaction_words(report.hidden, report.level))
    yield tag("p", " ".join(provenance_of_tables(report)), class_="muted")


def _sessions(report: TableReport) -> list[str]:
    return [f"Sessions: {', '.join(report.sessions)}."] if report.sessions else []


def _table(item: Table) -> Content:
    marked = frozenset(item.marked)
    rows = [
        [(f"▸ {shown(value)}" if at in marked and not place else shown(value)) for place, value in enumerate(row)]
        for at, row in enumerate(item.rows)
    ]
    numeric = [item.heads[place] for place in item.numeric]
    return [table(item.heads, rows, numeric), tag("p", _note(item), class_="muted") if _note(item) else None]


def _note(item: Table) -> str:
    more = (item.most or 0) - len(item.rows)
    return " ".join(filter(None, (item.note, f"{more:,} more rows are not listed." if more > 0 else "")))


def lines_chart(report: TableReport) -> Markup:
    """The lines on one axis."""
    scale = Scale(
        max((max(line.steps, default=0) for line in report.lines), default=0) + 1,
        max((max(line.tokens, default=0) for line in report.lines), default=0),
    )
    parts = []
    for kind, line in zip(LINE_CLASSES, report.lines, strict=False):
        parts.append(joined(tag("path", class_=f"mark side-{kind}", d=scale.upright(step)) for step in line.marks))
        drawn = path_of(scale, line.steps, line.tokens, [True] * len(line.steps))
        parts.append(tag("path", class_=f"line side-{kind}", d=drawn))
    label = f"Prompt tokens over steps of {len(report.lines)} sides. {' '.join(report.sentences)}"
    return tag("svg", tag("title", label), *axis(scale), *parts, viewBox=scale.box, role="img", class_="chart")


def tables_markdown(report: TableReport) -> str:
    """The report for an issue or a pull request."""
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: TableReport) -> Iterator[str]:
    yield f"# {escaped(title_of_tables(report))}"
    if report.title:
        yield from ("", escaped(report.about))
    for at, sentence in enumerate(report.sentences):
        yield from ("", escaped(sentence) if at else f"**{escaped(sentence)}**")
    for item in report.remarks:
        yield from ("", f"> {escaped(item.text)}")
    for listed in report.tables:
        yield from ("", f"## {escaped(listed.heading)}", "")
        yield from table_lines([escaped(head) for head in listed.heads], [map(shown, row) for row in listed.rows])
        if _note(listed):
            yield from ("", escaped(_note(listed)))
    yield from ("", "## What this rests on", "")
    yield from (f"- {escaped(sentence)}" for sentence in (*report.assumptions, *_sessions(report)))
    words = (redaction_words(report.hidden, report.level), *provenance_of_tables(report))
    yield from ("", " ".join(escaped(part) for part in words if part))


def tables_sheet(report: TableReport) -> str:
    """All tables, one below the other, each with its heading, which no spreadsheet computes."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    for at, item in enumerate(report.tables):
        if at:
            writer.writerow([])
        writer.writerow([cell(item.heading)])
        writer.writerow(map(cell, item.heads))
        writer.writerows(map(cell, row) for row in item.rows)
    return file.getvalue()


def tables_badge(report: TableReport) -> str:
    """`compaction | sweep` in the colour of nothing bad: a table has no verdict."""
    return two_parts("compaction", KINDS[report.kind].lower())
