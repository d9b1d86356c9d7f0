"""One step of the simulator for a newcomer: nine stages, each with its real numbers and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guard_core.ledger import Ledger
from guard_core.sessions import Provenance
from guard_core.simulator.flow import Flow, Simulation
from guard_core.trace import CompactionRecord, Term, Trace
from inspector.pages.shared.card import DECISION_TERMS, inequality, term_row
from inspector.pages.shared.flow import fact, stage
from inspector.pages.shared.numbers import counted, percent, step_number, tokens

AGENT, GUARD, MODEL = "agent", "guard", "model"
LANES = ((AGENT, "Agent"), (GUARD, "Guard"), (MODEL, "Model"))
NODES = (
    "Fresh request",
    "Re-inject summary",
    "Count",
    "Decide",
    "Compact",
    "Call the model",
    "Store the counts",
    "Tools or answer",
    "Next step",
)


@dataclass(frozen=True)
class SimulatedStep:
    """A step of a simulation under a policy, with what is needed to explain it."""

    simulation: Simulation
    flow: Flow
    ledger: Ledger
    trace: Trace
    terms: tuple[Term, ...]
    at: int  # the step

    def value(self, name: str, step: int | None = None) -> int:
        """One entry of the trace."""
        return int(self.trace.column(name)[self.at if step is None else step])

    @property
    def events(self) -> int:
        """Events in the log when the request was built."""
        return int(self.ledger.steps["at"][self.at])

    @property
    def record(self) -> CompactionRecord | None:
        return next((item for item in self.trace.compactions if item.step == self.at), None)

    @property
    def watermark(self) -> int:
        """Events that the stored summary replaced before this step."""
        return self.value("watermark", self.at - 1) if self.at else 0

    @property
    def last(self) -> bool:
        return self.at + 1 >= len(self.trace)

    @property
    def reported(self) -> bool:
        return self.at >= (self.flow.session.usage_reported_from or 0)

    @property
    def prompt(self) -> int:
        return self.value("modelled_prompt_tokens")


def stages(step: SimulatedStep) -> list[dict[str, Any]]:
    """The nine stages of one model call, in order."""
    parts = (_built, _injected, _counted, _decided, _compacted, _called, _written, _tools, _next)
    return [{"number": number, "node": NODES[number - 1], **part(step)} for number, part in enumerate(parts, 1)]


def _built(step: SimulatedStep) -> dict[str, Any]:
    text = (
        "The agent makes a new request for every model call. It copies all events of the session's log into it, from "
        "the first one on. The log only ever grows; changes made to earlier requests are not in it."
    )
    events = counted(step.events, "message")
    fixed = step.ledger.system_tokens + step.ledger.tools_tokens
    return stage(
        AGENT,
        "A fresh request",
        events,
        text,
        fact("events in the log", step.events, "all of them, oldest first", unit="messages"),
        fact("system prompt and tools", fixed, "UTF-8 bytes // 4"),
        fact("request as built", step.value("heuristic_built"), "the same estimate over all of it"),
    )


def _injected(step: SimulatedStep) -> dict[str, Any]:
    decided, built = step.value("contents_decided"), step.value("contents_built")
    if decided == built or not step.watermark:
        text = "If an earlier step made a summary, it would now replace the events that it covers. There is none."
        return stage(GUARD, "No summary to re-inject", "none yet", text, off=True)
    text = (
        f"An earlier step compacted. What it left replaces the first {step.watermark:,} events; that number is the "
        "watermark. Without it the whole log would be back at every step."
    )
    before = step.at - 1
    return stage(
        GUARD,
        "The compacted history is put back",
        f"{built:,} → {decided:,} messages",
        text,
        fact(
            "watermark", step.watermark, f"stored at step {step_number(before):,} or before", Provenance.STATE, "events"
        ),
        fact("summary", step.value("summary_bytes", before), "stored with it", Provenance.STATE, "bytes"),
        fact("messages now", decided, "what the compaction left, and the events since", unit="messages"),
        fact("request now", step.value("heuristic_decided"), "UTF-8 bytes // 4"),
    )


def _counted(step: SimulatedStep) -> dict[str, Any]:
    text = (
        "How large is this request for the provider? That is not known before it is sent. So the policy makes its own "
        "count, from what it remembers and what it estimates."
    )
    facts = [term_row(term, step.at) for term in step.terms if term.name not in DECISION_TERMS]
    decided = step.value("decision_tokens")
    return stage(GUARD, "Count", tokens(decided) if decided >= 0 else "messages", text, *facts)


def _decided(step: SimulatedStep) -> dict[str, Any]:
    text = "The policy compares its count with its threshold, which lies below the context window."
    facts = [_term(term, step.at) for term in step.terms if term.name in DECISION_TERMS]
    decided, threshold = step.value("decision_tokens"), step.value("threshold")
    if not step.terms:
        return stage(GUARD, "No decision", "never compacts", "This policy never compacts.", off=True)
    if decided < 0 or threshold < 0:
        return stage(GUARD, "Decide", "compacts" if step.value("fired") else "does not compact", text, *facts)
    return stage(GUARD, "Decide", inequality(decided, threshold, step.terms), text, *facts)


def _term(term: Term, at: int) -> dict[str, Any]:
    """A term of the policy; the window's source is the scenario, which the policy does not know."""
    row = term_row(term, at)
    if term.name == "context window":
        return {**row, "expression": "set by the scenario", "source": str(Provenance.ASSUMED)}
    return row


