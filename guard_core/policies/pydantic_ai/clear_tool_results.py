"""Old tool results cleared in their place.

Not here: results that ask for another try, which the library neither counts nor clears.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, RESULT, tool_key
from guard_core.forms import Arguments, Replaced
from guard_core.forms.edits import place_in_event, tools_of
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.pieces.counters import ProviderCounts
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import ListMessage, joined_view, until, view_of
from guard_core.policies.pieces.stages import ScanRequest, StagedPolicy, Walked
from guard_core.policies.pydantic_ai.counting import CHARS_PER_TOKEN, COSTS, GROUPS
from guard_core.policies.pydantic_ai.limits import LimitedPolicy
from guard_core.policies.pydantic_ai.parameters import SOURCE, harness_settings, limit_settings
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.policies.settings import TEXT as WORDS
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Span, View, shared

PLACEHOLDER = "[tool result cleared]"
SUPPOSED = 128  # steps; ours: so many are looked at before it is known whether it acts at each


class PydanticAIClearSettings(msgspec.Struct, frozen=True):
    """A limit of 0 does not act."""

    max_tokens: int = 0
    max_fraction: float = 0.0
    context_window: int = 0
    max_messages: int = 0
    keep_pairs: int = 3
    placeholder: str = PLACEHOLDER
    exclude_tools: str = ""
    clear_tool_inputs: bool = False
    min_clear_tokens: int = 0
    never_grows: bool = False


class ClearMemory(ListMemory, frozen=True, omit_defaults=True):
    """The first `done` results of the log were cleared where their tools are not excluded; the last one cleared is in
    event `last`, -1: none is."""

    done: int = 0
    last: int = -1


class ClearableResults(NamedTuple):
    """What can be cleared of a log: the `rows` of results in the columns of parts, their `events`, and the `whole` log
    with all of them cleared. `untouched` says, where the first so many are cleared, up to which event the log is as in
    `whole`; `cleared` how many of them are among the first so many results."""

    rows: Ints
    events: Ints
    whole: View
    untouched: Ints
    cleared: Ints


class ToolPairs(NamedTuple):
    """The rows of results whose call is known, in their order, and how many are `before` each event, and in all."""

    rows: Ints
    before: Ints


class ClearToolResults(LimitedPolicy, StagedPolicy):
    """The policy; see the module. Once over its limit it acts at every call with new results, so that this is supposed
    in a run of steps (`walked`)."""

    name: ClassVar[str] = "pydantic-ai-clear-tool-results"
    state_type: ClassVar[type] = ClearMemory
    settings: PydanticAIClearSettings

    def counted_messages(self, sizes: Sizes) -> Ints:
        """Messages since the last cleared result; without one all of them."""
        prefix = GROUPS.prefix(sizes.ledger)
        return np.asarray(prefix[sizes.at] - prefix[sizes.state.last + 1])

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Over a limit, where a result is there that was not cleared."""
        is_left = tool_pairs(sizes.ledger).before[sizes.at] - self.settings.keep_pairs > sizes.state.done
        return np.asarray(super().acts(sizes, counted, limit) & is_left)

    def compact(self, request: ListRequest, state: ClearMemory) -> ListOutcome:
        ledger, at = request.ledger, request.check.at
        count = tool_pairs(ledger).before.item(at) - self.settings.keep_pairs
        after = self._cleared(ledger, count, at)
        if after == request.view or self._saves_too_little(request, after):
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        return ListOutcome(after, self._remembering(ledger, state, count))

    def walked(self, asked: ScanRequest) -> Walked | None:
        """It is supposed to act wherever there is a result that was not cleared, as long as it does at the first step
        and nothing but the tokens matters."""
        settings, ledger, state = self.settings, asked.ledger, asked.state
        others = settings.max_messages or settings.min_clear_tokens or settings.never_grows
        if others or not self._acts_first(asked):
            return None
        at = asked.at[:SUPPOSED]
        counts = tool_pairs(ledger).before[at] - settings.keep_pairs
        heads, states, rows = [self._list(state)], [state], list[int]()
        held = np.zeros(len(at), dtype=np.int64)
        for row, (stop, count) in enumerate(zip(at.tolist(), counts.tolist(), strict=True)):
            if count <= states[-1].done:
                continue
            before, after = heads[-1].at(ledger, stop), self._cleared(ledger, count, stop)
            if after == before:
                held[row] = NOTHING_TO_COMPACT
                continue
            heads.append(self._head(shared(before, after), stop))
            states.append(self._remembering(ledger, states[-1], count))
            rows.append(row)
        return Walked(self.stages_of(ledger, heads, rows, states), held, None, {}, states[-1])

    def _acts_first(self, asked: ScanRequest) -> bool:
        """Does it act at the first step of a run."""
        state, rows, window = asked.state, np.array([asked.start]), asked.run.window
        last = ProviderCounts(np.array([state.tokens]), np.array([state.as_of]))
        sizes = self.sizes(asked.ledger, self._list(state), rows, asked.at[:1], last, state, window)
        return bool(self.acts(sizes, self.counted(sizes), self.limit(window)).all())

    def first_other(self, asked: ScanRequest, walked: Walked, compared: Ints, last: ProviderCounts) -> int:
        """It does not act where it is not over the limit; without a count the list counts, which is not compared
        here."""
        acts = walked.held > 0
        acts[walked.stages.rows] = True
        is_unknown = (last.as_of < 0) & ((walked.before > 0) | bool(asked.state.head))
        others = np.flatnonzero(acts & ~self.over(compared, self.limit(asked.run.window)) | is_unknown)
        return int(others[0]) if len(others) else len(walked.held)

    def _remembering(self, ledger: Ledger, state: ClearMemory, count: int) -> ClearMemory:
        """The state after the first so many results were cleared."""
        clearing = self._clearing(ledger)
        last = clearing.events.item(clearing.cleared.item(count) - 1)
        return msgspec.structs.replace(state, done=count, last=last)

    def _saves_too_little(self, request: ListRequest, after: View) -> bool:
        """Is less reclaimed than `min_clear_tokens`; with 0, is anything added where the request may not grow."""
        least, ledger = self.settings.min_clear_tokens, request.ledger
        if not least and not self.settings.never_grows:
            return False
        before, rest = (COSTS.view(ledger, view) // CHARS_PER_TOKEN for view in (request.view, after))
        return before - rest < least

    def _cleared(self, ledger: Ledger, count: int, at: int) -> View:
        """The first `at` events of the log with the first `count` results cleared whose tools are not excluded, and the
        arguments of their calls where that is set."""
        clearing = self._clearing(ledger)
        cleared = clearing.cleared.item(count)
        if not cleared:
            return (Span(0, at),)
        last = clearing.events.item(cleared - 1) + 1
        split = min(clearing.untouched.item(cleared), last)
        if split == last:  # as nearly always: what comes behind is as it is in the log
            return joined_view(ledger, (*until(clearing.whole, split), Span(split, at)))
        low = int(np.searchsorted(clearing.events[:cleared], split))
        return view_of(
            ledger, self._messages(ledger, clearing.rows[low:cleared], split, at), until(clearing.whole, split)
        )

    def _clearing(self, ledger: Ledger) -> ClearableResults:
        """What can be cleared of a log, once for a ledger and the settings."""
        settings = self.settings
        key = (self.name, settings.exclude_tools, settings.clear_tool_inputs, settings.placeholder)
        if key not in ledger.derived:
            pairs, events = tool_pairs(ledger).rows, ledger.parts["event"]
            names = (name.strip() for name in self.settings.exclude_tools.split(","))
            excluded = [tool_key(name) for name in names if name]
            clears = ~np.isin(tools_of(ledger.parts)[pairs], excluded)
            rows = pairs[clears]
            calls = ledger.parts["answers"][rows] if settings.clear_tool_inputs else rows
            first = np.minimum(events[rows], events[calls])
            untouched = np.append(np.minimum.accumulate(first[::-1])[::-1], ledger.event_count)
            whole = view_of(ledger, self._messages(ledger, rows, 0, ledger.event_count))
            ledger.derived[key] = ClearableResults(
                rows, events[rows], whole, untouched, prefix_sums(clears.astype(np.int64))
            )
        clearing: ClearableResults = ledger.derived[key]
        return clearing

    def _messages(self, ledger: Ledger, rows: Ints, start: int, stop: int) -> list[ListMessage]:
        """Events `start` to `stop` of the log with some results, and the arguments of their calls where that is set,
        cleared."""
        messages = [ListMessage(event) for event in range(start, stop)]
        for event, which in places_by_event(ledger, rows, RESULT).items():
            messages[event - start] = messages[event - start].joined(Replaced(which, self.settings.placeholder).name)
        calls = ledger.parts["answers"][rows] if self.settings.clear_tool_inputs else rows[:0]
        calls = calls[ledger.parts["event"][calls] >= start]
        for event, which in places_by_event(ledger, calls, CALL).items():
            messages[event - start] = messages[event - start].joined(Arguments(which).name)
        return messages


def tool_pairs(ledger: Ledger) -> ToolPairs:
    """Those of a log."""
    if "answered results" not in ledger.derived:
        kinds, answers = ledger.parts["kind"], ledger.parts["answers"]
        rows = np.flatnonzero((kinds == RESULT) & (answers >= 0))
        ledger.derived["answered results"] = ToolPairs(rows, np.searchsorted(rows, ledger.part_starts))
    pairs: ToolPairs = ledger.derived["answered results"]
    return pairs


def places_by_event(ledger: Ledger, rows: Ints, kind: int) -> dict[int, tuple[int, ...]]:
    """Some parts of a kind by their event, as forms name them: no places where they are all of that kind there."""
    key = f"places/{kind}"
    if key not in ledger.derived:
        counts = ledger.by_event((ledger.parts["kind"] == kind).astype(np.int64))
        ledger.derived[key] = place_in_event(ledger.parts, kind), counts
    of_row, counts = ledger.derived[key]
    by_event: dict[int, list[int]] = {}
    for event, place in zip(ledger.parts["event"][rows].tolist(), of_row[rows].tolist(), strict=True):
        by_event.setdefault(event, []).append(place)
    return {event: () if len(places) == counts.item(event) else tuple(places) for event, places in by_event.items()}


CLEARING = PolicyKind(
    ClearToolResults.name,
    "Pydantic AI (clear tool results)",
    "Replaces older tool results with a placeholder and, if set, clears the arguments of their calls.",
    lambda **values: ClearToolResults(PydanticAIClearSettings(**values)),
    (
        *limit_settings("clears"),
        Setting(
            "max_messages",
            "Messages",
            COUNT,
            0,
            (
                "clears once more messages than this follow the last cleared result (all results of an answer "
                "are one message); 0: never"
            ),
            SOURCE,
            unit="messages",
            main=True,
        ),
        Setting("keep_pairs", "Results kept", COUNT, 3, "newest results that stay", SOURCE, unit="results", main=True),
        Setting(
            "placeholder",
            "Placeholder",
            WORDS,
            PLACEHOLDER,
            "text that replaces a cleared result",
            SOURCE,
            verbatim=True,
        ),
        Setting("exclude_tools", "Tools left out", WORDS, "", "tools whose results stay, separated by commas", SOURCE),
        Setting(
            "clear_tool_inputs",
            "Clear arguments",
            SWITCH,
            False,
            "clears the arguments of the same calls, too",
            SOURCE,
        ),
        Setting(
            "min_clear_tokens",
            "Least saving",
            COUNT,
            0,
            "clears only if that saves at least this much; 0: always",
            SOURCE,
            unit="tokens",
        ),
        Setting(
            "never_grows",
            "Never longer",
            SWITCH,
            False,
            "without a least saving: does not clear if the placeholders are longer than what they replace, as the "
            "library with `min_clear_tokens=0`",
            SOURCE,
        ),
    ),
    summarises=False,
    judged_by=RecordedRuns(
        "pydantic-ai-harness",
        "clear_tool_results",
        settings={"max_tokens": 0},
        settings_of=harness_settings,
        counts_words=True,
    ),
    known_problems=(
        KnownProblem(
            "The count is one request old",
            (
                "The provider's last count still includes what has been cleared since, so it may clear again "
                "one step later."
            ),
            SOURCE,
        ),
    ),
)
