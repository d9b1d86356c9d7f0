"""The estimator page: how far the engine and the estimators are from what the provider counted, in rows and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.attribution import Attribution
from guard_core.comparison import COUNTERS, GIVENS
from guard_core.ledger import Ints, Ledger
from guard_core.measurement import METHODS, Errors
from guard_core.ratios import KINDS, TEXT_KINDS, content
from guard_core.sessions import Provenance
from guard_core.sharing import ATTRIBUTION_SOURCES, TOTAL, USUAL
from guard_core.tokens.tokenizer import ENCODINGS
from guard_core.unrecorded import unrecorded
from inspector.pages.shared.bias import Bias
from inspector.pages.shared.numbers import counted, percent, signed, signed_percent, step_number, tokens
from inspector.replays.choice import Choice
from inspector.storage.estimates import Points, Result

TABLE_ROWS = 50
HEADS = ("calls", "bias", "MAPE", "p95", "worst call")
POINT_HEADS = ("step", "recorded", "heuristic", "ratio")
NO_USAGE = (
    "No call in this file has the provider's count of prompt tokens, so no estimate can be checked against them. "
    "What the tokenizers say of the texts is below."
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


def forecast_rows(found: Result, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The errors of predictions from the past only, by how far ahead."""
    rows = [_row(FORECASTS[name], value, path, choice, strong=name == "1") for name, value in found.forecast.items()]
    return [row for row in rows if row]


def interpolation_rows(found: Result, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The errors of predictions from both sides: all calls, weighed otherwise, by content, by the way of predicting."""
    rows = [_row("every call from all the others", found.interpolated, path, choice, strong=True)]
    rows += [_row(f"weighed by {name}", found.weighed.get(name), path, choice) for name in ENCODINGS]
    rows += [_row(f"after {name}", found.by_kind.get(name), path, choice) for name in KINDS]
    rows += [_row(name, found.by_method.get(name), path, choice) for name in METHODS]
    rows.append(_row("whole stretches between compactions", found.stretches, path, choice))
    return [row for row in rows if row]


def between(found: Result) -> str:
    """What share of the interpolated calls has a known count on both sides, in words."""
    return "" if found.between is None else f"In this session that is {percent(found.between, 1)} of them."


def estimator_groups(found: Result, path: str, choice: Choice) -> list[dict[str, Any]]:
    """The same calls by other estimators, grouped by what each is given beside the text."""
    own = {
        GIVENS[0]: _row("heuristic", found.heuristic, path, choice, note="what the policy counts of the request"),
        GIVENS[-1]: _row("calibrated", found.calibrated, path, choice, note="max(recorded, heuristic × factor)"),
    }
    groups = []
    for given in GIVENS:
        values = {name: found.estimators.get(name, {}).get(given) for name in COUNTERS}
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


def bias_sentence(found: Bias) -> str:
    """How the bias of the overview comes about, with its sums."""
    less = (
        f", less {tokens(found.not_in_file)} tokens that the file does not hold (modelled: system prompt, tools, what "
        "came before the first message)"
        if found.not_in_file
        else ""
    )
    return (
        f"Over {counted(found.calls, 'call')} the heuristic estimate of the requests adds up to "
        f"{tokens(found.estimated)} tokens. The provider counted {tokens(found.recorded)}{less}. "
        f"{tokens(found.estimated)} is {signed_percent(found.ratio)} against "
        f"{tokens(found.recorded - found.not_in_file)}."
    )


def facts(ledger: Ledger, found: Attribution) -> list[dict[str, str]]:
    """Overhead, prologue, what the file lacks after a compaction, and residual of the attribution, with sources."""
    recorded = ledger.steps["prompt_tokens"]
    reported = recorded > 0
    known = found.overhead_source == TOTAL or (found.measured and found.overhead_source != USUAL)
    source = MODELLED if known else ASSUMED
    holds = "system prompt, tools, framing: tokens"
    if found.overhead_source == TOTAL:
        holds += ", chosen so that the modelled requests average what the recorded total gives per call"
    if found.overhead_source == USUAL:
        holds += "; what is usual for this agent, as the first prompt holds more than any conversation begins with"
    missing = unrecorded(ledger, found.residual)
    made = [
        _fact("overhead of every request", tokens(found.overhead), source, holds),
        _fact(
            "prologue",
            tokens(found.prologue),
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
        rest = np.abs(found.residual[reported])
        share = percent(float(rest.sum()), float(recorded[reported].sum()), 2)
        worst = int(np.argmax(np.where(reported, np.abs(found.residual), -1)))
        note = f"of the recorded tokens of {counted(int(reported.sum()), 'call')}, recorded − attributed, sizes added"
        made.append(_fact("residual", share, RECOMPUTED, note))
        made.append(
            _fact(
                "largest residual",
                signed(int(found.residual[worst])),
                RECOMPUTED,
                f"tokens, at step {step_number(worst):,}",
            )
        )
    return made


def sources(found: Attribution) -> list[dict[str, str]]:
    """How many events, and how many attributed tokens, rest on each source."""
    rows = []
    for number, name in enumerate(ATTRIBUTION_SOURCES):
        chosen = found.source == number
        if chosen.any():
            size = int(found.tokens[chosen].sum())
            share = percent(size, int(found.tokens.sum()), 1)
            rows.append({"name": name, "events": f"{int(chosen.sum()):,}", "tokens": tokens(size), "share": share})
    return rows


def ratios(ledger: Ledger, found: Attribution) -> list[dict[str, str]]:
    """Tokens per byte of each kind of content, and per picture and message for those; what never occurs is assumed."""
    occurs: NDArray[np.bool_] = np.logical_or.reduce(content(ledger), axis=0)
    units = {"media": "per picture", "message": "per message"}
    return [
        {
            "name": kind,
            "value": f"{found.ratios[kind]:.4f}" if number < TEXT_KINDS else f"{found.ratios[kind]:,.2f}",
            "unit": units.get(kind, "per byte"),
            "bytes": f"{1 / found.ratios[kind]:.2f}" if found.ratios[kind] and kind not in units else "",
            "source": MODELLED if found.measured and occurs[number] else ASSUMED,
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
