"""Classes of content: what every event of the log costs, by what it is and which tool returned it, with prefix sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from guard_core.bridge import CLASSES, class_tokens
from guard_core.costs import RESULT
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.ratios import KINDS, MESSAGE, MODEL_TEXT
from guard_core.findings.facts import Facts
from guard_core.forms import get_form
from guard_core.ledger import Ints, Ledger
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic

MOST_TOOLS = 8  # ours: tools with a class of their own, so that a chart can be read; the others share one
SYSTEM, DEFINITIONS, MISSING = "system prompt", "tool definitions", "not in this file"
RESULTS, OTHER_RESULTS = "tool results", "results of other tools"
REPEATED, SUMMARIES, UNEXPLAINED = "sent again by a resumed history", "summaries and notes", "unexplained"
_TEXTS = tuple(name for name in CLASSES if name != RESULTS)


class ContextClass(msgspec.Struct, frozen=True):
    """One class of a request's content. `tool` is the tool_key of the tool whose results it holds, 0: of none."""

    name: str
    tool: int = 0


@dataclass(frozen=True)
class EventCosts:
    """What the events cost in a form: `prefix` has the sums of a row per event and a column per event class, in int32
    where that holds them, and `parts` the tokens of every tool result, in the order of `ResultParts`."""

    prefix: Ints
    parts: Ints

    def rows(self, start: int, stop: int) -> Ints:
        """The tokens of the events `start` to `stop` (exclusive): a row per event, a column per event class."""
        return np.diff(self.prefix[start : stop + 1], axis=0).astype(np.int64)


@dataclass(frozen=True)
class ResultParts:
    """The tool results of a log: their rows among the ledger's parts, their events and tools (keys, 0: not named)."""

    rows: Ints
    events: Ints
    tools: Ints

    @classmethod
    def of(cls, ledger: Ledger) -> ResultParts:
        """The results of a ledger; one without a name has that of the call it answers."""
        parts = ledger.parts
        rows = np.flatnonzero(parts["kind"] == RESULT)
        answers, own = parts["answers"][rows], parts["tool"][rows]
        named = np.where(answers >= 0, parts["tool"][answers], 0)
        return cls(rows, parts["event"][rows], np.where(own != 0, own, named))


