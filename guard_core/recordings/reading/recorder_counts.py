"""What a recorder says a compaction began at, held against the calls that the provider counted before it.

Every recorder whose files we have (Claude Code, pi, Qwen Code, Inspect) writes down at least the last counted prompt,
and at most that prompt, its answer and what followed it. A figure far from both is a slip of the writer or of whoever
edited the file, and nothing is computed from it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import MutableSequence, Sequence
from operator import attrgetter

import msgspec

from guard_core.events import Event, MediaPart, ReasoningPart, part_text, utf8_bytes
from guard_core.sessions import ModelCall, RecordedCompaction

LEAST_SHARE = 0.8  # of the last counted prompt; in the recordings at hand a recorder's figure is 1.00 to 1.11 of it
LOOKED_AT = 4  # a figure above so many times that prompt is held against what was added since
MOST_UNSEEN = 20_000  # tokens that a request may grow by besides the text in the file: attached files, reminders


def checked(
    compactions: Sequence[RecordedCompaction], calls: Sequence[ModelCall], events: MutableSequence[Event]
) -> tuple[RecordedCompaction, ...]:
    """The compactions, without the figures that the calls before them contradict; a note on each says so.

    Edits of single messages are left as they are: whether they count as compactions depends on that figure.
    """
    counted = [call for call in calls if call.prompt_tokens] if any(item.tokens_before for item in compactions) else []
    previous, result = 0, []
    for item in compactions:
        last = bisect_left(counted, item.at, key=attrgetter("at")) - 1
        tokens = item.tokens_before or 0
        if tokens > 0 and item.kind != "edit" and last >= 0 and counted[last].at >= previous:
            prompt = counted[last].prompt_tokens or 0
            if tokens < LEAST_SHARE * prompt or tokens > _most(tokens, counted[last], item.at, events):
                note = f"The recorder's {tokens:,} tokens before it are not used: the call before had {prompt:,}."
                note = f"{item.note} {note}".strip()
                item = msgspec.structs.replace(item, tokens_before=None, note=note)
        previous = item.at
        result.append(item)
    return tuple(result)


def _most(tokens: int, call: ModelCall, stop: int, events: MutableSequence[Event]) -> float:
    """No request that follows this call can have more tokens: a byte costs at most one. No limit where there are
    pictures, whose cost is not their bytes, or where the figure is not worth a look."""
    prompt = call.prompt_tokens or 0
    if tokens <= LOOKED_AT * prompt:
        return float("inf")
    added = [part for index in range(call.at, stop) for part in events[index].parts]
    if any(isinstance(part, MediaPart) for part in added):
        return float("inf")
    size = sum(
        utf8_bytes(part_text(part)) + (part.opaque_bytes if isinstance(part, ReasoningPart) else 0) for part in added
    )
    return prompt + (call.output_tokens or 0) + size + MOST_UNSEEN
