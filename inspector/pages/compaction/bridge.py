"""The bridge of a compaction in words: a table whose rows and columns add up, and the same as a picture of bars."""

from __future__ import annotations

from typing import Any

from guard_core.bridge import FIXED, INSERTED, PROLOGUE, REPEATED, UNEXPLAINED, UNRECORDED, Bridge, BridgePart
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.sharing import ASSUMED, ATTRIBUTION_SOURCES
from guard_core.sessions import Provenance
from inspector.pages.shared.numbers import percent, signed, step_number, tokens

NAMES = {
    FIXED: "System prompt, tools, framing",
    PROLOGUE: "Before the start of this file",
    "user text": "User messages",
    "model text": "Model messages",
    "reasoning": "Reasoning",
    "tool calls": "Tool calls",
    "tool results": "Tool results",
    "media": "Images and files",
    UNRECORDED: "Messages whose content is not in the file",
    REPEATED: "Repeated by a resumed history",
    INSERTED: "Summary, inserted messages",
    UNEXPLAINED: "Not explained by this file",
}
SEALED_NAMES = {  # of a bridge whose summary is not readable
    INSERTED: "Inserted messages without the summary, which is not readable",
    UNEXPLAINED: "Not explained by this file, including the summary, which is not readable",
}
LESS = "Counts minus what this file explains"  # UNEXPLAINED where it is less than 0
ATTRIBUTED = "attributed"  # a share of the provider's counts
NOTABLE = 0.02  # of a request: less than this is left unsaid


BLIND = "What it removed is not in the file"


def header(bridge: Bridge, agent_before: int | None = None) -> list[dict[str, str]]:
    """The figures of the head, all in prompt tokens. `agent_before` is the agent's own count before it: all that is
    known where the file does not hold what was removed."""
    before, full, after = bridge.total("before"), bridge.uncompacted, bridge.total("after")
    grown = f"{signed(bridge.total('grown'))} since then"
    remaining = f"{tokens(after)} of {tokens(full)}"
    if bridge.is_blind:
        counted = ("–", "") if agent_before is None else (tokens(agent_before), Provenance.RECORDER.value)
        return [
            _figure("without the compaction", *counted, f"{BLIND[:1].lower()}{BLIND[1:]}"),
            _figure(_last(bridge), tokens(after), bridge.after_source, ""),
        ]
    return [
        _figure(_first(bridge), tokens(before) if bridge.before_source else "–", bridge.before_source, ""),
        _figure("without the compaction", tokens(full), Provenance.MODELLED.value, grown),
        _figure(_last(bridge), tokens(after), bridge.after_source, ""),
        _figure("remaining", percent(after, full, 1), "", remaining),
    ]


def _figure(label: str, value: str, source: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "source": source, "note": note}


def _first(bridge: Bridge) -> str:
    if bridge.before_step is None:
        return "no request before it" if not bridge.before_source else "before, never sent"
    return f"last request before, step {step_number(bridge.before_step):,}"


def _last(bridge: Bridge) -> str:
    if bridge.after_step is None:
        return "after, never sent"
    return f"first request after, step {step_number(bridge.after_step):,}"


def _end(word: str, step: int | None) -> str:
    return word if step is None else f"{word}, step {step_number(step):,}"


def table(bridge: Bridge, attribution: Attribution, *, recorded: bool) -> dict[str, Any]:
    """Rows of the parts that hold anything, and their sums."""
    shown = [part for part in bridge.parts if part != BridgePart(part.name, 0, 0, 0, 0, 0)]
    total = [bridge.total(name) for name in ("before", "grown", "removed", "inserted", "unexplained", "after")]
    heads = (
        _end("before", bridge.before_step),
        "added since",
        "removed",
        "inserted",
        "not explained",
        _end("after", bridge.after_step),
    )

    def cells(
        before: int, grown: int, removed: int, inserted: int, unexplained: int, after: int
    ) -> list[dict[str, str]]:
        changes = (_change(grown), _change(-removed), _change(inserted), _change(unexplained))
        values = (_whole(before), *changes, _whole(after))
        return [{"head": head, "value": value} for head, value in zip(heads, values, strict=True)]

    return {
        "heads": heads,
        "rows": [
            {
                "name": _name(bridge, part),
                "cells": cells(part.before, part.grown, part.removed, part.inserted, part.unexplained, part.after),
                "source": _source(part.name, attribution, recorded),
            }
            for part in shown
        ],
        "total": cells(*total),
    }


def _name(bridge: Bridge, part: BridgePart) -> str:
    """A part as people call it. Less than nothing is the difference of two measures and no content."""
    if part.name == UNEXPLAINED and min(part.before, part.after) < 0:
        return LESS
    return (SEALED_NAMES if bridge.is_sealed else NAMES).get(part.name, NAMES[part.name])


def _whole(value: int) -> str:
    return f"{value:,}".replace("-", "−")


def _change(value: int) -> str:
    return signed(value) if value else ""