def _compacted(step: SimulatedStep) -> dict[str, Any]:
    record = step.record
    if record is None:
        text = "Only where the count reaches the threshold: a summariser would write a summary. Not at this step."
        return stage(GUARD, "No compaction", "not here", text, off=True)
    text = (
        "The old messages go to a summariser, and its summary takes their place. What the policy keeps is stored with "
        "the watermark: the log itself is left as it is."
    )
    last = record.passes[-1] if record.passes else None
    facts = [
        fact("before", record.tokens_before, "UTF-8 bytes // 4 of the request"),
        *(
            [
                fact("given to the summariser", last.summariser_tokens, f"{last.summariser_contents:,} messages"),
                fact(
                    "summary",
                    last.summary_bytes,
                    "the simulator's summariser always writes so much",
                    Provenance.ASSUMED,
                    "bytes",
                ),
            ]
            if last
            else []
        ),
        fact("after", record.tokens_after, "system prompt, tools, and what the compaction left"),
        fact("watermark", step.value("watermark"), "stored for the steps to come", Provenance.STATE, "events"),
    ]
    short = f"{record.tokens_before:,} → {record.tokens_after:,}"
    return stage(GUARD, "Compact", short, text, *facts)


def _called(step: SimulatedStep) -> dict[str, Any]:
    sent, ratio, window = step.value("heuristic_sent"), step.simulation.ratio, step.trace.window
    over = step.prompt > window
    text = (
        "The request goes out. The simulator's provider counts it with the scenario's ratio, where a real one would "
        "run its tokenizer."
    )
    room = f"{tokens(step.prompt)} {'>' if over else '≤'} {tokens(window)}"
    return stage(
        MODEL,
        "The call overflows" if over else "Call the model",
        f"{tokens(step.prompt)} tokens",
        text,
        fact("messages sent", step.value("contents_sent"), "after stages 2 and 5", unit="messages"),
        fact("estimate of what is sent", sent, "UTF-8 bytes // 4"),
        fact("prompt tokens", step.prompt, f"trunc({sent:,} × {ratio:g})", Provenance.MODELLED),
        fact("fits the window?", "no: overflow" if over else "yes", room, Provenance.RECOMPUTED, ""),
    )


def _written(step: SimulatedStep) -> dict[str, Any]:
    if "last_heuristic_loaded" not in step.trace.columns:
        text = (
            "After the answer the policy knows what the provider counted."
            if step.reported
            else "This provider reports no usage here, so nothing new is known."
        )
        return stage(GUARD, "Read the count", tokens(step.prompt) if step.reported else "no count", text)
    text = (
        "After the answer two numbers are stored for the next step: what the provider counted, and what had been "
        "estimated for the same request. Together they give the next correction factor."
        if step.reported
        else "This provider reports no usage here, so only the estimate is stored, and the next factor is the default."
    )
    last = step.value("heuristic_sent") if step.last else step.value("last_heuristic_loaded", step.at + 1)
    real = (
        fact("last reported prompt tokens", step.prompt, "what the provider reported at this step", Provenance.MODELLED)
        if step.reported
        else fact("last reported prompt tokens", "none new", "the provider reports nothing", Provenance.STATE, "")
    )
    facts = [real, fact("estimate stored", last, "of the request that was sent", Provenance.STATE)]
    if step.reported and last:
        facts.append(
            fact(
                "factor to come",
                f"{step.prompt / last:.3f}",
                f"{step.prompt:,} / {last:,}, then kept within its bounds",
                unit="×",
            )
        )
    return stage(GUARD, "Store the counts", tokens(step.prompt) if step.reported else "no count", text, *facts)


