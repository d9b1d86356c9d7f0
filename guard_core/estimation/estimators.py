"""Estimators: what requests cost by a rule of thumb, from the ledger's columns, by prefix sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from guard_core.costs import event_columns
from guard_core.ledger import Ints, Ledger
from guard_core.view_sums import SHORT, sums_of
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View


class Estimator(Protocol):
    """A policy's own estimate of requests over one ledger, in its tokens. `fixed` is what every request holds beside
    its messages: system prompt and tools."""

    @property
    def fixed(self) -> int: ...

    def log(self, form: str = "") -> Ints:
        """Prefix sums over the log's events: events i to j - 1 cost the difference of items j and i."""
        ...

    def segment(self, segment: Segment) -> int:
        """One segment of a view."""
        ...

    def segments(self, spans: Sequence[Span]) -> list[int]:
        """The same of many spans."""
        ...

    def recorded(self, view: View, epoch: int) -> int:
        """The messages of a view that recorded compaction `epoch` left."""
        ...


@dataclass(frozen=True, slots=True)
class Heuristic:
    """UTF-8 bytes // 4 of every field (guard_core.tokens.heuristic): ContextGuard's estimate, and the measure by which
    simulated providers count. `names` are the columns that are counted."""

    ledger: Ledger
    prefix: Ints
    fixed: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, ledger: Ledger, *, tools: bool = True, inline: bool = True, metadata: bool = True) -> Heuristic:
        """The heuristic with or without tool definitions, inline data, part metadata and server-side tool parts."""
        key = "heuristic", tools, inline, metadata
        known: Heuristic | None = ledger.derived.get(key)
        if known is None:
            counted = {"inline_tokens": inline, "metadata_tokens": metadata}
            names = ("text_tokens", *(name for name, counts in counted.items() if counts))
            fixed = ledger.system_tokens
            fixed += ledger.system_metadata_tokens if metadata else 0
            fixed += ledger.tools_tokens if tools else 0
            known = ledger.derived.setdefault(key, cls(ledger, ledger.prefix_of(names), fixed, names))
        return known

    def log(self, form: str = "") -> Ints:
        return self.ledger.prefix_of(self.names, form) if form else self.prefix

    def built(self, at: int) -> int:
        """The request as built from the first `at` events."""
        return self.fixed + int(self.prefix[at])

    def request(self, view: View) -> int:
        """Heuristic tokens of a request: those of system prompt and tools, and of the contents of its view."""
        return self.fixed + self.contents(view)

    def contents(self, view: View) -> int:
        """Heuristic tokens of the contents of a view alone."""
        if len(view) < SHORT:
            return sum(map(self.segment, view))
        return sums_of(self.ledger, self.names, self.segment).total(view)

    def segment(self, segment: Segment) -> int:
        """One segment of a view. Class tests and `item`: matching by shape and numpy's own index cost three times as
        much, and a replay that compacts at every step asks twenty times a step."""
        if isinstance(segment, Span):
            start, stop, form = segment.start, segment.stop, segment.form
            if form and (alone := self.ledger.of_one(start, stop, form, self.names, self._in_form)) is not None:
                return alone
            prefix = self.log(form) if form else self.prefix
            return prefix.item(stop) - prefix.item(start)
        if isinstance(segment, Synthetic):
            return segment.bytes // 4
        if isinstance(segment, Rewritten):
            columns = event_columns(segment.message)
            return sum(columns[name] for name in self.names)
        raise TypeError("a recorded compaction's messages are not part of a replayed view")

    def segments(self, spans: Sequence[Span]) -> list[int]:
        """As `segment`, for many."""
        self.ledger.look_up(spans, self.names, self._in_form)
        return [self.segment(span) for span in spans]

    def _in_form(self, ledger: Ledger, form: str) -> Ints:
        """The costs of a ledger's events in a form."""
        return np.asarray(sum(ledger.in_form(name, form) for name in self.names))

    def recorded(self, view: View, epoch: int) -> int:
        return sum(
            self._inserted(segment, epoch) if isinstance(segment, Inserted) else self.segment(segment)
            for segment in view
        )

    def _inserted(self, segment: Inserted, epoch: int) -> int:
        """A message that recorded compaction `epoch` inserted."""
        costs = self.ledger.bases[epoch].costs
        return sum(costs[name][segment.index] for name in self.names)
