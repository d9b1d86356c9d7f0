"""How many calls a stored session has left until the threshold of its agent's own rule."""

from __future__ import annotations

from guard_core.calls_left import ENOUGH, CallsLeft, calls_left
from guard_core.rules import agent_of
from guard_core.rules.counters import PROMPT, output_of, unit_of
from guard_core.rules.stretches import stretches_of
from inspector.models import Session
from inspector.storage import loading


def calls_left_of(row: Session) -> CallsLeft | None:
    """By the tokens of the answers since the last compaction, as its agent counts them, with their output where its
    rule has that; None where the rule gives no threshold in tokens, the threshold is reached, too few calls are known,
    or an older version stored the session."""
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
    return calls_left(row.threshold - counts[-1], counts) if counts else None
