"""The summarizing manager: the oldest share of the messages becomes one summary in the user's role."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from guard_core.errors import SummaryFailed
from guard_core.policies.pieces.groups import MessageGroup, flat
from guard_core.policies.pieces.lists import ListOutcome, ListRequest
from guard_core.policies.pieces.messages import ListMessage, view_of
from guard_core.policies.strands.manager import StrandsManager, is_pinned, list_of
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED
from guard_core.views import Synthetic

LEAST_RATIO, MOST_RATIO = 0.1, 0.8  # 1.62.0
OUTPUT_TOKENS = 4_096  # ours: shares of a summary are taken of it; the library sets no limit
FEW = "Cannot summarize: insufficient messages for summarization"  # the library's own words, as below
PINNED = "Cannot summarize: all messages in summarize range are pinned"


class StrandsSummarizing(StrandsManager):
    """The policy; see the package."""

    name: ClassVar[str] = "strands-summarizing"

    def reduced(self, request: ListRequest, messages: list[ListMessage], state: Any, *, refused: bool) -> ListOutcome:
        ledger, groups = request.ledger, list_of(request, messages)
        unchanged = ListOutcome(view_of(ledger, messages), state, held=NOTHING_TO_COMPACT)
        ratio = max(LEAST_RATIO, min(MOST_RATIO, self.settings.summary_ratio))
        count = min(max(1, int(len(groups) * ratio)), len(groups) - self.settings.preserve_recent_messages)
        split = _whole(groups, count) if count > 0 else None
        if split is None:
            return unchanged._replace(error=FEW if refused else "")
        state = self.pinned(request, groups, state)
        pinned = [group for group in groups[:split] if is_pinned(group, state)]
        old = [group for group in groups[:split] if not is_pinned(group, state)]
        if not old:
            return unchanged._replace(state=state, error=PINNED if refused else "")
        given = view_of(ledger, [message._replace(form="") for message in flat(old)])  # empty answers as they are
        try:
            summary, state = request.summarise(state, given, OUTPUT_TOKENS)
            if not summary.bytes:
                raise SummaryFailed("the answer has no text")
        except SummaryFailed as failure:
            state = msgspec.structs.replace(state, calls=state.calls + 1)
            error = f"the summariser failed: {failure}" if refused else ""
            return unchanged._replace(state=state, error=error, held=SUMMARISER_FAILED)
        text = Synthetic("summary", summary.bytes, summary.text)
        after = view_of(ledger, [*flat(pinned), ListMessage(inserted=text), *flat(groups[split:])])
        state = msgspec.structs.replace(state, summary_bytes=summary.bytes)
        return ListOutcome(after, state, (request.passed(given, after, summary_bytes=summary.bytes),))


def _whole(groups: list[MessageGroup], split: int) -> int | None:
    """The next place at which the list can be parted without parting a call from its results; None: there is none."""
    if split >= len(groups):
        return split if split == len(groups) else None
    while split < len(groups):
        behind = groups[split + 1] if split + 1 < len(groups) else None
        open_call = groups[split].has_calls and behind is not None and not behind.has_results
        if not groups[split].has_results and not open_call:
            return split
        split += 1
    return None
