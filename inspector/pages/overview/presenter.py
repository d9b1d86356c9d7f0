"""The overview of a session: four figures, findings, the comparison with the replay, and the facts of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from guard_core.agent_names import agent_name
from guard_core.decimation import DENSE
from guard_core.estimation.cached_prefix import smallest_cached_prefix
from guard_core.estimation.forecast import Forecast
from guard_core.estimation.measurement import Errors
from guard_core.estimation.sharing import TOTAL
from guard_core.estimation.unrecorded import unrecorded
from guard_core.findings import NEAR_MISS_SHARE, Case, Facts, Finding
from guard_core.findings.claims import SEVERITIES
from guard_core.findings.peak import peak_of
from guard_core.findings.sizes import if_window_at, stated_window
from guard_core.findings.words import compactions_words, off_words, totals_words
from guard_core.rules import Explanation, Interval
from guard_core.rules.words import agreement_words, threshold_words
from guard_core.sessions import Provenance, Sourced
from guard_core.trace import Trace
from guard_core.triggers import is_counted
from guard_core.windows.call_windows import WindowWarning, windows_words
from guard_core.windows.models import main_model
from guard_core.windows.window_evidence import shown_source
from inspector.figures.timeline import Floats, Ints, Timeline, peaks
from inspector.pages.overview.figure import has_carpet, is_dense
from inspector.pages.shared.bias import bias
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.numbers import (
    ABOUT,
    DASH,
    counted,
    percent,
    points,
    signed,
    signed_percent,
    step_number,
    tokens,
)
from inspector.pages.shared.remedies import anchor
from inspector.replays.choice import Choice

SHOWN_FINDINGS = 30
# Findings that the facts page has more of, and the numbers of theirs that have the words.
LOSSES = ("request_lost", "part_lost", "rule_lost", "earlier_rule_lost", "todo_lost", "tail_lost")
WORDS = ("quote", "rule", "todo")
SHOWN_DECISIONS = 10  # steps at which one side compacts and the other does not
FIRST_FINDINGS = 8  # of them that are unfolded
MODELS_NAMED = 4
SMALLEST_SHARE = 0.02  # of a prompt: less is within the error of what its messages cost
BADGES = {"error": "badge-overflow", "warning": "badge-warn", "info": ""}


def kpis(facts: Facts, observed: Trace, evidence: str) -> list[dict[str, str]]:
    """Peak fill, tokens saved by compaction, the threshold of the own rule, compactions of a recording; the estimator's
    bias where that rule is ContextGuard, or neither known nor bounded by the recording."""
    third = None if facts.is_contextguards else _threshold(facts.explanation)
    return [_peak(facts), _saved(facts), third or _bias(facts, observed), _compactions(facts, evidence)]


def _threshold(explanation: Explanation) -> dict[str, str] | None:
    """The threshold of the agent's own rule, at the last call where it changed, and how its compactions agree, else
    what the recording proves of it."""
    rule, when = explanation.latest, " at the last call" if explanation.has_changed else ""
    is_contradicted = rule is not None and not rule.is_known and explanation.auto and not explanation.comparable
    refuting = explanation.latest_refuting
    if rule is not None and refuting is not None and rule.is_known:
        note = f"not the {rule.threshold:,} of {rule.formula}; {refuting.sentence}"
        kpi = _kpi(f"threshold of {rule.agent}{when}", _at_most(refuting), "inferred", note)
        return {**kpi, "page": "rule"}
    if rule is not None and rule.threshold is not None and not is_contradicted:
        note = f"{rule.formula}; {agreement_words(explanation)}" if explanation.auto else rule.formula
        return {**_kpi(f"threshold of {rule.agent}{when}", tokens(rule.threshold), "", note), "page": "rule"}
    bounded = explanation.latest_bound
    if bounded is not None:
        kpi = _kpi(f"threshold{when}", _at_most(bounded), "inferred", bounded.sentence)
        return {**kpi, "page": "rule"}
    if rule is None or not rule.reason:
        return None
    value = threshold_words(rule).removeprefix("threshold ")
    return {**_kpi(f"threshold of {rule.agent}{when}", value, "", rule.reason), "page": "rule"}


def _at_most(bounds: Interval) -> str:
    """The upper bound of a threshold; its unit where that is not tokens."""
    sign = "<" if bounds.relation == ">" else "≤"
    return f"{sign} {tokens(bounds.at_most or 0)} {bounds.other_unit}".rstrip()


def simulated_kpis(trace: Trace) -> list[dict[str, str]]:
    """Peak fill, compactions, summaries re-injected, overflows of a session that was never sent anywhere."""
    sent, source = trace.columns["modelled_prompt_tokens"], Provenance.MODELLED.value
    step, over = int(sent.argmax()) if len(sent) else 0, int(trace.columns["overflow"].sum())
    peak = int(sent.max(initial=0))
    injected = (trace.columns["contents_decided"] < trace.columns["contents_built"]) & (trace.columns["fired"] == 0)
    return [
        _kpi(
            "peak fill",
            percent(peak, trace.window, 1),
            source,
            f"{tokens(peak)} of {tokens(trace.window)} at step {step_number(step):,}",
        ),
        _kpi("compactions", f"{len(trace.compactions):,}", source, "summaries made by the policy"),
        _kpi("summary re-injected", f"{int(injected.sum()):,}", source, "steps that send an earlier summary"),
        _kpi("overflows", f"{over:,}", source, "requests larger than the window"),
    ]


def _peak(facts: Facts) -> dict[str, str]:
    if not facts.ledger.step_count:
        return _kpi("peak fill", DASH, "", "no model call")
    peak, window = peak_of(facts.recording), facts.window
    if facts.is_peak_unknown:
        return _kpi("peak fill", DASH, "", "only a sum of the prompt tokens is recorded")
    source = Provenance.PROVIDER.value if peak.source == "recorded" else Provenance.MODELLED.value
    where = f"at step {step_number(peak.step):,}"
    if peak.source == "recorded" and len(facts.in_characters[0]):
        return _kpi("largest count", tokens(peak.tokens), source, f"{where}; it seems to count characters, not tokens")
    if not facts.recording.windows[peak.step] and not facts.recording.rests_on_window(peak.step):
        note = f"tokens {where}; the window of that call's model is not known"
        return _kpi("peak", tokens(peak.tokens), source, note)
    if not facts.recording.windows[peak.step]:
        note = f"tokens {where}, above {stated_window(facts)} of {window.value:,}"
        return _kpi("peak", tokens(peak.tokens), source, note)
    size = facts.recording.window_at(peak.step)
    note = f"{tokens(peak.tokens)} of {tokens(size)} tokens {where}"
    is_own = facts.recording.rests_on_window(peak.step)
    note += if_window_at(facts.recording, peak.step) if is_own else ", the window of that call's model"
    return _kpi("peak fill", percent(peak.tokens, size, 1), source, note)


def _saved(facts: Facts) -> dict[str, str]:
    known = [item for item in facts.recording.fired if item.counted and not facts.removes_nothing(item.counted)]
    if not known:
        why = "no call came after a compaction" if facts.counts.total else "no compaction is recorded"
        if facts.recording.fired:
            why = "what was removed is not in the file"
        return _kpi("tokens saved by compaction", DASH, "", why)
    # What the pages of the compactions lead from: the request before and what was added, not the agent's own count.
    before = [facts.grown_to(item.step) for item in known]
    saved = sum(before) - sum(item.after for item in known)
    share = sum(item.after for item in known) / max(1, sum(before))
    note = f"by {counted(len(known), 'compaction')}, to {100 * share:.0f} % of the former size on average"
    if facts.not_estimated:  # both sizes lack it, so that their share would be too small
        note = f"by {counted(len(known), 'compaction')}; no size has {facts.not_estimated}, which the file lacks"
    return _kpi("tokens saved by compaction", tokens(saved), Provenance.MODELLED.value, note)


def _bias(facts: Facts, observed: Trace) -> dict[str, str]:
    measured = bias(facts, observed)
    if measured is None:
        return _kpi("estimator bias", DASH, "", "no call in this file has the provider's count")
    note = f"heuristic against provider, {counted(measured.calls, 'call')}"
    note += ", without what is not in the file" if measured.not_in_file else ""
    return {
        **_kpi("estimator bias", signed_percent(measured.ratio), Provenance.RECOMPUTED.value, note),
        "page": "estimator",
    }


def _compactions(facts: Facts, evidence: str) -> dict[str, str]:
    counts = facts.counts
    numbers = [f"{step_number(item.step):,}" for item in counts.compactions if item.step >= 0]
    steps = ", ".join(numbers[:4]) + (" …" if len(numbers) > 4 else "")
    where = f"at {'steps' if len(numbers) > 1 else 'step'} {steps}" if numbers else ""
    note = "; ".join(filter(None, (where, ", ".join(counts.split)))) or "none in the recording"
    return _kpi("compactions", f"{counts.total:,}", evidence if counts.total else "", note)


def _kpi(name: str, value: str, source: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "source": source, "note": note}


def finding_rows(
    recorded: Sequence[Finding], replayed: Sequence[Finding], paths: Mapping[str, str], choice: Choice
) -> dict[str, Any]:
    """Findings of both sides, the gravest first, each a link to its step and to what filled the context there, or to
    the facts that were lost, a lost request or rule at its own words; those of the replay say so. `paths`: the
    addresses of the pages of the session."""

    def address(page: str, side: str, **more: Any) -> str:
        return paths[page] + choice.query(**more, side=side if side == "replayed" else "")

    tagged = [(item, "recorded") for item in recorded] + [(item, "replayed") for item in replayed]
    tagged.sort(key=lambda pair: SEVERITIES.index(pair[0].severity))
    rows = [
        {
            "kind": kind_name(item.kind),
            "severity": item.severity,
            "badge": BADGES[item.severity],
            "sentence": item.sentence,
            "side": side,
            "step": f"{step_number(item.step):,}",
            "url": address("steps", side, at=step_number(item.step)),
            "more": "facts" if item.kind in LOSSES else "context",
            "more_url": address("facts", side, q=next(filter(None, map(item.numbers.get, WORDS)), ""))
            if item.kind in LOSSES
            else address("context", side, at=step_number(item.step)),
            "avoid": anchor(item) if side == "recorded" else "",
        }
        for item, side in tagged[:SHOWN_FINDINGS]
    ]
    shown, folded = rows[:FIRST_FINDINGS], rows[FIRST_FINDINGS:]
    return {"rows": shown, "folded": folded, "count": tokens(len(tagged)), "left": max(0, len(tagged) - SHOWN_FINDINGS)}


def comparison(data: Timeline, recorded: Case, replayed: Case, forecast: Forecast) -> dict[str, Any]:
    """Recorded and replayed side by side, each against its own window, and how far the modelled part can be trusted."""
    before, after = recorded.tokens.astype(np.float64), replayed.tokens.astype(np.float64)
    windows = recorded.window.value, data.window
    own = replayed.windows.astype(np.float64)
    near = len(data.near_misses), len(peaks(after, NEAR_MISS_SHARE * own, own))
    return {
        "rows": [
            *([_compare("context window, tokens", *windows)] if windows[0] != windows[1] else []),
            _compare("compactions", recorded.facts.counts.total, len(replayed.fired)),
            _compare("overflows", recorded.overflows, replayed.overflows, worse_if_more=True),
            _compare("near misses", *near, worse_if_more=True),
            _compare("total prompt tokens", _sum(before), _sum(after)),
            _compare("largest request, tokens", _largest(before), _largest(after)),
            _share("peak fill", recorded.filled, replayed.filled),
        ],
        "honesty": f"{honesty(data, forecast)}{_not_replayed(recorded)}{_uncounted(data)}",
        "windows": windows_words(replayed.call_windows, WindowWarning.REPLAY),
    }


def decisions(recorded: Case, replayed: Case, divergence: int | None, path: str, choice: Choice) -> dict[str, Any]:
    """Where the two sides compact at different steps, each with its numbers and the address of the step."""
    ours, theirs = ({item.step: item for item in case.fired} for case in (recorded, replayed))
    changed = sorted(ours.keys() ^ theirs.keys())
    rows = []
    for step in changed[:SHOWN_DECISIONS]:
        item, other = (ours[step], replayed) if step in ours else (theirs[step], recorded)
        is_unknown = item.counted is not None and recorded.facts.is_before_unknown(item.counted)
        rows.append(
            {
                "step": f"{step_number(step):,}",
                "url": path + choice.query(at=step_number(step), side="" if step in ours else "replayed"),
                "side": "recorded" if step in ours else "replayed",
                "change": f"{'not known' if is_unknown else tokens(item.before)} → {tokens(item.after)}",
                "other": tokens(int(other.tokens[step])),
            }
        )
    first = "" if divergence is None else path + choice.query(at=step_number(divergence), side="replayed")
    return {
        "rows": rows,
        "count": f"{len(changed):,}",
        "left": max(0, len(changed) - SHOWN_DECISIONS),
        "same": counted(len(ours.keys() & theirs.keys()), "compaction"),
        "first": {"step": "" if divergence is None else f"{step_number(divergence):,}", "url": first},
    }


def honesty(data: Timeline, forecast: Forecast) -> str:
    """From where on the replay is modelled, and how far off forecasts of this session's own calls are."""
    first = None if data.replayed is None else data.replayed.divergence
    if first is None:
        return "The replay sends exactly what was recorded: under these settings the policy never does anything else."
    text = (
        f"From step {step_number(first):,} on the replay is modelled: the same turns and replies, with other requests."
    )
    if not forecast:  # not measured yet
        return text
    if not any(forecast.values()):
        return f"{text} How far off it is cannot be said: too few prompts are recorded to forecast any."
    return (
        f"{text} Forecasts of this session's recorded prompts, made from the past only, are off on average by: "
        f"1 call ahead {_off(forecast.get('1'))}, 10 calls {_off(forecast.get('10'))}, "
        f"50 calls {_off(forecast.get('50'))}, "
        f"first call after a compaction {_off(forecast.get('compaction'))}."
    )


