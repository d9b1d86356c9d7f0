"""`clear_tool_uses_20250919` of Anthropic's API: above a trigger the results of all but the newest tool uses go.

The conversation that the client keeps stays whole, and every request is edited anew before the model reads it.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import RESULT, tool_key
from guard_core.estimation.usage import counts_of, normal
from guard_core.forms import Arguments, Replaced
from guard_core.forms.edits import tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest
from guard_core.policies.pieces.messages import ListMessage, calls_of, results_of, until, view_of
from guard_core.policies.providers.requests import ProviderPolicy
from guard_core.trace import TOO_LITTLE
from guard_core.view_columns import MOST_SEGMENTS, ViewColumns
from guard_core.views import Span, View

CLEARED = "[tool result cleared]"  # ours: the API's wording is not published


class ClearToolUsesSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens, `keep` in tool uses; `exclude_tools` are names with commas between."""

    trigger: int
    keep: int
    clear_at_least: int
    exclude_tools: str
    clear_tool_inputs: bool

    @property
    def excluded(self) -> tuple[str, ...]:
        names = (name.strip() for name in self.exclude_tools.split(","))
        return tuple(name for name in names if name)


class Uses(NamedTuple):
    """The tool uses with a result, in the order of the results: the rows (in the columns of parts) and events of result
    and call (-1: the call is not known), and whether they may be cleared. `whole` is the log with all cleared that may
    be; `untouched` says, where the first so many uses are cleared, up to which event the log is as in `whole`, and
    `up_to` how many of them there are up to the last that may be cleared."""

    results: Ints
    events: Ints
    calls: Ints
    clearable: NDArray[np.bool_]
    whole: View
    untouched: Ints
    up_to: Ints


class ProviderClearToolUses(ProviderPolicy, EditingPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "anthropic-clear-tool-uses"
    settings: ClearToolUsesSettings

    def limit(self, window: int) -> int:
        return self.settings.trigger

    def edited(self, steps: ActingSteps) -> Edited | None:
        ledger, uses = steps.ledger, self._uses(steps.ledger)
        if len(uses.whole) >= MOST_SEGMENTS:
            return None
        counts = self._counts(uses, steps.at)
        rows = zip(counts.tolist(), steps.at.tolist(), strict=True)
        views = [self._cleared(ledger, uses, count, at) if count else (Span(0, at),) for count, at in rows]
        columns = ViewColumns.of(views)
        if columns is None:
            return None
        heuristics = steps.costs.fixed + columns.total(steps.costs.log, steps.costs.segment, steps.costs.segments)
        tokens = heuristics if steps.usage is None else counts_of(steps.usage, steps.rows, columns, heuristics).tokens
        saved = steps.counted - np.where(tokens >= 0, tokens, heuristics)
        return Edited(columns, np.where((counts > 0) & (saved < self.settings.clear_at_least), TOO_LITTLE, 0))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, at = request.ledger, request.check.at
        uses = self._uses(ledger)
        count = int(self._counts(uses, np.array([at]))[0])
        if not count:
            return ListOutcome(request.view, state)
        view = self._cleared(ledger, uses, count, at)
        if request.counted - self.tokens(request, view) < self.settings.clear_at_least:
            return ListOutcome(request.view, state, held=TOO_LITTLE)
        return ListOutcome(view, state)

    def _counts(self, uses: Uses, at: Ints) -> Ints:
        """How many uses are looked at in requests over `at` events; the last of them may be cleared."""
        return uses.up_to[np.maximum(np.searchsorted(uses.events, at) - self.settings.keep, 0)]

    def _uses(self, ledger: Ledger) -> Uses:
        """The tool uses of a log, once for a ledger and the settings."""
        key = f"{self.name} {self.settings.exclude_tools} {self.settings.clear_tool_inputs}"
        if key not in ledger.derived:
            ledger.derived[key] = self._of_ledger(ledger)
        uses: Uses = ledger.derived[key]
        return uses

    def _of_ledger(self, ledger: Ledger) -> Uses:
        parts = ledger.parts
        results = np.flatnonzero(parts["kind"] == RESULT)
        events, calls = parts["event"][results], parts["answers"][results]
        excluded = [tool_key(name) for name in self.settings.excluded]
        clearable = ~np.isin(tools_of(parts)[results], excluded)
        first = events
        if self.settings.clear_tool_inputs:
            first = np.where(calls >= 0, np.minimum(parts["event"][calls], events), events)
        # of all uses from number n on, the first event that they touch
        untouched = np.append(np.minimum.accumulate(first[::-1])[::-1], ledger.event_count)
        up_to = np.maximum.accumulate(np.append(0, np.where(clearable, np.arange(1, len(events) + 1), 0)))
        uses = Uses(results, events, calls, clearable, (), untouched, up_to)
        return uses._replace(whole=view_of(ledger, self._messages(ledger, uses, len(results), 0, ledger.event_count)))

    def _cleared(self, ledger: Ledger, uses: Uses, count: int, at: int) -> View:
        """The first `at` events of the log with the first `count` uses cleared that may be."""
        last = int(uses.events[count - 1]) + 1
        split = min(int(uses.untouched[count]), last)
        tail = view_of(ledger, self._messages(ledger, uses, count, split, last)) if split < last else ()
        return normal((*until(uses.whole, split), *tail, Span(last, at)))

    def _messages(self, ledger: Ledger, uses: Uses, count: int, start: int, stop: int) -> list[ListMessage]:
        """Events `start` to `stop` of the log with the first `count` uses cleared that may be."""
        low = int(np.searchsorted(uses.events, start))  # a result follows its call
        chosen = low + np.flatnonzero(uses.clearable[low:count])
        results = set(uses.results[chosen].tolist())
        calls = set(uses.calls[chosen].tolist()) if self.settings.clear_tool_inputs else set()
        return [ListMessage(event, self._form(ledger, event, results, calls)) for event in range(start, stop)]

    def _form(self, ledger: Ledger, event: int, results: Set[int], calls: Set[int]) -> str:
        """The form of an event of which these rows are cleared. Where that are all of its results and calls it is the
        same for calls and results, so that a view has few spans."""
        forms = []
        own_results, own_calls = (rows_of(ledger, ListMessage(event)) for rows_of in (results_of, calls_of))
        if not own_results and not own_calls:
            return ""
        of_results, of_calls = _places(own_results, results), _places(own_calls, calls)
        others = bool((of_results is None and own_results) or (of_calls is None and own_calls))
        if of_results or of_calls or (others and self.settings.clear_tool_inputs):
            forms += [Replaced(text=CLEARED, which=of_results).name] if of_results is not None else []
            forms += [Arguments(which=of_calls).name] if of_calls is not None else []
        elif of_results is not None or of_calls is not None:
            forms = [Replaced(text=CLEARED).name, *([Arguments().name] if self.settings.clear_tool_inputs else [])]
        return "+".join(forms)


def _places(own: list[int], rows: Set[int]) -> tuple[int, ...] | None:
    """The places of some rows among the parts of a kind that an event has, () for all of them; None: it has none."""
    chosen = tuple(place for place, row in enumerate(own) if row in rows)
    if not chosen:
        return None
    return () if len(chosen) == len(own) else chosen
