"""The estimator page: how far the engine and the estimators are from what the provider counted, in rows and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.attribution import Attribution
from guard_core.estimation.comparison import COUNTERS, GIVENS
from guard_core.estimation.measurement import METHODS, Errors
from guard_core.estimation.ratios import KINDS, TEXT_KINDS, content
from guard_core.estimation.sharing import ATTRIBUTION_SOURCES, TOTAL, USUAL
from guard_core.estimation.unrecorded import unrecorded
from guard_core.ledger import Ints, Ledger
from guard_core.sessions import Provenance
from guard_core.tokens.tokenizer import ENCODINGS
from inspector.pages.shared.bias import Bias
from inspector.pages.shared.numbers import counted, percent, signed, signed_percent, step_number, tokens
from inspector.replays.choice import Choice
from inspector.storage.estimates import EstimationResult, Points

TABLE_ROWS = 50
HEADS = ("calls", "bias", "MAPE", "p95", "worst call")
RATIO_EDGES = (0.0, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, float("inf"))  # of the histogram
POINT_HEADS = ("step", "recorded", "heuristic", "ratio")
NO_USAGE = (
    "No call in this file has the provider's count of prompt tokens, so no estimate can be checked against them. "
    "The tokenizers' counts of the texts are below."
)
SIMULATED = (
    "This session was simulated: its prompt tokens are the heuristic estimate times a chosen ratio, and no provider "
    "ever counted them. An error measured against them would say nothing."
)
FORECASTS = {
    "1": "1 call ahead",
    "10": "10 calls ahead",
    "50": "50 calls ahead",
    "compaction": "first call after a compaction",
}
MODELLED, RECOMPUTED, ASSUMED = Provenance.MODELLED.value, Provenance.RECOMPUTED.value, Provenance.ASSUMED.value
ESTIMATORS = {
    "chars/4": "characters // 4 of every part",
    "bytes/4": "UTF-8 bytes // 4 of every part",
    "o200k_base": "tokenizer count",
    "cl100k_base": "tokenizer count",
}


def headline(result: EstimationResult) -> str:
    """What the page says first: how far off the next call is predicted, and how far the heuristic alone is."""
    ahead, heuristic = result.forecast.get("1"), result.heuristic
    parts = []
    if ahead is not None:
        parts.append(
            f"The next call is predicted with a mean error of {percent(ahead.mape, 1, 2)} "
            f"({counted(ahead.calls, 'call')}, each from the past only)"
        )
    if heuristic is not None:
        parts.append(
            f"the heuristic estimate of the request alone is off by {percent(heuristic.mape, 1, 2)} on average "
            f"({counted(heuristic.calls, 'call')})"
        )
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def histogram(points: Points) -> dict[str, Any]:
    """The calls by recorded tokens for one estimated: a bar for each range, and the middle half in a sentence."""
    ratios = np.array(points.recorded, dtype=np.float64) / np.array(points.heuristic, dtype=np.float64)
    counts = np.histogram(ratios, RATIO_EDGES)[0]
    used = np.flatnonzero(counts)
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return {
        "sentence": f"Recorded for one estimated token: {middle:.2f} at the median of {counted(len(ratios), 'call')}, "
        f"half of them between {low:.2f} and {high:.2f}.",
        "bars": [
            {
                "name": _ratio_range(place),
                "count": f"{counts[place]:,}",
                "share": percent(int(counts[place]), len(ratios)),
                "width": f"{100 * counts[place] / counts.max():.1f}",
            }
            for place in range(int(used[0]), int(used[-1]) + 1)
        ],
    }


def _ratio_range(place: int) -> str:
    """The range of a bar; the first one has no lower edge and the last one no upper."""
    low, high = RATIO_EDGES[place : place + 2]
    if low == 0:
        return f"below {high:g}"
    return f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} and more"


def forecast_rows(result: EstimationResult, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The errors of predictions from the past only, by how far ahead."""
    rows = [_row(FORECASTS[name], value, path, choice, strong=name == "1") for name, value in result.forecast.items()]
    return [row for row in rows if row]


def interpolation_rows(result: EstimationResult, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The errors of predictions from both sides: all calls, weighed otherwise, by content, by the way of predicting."""
    rows = [_row("every call from all the others", result.interpolated, path, choice, strong=True)]
    rows += [_row(f"weighted by {name}", result.weighed.get(name), path, choice) for name in ENCODINGS]
    rows += [_row(f"after {name}", result.by_kind.get(name), path, choice) for name in KINDS]
    rows += [_row(name, result.by_method.get(name), path, choice) for name in METHODS]
    rows.append(_row("whole stretches between compactions", result.stretches, path, choice))
    return [row for row in rows if row]


def between(result: EstimationResult) -> str:
    """What share of the interpolated calls has a known count on both sides, in words."""
    return "" if result.between is None else f"In this session that is {percent(result.between, 1)} of them."


def estimator_groups(result: EstimationResult, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The same calls by other estimators, grouped by what each is given beside the text."""
    own = {
        GIVENS[0]: _row("heuristic", result.heuristic, path, choice, note="what the policy counts of the request"),
        GIVENS[-1]: _row("calibrated", result.calibrated, path, choice, note="max(recorded, heuristic × factor)"),
    }
    groups = []
    for given in GIVENS:
        values = {name: result.estimators.get(name, {}).get(given) for name in COUNTERS}
        rows = [_row(name, value, path, choice, note=ESTIMATORS[name]) for name, value in values.items()]
        groups.append({"name": given, "rows": [row for row in (*rows, own.get(given)) if row]})
    return [group for group in groups if group["rows"]]


def _row(
    name: str, value: Errors | None, path: str, choice: Choice, *, note: str = "", strong: bool = False
) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        "name": name,
        "note": note,
        "strong": strong,
        "cells": [
            f"{value.calls:,}",
            signed_percent(value.bias, 2),
            percent(value.mape, 1, 2),
            percent(value.p95, 1, 2),
        ],
        "worst": signed_percent(value.worst, 2),
        "step": f"{step_number(value.worst_step):,}",
        "url": path + choice.query(at=step_number(value.worst_step)),
    }