def _not_replayed(recorded: Case) -> str:
    """What the rows count of a recording and a replay cannot have, because no call answers or follows it."""
    at_the_end, refused = recorded.facts.counts.at_the_end, len(recorded.facts.session.refused)
    words = ""
    if at_the_end:
        replayed = (
            "is not replayed: no call follows it" if at_the_end == 1 else "are not replayed: no call follows them"
        )
        words += f" {counted(at_the_end, 'compaction')} at the end of the recording {replayed}."
    if refused:
        replayed = (
            "was never answered, and is not replayed" if refused == 1 else "were never answered, and are not replayed"
        )
        words += f" {counted(refused, 'request')} that the provider refused {replayed}."
    return words


def _uncounted(data: Timeline) -> str:
    """How many calls of a recording that counts others are estimated; where none is counted, a replay says so."""
    missing = int(np.isnan(data.recorded).sum())
    if missing in (0, len(data)):
        return ""
    return (
        f" The figures of {missing:,} of the {len(data):,} recorded calls are estimates: the file has no count of them."
    )


def _off(errors: Errors | None) -> str:
    return "not measured" if errors is None else off_words(errors)


def _sum(values: Floats) -> int:
    return int(np.nansum(np.maximum(np.nan_to_num(values), 0)))


def _largest(values: Floats) -> int:
    return int(np.nanmax(np.nan_to_num(values))) if len(values) else 0


