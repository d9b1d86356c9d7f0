"""`summary`: everything behind the first user message is replaced by one summary, in the user's role."""

from __future__ import annotations

from typing import Any, ClassVar

from guard_core.forms import CutToEnds
from guard_core.policies.inspect_ai.passes import COSTS, InspectPolicy, PassResult, parted, tokens_of
from guard_core.policies.pieces.lists import ListRequest
from guard_core.policies.pieces.messages import TOOL, ListMessage, messages_of, role_of, view_of
from guard_core.views import Synthetic, View

FRAME_BYTES = 275  # around a summary (scripted runs of 0.3.285)
PROMPT_CHARS = 6_082  # of what asks for the summary (scripted runs of 0.3.285)
OUTPUT_RESERVE = 4_096  # tokens kept free for the summary where the model has no limit of its own (0.3.285)
MOST_CUTS = 12  # results cut to fit the summariser's window (0.3.285)
CUT_MARK = "\n\n...[tool output truncated for summarization]...\n\n"  # its length counts (0.3.285)


class InspectSummary(InspectPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "inspect-summary"

    def applied(self, request: ListRequest, state: Any, view: View) -> PassResult:
        ledger = request.ledger
        system, first, others = parted(ledger, messages_of(view))
        since = max((place for place, item in enumerate(others) if item.inserted is not None), default=0)
        given = _fitting(request, [*system, *first, *others[since:]])
        summary, state = request.summarise(state, given, OUTPUT_RESERVE)
        text = Synthetic("summary", FRAME_BYTES + summary.bytes, summary.text)
        after = view_of(ledger, [*system, *first, ListMessage(inserted=text)])
        record = request.passed(given, after, summary_bytes=summary.bytes, empty=not summary.bytes)
        return PassResult(after, state, record)


def _fitting(request: ListRequest, messages: list[ListMessage]) -> View:
    """The messages that the summariser is given: the largest results are halved until all fit its window."""
    ledger, window = request.ledger, request.check.window
    room = window - min(OUTPUT_RESERVE, window // 2)
    given = list(messages)
    # Characters of the results, by place.
    sizes = {
        place: COSTS.message(ledger, message) - 1
        for place, message in enumerate(messages)
        if role_of(ledger, message) == TOOL
    }
    for _ in range(MOST_CUTS):
        view = view_of(ledger, given)
        chars = COSTS.view(ledger, view) + PROMPT_CHARS + 1
        largest = max(sizes, key=lambda place: sizes[place], default=-1)
        if tokens_of(chars) <= room or largest < 0:
            return view
        left = sizes[largest] // 2 - len(CUT_MARK)
        if left <= 0:
            return view
        form = CutToEnds(head=left // 2, tail=left - left // 2, marker=CUT_MARK)
        given[largest] = messages[largest].joined(form.name)
        sizes[largest] = left + len(CUT_MARK)
    return view_of(ledger, given)