def _tools(step: SimulatedStep) -> dict[str, Any]:
    label = "" if step.last else step.flow.labels[step.at + 1]
    added = (len(step.flow.session.events) if step.last else int(step.ledger.steps["at"][step.at + 1])) - step.events
    if not label.startswith("tool"):
        text = "The model answers in words. The answer is added to the log, and this turn of the user is over."
        return stage(
            AGENT,
            "The answer",
            "no tool",
            text,
            fact("added to the log", added, "the answer, and the next question", unit="events"),
        )
    chained = label.startswith("tool-chain")
    text = (
        "The model asks for one tool. Its call and its result are added to the log."
        if chained
        else "The model asks for tools. Parallel calls are one event, and their results are merged into one event."
    )
    calls = 1 if chained else len(step.simulation.turns[step.flow.turns[step.at]].tools)
    facts = (
        fact("tool calls", calls, "one after the other" if chained else "in parallel", unit=""),
        fact("added to the log", added, "calls and results", unit="events"),
    )
    return stage(AGENT, "Tools run", counted(calls, "call"), text, *facts)


def _next(step: SimulatedStep) -> dict[str, Any]:
    if step.last:
        return stage(
            AGENT, "The session ends", "no further step", "There is no further model call in this scenario.", off=True
        )
    turns, label = step.flow.turns, step.flow.labels[step.at + 1]
    same = turns[step.at + 1] == turns[step.at]
    text = (
        "The results have to be read, so the model is called again: from stage 1, with a new request over a longer log."
        if same
        else "The user writes again, and a new turn begins: from stage 1, with a fresh request over the longer log."
    )
    events = int(step.ledger.steps["at"][step.at + 1])
    return stage(
        AGENT,
        "The next step",
        f"step {step_number(step.at + 1):,}",
        text,
        fact("events in the log", events, f"{step.events:,} + {events - step.events:,}", unit="messages"),
        fact("what comes", label_words(label), f"step {step_number(step.at + 1):,}", Provenance.RECOMPUTED, ""),
    )


def label_words(label: str) -> str:
    """A step's label in words."""
    if label.startswith("tool-chain-"):
        return f"result {int(label.rpartition('-')[2]) + 1} of a chain"
    return {"user-msg": "the user's message", "tool-results": "the tools' results"}.get(label, label)


def label_short(label: str) -> str:
    """A step's label in a word or two."""
    if label.startswith("tool-chain-"):
        return f"result {int(label.rpartition('-')[2]) + 1}"
    return {"user-msg": "message", "tool-results": "results"}.get(label, label)


# ---- the bars


def bars(step: SimulatedStep) -> list[dict[str, Any]]:
    """The request at four moments, each in its own measure; lengths share one scale."""
    window, threshold = step.trace.window, step.value("threshold")
    built, decided, sent = (step.value(f"heuristic_{name}") for name in ("built", "decided", "sent"))
    checked = step.value("decision_tokens")
    scale = max(window, built, checked, step.prompt, 1) * 1.02
    replaced = min(built, _tokens(step, 0, step.watermark)) if decided < built else 0
    live = min(decided, _tokens(step, step.watermark if replaced else 0, step.events))
    rows = [
        ("as built from the log", built, "estimate", [("gone", replaced), ("live", built - replaced)]),
        (
            "with the old summary re-injected" if replaced else "no old summary to re-inject",
            decided,
            "estimate",
            [("summary", decided - live if replaced else 0), ("live", live if replaced else decided)],
        ),
        ("what the decision is made on", checked, "calibrated", [("calibrated", checked)]),
        ("as sent", sent, "estimate", _sent(step, sent, live, bool(replaced))),
        (
            "as the provider counts what is sent",
            step.prompt,
            "modelled",
            [("over" if step.prompt > window else "provider", step.prompt)],
        ),
    ]
    return [
        {
            "label": label,
            "value": tokens(value),
            "measure": measure,
            "share": percent(value, window),
            "parts": [{"kind": kind, "width": f"{100 * size / scale:.2f}"} for kind, size in parts if size > 0],
            "threshold": f"{100 * threshold / scale:.2f}" if measure != "estimate" and threshold > 0 else "",
            "window": f"{100 * window / scale:.2f}" if measure != "estimate" else "",
        }
        for label, value, measure, parts in rows
        if value >= 0
    ]


def _sent(step: SimulatedStep, sent: int, live: int, had_summary: bool) -> list[tuple[str, int]]:
    """The parts of the request that is sent: a compaction at this step leaves nothing but its summary."""
    if step.record is not None:
        return [("summary", sent)]
    return [("summary", sent - live), ("live", live)] if had_summary else [("live", sent)]


def _tokens(step: SimulatedStep, start: int, stop: int) -> int:
    """Heuristic tokens of the events between two places of the log."""
    names = ("text_tokens", "inline_tokens", "metadata_tokens")
    return sum(int(step.ledger.prefix(name)[stop] - step.ledger.prefix(name)[start]) for name in names)
