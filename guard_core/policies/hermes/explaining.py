"""A decision of Hermes as arithmetic."""

from __future__ import annotations

from guard_core.policies.hermes.settings import SMALL_WINDOW, HermesSettings
from guard_core.policies.hermes.triggers import PROVIDER_COUNT, TRIGGERS
from guard_core.sessions import Provenance
from guard_core.trace import HELD_REASONS, PROMPT_SOURCES, Term, Trace

_SOURCES = {"provider": Provenance.PROVIDER, "modelled": Provenance.MODELLED}


def explain(settings: HermesSettings, trace: Trace, step: int) -> tuple[Term, ...]:
    """Every number of a decision, in the order in which it is computed."""
    at = {item.name: int(trace.columns[item.name][step]) for item in trace.all_columns if not item.real}
    terms = []
    last = at["last_step"]
    if last >= 0:
        source = PROMPT_SOURCES[int(trace.columns["prompt_tokens_source"][last])]
        terms.append(
            Term("last prompt tokens", at["last_prompt"], source=_SOURCES.get(source, Provenance.ASSUMED), as_of=last)
        )
    text = "system and tools + characters of the messages as Python writes them / 4"
    terms.append(
        Term(
            "estimate of the request",
            at["request_estimate"],
            source=Provenance.RECOMPUTED,
            as_of=step,
            expression=text,
        )
    )
    decided, threshold = at["decision_tokens"], at["threshold"]
    by = "the last count" if at["counted_by"] == PROVIDER_COUNT else "the estimate"
    sign = ">=" if decided >= threshold else "<"
    return (
        *terms,
        Term("decision tokens", decided, source=Provenance.RECOMPUTED, as_of=step, expression=by),
        Term("context window", trace.window, as_of=step),
        Term(
            "threshold",
            threshold,
            source=Provenance.RECOMPUTED,
            as_of=step,
            expression=threshold_rule(settings, trace.window),
        ),
        Term(
            "verdict",
            float(at["fired"]),
            "",
            Provenance.RECOMPUTED,
            step,
            f"{decided:,} {sign} {threshold:,}: {_verdict(at)}",
        ),
    )


def threshold_rule(settings: HermesSettings, window: int) -> str:
    """The threshold as an expression."""
    share = max(settings.threshold_percent, settings.small_window_percent if window < SMALL_WINDOW else 0)
    room = f"({window:,} - {settings.reserved_output:,})" if 0 < settings.reserved_output < window else f"{window:,}"
    rule = f"{room} x {share:g}"
    if settings.threshold(window) == settings.threshold_cap:
        return f"cap {settings.threshold_cap:,}"
    if settings.threshold_floor:
        rule = f"max({rule}, {settings.threshold_floor:,})"
        room_tokens = window - settings.reserved_output if settings.reserved_output < window else window
        if not settings.is_seed and settings.threshold(window) < settings.threshold_floor:
            rule += f" is not below {room_tokens:,}: x 0.85"
    return rule


def _verdict(at: dict[str, int]) -> str:
    held = HELD_REASONS[at["held"]]
    if at["fired"]:
        compacts = f"it compacts, {TRIGGERS[at['trigger']]}" if at["trigger"] else "it compacts"
        return f"{compacts}, but {held}" if held else compacts
    if held:
        return f"it does not compact: {held}"
    if at["deferred"]:
        return "it does not compact: the estimate is over the threshold, but the last count was not"
    if at["ineffective"] >= 2 or at["fallbacks"] >= 2:
        return "it does not compact while two compactions in a row had no effect"
    return "it does not compact"
