"""How much room a stored session has left until the threshold of its agent's own rule, in tokens and in calls."""

from __future__ import annotations

from typing import NamedTuple

from guard_core.calls_left import ENOUGH, CallsLeft, calls_left
from guard_core.rules import agent_of
from guard_core.rules.counters import PROMPT, output_of, unit_of
from guard_core.rules.stretches import stretches_of
from inspector.models import Session
from inspector.storage import loading


class Room(NamedTuple):
    """`tokens` until the threshold, none or fewer where it is reached; `calls` is None where too few are known."""

    tokens: int
    calls: CallsLeft | None


def room_of(row: Session) -> Room | None:
    """By the tokens of the answers since the last compaction, as its agent counts them, with their output where its
    rule has that; None where the rule gives no threshold in tokens, none of these calls is counted, or an older version
    stored the session."""
    if row.threshold_source != "rule" or not row.threshold:
        return None
    try:
        head = loading.load_head(row)
    except loading.Outdated:
        return None
    agent = agent_of(head)
    name = PROMPT if agent is None else agent.counter(stretches_of(head)[-1]).name
    if unit_of(name) != "tokens":
        return None
    start = max((item.at for item in head.compactions), default=0)
    counts: list[int] = []
    for call in reversed(head.calls):
        if call.at < start or len(counts) > ENOUGH:
            break
        if call.prompt_tokens:
            output = 0 if name == PROMPT else max(0, output_of(call))
            counts.append(call.prompt_tokens + output)
    counts.reverse()
    room = row.threshold - counts[-1] if counts else 0
    return Room(room, calls_left(room, counts)) if counts else None
