"""Makes the report of a session: everything in it is computed from the session and a few choices, and never measured
by a clock, so that it can be made again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from guard_core.errors import SettingError
from guard_core.estimation.forecast import Forecast, forecast
from guard_core.events import ToolCallPart
from guard_core.findings import Facts, recorded_findings, recorded_verdict, replayed_findings, replayed_verdict
from guard_core.findings.claims import Finding, Verdict
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.words import assumptions, forecast_words
from guard_core.policies import policy_kind
from guard_core.recordings.formats import native
from guard_core.replay import replay
from guard_core.report import document as doc
from guard_core.report.levels import TEXT, at_level
from guard_core.report.sides import SideSource
from guard_core.rules.words import headline
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.summaries.sizes import get_summarizer
from guard_core.trace import Trace
from guard_core.version import __version__
from guard_core.windows.call_windows import WindowWarning, windows_words
from guard_core.windows.window_evidence import WindowJudgement, judge_session

MOST_TOOLS = 20  # that are named


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is made with. With `policy` it has a replay beside the recording, under `settings` and with
    summaries of the size `summary`. `window` in tokens replaces the session's own, `rule` has settings of the agent's
    own rule. `chosen` are the compactions of the last side, from 0, that are shown in full; None: the first ones.
    `level` is one of `guard_core.report.LEVELS`."""

    policy: str = ""
    settings: Mapping[str, Any] = {}
    summary: str = "recorded"
    window: int | None = None
    rule: Mapping[str, str] = {}
    chosen: tuple[int, ...] | None = None
    level: str = TEXT


def judged_window(session: Session, options: ReportOptions) -> WindowJudgement:
    """The window of a session, or the one that the options ask for."""
    window = None if options.window is None else Sourced(options.window, Provenance.USER, "chosen for this report")
    return judge_session(session, window)


def facts_of(session: Session, options: ReportOptions) -> Facts:
    """The facts of a session under the options."""
    return dataclasses.replace(Facts.of(session, judged_window(session, options)), settings=options.rule)


def build(
    session: Session, options: ReportOptions, errors: Forecast | None = None, facts: Facts | None = None
) -> doc.Report:
    """The report of a session whose texts are in memory. `errors` is its forecast and `facts` are those of the session
    under these options, where they were computed before.

    Raises GuardError for a setting that the policy does not have, and for a compaction that there is not.
    """
    facts = facts or facts_of(session, options)
    prices = Prices.of(session, facts.ledger)
    sides = _sides(facts, prices, options)
    measured = forecast(facts.ledger) if errors is None else errors
    windows = windows_words(
        facts.recording.call_windows, WindowWarning.REPLAY if options.policy else WindowWarning.RECORDING
    )
    report = doc.Report(
        engine_version=__version__,
        level=TEXT,
        asked=doc.ReportParameters(
            policy=options.policy,
            settings=dict(options.settings),
            summary=options.summary,
            window=options.window,
            rule=dict(options.rule),
            chosen=options.chosen,
        ),
        session=_session(facts),
        window=doc.ReportWindow(facts.window.value, facts.window.source, facts.window.status, facts.window.note),
        rule=_rule(facts),
        sides=sides,
        prices=tuple(rates.note for rates in dict.fromkeys(prices.rates) if rates),
        forecast=tuple(
            doc.ForecastError(ahead, error.calls, error.mape, error.p95)
            for ahead, error in measured.items()
            if error is not None
        ),
        assumptions=tuple(filter(None, (windows, *assumptions(facts, prices), forecast_words(measured)))),
    )
    return doc.sealed(at_level(report, options.level))


def sources_of(facts: Facts, prices: Prices, options: ReportOptions) -> list[SideSource]:
    """The sides under the options: the recording, where there is one, then the replay."""
    simulated = facts.ledger.usage_ratio is not None
    trace = _trace(facts, options)
    if trace is None and simulated:
        trace = facts.simulation
    sources = []
    if not simulated:
        findings = recorded_findings(facts)
        verdict = claim(recorded_verdict(facts, findings))
        sources.append(SideSource(facts, prices, None, None, _claims(findings), verdict))
    if trace is not None:
        sources.append(_replayed(facts, prices, trace))
    return sources


def _sides(facts: Facts, prices: Prices, options: ReportOptions) -> tuple[doc.Side, ...]:
    sources = sources_of(facts, prices, options)
    chosen = None if options.chosen is None else frozenset(options.chosen)
    if chosen and max(chosen) >= (count := sources[-1].compaction_count):
        raise SettingError(f"there is no compaction {max(chosen) + 1:,}: this side has {count:,}")
    last = len(sources) - 1
    return tuple(source.side(chosen if place == last else None) for place, source in enumerate(sources))


def _trace(facts: Facts, options: ReportOptions) -> Trace | None:
    """The replay that is asked for."""
    if not options.policy:
        return None
    kind = policy_kind(options.policy)
    policy = kind.make(**facts.made_with(kind, options.settings))
    summarizer = get_summarizer(options.summary, facts.ledger)
    return replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage, summarizer=summarizer)


def _replayed(facts: Facts, prices: Prices, trace: Trace) -> SideSource:
    findings = replayed_findings(facts, trace)
    verdict = claim(replayed_verdict(facts, trace, findings))
    kind = policy_kind(trace.policy)
    given = {name: value for name, value in trace.settings.items() if name in {item.name for item in kind.settings}}
    policy = kind.make(trace.settings.get("profile") or None, **given)
    return SideSource(facts, prices, trace, policy, _claims(findings), verdict)


def _claims(findings: tuple[Finding, ...]) -> tuple[doc.Claim, ...]:
    return tuple(map(claim, findings))


def claim(item: Finding | Verdict) -> doc.Claim:
    """A finding or verdict with all its fields, its numbers as JSON has them."""
    fields = {name: getattr(item, name) for name in item.__struct_fields__}
    return doc.Claim(**{**fields, "numbers": msgspec.to_builtins(item.numbers)})


def _session(facts: Facts) -> doc.SessionFacts:
    session = facts.session
    calls = Counter(part.name for event in session.events for part in event.parts if isinstance(part, ToolCallPart))
    return doc.SessionFacts(
        digest=native.digest(session),
        title=session.title,
        agent=session.agent,
        format=session.format,
        model=session.model,
        calls=facts.ledger.step_count,
        reported_calls=int(facts.requests.reported.sum()),
        messages=facts.ledger.event_count,
        tools=tuple(sorted(calls.items(), key=lambda item: (-item[1], item[0]))[:MOST_TOOLS]),
    )


def _rule(facts: Facts) -> doc.Rule:
    explanation = facts.explanation
    rule = explanation.rule
    return doc.Rule(
        agent="" if rule is None else rule.agent,
        version="" if rule is None else rule.version,
        sentence=headline(explanation),
        relation="" if rule is None else rule.relation,
        threshold=None if rule is None else rule.threshold,
        formula="" if rule is None else rule.formula,
        compared=explanation.compared,
        settings=()
        if rule is None
        else tuple(
            doc.ReportSetting(item.name, item.value, item.unit, item.source, item.note) for item in rule.settings
        ),
        automatic=explanation.auto,
        comparable=explanation.comparable,
        agrees=explanation.agrees,
    )
