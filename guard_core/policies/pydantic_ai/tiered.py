"""Two tiers: old tool results are cleared and, if that is not enough, the oldest messages become a summary.

Of the tiers that `TieredCompaction` takes in any order and number these are the two of its documentation, in that
order. What a tier removed is taken off the count by characters / 4; the next tier acts if the rest is over the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np

from guard_core.costs import CALL, RESULT, tool_key
from guard_core.forms import Arguments, Replaced
from guard_core.forms.edits import tools_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.lists import ListOutcome, ListRequest
from guard_core.policies.pieces.messages import messages_of, parted_at, view_of
from guard_core.policies.pydantic_ai.clear_tool_results import CLEARING, PLACEHOLDER, places_by_event, tool_pairs
from guard_core.policies.pydantic_ai.counting import CHARS_PER_TOKEN, COSTS
from guard_core.policies.pydantic_ai.cuts import PARTS_PAIRS
from guard_core.policies.pydantic_ai.parameters import SOURCE, harness_settings, limit_settings
from guard_core.policies.pydantic_ai.summarizing import (
    SUMMARIZING,
    PydanticAISummarizingSettings,
    Summarizing,
    SummarizingMemory,
)
from guard_core.policies.settings import KnownProblem, PolicyKind, RecordedRuns
from guard_core.views import View, held_events

OF_CLEARING = ("keep_pairs", "placeholder", "exclude_tools", "clear_tool_inputs")
OF_SUMMARIZING = (
    "keep_messages",
    "keep_tokens",
    "preserve_first_user_message",
    "incremental",
    "keep_user_messages",
    "keep_user_messages_max_chars",
)


class PydanticAITieredSettings(PydanticAISummarizingSettings, frozen=True):
    """Of both tiers; the limit in tokens or as a share of the window is the target."""

    keep_pairs: int = 3
    placeholder: str = PLACEHOLDER
    exclude_tools: str = ""
    clear_tool_inputs: bool = False


class TieredMemory(SummarizingMemory, frozen=True, omit_defaults=True):
    """`cleared_to`: of results before this row in the columns of parts, those that can be are cleared."""

    cleared_to: int = 0


class Tiered(Summarizing):
    """The policy; see the module."""

    name: ClassVar[str] = "pydantic-ai-tiered"
    state_type: ClassVar[type] = TieredMemory
    settings: PydanticAITieredSettings

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        view, cleared = self._cleared(request, state)
        left = request.counted - (self._whole(request.ledger, request.view) - self._whole(request.ledger, view))
        if max(left, 0) > request.limit:
            outcome = super().compact(request.with_list(view), cleared)
            if outcome.error:  # and the list as it was
                again = msgspec.structs.replace(outcome.state, cleared_to=state.cleared_to)
                return outcome._replace(view=request.view, state=again)
            if outcome.passes or view == request.view:
                return outcome
        counts = {"anchors": tuple(self.anchors(request, state)), "since": request.check.step}
        return ListOutcome(view, msgspec.structs.replace(cleared, **counts))

    def _whole(self, ledger: Ledger, view: View) -> int:
        """The estimate of a list by its characters."""
        return (COSTS.view(ledger, view) + ledger.system_chars) // CHARS_PER_TOKEN

    def _cleared(self, request: ListRequest, state: TieredMemory) -> tuple[View, TieredMemory]:
        """The list with all results but the newest cleared whose calls are in it, and what is remembered then."""
        ledger, view = request.ledger, request.view
        pairs = _pairs_in(ledger, view)
        stop = len(pairs) - self.settings.keep_pairs
        if stop <= 0 or pairs[stop - 1] < state.cleared_to:
            return view, state
        rows = pairs[:stop][pairs[:stop] >= state.cleared_to]
        names = (name.strip() for name in self.settings.exclude_tools.split(","))
        if excluded := [tool_key(name) for name in names if name]:
            rows = rows[~np.isin(tools_of(ledger.parts)[rows], excluded)]
        forms = {
            event: Replaced(which, self.settings.placeholder).name
            for event, which in places_by_event(ledger, rows, RESULT).items()
        }
        if self.settings.clear_tool_inputs:
            calls: Ints = ledger.parts["answers"][rows]
            forms |= {event: Arguments(which).name for event, which in places_by_event(ledger, calls, CALL).items()}
        state = msgspec.structs.replace(state, cleared_to=int(pairs[stop - 1]) + 1)
        if not forms:
            return view, state
        before, rest = parted_at(view, min(forms))
        messages = messages_of(rest)
        after = [message.joined(forms[message.event]) if message.event in forms else message for message in messages]
        return view_of(ledger, after, before), state


def _pairs_in(ledger: Ledger, view: View) -> Ints:
    """The rows of the results in a list whose calls are in it, too. None of its forms removes a part."""
    pairs, spans = tool_pairs(ledger), list(held_events(view))
    held = np.zeros(ledger.event_count, dtype=np.bool_)
    for span in spans:
        held[span.start : span.stop] = True
    places = [pairs.rows[pairs.before[span.start] : pairs.before[span.stop]] for span in spans]
    rows: Ints = np.concatenate([*places, pairs.rows[:0]])
    calls = ledger.parts["event"][ledger.parts["answers"][rows]]
    return np.asarray(rows[held[calls]])


def tiered_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings: those of the tiers and the target."""
    names = {"target_tokens": "max_tokens", "target_fraction": "max_fraction"}
    return harness_settings({names.get(name, name): value for name, value in parameters.items()})


TIERED = PolicyKind(
    Tiered.name,
    "Pydantic AI (tiered)",
    "Clears old tool results and, if the request is still over the target, summarises the oldest messages.",
    lambda **values: Tiered(PydanticAITieredSettings(**values)),
    (
        *limit_settings("clears, then summarises"),
        *(CLEARING.setting(name) for name in OF_CLEARING),
        *(SUMMARIZING.setting(name) for name in OF_SUMMARIZING),
    ),
    parts_pairs=PARTS_PAIRS,
    judged_by=RecordedRuns(
        "pydantic-ai-harness",
        "tiered",
        settings={"max_tokens": 0},
        settings_of=tiered_settings,
        counts_words=True,
        writes_summaries=True,
        strips_summaries=True,
    ),
    known_problems=(
        KnownProblem(
            "A failing summariser takes the clearing back",
            "An error of the summariser, or an empty summary after one retry, is raised and the list stays as it was.",
            SOURCE,
        ),
    ),
)
