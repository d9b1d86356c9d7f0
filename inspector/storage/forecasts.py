"""How many calls a stored session has left until the threshold of its agent's own rule."""

from __future__ import annotations

from guard_core.calls_left import ENOUGH, CallsLeft, calls_left
from inspector.models import Session
from inspector.storage import convert


def calls_left_of(row: Session) -> CallsLeft | None:
    """By the prompts that the provider reported since the last compaction; None where the rule gives no threshold, the
    threshold is reached, too few calls are known, or an older version stored the session."""
    if row.threshold_source != "rule" or not row.threshold:
        return None
    try:
        head = convert.load_head(row)
    except convert.Outdated:
        return None
    start = max((item.at for item in head.compactions), default=0)
    counts: list[int] = []
    for call in reversed(head.calls):
        if call.at < start or len(counts) > ENOUGH:
            break
        if call.prompt_tokens:
            counts.append(call.prompt_tokens)
    counts.reverse()
    return calls_left(row.threshold - counts[-1], counts) if counts else None