def _compare(name: str, recorded: int, replayed: int, *, worse_if_more: bool = False) -> dict[str, Any]:
    difference = signed(replayed - recorded)
    worse = worse_if_more and replayed > recorded
    return {
        "name": name,
        "recorded": tokens(recorded),
        "replayed": tokens(replayed),
        "difference": difference,
        "worse": worse,
    }


def _share(name: str, recorded: Floats, replayed: Floats) -> dict[str, Any]:
    """The largest share of its window that a request of either side fills; where nothing can be said of any, there is
    none, and no difference."""
    before, after = (float(filled.max(initial=0)) for filled in (recorded, replayed))
    return {
        "name": name,
        "recorded": percent(before, 1, 1) if before else DASH,
        "replayed": percent(after, 1, 1) if after else DASH,
        "difference": points(before, after) if before and after else DASH,
        "worse": False,
    }


def caption(data: Timeline, facts: Facts, name: str) -> str:
    """The finding of the chart in words, and what a view of all of it leaves out."""
    words = f"{_peak_sentence(facts)} Replayed under {name}{_replay_words(data)}"
    steps = np.arange(len(data))
    if not is_dense(data, steps):
        return words
    lines = "lines are peaks, and above them compactions" if has_carpet(data, steps) else "above the lines they"
    return f"{words} More than {DENSE} compactions: {lines} are counted; zoom in."


