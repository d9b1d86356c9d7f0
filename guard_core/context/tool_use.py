"""Tools: what the results of each one take, and how long they stay in the context.

A token-step is one token in the request of one call: a result of 5,000 tokens that is in 40 requests takes 200,000.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np

from guard_core.bridge import CLASSES
from guard_core.context.classes import RESULTS
from guard_core.context.filling import ContextFilling, HeadRun
from guard_core.costs import CALL
from guard_core.ledger import Ints
from guard_core.views import Rewritten, Segment, Span, View, common_length


class ToolUsage(msgspec.Struct, frozen=True):
    """One tool of a session. `tool` is the tool_key of its name (0: not named), `example` an event and the place of a
    part of it that calls or answers it. `calls` counts calls, `results` their results; the other figures are prompt
    tokens of results, `token_steps` of all requests together; `largest` is the event with the largest result (None:
    it has none)."""

    tool: int
    example: tuple[int, int]
    calls: int
    results: int
    tokens: int
    median: int
    p95: int
    maximum: int
    largest: int | None
    token_steps: int


def tool_uses(filling: ContextFilling) -> tuple[ToolUsage, ...]:
    """The tools of a session, the one with most token-steps first. Results behind the last call count as such, though
    no request had them."""
    costs, parts = filling.costs, filling.ledger.parts
    results, sizes = costs.results, costs.costs().parts
    stays = result_token_steps(filling)
    calls = np.flatnonzero(parts["kind"] == CALL)
    tools = np.unique(np.concatenate([results.tools, parts["tool"][calls]]))
    starts = filling.ledger.part_starts
    uses = []
    for tool in tools.tolist():
        mine, called = np.flatnonzero(results.tools == tool), calls[parts["tool"][calls] == tool]
        row = int(called[0] if len(called) else results.rows[mine[0]])
        event = int(parts["event"][row])
        ordered = np.sort(sizes[mine])
        uses.append(
            ToolUsage(
                tool=tool,
                example=(event, row - int(starts[event])),
                calls=len(called),
                results=len(mine),
                tokens=int(ordered.sum()),
                median=_rank(ordered, 0.5),
                p95=_rank(ordered, 0.95),
                maximum=_rank(ordered, 1.0),
                largest=int(results.events[mine[np.argmax(sizes[mine])]]) if len(mine) else None,
                token_steps=int(stays[mine].sum()),
            )
        )
    return tuple(sorted(uses, key=lambda use: (-use.token_steps, -use.tokens, -use.calls, use.tool)))


def _rank(ordered: Ints, share: float) -> int:
    """The smallest value that at least this share of the values does not exceed; 0 of none."""
    return int(ordered[max(0, int(np.ceil(share * len(ordered))) - 1)]) if len(ordered) else 0


def result_token_steps(filling: ContextFilling) -> Ints:
    """The token-steps of every tool result of the log, in the order of `ResultParts`."""
    results = filling.costs.results
    stays = _Stays(filling)
    for run in filling.runs():
        stays.add(run)
    stays.close(filling.ledger.step_count)
    total = np.zeros(len(results.rows), dtype=np.int64)
    for form, edges in stays.edges.items():
        total += np.cumsum(edges)[results.events] * filling.costs.costs(form).parts
    for row, tokens in stays.rewritten.items():
        total[row] += tokens
    return total


class _Stays:
    """How many requests hold each event, in each form: as differences from event to event."""

    def __init__(self, filling: ContextFilling) -> None:
        self.edges: dict[str, Ints] = defaultdict(lambda: np.zeros(filling.ledger.event_count + 1, dtype=np.int64))
        self.rewritten: dict[int, int] = defaultdict(int)
        self._filling = filling
        self._view: View = ()
        self._since: list[int] = []  # the step from which each segment of the view is sent

    def add(self, run: HeadRun) -> None:
        """Steps with one head: those of its segments that the head before had stay, and the events behind it."""
        same = common_length(self._view, run.head.view)
        self._close(same, run.start)
        self._view = run.head.view
        self._since += [run.start] * (len(self._view) - same)
        ends = np.maximum(self._filling.ledger.steps["at"][run.start : run.stop], run.head.kept_from)
        edges = self.edges[run.head.form]
        edges[run.head.kept_from] += len(ends)
        np.subtract.at(edges, ends, 1)

    def close(self, step: int) -> None:
        """The end of the session."""
        self._close(0, step)

    def _close(self, same: int, step: int) -> None:
        for segment, since in zip(self._view[same:], self._since[same:], strict=True):
            self._held(segment, step - since)
        del self._since[same:]

    def _held(self, segment: Segment, steps: int) -> None:
        if isinstance(segment, Span) and segment.start < segment.stop:
            edges = self.edges[segment.form]
            edges[segment.start] += steps
            edges[segment.stop] -= steps
        elif isinstance(segment, Rewritten):
            costs = self._filling.costs
            row = main_result(self._filling, segment.event)
            if row is not None:
                self.rewritten[row] += steps * costs.attribution.prices.segment(segment, -1)


def main_result(filling: ContextFilling, event: int) -> int | None:
    """The result, in the order of `ResultParts`, to which what an edit leaves of an event belongs: its largest one of
    the class that most of the event is of; None where that is not a class of results."""
    costs = filling.costs
    place, texts = costs.main_class(event), len(CLASSES) - 1
    rows = np.flatnonzero(costs.results.events == event)
    if place < texts or not len(rows):
        return None
    tool = costs.classes[costs.first_event_class + place]
    assert tool.name != RESULTS or tool.tool in costs.tools
    others = ~np.isin(costs.results.tools[rows], costs.tools)
    mine = rows[costs.results.tools[rows] == tool.tool] if tool.name == RESULTS else rows[others]
    return int(mine[np.argmax(costs.costs().parts[mine])]) if len(mine) else None
