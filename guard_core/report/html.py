"""A report as one HTML file: no script, no request, nothing of a session but escaped text.

Its policy allows the one sheet that is in it, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from guard_core.agent_names import agent_name
from guard_core.plural import counted
from guard_core.report.document import Report, ReportCompaction, Side
from guard_core.report.markup import Content, Markup, joined, tag
from guard_core.report.svg import anchor, chart
from guard_core.report.words import (
    COMPACTION_HEADS,
    compaction_row,
    decision_sentences,
    figures,
    forecast_row,
    grouped,
    hidden_words,
    main_side,
    provenance,
    side_title,
    title_of,
    window_words,
)

PAPER_ROWS = 60  # as in report.css
NUMERIC_HEADS = frozenset({"", "step", "before", "after", "remaining", "count", "threshold", "lost"})


@cache
def sheet_of_styles() -> str:
    """The styles of a report."""
    return Path(__file__).with_name("report.css").read_text("utf-8")


@cache
def security_policy() -> str:
    """What a browser may do with a report: show it in its own styles."""
    digest = base64.b64encode(hashlib.sha256(sheet_of_styles().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def page(report: Report) -> str:
    """The report as a page that needs nothing else."""
    return whole_page(f"{title_of(report)} – compaction report", _body(report))


def whole_page(title: str, body: Iterable[Content]) -> str:
    """A page that needs nothing else, in the styles of a report."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=security_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="robots", content="noindex, nofollow"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(sheet_of_styles())),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("main", body)), lang="en").html + "\n"


def _body(report: Report) -> Iterator[Content]:
    session, main = report.session, main_side(report)
    agent = agent_name(session.agent, session.format)
    made_by = " · ".join(filter(None, (agent, session.model, counted(session.calls, "call"))))
    yield tag("h1", title_of(report))
    yield tag("p", f"Compaction report · {made_by}", class_="muted")
    yield tag("p", main.verdict.sentence, class_=f"verdict {main.verdict.severity}")
    yield [tag("blockquote", item.text) for item in report.remarks if item.step < 0]
    yield tag("p", window_words(report.window))
    for side in report.sides:
        yield from _side(report, side)
    yield from _rule(report)
    yield from _basis(report)


def _side(report: Report, side: Side) -> Iterator[Content]:
    yield tag("h2", side_title(side))
    if side is not main_side(report):
        yield tag("p", side.verdict.sentence, class_=f"verdict {side.verdict.severity}")
        settings = ", ".join(f"{name} {value}" for name, value in side.settings.items())
        yield tag("p", f"Modelled: the same turns under other rules. Settings: {settings}.", class_="muted")
    if (picture := chart(report, side)) is not None:
        yield tag("figure", tag("div", picture, class_="wide"), _key(side))
        yield tag("p", "Move the pointer over the chart to see the count of each request.", class_="muted pointer")
    yield table(("", "", "source"), figures(report, side), numeric=())
    if side.findings:
        yield tag("h3", "Findings")
        severity = [tag("span", item.severity, class_=f"severity {item.severity}") for item in side.findings]
        items = zip(severity, side.findings, strict=True)
        yield tag("ul", [tag("li", mark, ": ", item.sentence) for mark, item in items], class_="findings")
    if side.compactions:
        yield from _compactions(report, side)
    yield from _facts(side)


def _key(side: Side) -> Markup:
    """What the lines of a chart mean, of those that it has."""
    series = side.series
    names = (
        ("recorded", "prompt tokens, recorded", not all(series.modelled)),
        ("modelled", "prompt tokens, modelled", any(series.modelled)),
        ("window", "context window", True),
        ("threshold", "threshold", max(series.threshold) >= 0),
        ("mark", "compaction", bool(side.compactions)),
    )
    marks = [tag("span", tag("i", class_=kind), words) for kind, words, is_drawn in names if is_drawn]
    return tag("figcaption", marks, class_="key")


def _compactions(report: Report, side: Side) -> Iterator[Content]:
    yield tag("h3", "Compactions")
    more = side.outcome.compactions - len(side.compactions)
    rows = [compaction_row(item) for item in side.compactions]
    yield tag("div", table(COMPACTION_HEADS, rows, NUMERIC_HEADS), class_="rows")
    rest = f" {more:,} more are not listed." if more > 0 else ""
    yield tag(
        "p",
        "Prompt tokens of the request that was replaced (the last one, and what was added since, which is modelled) "
        "and of the first one after it; count and threshold: what the rule compares, in its own unit; lost: "
        f"instructions that the requests after it no longer hold.{rest}",
        class_="muted",
    )
    for item in side.compactions:
        if item.bridge is not None:
            yield from _compaction(report, side, item)