def bias_sentence(bias: Bias) -> str:
    """How the bias of the overview comes about, with its sums."""
    less = (
        f", minus {tokens(bias.not_in_file)} tokens that the file does not hold (modelled: system prompt, tools, what "
        "came before the first message)"
        if bias.not_in_file
        else ""
    )
    return (
        f"Over {counted(bias.calls, 'call')} the heuristic estimate of the requests adds up to "
        f"{tokens(bias.estimated)} tokens. The provider counted {tokens(bias.recorded)}{less}. "
        f"The estimate differs by {signed_percent(bias.ratio)} from {tokens(bias.recorded - bias.not_in_file)} tokens."
    )


def facts(ledger: Ledger, attribution: Attribution) -> list[dict[str, str]]:
    """Overhead, prologue, what the file lacks after a compaction, and residual of the attribution, with sources."""
    recorded = ledger.steps["prompt_tokens"]
    reported = recorded > 0
    known = attribution.overhead_source == TOTAL or (attribution.measured and attribution.overhead_source != USUAL)
    source = MODELLED if known else ASSUMED
    description = "system prompt, tools, framing: tokens"
    if attribution.overhead_source == TOTAL:
        description += ", chosen so that the modelled requests average what the recorded total gives per call"
    if attribution.overhead_source == USUAL:
        description += "; what is usual for this agent, because no new conversation begins with so large a prompt"
    missing = unrecorded(ledger, attribution.residual, attribution.ratios)
    rows = [
        _fact("overhead of every request", tokens(attribution.overhead), source, description),
        _fact(
            "prologue",
            tokens(attribution.prologue),
            MODELLED,
            "tokens sent before the first event of this file, if it has any",
        ),
        _fact(
            "not in this file",
            tokens(missing.tokens),
            MODELLED if missing.measured else ASSUMED,
            f"tokens of the first prompt after a compaction beyond its messages: {missing.source}",
        ),
    ]
    if reported.any():
        rest = np.abs(attribution.residual[reported])
        share = percent(float(rest.sum()), float(recorded[reported].sum()), 2)
        worst = int(np.argmax(np.where(reported, np.abs(attribution.residual), -1)))
        note = f"of the recorded tokens of {counted(int(reported.sum()), 'call')}, recorded − attributed, sizes added"
        rows.append(_fact("residual", share, RECOMPUTED, note))
        rows.append(
            _fact(
                "largest residual",
                signed(int(attribution.residual[worst])),
                RECOMPUTED,
                f"tokens, at step {step_number(worst):,}",
            )
        )
    return rows


def sources(attribution: Attribution) -> list[dict[str, str]]:
    """How many events, and how many attributed tokens, rest on each source."""
    rows = []
    for number, name in enumerate(ATTRIBUTION_SOURCES):
        chosen = attribution.source == number
        if chosen.any():
            size = int(attribution.tokens[chosen].sum())
            share = percent(size, int(attribution.tokens.sum()), 1)
            rows.append({"name": name, "events": f"{int(chosen.sum()):,}", "tokens": tokens(size), "share": share})
    return rows


def ratios(ledger: Ledger, attribution: Attribution) -> list[dict[str, str]]:
    """Tokens per byte of each kind of content, and per picture and message for those; what never occurs is assumed."""
    occurs: NDArray[np.bool_] = np.logical_or.reduce(content(ledger), axis=0)
    units = {"media": "per picture", "message": "per message"}
    return [
        {
            "name": kind,
            "value": f"{attribution.ratios[kind]:.4f}" if number < TEXT_KINDS else f"{attribution.ratios[kind]:,.2f}",
            "unit": units.get(kind, "per byte"),
            "bytes": f"{1 / attribution.ratios[kind]:.2f}" if attribution.ratios[kind] and kind not in units else "",
            "source": MODELLED if attribution.measured and occurs[number] else ASSUMED,
        }
        for number, kind in enumerate(KINDS)
    ]


def counts(columns: dict[str, Ints] | None, ledger: Ledger) -> list[dict[str, str]]:
    """The whole log by each count: all events, none left out by a compaction."""
    heuristic = sum(int(ledger.events[name].sum()) for name in ("text_tokens", "inline_tokens", "metadata_tokens"))
    rows = [("heuristic estimate", heuristic, RECOMPUTED)]
    if columns is not None:
        names = {"o200k_base": "o200k", "cl100k_base": "cl100k", "chars/4": "chars4", "bytes/4": "bytes4"}
        rows += [(name, int(columns[column].sum()), RECOMPUTED) for name, column in names.items()]
    return [{"name": name, "value": tokens(value), "source": source} for name, value, source in rows]


def points_table(points: Points, first: int, path: str, choice: Choice) -> list[dict[str, Any]]:
    """Rows of the scatter figure's table, from a point on."""
    rows = zip(points.steps, points.recorded, points.heuristic, strict=True)
    return [
        {
            "step": f"{step_number(step):,}",
            "url": path + choice.query(at=step_number(step)),
            "cells": [tokens(real), tokens(guess), f"{real / guess:.3f}"],
        }
        for step, real, guess in list(rows)[first : first + TABLE_ROWS]
    ]


def _fact(name: str, value: str, source: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "source": source, "note": note}
