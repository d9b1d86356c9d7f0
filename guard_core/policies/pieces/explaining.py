"""A decision on a count as arithmetic, for the decision card."""

from __future__ import annotations

from collections.abc import Mapping

from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.sessions import Provenance
from guard_core.trace import HELD_REASONS, Term, Trace

PROVIDER_COUNT = 1
_NOT = {">=": "<", ">": "<="}
_SOURCES = (Provenance.ASSUMED, Provenance.PROVIDER, Provenance.MODELLED, Provenance.ASSUMED)  # by PROMPT_SOURCES


def explain(
    trace: Trace, step: int, counter: UsageCounter, uncounted: TokenEstimate | None, relation: str, rule: str
) -> tuple[Term, ...]:
    """Every number of a decision, in the order in which it is computed. `rule` is the threshold as an expression."""
    at = {item.name: int(trace.columns[item.name][step]) for item in trace.all_columns if not item.real}
    threshold = at["threshold"]
    terms = [*_counted(trace, step, counter, uncounted, at), Term("context window", trace.window, as_of=step)]
    if threshold >= 0:
        terms.append(Term("threshold", threshold, source=Provenance.RECOMPUTED, as_of=step, expression=rule))
    verdict = _verdict(trace, step, relation, at)
    return (*terms, Term("verdict", float(at["fired"]), "", Provenance.RECOMPUTED, step, verdict))


def _counted(
    trace: Trace, step: int, counter: UsageCounter, uncounted: TokenEstimate | None, at: Mapping[str, int]
) -> list[Term]:
    """The number that is compared, and what it is made of."""
    decided = at["decision_tokens"]
    if decided < 0:
        return []
    if at["counted_by"] != PROVIDER_COUNT:
        words = uncounted.words if uncounted else ""
        text = f"no provider's count yet, or none since a compaction: {words} of the request"
        return [Term("decision tokens", decided, source=Provenance.ASSUMED, as_of=step, expression=text)]
    last = at["last_step"]
    source = _SOURCES[int(trace.columns["prompt_tokens_source"][last])]
    terms = [Term("last prompt tokens", at["last_prompt"], source=source, as_of=last)]
    parts = [at["last_prompt"]]
    if counter.output:
        terms.append(Term("output tokens of that call", at["last_output"], source=Provenance.PROVIDER, as_of=last))
        parts.append(at["last_output"])
    if counter.pending_words:
        words = counter.pending_words
        terms.append(Term("added since", at["pending"], source=Provenance.RECOMPUTED, as_of=step, expression=words))
        parts.append(at["pending"])
    text = " + ".join(f"{part:,}" for part in parts)
    return [*terms, Term("decision tokens", decided, source=Provenance.RECOMPUTED, as_of=step, expression=text)]


def _verdict(trace: Trace, step: int, relation: str, at: Mapping[str, int]) -> str:
    """The comparison in words."""
    decided, threshold = at["decision_tokens"], at["threshold"]
    over = 0 <= threshold <= decided and (relation == ">=" or decided != threshold)
    if threshold < 0:
        compared = "there is no threshold"
    elif decided < 0:
        compared = "no count yet, or none since a compaction"
    else:
        compared = f"{decided:,} {relation if over else _NOT[relation]} {threshold:,}"
    looked = at.get("looks") != 0
    return f"{compared}: {_done(trace, step, at, fires=over and looked)}"


def _done(trace: Trace, step: int, at: Mapping[str, int], *, fires: bool) -> str:
    held = HELD_REASONS[at["held"]]
    if at["fired"]:
        others = [record.reason for record in trace.compactions if record.step == step and not fires]
        compacts = ": ".join(["it compacts", *others])
        return f"{compacts}, but {held}" if held else compacts
    if held:
        return f"it does not compact: {held}"
    return "it does not check here" if at.get("looks") == 0 else "it does not compact"