def _compaction(report: Report, side: Side, item: ReportCompaction) -> Iterator[Content]:
    place = f"before step {item.step + 1:,}" if item.step >= 0 else "followed by no call"
    yield tag("h3", f"Compaction {item.index + 1:,}, {place}", id=anchor(side, item))
    yield [tag("blockquote", remark.text) for remark in report.remarks if remark.step == item.step >= 0]
    if item.decision is not None:
        yield tag("p", " ".join(decision_sentences(item.decision)))
        rows = [
            (
                term.name,
                f"{grouped(term.value)} {term.unit}",
                term.source,
                "" if term.as_of is None else f"step {term.as_of + 1:,}",
                term.expression,
            )
            for term in item.decision.terms
        ]
        if rows:
            yield table(("", "value", "source", "as of", ""), rows, ("value",))
    elif item.reason:
        yield tag("p", item.reason.replace(">=", "≥"))
    if item.bridge is not None:
        columns = ("before", "grown", "removed", "inserted", "unexplained", "after")
        parts = [
            (part.name, *(grouped(getattr(part, name)) for name in columns))
            for part in item.bridge.parts
            if any(getattr(part, name) for name in columns)
        ]
        total = ("total", *(grouped(sum(getattr(part, name) for part in item.bridge.parts)) for name in columns))
        yield table(("part of the request", *columns), parts, columns, foot=total)
        sources = f"Before: {item.bridge.before_source or 'no request'}; after: {item.bridge.after_source}."
        yield tag("p", f"Prompt tokens; every row and column adds up. {sources}", class_="muted")
    if item.price is not None:
        yield tag("p", " ".join(item.price.sentences))
    for message in item.inserted:
        words = "" if message.text else ", its text is not in this report"
        yield tag("p", f"{message.kind}, {message.bytes:,} bytes{words}", class_="muted")
        if message.text:
            yield tag("pre", message.text, class_="session-text", tabindex=0)


def _cut_on_paper(report: Report) -> str:
    """What the rules for print in `report.css` leave out; "" where that is nothing."""
    compactions = [item for side in report.sides for item in side.compactions]
    texts = any(message.text for item in compactions for message in item.inserted)
    rows = any(len(side.compactions) > PAPER_ROWS for side in report.sides)
    cuts = ("summaries end after 62 mm" if texts else "", f"lists end after {PAPER_ROWS} compactions" if rows else "")
    return " and ".join(filter(None, cuts))


def _facts(side: Side) -> Iterator[Content]:
    yield tag("h3", "Instructions")
    yield tag("p", side.facts.sentence)
    lost = [fact for fact in side.facts.listed if fact.lost_at >= 0]
    if lost:
        rows = [(fact.kind, fact.words, fact.outcome) for fact in lost]
        yield table(("kind", "text", "what became of it"), rows, ())


def _rule(report: Report) -> Iterator[Content]:
    rule = report.rule
    yield tag("h2", "The agent's own rule")
    yield tag("p", rule.sentence)
    if rule.settings:
        rows = [
            (item.name, "not known" if item.value is None else f"{item.value:,g} {item.unit}", item.source, item.note)
            for item in rule.settings
        ]
        yield table(("setting", "value", "source", "note"), rows, ("value",))
    if rule.automatic:
        words = f"{rule.agrees:,} of {rule.comparable:,} comparable automatic compactions agree with it"
        yield tag("p", f"{words}; {rule.automatic:,} in all. Compared: {rule.compared or 'not known'}.")


def _basis(report: Report) -> Iterator[Content]:
    yield tag("h2", "What this rests on")
    shown = {item.step for side in report.sides for item in side.compactions if item.bridge is not None}
    others = [item for item in report.remarks if item.step >= 0 and item.step not in shown]
    yield [tag("blockquote", f"Step {item.step + 1:,}: {item.text}") for item in others]
    yield tag("ul", [tag("li", sentence) for sentence in report.assumptions])
    if report.forecast:
        yield table(("forecast", "predictions", "mean error", "95 % within"), map(forecast_row, report.forecast), ())
    content = {"numbers": "numbers only", "names": "numbers and names", "text": "with session text"}[report.level]
    yield tag("p", f"Content: {content}. {hidden_words(report)}")
    if cut := _cut_on_paper(report):
        yield tag("p", f"On paper {cut}. The report itself has all of it.", class_="on-paper muted")
    yield tag("p", " ".join(filter(None, provenance(report))), class_="muted")


def table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], numeric: Iterable[str], foot: Iterable[str] = ()
) -> Markup:
    """A table that scrolls by itself where it is too wide; columns under the heads in `numeric` go to the right, and a
    text of several lines keeps them."""
    heads, numbers = tuple(heads), frozenset(numeric)
    kinds = ["n" if head in numbers else None for head in heads]

    def cells(row: Iterable[str]) -> list[Markup]:
        first, *others = row
        rest = [
            tag("td", cell, class_="session-text" if "\n" in cell else kind)
            for cell, kind in zip(others, kinds[1:], strict=True)
        ]
        return [tag("th", first, scope="row", class_=kinds[0]), *rest]

    head = tag("tr", [tag("th", name, scope="col", class_=kind) for name, kind in zip(heads, kinds, strict=True)])
    parts = [tag("thead", head) if any(heads) else None, tag("tbody", joined(tag("tr", cells(row)) for row in rows))]
    return tag(
        "div", tag("table", parts, tag("tfoot", tag("tr", cells(foot))) if foot else None), class_="wide", tabindex=0
    )
