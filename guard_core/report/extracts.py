"""One compaction, or the decision before one call, as a report of tables: a part of what a report of the session says,
from the same figures."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from guard_core.agent_names import agent_name
from guard_core.errors import SettingError
from guard_core.estimation.forecast import Forecast
from guard_core.findings import Facts
from guard_core.outcomes.bill import Prices
from guard_core.report import document as doc
from guard_core.report.building import ReportOptions, build, facts_of, sources_of
from guard_core.report.document import sealed
from guard_core.report.sides import SideSource
from guard_core.report.tables import ReportOrigin, ReportPart, Table, TableReport
from guard_core.report.words import decision_sentences, side_title, window_words
from guard_core.sessions import Session
from guard_core.trace import Term
from guard_core.version import __version__

COLUMNS = ("before", "grown", "removed", "inserted", "unexplained", "after")


def extract(
    session: Session,
    options: ReportOptions,
    part: ReportPart,
    errors: Forecast | None = None,
    facts: Facts | None = None,
) -> TableReport:
    """The part of a session's report under these options, of its last side: the replay, where there is one.

    Raises GuardError for a setting that the policy does not have, and for a compaction or step that there is not.
    """
    facts = facts or facts_of(session, options)
    is_compaction = part.kind == "compaction"
    whole = msgspec.structs.replace(options, chosen=(part.number,) if is_compaction else ())
    report = build(session, whole, errors, facts)
    side = report.sides[-1]
    if is_compaction:
        about, sentences, tables = _compaction(side, part.number)
    else:
        source = sources_of(facts, Prices.of(session, facts.ledger), options)[-1]
        about, sentences, tables = _decision(source, part.number, report)
    agent = agent_name(report.session.agent, report.session.format)
    made_by = ", ".join(filter(None, (agent, report.session.model)))
    return sealed(
        TableReport(
            engine_version=__version__,
            level=report.level,
            kind=part.kind,
            about=" · ".join(filter(None, (about, side_title(side), made_by))),
            sentences=tuple(filter(None, sentences)),
            sessions=(report.session.title,) if report.session.title else (),
            tables=tuple(item for item in tables if item.rows),
            assumptions=(
                window_words(report.window),
                *report.assumptions,
            ),
            made=ReportOrigin(report.session.digest, part, report.asked),
        )
    )


def _compaction(side: doc.Side, number: int) -> tuple[str, list[str], list[Table]]:
    """What it is about, what follows from it, and its tables."""
    item = next(each for each in side.compactions if each.index == number)
    before = f"Compaction {number + 1:,} of {side.outcome.compactions:,}"
    place = f", before step {item.step + 1:,}" if item.step >= 0 else ""
    before_it = f"{item.before:,} prompt tokens without it ({item.before_source or 'modelled'})"
    sizes = (
        f"{before_it if item.before else 'What it removed is not in the file'}, {item.after:,} in the request after it "
        f"({item.after_source or 'never sent'})."
    )
    sentences = [sizes, f"Trigger: {item.trigger}; known by: {item.evidence}."]
    if item.decision is not None:
        sentences += decision_sentences(item.decision)
    elif item.reason:
        sentences.append(item.reason.replace(">=", "≥"))
    if item.price is not None:
        sentences += item.price.sentences
    tables = [
        *_terms(item.decision),
        *_bridge(item),
        Table(
            heading="What was inserted",
            heads=("kind", "bytes", "text"),
            numeric=(1,),
            rows=tuple((each.kind, each.bytes, each.text or "not in this report") for each in item.inserted),
        ),
        _lost(side, item),
    ]
    return before + place, sentences, tables


def _lost(side: doc.Side, item: doc.ReportCompaction) -> Table:
    facts = [fact for fact in side.facts.listed if fact.lost_at >= 0 and fact.compaction == item.index]
    return Table(
        heading="Instructions that requests no longer hold from here on",
        heads=("kind", "text", "what became of it"),
        numeric=(),
        rows=tuple((fact.kind, fact.words, fact.outcome) for fact in facts),
        most=max(len(facts), item.instructions_lost),
    )


def _bridge(item: doc.ReportCompaction) -> Iterator[Table]:
    if item.bridge is None:
        return
    parts = [part for part in item.bridge.parts if any(getattr(part, name) for name in COLUMNS)]
    total = [sum(getattr(part, name) for part in item.bridge.parts) for name in COLUMNS]
    yield Table(
        heading="From before to after",
        heads=("part of the request", *COLUMNS),
        numeric=tuple(range(1, len(COLUMNS) + 1)),
        rows=(*((part.name, *(getattr(part, name) for name in COLUMNS)) for part in parts), ("total", *total)),
        note="Prompt tokens; every row and column adds up. "
        f"Before: {item.bridge.before_source or 'no request'}; after: {item.bridge.after_source}.",
    )


def _decision(source: SideSource, step: int, report: doc.Report) -> tuple[str, list[str], list[Table]]:
    """As `_compaction`."""
    count = report.session.calls
    if not 0 <= step < count:
        raise SettingError(f"there is no step {step + 1:,}: the session has {count:,}")
    decision = source.decision_at(step)
    tokens, is_modelled = int(source.sent.tokens[step]), bool(source.sent.case.modelled[step])
    request = Table(
        heading="The request",
        heads=("", "tokens", "source"),
        numeric=(1,),
        rows=(
            ("prompt tokens of this call", tokens, "modelled" if is_modelled else "recorded"),
            ("context window", report.window.value, report.window.source),
        ),
    )
    sentences = [*decision_sentences(decision), source.judge_at(step)]
    return f"Step {step + 1:,} of {count:,}", sentences, [*_terms(decision), request]


def _terms(decision: doc.ReportDecision | None) -> Iterator[Table]:
    if decision is None:
        return
    yield Table(
        heading="The check before the call",
        heads=("", "value", "source", "step", "by"),
        numeric=(1,),
        rows=tuple(
            (
                _with_unit(term),
                int(term.value) if float(term.value).is_integer() else term.value,
                term.source,
                None if term.as_of is None else term.as_of + 1,
                term.expression,
            )
            for term in decision.terms
        ),
    )


def _with_unit(term: Term) -> str:
    """A term's name with its unit, which some names end in already."""
    return f"{term.name} ({term.unit})" if term.unit and not term.name.endswith(term.unit) else term.name
