"""The sliding window: the oldest messages go, the first message of the user stays."""

from __future__ import annotations

from typing import ClassVar

from guard_core.policies.pieces.lists import ListOutcome, ListRequest
from guard_core.policies.pieces.messages import view_of
from guard_core.policies.pydantic_ai.cuts import (
    PARTS_PAIRS,
    PydanticAIWindow,
    WindowMemory,
    WindowSettings,
    first_prompt,
    flat,
    window_settings,
)
from guard_core.policies.pydantic_ai.parameters import SOURCE, harness_settings
from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns
from guard_core.trace import NOTHING_TO_COMPACT


class PydanticAISlidingWindow(PydanticAIWindow):
    """The policy; see the module."""

    name: ClassVar[str] = "pydantic-ai-sliding-window"

    def compact(self, request: ListRequest, state: WindowMemory) -> ListOutcome:
        ledger = request.ledger
        groups = self.groups(request, state)
        cut = self.cut(request, groups, state)
        first = first_prompt(ledger, groups) if self.settings.preserve_first_user_message else cut
        before, tail = flat(groups[first : first + 1] if first < cut else ()), flat(groups[cut:])
        after = view_of(ledger, [*before, *tail])
        if after == view_of(ledger, request.messages):
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        return self.after(request, state, ListOutcome(after, state), [before, tail])


SLIDING = PolicyKind(
    PydanticAISlidingWindow.name,
    "Pydantic AI (sliding window)",
    "Drops the oldest messages and keeps the user's first one.",
    lambda **values: PydanticAISlidingWindow(WindowSettings(**values)),
    window_settings(40, "stay"),
    summarises=False,
    parts_pairs=PARTS_PAIRS,
    judged_by=RecordedRuns(
        "pydantic-ai-harness",
        "sliding_window",
        settings={"max_tokens": 0},
        settings_of=harness_settings,
        counts_words=True,
    ),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "The limit is below what it keeps",
            (
                "With a maximum of 30 messages and 40 kept, it tries to act from the 31st message on but "
                "removes nothing until the 40th; after that it removes two messages per request."
            ),
            "measured, specification of new policies section 3",
        ),
        KnownProblem(
            "The first message grows",
            (
                "If the kept messages begin with a user message, the next run merges it into the first "
                "message, which stays forever."
            ),
            f"{SOURCE}, by reading",
        ),
        KnownProblem(
            "The count is one request old",
            "The provider's last count still includes what has been dropped since, so it may drop more one step later.",
            SOURCE,
        ),
    ),
)