def _replay_words(data: Timeline) -> str:
    if data.replayed is None or data.replayed.divergence is None:
        return ", every request is the same."
    steps = data.replayed.compactions
    where = f", first at step {step_number(int(steps[0])):,}" if len(steps) else ""
    words = counted(len(steps), "compaction")
    return f": {words}{where}; modelled from step {step_number(data.replayed.divergence):,}."


def _peak_sentence(facts: Facts) -> str:
    if not facts.ledger.step_count:
        return "No model call."
    peak = peak_of(facts.recording)
    whose = "the window" if facts.recording.rests_on_window(peak.step) else "its model's window"
    fill = f"{percent(peak.tokens, facts.recording.window_at(peak.step), 1)} of {whose}"
    size = fill if facts.recording.windows[peak.step] else f"{tokens(peak.tokens)} tokens"
    where = f"{size} at step {step_number(peak.step):,}"
    if facts.is_peak_unknown:
        return "Only a sum of the prompt tokens is recorded: the lines are estimates from the text alone."
    if facts.is_uncounted:
        return f"No call in this file has the provider's count: the lines are estimates, with a peak of {where}."
    how = "Recorded prompt tokens peak" if peak.source == "recorded" else "Prompt tokens peak, modelled,"
    return f"{how} at {where}."


