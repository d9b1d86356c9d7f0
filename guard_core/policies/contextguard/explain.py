"""The decision of one step as arithmetic, in the order ContextGuard computes it."""

from __future__ import annotations

import math

from guard_core.policies.contextguard.settings import Settings
from guard_core.sessions import Provenance
from guard_core.tokens.calibration import DEFAULT, DEFAULT_WITH_REAL, RATIO
from guard_core.trace import HELD_REASONS, PROMPT_SOURCES, Term, Trace

_SOURCES = {
    "provider": Provenance.PROVIDER,
    "modelled": Provenance.MODELLED,
    "assumed": Provenance.ASSUMED,
    "none": Provenance.ASSUMED,
}


def explain_threshold(settings: Settings, trace: Trace, step: int) -> tuple[Term, ...]:
    """Heuristic, factor, calibrated estimate, maximum, threshold, verdict, and what the stale count would have said."""
    at = {name: column[step] for name, column in trace.columns.items()}
    return (
        *_heuristic(at, step),
        *_factor(settings, trace, at, step),
        *_decision(at, step),
        *_threshold(settings, trace, at, step),
    )


def _heuristic(at: dict[str, float], step: int) -> tuple[Term, ...]:
    now, last = int(at["heuristic_decided"]), int(at["last_heuristic_loaded"])
    terms = [Term("heuristic estimate", now, source=Provenance.RECOMPUTED, as_of=step, expression="UTF-8 bytes // 4")]
    if last > 0:
        growth = Term("growth since the last step", now - last, source=Provenance.RECOMPUTED, as_of=step)
        before = Term("heuristic of the last request", last, source=Provenance.RECOMPUTED, as_of=step - 1)
        difference = f"{now:,} - {last:,}"
        terms += [before, Term(growth.name, growth.value, growth.unit, growth.source, step, difference)]
    return tuple(terms)


def _factor(settings: Settings, trace: Trace, at: dict[str, float], step: int) -> tuple[Term, ...]:
    real, last, how = int(at["real_loaded"]), int(at["last_heuristic_loaded"]), int(at["correction_source"])
    terms = []
    if real > 0:
        terms.append(Term("last reported prompt tokens", real, source=_real_source(trace, at), as_of=_as_of(at)))
    if how == RATIO:
        raw = f"{real:,} / {last:,}"
        bounds = f"clamp({at['correction_raw']:.4f}, {settings.floor:g}, {settings.cap:g})"
        terms += [
            Term(
                "correction factor, raw", float(at["correction_raw"]), "factor", Provenance.RECOMPUTED, _as_of(at), raw
            ),
            Term("correction factor", float(at["correction"]), "factor", Provenance.RECOMPUTED, step, bounds),
        ]
    elif how in (DEFAULT, DEFAULT_WITH_REAL):
        why = "no provider count is known" if how == DEFAULT else "no heuristic belongs to the provider's count"
        profile = f"default of the profile {settings.profile}: {why}"
        terms.append(Term("correction factor", float(at["correction"]), "factor", Provenance.ASSUMED, step, profile))
    return tuple(terms)


def _decision(at: dict[str, float], step: int) -> tuple[Term, ...]:
    heuristic, factor, real = int(at["heuristic_decided"]), float(at["correction"]), int(at["real_loaded"])
    if math.isnan(factor):
        text = "the heuristic itself: this profile does not calibrate"
        return (Term("decision tokens", int(at["decision_tokens"]), "tokens", Provenance.RECOMPUTED, step, text),)
    calibrated, decided = int(at["calibrated"]), int(at["decision_tokens"])
    product = f"trunc({heuristic:,} x {factor:.6g})"
    larger = f"max({real:,}, {calibrated:,})" if real > 0 else f"{calibrated:,}"
    return (
        Term("calibrated estimate", calibrated, "tokens", Provenance.RECOMPUTED, step, product),
        Term("decision tokens", decided, "tokens", Provenance.RECOMPUTED, step, larger),
    )


def _threshold(settings: Settings, trace: Trace, at: dict[str, float], step: int) -> tuple[Term, ...]:
    limits = settings.limits(trace.window)
    decided, threshold, real = int(at["decision_tokens"]), int(at["threshold"]), int(at["real_loaded"])
    fires = decided >= threshold
    inequality = f"{decided:,} {'>=' if fires else '<'} {threshold:,}"
    stale = f"{real:,} {'>=' if real >= threshold else '<'} {threshold:,}"
    conclusion = "would have compacted" if real >= threshold else "would not have compacted"
    terms = [
        Term("context window", trace.window, "tokens", "", step),
        Term("buffer", limits.buffer, "tokens", Provenance.ASSUMED, step, settings.rule.words(trace.window)),
        Term("threshold", threshold, "tokens", Provenance.RECOMPUTED, step, f"{trace.window:,} - {limits.buffer:,}"),
        Term("verdict", float(at["fired"]), "", Provenance.RECOMPUTED, step, f"{inequality}: {_verdict(at, fires)}"),
    ]
    if real > 0:
        terms.append(
            Term("the stale count alone", real, "tokens", _real_source(trace, at), _as_of(at), f"{stale}: {conclusion}")
        )
    return tuple(terms)


def _verdict(at: dict[str, float], fires: bool) -> str:
    held = HELD_REASONS[int(at["held"])]
    if at["fired"]:
        return f"it compacts, but {held}" if held else "it compacts"
    if fires:
        return f"it does not compact: {held}" if held else "it would compact"
    return f"it does not compact: {int(at['threshold'] - at['decision_tokens']):,} tokens remain below the threshold"


def _real_source(trace: Trace, at: dict[str, float]) -> Provenance:
    place = _as_of(at)
    if place is None:
        return Provenance.STATE
    return _SOURCES[PROMPT_SOURCES[int(trace.columns["prompt_tokens_source"][place])]]


def _as_of(at: dict[str, float]) -> int | None:
    place = int(at["real_as_of"])
    return place if place >= 0 else None


def explain_sliding(settings: Settings, trace: Trace, step: int) -> tuple[Term, ...]:
    """Messages since the watermark against the limit of the sliding window."""
    at = {name: column[step] for name, column in trace.columns.items()}
    previous = int(trace.columns["watermark"][step - 1]) if step else 0
    built, limit = int(at["contents_built"]), settings.max_turns
    since = built - previous
    sign = ">" if since > limit else "<="
    verdict = f"{since:,} {sign} {limit:,}: {_sliding_verdict(at, since > limit)}"
    return (
        Term("messages in the log", built, "messages", Provenance.RECOMPUTED, step),
        Term("watermark", previous, "messages", Provenance.STATE if previous else "", step - 1 if step else None),
        Term(
            "messages since the watermark", since, "messages", Provenance.RECOMPUTED, step, f"{built:,} - {previous:,}"
        ),
        Term("limit", limit, "messages", Provenance.ASSUMED, step, "max_turns"),
        Term("verdict", float(at["fired"]), "", Provenance.RECOMPUTED, step, verdict),
    )


def _sliding_verdict(at: dict[str, float], over: bool) -> str:
    """Whether the sliding window compacts, and what kept it from that or from compacting as it should."""
    held = HELD_REASONS[int(at["held"])]
    if at["fired"]:
        return f"it compacts, but {held}" if held else "it compacts"
    return f"it does not compact: {held}" if over else "it does not compact: the limit is not exceeded"
