"""One decision of a policy as a flow of six stages, with the real numbers of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guard_core.policies.base import Policy
from guard_core.policies.settings import PolicyKind
from guard_core.sessions import Provenance
from guard_core.trace import Term, Trace
from inspector.pages.policies.examples import Example
from inspector.pages.policies.presenter import looks
from inspector.pages.shared.card import DECISION_TERMS, inequality, term_row
from inspector.pages.shared.numbers import DASH, counted, step_number, tokens

AGENT, POLICY, MODEL = "agent", "policy", "model"
LANES = ((AGENT, "Agent"), (POLICY, "Policy"), (MODEL, "Model"))


def shown_example(examples: Sequence[Example], wanted: str) -> Example | None:
    """The session in the drawing: the one asked for, else the first in which the policy compacts, else the first."""
    usable = [item for item in examples if item.compared.trace is not None and len(item.compared.trace)]
    named = next((item for item in usable if item.sample.name == wanted), None)
    compacting = next((item for item in usable if item.compared.trace and item.compared.trace.compactions), None)
    return named or compacting or (usable[0] if usable else None)


def about(shown: Example | None) -> str:
    """Which step the drawing shows."""
    if shown is None or shown.compared.trace is None:
        return ""
    what = "its first compaction there" if shown.compared.trace.compactions else "the largest request; no compaction"
    return f"the bundled session “{shown.sample.title}”, step {step_number(shown.step):,}: {what}"


def stages(kind: PolicyKind, profile: str, shown: Example | None) -> list[dict[str, Any]]:
    """The six stages; none without a session in which the policy can be replayed."""
    trace = shown.compared.trace if shown else None
    if shown is None or trace is None:
        return []
    policy = kind.make(**shown.facts.made_with(kind, {"profile": profile}))
    at = shown.step
    terms = policy.explain(trace, at)
    parts = (
        _log(trace, at),
        _look(policy),
        _count(trace, at, terms),
        _decide(trace, at, terms),
        _compact(trace, at),
        _call(trace, at),
    )
    return [{"number": number, **part} for number, part in enumerate(parts, 1)]


def _stage(lane: str, node: str, short: str, text: str, *rows: dict[str, Any], off: bool = False) -> dict[str, Any]:
    return {"lane": lane, "node": node, "title": node, "short": short, "text": text, "facts": list(rows), "off": off}


def _fact(name: str, value: int, how: str, source: str = Provenance.RECOMPUTED, unit: str = "tokens") -> dict[str, Any]:
    row = {"name": name, "value": tokens(value), "unit": unit, "expression": how, "sentence": ""}
    return {**row, "source": str(source), "as_of": None}


def _value(trace: Trace, name: str, at: int) -> int:
    return int(trace.columns[name][at])


def _log(trace: Trace, at: int) -> dict[str, Any]:
    events = _value(trace, "contents_built", at)
    return _stage(
        AGENT,
        "The log",
        counted(events, "message"),
        "The agent has all messages so far; the policy decides which of them the next request holds.",
        _fact("messages", events, "in the log when the request was built", unit="messages"),
        _fact("estimate of all of it", _value(trace, "heuristic_built", at), "by the policy's own estimator"),
    )


def _look(policy: Policy) -> dict[str, Any]:
    """The second stage: the moments of a turn at which the policy looks at its count."""
    if not policy.moments:
        return _stage(POLICY, "Check", DASH, "The policy never compacts.", off=True)
    moments = looks(policy)
    short = moments if len(policy.moments) == 1 else counted(len(policy.moments), "moment")
    return _stage(POLICY, "Check", short, f"The policy checks {moments} whether to compact.")


def _count(trace: Trace, at: int, terms: Sequence[Term]) -> dict[str, Any]:
    rows = [term_row(term, at) for term in terms if term.name not in DECISION_TERMS]
    decided = _value(trace, "decision_tokens", at)
    if not rows and decided < 0:
        return _stage(POLICY, "Count", DASH, "The policy compares no count of tokens.", off=True)
    text = (
        "How large is the request? The policy makes its own count, from what the provider reported and "
        "what it estimates."
    )
    return _stage(POLICY, "Count", tokens(decided), text, *rows)


def _decide(trace: Trace, at: int, terms: Sequence[Term]) -> dict[str, Any]:
    rows = [term_row(term, at) for term in terms if term.name in DECISION_TERMS]
    decided, threshold, fired = (_value(trace, name, at) for name in ("decision_tokens", "threshold", "fired"))
    if decided < 0 or threshold < 0:
        short = "compacts" if fired else "does not compact"
        return _stage(
            POLICY, "Decide", short, "The policy decides without a threshold in tokens.", *rows, off=not fired
        )
    short = inequality(decided, threshold, terms)
    return _stage(POLICY, "Decide", short, "The policy compares its count with its threshold.", *rows)


def _compact(trace: Trace, at: int) -> dict[str, Any]:
    record = next((item for item in trace.compactions if item.step == at), None)
    if record is None:
        return _stage(POLICY, "Compact", "not here", "The policy sends the request as it is.", off=True)
    last = next((one for one in reversed(record.passes) if one.summariser_contents), None)
    rows = [_fact("before", record.tokens_before, "by the policy's own estimator")]
    if last is not None:
        given = counted(last.summariser_contents, "message")
        size = _fact("summary", last.summary_bytes, "as long as recorded ones, or assumed", Provenance.ASSUMED, "bytes")
        rows += [_fact("given to the summariser", last.summariser_tokens, given), size]
    rows.append(_fact("after", record.tokens_after, "what the compaction left"))
    text = (
        "Older content is removed or rewritten; no model is asked."
        if last is None
        else "Older messages go to a summariser, and its summary takes their place."
    )
    return _stage(POLICY, "Compact", f"{record.tokens_before:,} → {record.tokens_after:,}", text, *rows)


def _call(trace: Trace, at: int) -> dict[str, Any]:
    prompt, sent = _value(trace, "modelled_prompt_tokens", at), _value(trace, "contents_sent", at)
    room = f"{tokens(prompt)} {'>' if prompt > trace.window else '≤'} {tokens(trace.window)}, the window"
    return _stage(
        MODEL,
        "Overflow" if prompt > trace.window else "Call the model",
        f"{tokens(prompt)} tokens",
        "The request goes out; the provider counts it with its tokenizer.",
        _fact("messages sent", sent, "what the policy decided on", unit="messages"),
        _fact("prompt tokens", prompt, room, Provenance.MODELLED),
    )