class SessionCounts(Protocol):
    """What the facts take from a session's row."""

    turns: int
    reported_calls: int
    window: int
    window_source: str
    window_override: int | None


def facts(known: Facts, window: Sourced, format_name: str, row: SessionCounts, replays: int) -> list[dict[str, str]]:
    """What is known about the session; `window` is the recording's own, `replays` the replay's, in tokens."""
    session, ledger = known.session, known.ledger
    calls = ledger.step_count
    own = f"set for this session, instead of {row.window:,} ({row.window_source})" if row.window_override else ""
    other = f"the replay uses {replays:,}" if replays != window.value else ""
    evidence = Counter(item.evidence.value for item in session.compactions if is_counted(item))
    models = Counter({name: answer.calls for name, answer in known.answers.items() if name})
    model = main_model(session, known.answers)
    if len(models) > 1:
        model = ", ".join(f"{name} ({counted(count, 'call')})" for name, count in models.most_common(MODELS_NAMED))
    rows = [
        {"name": "format", "value": format_name},
        {"name": "agent", "value": agent_name(session.agent, session.format)},
        {"name": "model", "value": model},
        {
            "name": "context window",
            "value": f"{window.value:,} tokens",
            "source": shown_source(window).value,
            "note": "; ".join(filter(None, (own or window.note, other))),
            "edit": "window",
        },
        {"name": "windows", "value": windows_words(known.recording.call_windows, WindowWarning.RECORDING)},
        {
            "name": "model calls",
            "value": f"{calls:,}, {percent(row.reported_calls, calls)} with the provider's count" if calls else "none",
        },
        {"name": "user turns", "value": f"{row.turns:,}"},
        {"name": "messages", "value": f"{ledger.event_count:,}"},
        {
            "name": "compactions",
            "value": ", ".join(f"{count:,} {name}" for name, count in evidence.items()) or "none recorded",
        },
        {
            "name": "side calls",
            "value": f"{len(session.side_calls):,} outside the main context" if session.side_calls else "",
        },
    ]
    return [row for row in rows if row["value"]]


def missing(facts: Facts) -> list[str]:
    """What this file does not hold, how many tokens it is and where that figure is from."""
    return [*_missing_from_every_request(facts), *_missing_around_compactions(facts), *_missing_counts(facts)]


def _missing_from_every_request(facts: Facts) -> list[str]:
    session, attribution = facts.session, facts.attribution
    absent = {"the system prompt": session.system, "the tool definitions": session.tools}
    names = " and ".join(name for name, value in absent.items() if value is None)
    measure = "recorded total less the estimated messages" if attribution.overhead_source == TOTAL else COUNTS_LESS
    fixed = _about(facts.fixed_not_in_file, "of every request", measure, at_most=True)
    cached = smallest_cached_prefix(facts.ledger) if len(names) > 0 else 0
    if fixed and 0 < cached < facts.fixed_not_in_file:
        fixed = fixed.removesuffix(")") + f"; {tokens(cached)} were read from the cache right after a compaction)"
    gaps = [f"{names}{fixed}"] if names else []
    if attribution.prologue:
        gaps.append(f"how the conversation began{_about(attribution.prologue, 'before the first message')}")
    return gaps


