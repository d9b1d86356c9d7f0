"""What the page of one side needs at every step, computed once and kept for the next click."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guard_core.context.filling import ContextFilling
from guard_core.context.growth import LargestGrowth, largest_growth
from guard_core.context.report import class_label, name_of, shown_steps
from guard_core.context.tool_use import ToolUsage, tool_uses
from guard_core.decimation import DENSE, edge_steps
from guard_core.events import Event
from guard_core.ledger import Ints
from guard_core.outcomes.sent import SentRequests
from inspector.pages.session.frame import Frame
from inspector.pages.shared.parts import visible
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 20_000_000  # of 50,000 steps about 8 MB
POINTS = 1_000  # steps of the chart: its paths are in the page itself
STRETCHES = 150  # of a chart that is dense with compactions: the largest request of each
NAME_CHARS = 60


@dataclass(frozen=True)
class Prepared:
    """The filling of one side, its tools with their names, and the areas of the chart."""

    filling: ContextFilling
    uses: tuple[ToolUsage, ...]
    names: dict[int, str]
    labels: tuple[str, ...]
    steps: Ints
    areas: Ints
    peaks: bool  # does the chart show the largest requests alone
    growth: LargestGrowth | None


def prepared(page: Frame) -> Prepared:
    """What the shown side of a session needs. The key holds as long as its value, which has what it names."""
    analysis = page.analysis
    trace = analysis.replayed if page.side == "replayed" else None
    return _cache.get((id(analysis.facts), id(trace)), lambda: _prepare(page))


def _prepare(page: Frame) -> Prepared:
    analysis = page.analysis
    if page.side == "replayed":
        sent = SentRequests.replayed(analysis.facts, analysis.replayed)
    else:
        sent = SentRequests.recorded(analysis.facts)
    filling = ContextFilling.of(sent)
    uses = tool_uses(filling)
    events = loading.load_some_events(page.row, sorted({use.example[0] for use in uses}))
    names = {use.tool: _name(events.get(use.example[0]), use.example[1]) for use in uses}
    peaks = len(analysis.data.side(page.side).compactions) > DENSE
    counts = sent.tokens.astype(np.float64)
    steps = edge_steps(counts, 0, len(counts), STRETCHES)[1] if peaks else shown_steps(filling, POINTS)
    labels = tuple(class_label(item, names) for item in filling.classes)
    return Prepared(filling, uses, names, labels, steps, filling.areas(steps), peaks, largest_growth(filling))


def _name(event: Event | None, place: int) -> str:
    """The name of the tool that a part of an event names, short enough for a legend."""
    part = event.parts[place] if event is not None and place < len(event.parts) else None
    return visible(name_of(part)[:NAME_CHARS])


def _size(value: Prepared) -> int:
    return value.filling.costs.nbytes + value.areas.nbytes + 1_000_000  # and what hangs on it, by far less than that


_cache: ByteCache[Prepared] = ByteCache(CACHE_BYTES, _size)
