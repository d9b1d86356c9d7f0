"""What a recorder says a compaction began at, held against the calls that the provider counted before it.

Every recorder whose files we have (Claude Code, pi, Qwen Code, Inspect) writes down at least the last counted prompt. A
figure far below it, or above every window, is a slip of the writer or of whoever edited the file, and nothing is
computed from it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

import msgspec

from guard_core.defaults import MAX_WINDOW
from guard_core.sessions import ModelCall, RecordedCompaction

LEAST_SHARE = 0.8  # of the last counted prompt; in the recordings at hand a recorder's figure is 1.00 to 1.11 of it


def checked(compactions: Sequence[RecordedCompaction], calls: Sequence[ModelCall]) -> tuple[RecordedCompaction, ...]:
    """The compactions, without the figures that the calls before them contradict; a note on each says so.

    Edits of single messages are left as they are: whether they count as compactions depends on that figure.
    """
    counted = [call for call in calls if call.prompt_tokens] if any(item.tokens_before for item in compactions) else []
    previous, result = 0, []
    for item in compactions:
        last = bisect_left(counted, item.at, key=attrgetter("at")) - 1
        tokens = item.tokens_before or 0
        if tokens > MAX_WINDOW and item.kind != "edit":
            note = f"The recorder's {tokens:,} tokens before it are not used: no model has a window of so many."
            item = msgspec.structs.replace(item, tokens_before=None, note=f"{item.note} {note}".strip())
        elif tokens > 0 and item.kind != "edit" and last >= 0 and counted[last].at >= previous:
            prompt = counted[last].prompt_tokens or 0
            if tokens < LEAST_SHARE * prompt:
                note = f"The recorder's {tokens:,} tokens before it are not used: the call before had {prompt:,}."
                note = f"{item.note} {note}".strip()
                item = msgspec.structs.replace(item, tokens_before=None, note=note)
        previous = item.at
        result.append(item)
    return tuple(result)