def _missing_around_compactions(facts: Facts) -> list[str]:
    fired = [(item.index, item.counted) for item in facts.recording.fired if item.counted]
    sealed = [index for index, counted in fired if facts.is_sealed(counted)]
    known = unrecorded(facts.ledger, facts.attribution.residual, facts.attribution.ratios)
    gaps = [f"the messages that {compactions_words(facts.unseen)} removed"] if facts.unseen else []
    gaps += [f"the summary of {compactions_words(sealed)}: encrypted, or left out"] if sealed else []
    if (known.share or 0) >= SMALLEST_SHARE:
        gaps.append(
            f"what was attached again after a compaction: about {tokens(known.tokens)} tokens of the first request "
            f"after it ({known.source})"
        )
    if facts.counts.total and not facts.session.guard_states:
        gaps.append("what the summariser was sent")
    return gaps


def _missing_counts(facts: Facts) -> list[str]:
    reported, calls = int(facts.requests.reported.sum()), facts.ledger.step_count
    if not reported:
        if not facts.session.prompt_tokens_total:
            return ["the provider's token counts"]
        return [f"the provider's token counts per call: only totals are recorded, {totals_words(facts.session)}"]
    return [f"the provider's count of {counted(calls - reported, 'call')}"] if reported < calls else []


COUNTS_LESS = "recorded counts less the messages"


def _about(count: int, where: str, measure: str = COUNTS_LESS, *, at_most: bool = False) -> str:
    """Tokens that the recorded counts hold and the file's messages do not; nothing where no count says so.

    `at_most`: something else that is in every request may be among them, such as files attached again.
    """
    about = "at most about" if at_most else "about"
    return f": {about} {tokens(count)} tokens {where} ({measure})" if count > 0 else ""


TABLE_ROWS = 40  # 440 nodes of the page
POLICY_HEADS = ("step", "recorded", "heuristic", "calibrated", "threshold", "factor", "replayed", "marks")
OWN_HEADS = ("step", "recorded", "count compared", "threshold", "margin", "replayed", "marks")


def table_heads(data: Timeline) -> tuple[str, ...]:
    """The columns of the chart's table: a policy's arithmetic, or that of the agent's own rule."""
    return POLICY_HEADS if data.shows_policy or data.own is None else OWN_HEADS


def table(data: Timeline, first: int, path: str, choice: Choice) -> tuple[list[dict[str, Any]], int]:
    """The chart as a table, a window of its steps, and where the next window begins."""
    stop = min(len(data), first + TABLE_ROWS)
    marks = _marks(data)
    replayed = None if data.replayed is None else data.replayed.prompt_tokens
    rows = [
        {
            "step": f"{step_number(step):,}",
            "url": path + choice.query(at=step_number(step)),
            "cells": [
                ("" if not np.isnan(data.recorded[step]) else ABOUT) + tokens(data.requests[step]),
                *_decided(data, step),
                DASH if replayed is None else tokens(replayed[step]),
            ],
            "marks": ", ".join(words for words, steps in marks if step in steps),
        }
        for step in range(first, stop)
    ]
    return rows, stop


def _decided(data: Timeline, step: int) -> list[str]:
    """What was compared at a step, by a policy's arithmetic or by the agent's own rule."""
    if data.shows_policy or data.own is None:
        factor = DASH if np.isnan(data.factor[step]) else f"{data.factor[step]:.3f}"
        return [tokens(data.heuristic[step]), tokens(data.calibrated[step]), tokens(data.threshold[step]), factor]
    count, limit = data.own.counts[step], data.own.threshold[step]
    margin = DASH if np.isnan(limit - count) else f"{limit - count:,.0f}".replace("-", "−")
    return [tokens(count), tokens(limit), margin]


def _marks(data: Timeline) -> list[tuple[str, set[int]]]:
    def numbers(steps: Ints) -> set[int]:
        return {int(step) for step in steps}

    named = [
        ("compaction", numbers(data.compactions)),
        ("overflow", numbers(data.overflows)),
        ("near miss", numbers(data.near_misses)),
    ]
    if data.replayed is not None:
        named.append(("replayed compaction", numbers(data.replayed.compactions)))
        named.append(("replayed overflow", numbers(data.replayed.overflows)))
    return named