@dataclass(frozen=True)
class ClassCosts:
    """The costs of one session's messages by class, in prompt tokens."""

    ledger: Ledger
    attribution: Attribution
    _costs: dict[str, EventCosts] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, facts: Facts) -> ClassCosts:
        """The costs of a session."""
        return cls(facts.ledger, counted(facts))

    @cached_property
    def results(self) -> ResultParts:
        """The tool results of the log."""
        return ResultParts.of(self.ledger)

    @cached_property
    def classes(self) -> tuple[ContextClass, ...]:
        """All classes in the order of a request; the last one is what nothing explains."""
        tools = [ContextClass(RESULTS, tool) for tool in self.tools]
        names = (SYSTEM, DEFINITIONS, MISSING, *_TEXTS)
        rest = (OTHER_RESULTS, REPEATED, SUMMARIES, UNEXPLAINED)
        return (*map(ContextClass, names), *tools, *map(ContextClass, rest))

    @cached_property
    def tools(self) -> tuple[int, ...]:
        """The keys of the tools with a class of their own, the largest first."""
        tools, places = np.unique(self.results.tools, return_inverse=True)
        tokens = _shared(self.ledger, self.results, self._texts("")[1], "")
        sums = np.bincount(places, weights=tokens, minlength=len(tools)).astype(np.int64)
        order = np.lexsort((tools, -sums))
        return tuple(int(tools[place]) for place in order[:MOST_TOOLS])

    @property
    def first_event_class(self) -> int:
        """The place of the first class of events among all classes."""
        return len((SYSTEM, DEFINITIONS, MISSING))

    def place(self, name: str) -> int:
        """The place of a class that is not of one tool."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        """The places of all classes but those of tools, which share one name. Kept, as every segment asks for some."""
        return {item.name: place for place, item in enumerate(self.classes) if item.name != RESULTS}

    @cached_property
    def fixed(self) -> Ints:
        """System prompt, tool definitions, and what else every request has that is not in the file. The texts of the
        file are estimated; where they are more than every request has, they share it."""
        overhead = self.attribution.overhead
        system = self.ledger.system_tokens + self.ledger.system_metadata_tokens
        tools, scale = self.ledger.tools_tokens, 1.0
        if self.ledger.usage_ratio is not None:
            scale = self.ledger.usage_ratio
        if (known := (system + tools) * scale) > overhead:
            scale *= overhead / known
        first = min(overhead, round(system * scale))
        second = min(overhead - first, round(tools * scale))
        return np.array([first, second, overhead - first - second], dtype=np.int64)

    def costs(self, form: str = "") -> EventCosts:
        """What the events cost in a form."""
        if form not in self._costs:
            self._costs[form] = self._events(form)
        return self._costs[form]

    @property
    def nbytes(self) -> int:
        """Bytes of the columns that are held."""
        return sum(item.prefix.nbytes + item.parts.nbytes for item in self._costs.values())

    def segment(self, segment: Segment, epoch: int, repeated: frozenset[int] = frozenset()) -> Ints:
        """The tokens of one segment of a view by class. `repeated` are the inserted messages that repeat the log."""
        row = np.zeros(len(self.classes), dtype=np.int64)
        first = self.first_event_class
        match segment:
            case Span(start, stop, form) if stop > start:
                prefix = self.costs(form).prefix
                row[first : first + prefix.shape[1]] = prefix[stop] - prefix[start]
            case Rewritten(event=event):
                row[first + self.main_class(event)] = self.attribution.prices.segment(segment, epoch)
            case Inserted(index):
                name = REPEATED if index in repeated else SUMMARIES
                row[self.place(name)] = self.attribution.prices.segment(segment, epoch)
            case Synthetic():
                row[self.place(SUMMARIES)] = self.attribution.prices.segment(segment, epoch)
        return row

    def main_class(self, event: int) -> int:
        """The event class that most of an event is of: what an edit leaves of it counts there."""
        return int(np.argmax(self.costs().rows(event, event + 1))) if event < self.ledger.event_count else 0

    def _events(self, form: str) -> EventCosts:
        texts, results = self._texts(form)
        parts = _shared(self.ledger, self.results, results, form)
        places = {tool: place for place, tool in enumerate(self.tools)}
        tools, inverse = np.unique(self.results.tools, return_inverse=True)
        columns = np.array([places.get(int(tool), len(places)) for tool in tools], dtype=np.int64)
        width = _width_of(texts, results)
        prefix = np.zeros((self.ledger.event_count + 1, texts.shape[1] + len(places) + 1), dtype=width)
        table = prefix[1:]
        table[:, : texts.shape[1]] = texts
        by_tool = table[:, texts.shape[1] :]
        if len(parts):
            np.add.at(by_tool, (self.results.events, columns[inverse]), parts.astype(width))
        by_tool[:, -1] += (results - by_tool.sum(axis=1)).astype(width)  # framing, where no part is a result
        np.cumsum(table, axis=0, dtype=width, out=table)
        return EventCosts(prefix, parts)

    def _texts(self, form: str) -> tuple[Ints, Ints]:
        """The tokens of every event by the classes that are not tool results, and those of its results."""
        names = list(CLASSES)
        plain = self._plain.astype(np.int64)
        table = plain if not form else _in_form(self.ledger, self.attribution, plain, form)
        place = names.index(RESULTS)
        return np.delete(table, place, axis=1), table[:, place]

    @cached_property
    def _plain(self) -> Ints:
        """Tokens of each event by class, in no form. Kept, as the tokens of every form are computed from them."""
        table = class_tokens(self.ledger, self.attribution)
        return table.astype(_width_of(table))


def _width_of(*tables: Ints) -> type[np.signedinteger[Any]]:
    """The integers that hold the sum of any rows of these tables, whose entries are 0 or more."""
    return np.int32 if sum(int(table.sum()) for table in tables) <= np.iinfo(np.int32).max else np.int64


def counted(facts: Facts) -> Attribution:
    """The attribution of a session. That of a simulated one says what its simulated provider counts."""
    ratio, ledger, known = facts.ledger.usage_ratio, facts.ledger, facts.attribution
    if ratio is None:
        return known
    sums = ledger.prefix_of(("text_tokens", "inline_tokens", "metadata_tokens"))
    fixed = ledger.system_tokens + ledger.system_metadata_tokens + ledger.tools_tokens
    scaled = (sums * ratio).astype(np.int64)
    return replace(
        known,
        tokens=scaled[1:] - scaled[:-1],
        overhead=int(fixed * ratio),
        prologue=0,
        ratios={**known.ratios, KINDS[MODEL_TEXT]: ratio / 4},  # 4 bytes a token, as the heuristic estimate counts
        lexical_ratios={**known.lexical_ratios, KINDS[MESSAGE]: 0.0},
        habit=None,
    )


def _shared(ledger: Ledger, results: ResultParts, tokens: Ints, form: str) -> Ints:
    """The tokens of the events' results shared out to the single results by their bytes; sums stay exact."""
    if not len(results.rows):
        return np.zeros(0, dtype=np.int64)
    weights = ledger.parts_in(form)["bytes"][results.rows] + 1
    running = np.cumsum(weights)
    starts = running - weights
    firsts = np.searchsorted(results.events, results.events, side="left")
    lasts = np.searchsorted(results.events, results.events, side="right") - 1
    base = starts[firsts]
    share = tokens[results.events] / (running[lasts] - base)

    def place(ends: Ints) -> Ints:
        return np.floor((ends - base) * share + 0.5).astype(np.int64)

    return place(running) - place(starts)


def _in_form(ledger: Ledger, attribution: Attribution, plain: Ints, form: str) -> Ints:
    """The tokens of the events by class in a form: each loses the share of its bytes, as a replay models it, and its
    classes lose by the bytes that each has less."""
    changes: Callable[[str], Ints] = lambda name: -get_form(form).changes(ledger, name)  # noqa: E731
    fewer = changes("bytes")
    saved = fewer * attribution.tokens // np.maximum(ledger.events["bytes"], 1)
    table, names = plain.copy(), list(CLASSES)
    left = saved.copy()
    for name, column in ((RESULTS, "result_bytes"), ("tool calls", "call_bytes"), ("reasoning", "reasoning_bytes")):
        share = np.where(fewer != 0, saved * changes(column) / np.where(fewer != 0, fewer, 1), 0)
        taken = np.minimum(np.rint(share).astype(np.int64), table[:, names.index(name)])
        table[:, names.index(name)] -= taken
        left -= taken
    largest = np.argmax(table, axis=1)
    rows = np.arange(len(table))
    table[rows, largest] = np.maximum(table[rows, largest] - left, 0)
    return table
