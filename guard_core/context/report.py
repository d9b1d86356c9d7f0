"""The report of what fills a context: every figure of the package for one side of a session, as data."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np

from guard_core.context.changes import RequestChanges, changes_at
from guard_core.context.classes import RESULTS, ContextClass
from guard_core.context.filling import ClassMessage, ContextFilling
from guard_core.context.growth import LargestGrowth, largest_growth
from guard_core.context.repeats import Repeats, held_results, needed_events, repeats_at
from guard_core.context.tool_use import ToolUsage, tool_uses
from guard_core.costs import tool_key
from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.findings.facts import Facts
from guard_core.ledger import Ints
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.sent import SentRequests
from guard_core.sessions import Provenance, Session
from guard_core.trace import Trace

UNNAMED = "a tool without a name"
POINTS = 2_000  # steps of the areas at most: about two a pixel of a wide chart
SHOWN = 40  # messages and changes one by one


class ContextReport(msgspec.Struct, frozen=True):
    """What fills the context of one side of a session at `step` (from 0), and over all of it.

    `classes` name the columns of `areas`, a row for each of `steps`; each row adds up to the count of `counts`, whose
    `sources` say where it comes from. `unused` are defined tools that no call of the file uses (None: the file has no
    definitions).
    """

    classes: tuple[str, ...]
    steps: tuple[int, ...]
    areas: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    sources: tuple[str, ...]
    step: int
    now: tuple[int, ...]
    count: int
    source: str
    items: tuple[ClassMessage, ...]
    tools: tuple[tuple[str, ToolUsage], ...]
    unused: tuple[str, ...] | None
    growth: LargestGrowth | None
    changes: RequestChanges | None
    repeats: Repeats


def context_report(session: Session, facts: Facts, step: int, trace: Trace | None = None) -> ContextReport:
    """The report of a recording, or of a replay of it (`trace`). A session without a call has none: ValueError."""
    if not facts.ledger.step_count:
        raise ValueError("a session without a model call has no context")
    sent = SentRequests.recorded(facts) if trace is None else SentRequests.replayed(facts, trace)
    filling = ContextFilling.of(sent)
    steps = shown_steps(filling, POINTS)
    uses = tool_uses(filling)
    names = {use.tool: tool_name(session, use) for use in uses}
    sources = [count_source(filling, int(place)) for place in steps]
    held = held_results(filling, step)
    events = {place: session.events[place] for place in needed_events(filling, held)}
    return ContextReport(
        classes=tuple(class_label(item, names) for item in filling.classes),
        steps=tuple(steps.tolist()),
        areas=tuple(map(tuple, filling.areas(steps).tolist())),
        counts=tuple(sent.tokens[steps].tolist()),
        sources=tuple(sources),
        step=step,
        now=tuple(filling.areas(np.array([step]))[0].tolist()),
        count=int(sent.tokens[step]),
        source=count_source(filling, step),
        items=tuple(filling.items(step, SHOWN)),
        tools=tuple((names[use.tool], use) for use in uses),
        unused=unused_tools(session, {use.tool for use in uses}),
        growth=largest_growth(filling),
        changes=changes_at(filling, step, Prices.of(session, facts.ledger), SHOWN),
        repeats=repeats_at(filling, held, events),
    )


def shown_steps(filling: ContextFilling, most: int) -> Ints:
    """At most about `most` steps for a chart: all if they fit, else both ends, the compactions with the call before
    each, and the largest and the smallest request of equal stretches."""
    tokens = filling.sent.tokens
    count = len(tokens)
    if count <= most:
        return np.arange(count, dtype=np.int64)
    compactions = np.flatnonzero(filling.sent.compacted)
    if len(compactions) > most // 4:  # each with the call before it, or it would be no drop
        compactions = compactions[np.linspace(0, len(compactions) - 1, most // 4).astype(np.int64)]
    compactions = np.unique(np.concatenate([compactions, np.maximum(compactions - 1, 0)]))
    edges = np.linspace(0, count, max(1, (most - len(compactions) - 2) // 2) + 1).astype(np.int64)
    extremes = [
        start + place(tokens[start:stop])
        for start, stop in itertools.pairwise(edges)
        for place in (np.argmin, np.argmax)
    ]
    return np.unique(np.concatenate([[0, count - 1], compactions, np.array(extremes)])).astype(np.int64)


def count_source(filling: ContextFilling, step: int) -> str:
    """Where the count of a step comes from: a Provenance."""
    return Provenance.MODELLED if filling.sent.case.modelled[step] else Provenance.PROVIDER


def tool_name(session: Session, use: ToolUsage) -> str:
    """The name of a tool by a part that has it."""
    event, place = use.example
    return name_of(session.events[event].parts[place])


def name_of(part: object) -> str:
    """The tool that a part calls or answers."""
    return (part.name if isinstance(part, ToolCallPart | ToolResultPart) else "") or UNNAMED


def class_label(item: ContextClass, names: dict[int, str]) -> str:
    """A class in words; `names` are those of tools by their keys."""
    if item.name == RESULTS:
        name = names.get(item.tool, UNNAMED)
        return f"results of {UNNAMED}" if name == UNNAMED else f"{name} results"
    return item.name


def unused_tools(session: Session, used: set[int]) -> tuple[str, ...] | None:
    """The tools that a session defines and no call of it uses (`used`, by tool_key), in order; None where the file has
    no definitions."""
    if not session.tools:
        return None
    return tuple(dict.fromkeys(tool.name for tool in session.tools if tool_key(tool.name) not in used))