def _source(name: str, attribution: Attribution, recorded: bool) -> str:
    """The provenance of the tokens of a part: a difference where they are unexplained, modelled where no file has them,
    and else that of the attribution."""
    if name == UNEXPLAINED:
        return Provenance.RECOMPUTED.value
    if not attribution.measured:
        return ATTRIBUTION_SOURCES[attribution.overhead_source if name == FIXED else ASSUMED]
    return Provenance.MODELLED.value if name == PROLOGUE or (name == INSERTED and not recorded) else ATTRIBUTED


def bars(bridge: Bridge) -> dict[str, Any]:
    """The bridge as a waterfall: each change begins where the one before it ended; lengths share one scale."""
    changes = [
        *([("grown", "added since", bridge.total("grown"))] if bridge.total("grown") else []),
        *(("removed", NAMES[part.name], -part.removed) for part in bridge.parts if part.removed),
        *(("inserted", _name(bridge, part), part.inserted) for part in bridge.parts if part.inserted),
        *(("unexplained", _name(bridge, part), part.unexplained) for part in bridge.parts if part.unexplained),
    ]
    level = bridge.total("before")
    steps = [("total", _first(bridge), 0, level)] if bridge.before_source else []
    for kind, name, change in changes:
        steps.append((kind, name, level, change))
        level += change
    steps.append(("total", _last(bridge), 0, level))
    scale = max(1, *(max(start, start + change) for _, _, start, change in steps))
    return {"rows": [_bar(*step, scale) for step in steps], "words": _words(bridge)}


def _bar(kind: str, name: str, start: int, change: int, scale: int) -> dict[str, str]:
    low = max(0, min(start, start + change))
    return {
        "kind": kind,
        "name": name[:1].upper() + name[1:],
        "value": tokens(change) if kind == "total" else signed(change),
        "left": f"{100 * low / scale:.2f}",
        "width": f"{100 * (max(start, start + change) - low) / scale:.2f}",
    }


def _words(bridge: Bridge) -> str:
    """The picture in one sentence."""
    removed, inserted, rest = (bridge.total(name) for name in ("removed", "inserted", "unexplained"))
    sealed = ", without the summary, which is not readable" if bridge.is_sealed else ""
    unexplained = f" The file does not explain {signed(rest)} tokens." if rest else ""
    if bridge.is_blind:
        return f"{BLIND}. {tokens(inserted)} prompt tokens were inserted{sealed}.{unexplained}"
    return (
        f"From {tokens(bridge.uncompacted)} prompt tokens without the compaction, {tokens(removed)} were removed and "
        f"{tokens(inserted)} inserted{sealed}; {tokens(bridge.total('after'))} remain.{unexplained}"
    )


def _cause(bridge: Bridge, recorded: bool) -> str:
    """What tokens that the file does not hold may be, as the end of a sentence."""
    if not recorded:
        return ": what this agent sends beyond what its file holds, as measured at recorded calls"
    attached = "files that the agent attached again, or a larger system prompt"
    if bridge.is_sealed:
        return f". The summary, which is not readable, is among them; so may be {attached}"
    return f". They may be {attached}"


def notes(
    bridge: Bridge,
    recorded: bool,
    agent_before: int | None,
    agent_after: int | None,
    *,
    is_replaced: bool = False,
    cached: int = 0,
) -> list[str]:
    """What the table cannot say: the agent's own figures, and what the request after it holds beyond this file.
    `is_replaced`: the history was compacted or edited again before any call. `cached`: tokens that the first request
    after it read from the cache, where only the fixed part can be among them; 0: not known."""
    figures = ((agent_before, "before"), (agent_after, "after"))
    own = [f"{value:,} tokens {word}" for value, word in figures if value is not None]
    sentences = [f"{BLIND}: only what it inserted is known."] if bridge.is_blind else []
    sentences += [f"The agent's own figures: {' and '.join(own)}."] if recorded and own else []
    rest = next(part for part in bridge.parts if part.name == UNEXPLAINED)
    if bridge.after_step is not None and rest.after > NOTABLE * bridge.total("after"):
        is_counted = not recorded or bridge.after_source == Provenance.PROVIDER
        how = "not in this file" if is_counted else "assumed, because no count shows what it held beyond this file"
        what = f"{rest.after:,} tokens of the first request after it are {how}"
        sentences.append(f"{what}{_cause(bridge, recorded)}.")
    elif bridge.is_sealed and bridge.after_step is not None:
        sentences.append(
            "The summary is not readable, so it is unknown how many tokens of the first request after it "
            "are the summary."
        )
    fixed = next(part.after for part in bridge.parts if part.name == FIXED)
    if 0 < cached < fixed - NOTABLE * bridge.total("after"):
        sentences.append(
            f"The first request after it read {cached:,} tokens from the cache: system prompt and tools. The "
            f"other {fixed - cached:,} of that row may be files attached again or reminders."
        )
    if min(rest.before, rest.after) < 0:
        sentences.append(
            "The provider counted less than the messages of this file suggest, so their sizes in this table are too "
            "large: the counts follow something else (a scripted provider, content left out), or content was cut away."
        )
    if bridge.after_step is None:
        why = "The history changed again before the next call" if is_replaced else "There is no call after it"
        sentences.append(f"{why}, so the next request is modelled from the messages it kept.")
    return sentences
