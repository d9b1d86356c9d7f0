"""What a scenario of one's own will be, before it is made: its size, where it compacts, its first steps."""

from __future__ import annotations

from typing import Any

from guard_core.ledger import Ledger
from guard_core.simulator.flow import Flow, play
from guard_core.simulator.running import loop_lengths
from guard_core.trace import Trace
from inspector.figures.sparkline import sparkline, trend, words
from inspector.pages.gallery.form import ScenarioForm
from inspector.pages.gallery.step import label_short
from inspector.pages.gallery.table import play_trace
from inspector.pages.shared.numbers import counted, percent, short, step_number, tokens, turn_number

FIRST = 10  # steps shown one by one
NAMED = 6  # compactions named by their step


def preview(form: ScenarioForm) -> dict[str, Any]:
    """The preview of a form whose fields are all allowed."""
    simulation, guard = form.simulation, form.chosen_guard
    flow = play(simulation)
    ledger = Ledger.of(flow.session)
    trace = play_trace(simulation, guard, ledger)
    return {
        "name": form.name,
        "guard": guard.name,
        "facts": _facts(flow, ledger, simulation.ratio, simulation.window),
        "outcome": _outcome(trace),
        "picture": _picture(trace),
        "steps": [_step(flow, trace, step) for step in range(min(FIRST, len(trace)))],
        "left": max(0, len(trace) - FIRST),
    }


def _facts(flow: Flow, ledger: Ledger, ratio: float, window: int) -> list[dict[str, str]]:
    """The session by itself, with nothing compacted."""
    every = int(sum(int(ledger.prefix(name)[-1]) for name in ("text_tokens", "inline_tokens", "metadata_tokens")))
    whole = every + ledger.system_tokens + ledger.tools_tokens
    real = int(whole * ratio)
    fixed = ledger.system_tokens + ledger.tools_tokens
    return [
        {"name": "Model calls", "value": f"{len(flow.labels):,}", "note": counted(len(flow.session.events), "event")},
        {"name": "Whole log", "value": short(whole), "note": "tokens est. (bytes // 4)"},
        {
            "name": "For the provider",
            "value": short(real),
            "note": f"× {ratio:g}, {percent(real, window)} of the window",
        },
        {"name": "Fixed", "value": short(fixed), "note": "tokens est., system prompt and tools"},
    ]


def _outcome(trace: Trace) -> list[dict[str, str]]:
    """What the policy will do, in sentences."""
    steps = [record.step for record in trace.compactions]
    named = ", ".join(f"{step_number(step):,}" for step in steps[:NAMED]) + (" …" if len(steps) > NAMED else "")
    lines = [_say("compaction", f"{counted(len(steps), 'compaction')}, at step {named}.")] if steps else []
    if not steps:
        lines = [_say("", "No compaction: the count never reaches the threshold.")]
    peak = int(trace.columns["modelled_prompt_tokens"].max())
    lines.append(
        _say("", f"The largest request has {tokens(peak)} prompt tokens, {percent(peak, trace.window)} of the window.")
    )
    if overflows := int(trace.columns["overflow"].sum()):
        lines.append(_say("overflow", f"{counted(overflows, 'request')} larger than the window."))
    if loops := loop_lengths(trace):
        lines.append(
            _say("overflow", f"A loop: {max(loops)} compactions in a row, none of which gets below the threshold.")
        )
    return lines


def _say(kind: str, text: str) -> dict[str, str]:
    return {"kind": kind, "text": text}


def _picture(trace: Trace) -> dict[str, Any]:
    columns = trace.columns
    tokens_sent = columns["modelled_prompt_tokens"]
    limit = int(columns["threshold"].max(initial=-1))
    shown = trend(tokens_sent, columns["fired"], columns["overflow"], threshold=limit, window=trace.window)
    steps = [record.step for record in trace.compactions]
    peak = int(tokens_sent.max())
    return {**sparkline(shown, 420, 90).context, "words": words(shown, len(trace), peak, steps, shown.window)}


def _step(flow: Flow, trace: Trace, step: int) -> dict[str, Any]:
    value = {name: int(column[step]) for name, column in trace.columns.items() if column.dtype.kind == "i"}
    return {
        "step": step_number(step),
        "what": f"turn {turn_number(flow.turns[step]):,}, {label_short(flow.labels[step])}",
        "messages": f"{value['contents_sent']:,}",
        "decided": tokens(value["decision_tokens"]),
        "prompt": tokens(value["modelled_prompt_tokens"]),
        "fired": bool(value["fired"]),
        "overflow": bool(value["overflow"]),
    }
