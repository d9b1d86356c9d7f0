"""What ContextGuard remembers between steps, and the state keys it keeps it under.

Source: specification of ContextGuard, section 2. Numbers may be ints or floats (a JSON round trip); anything else
reads as 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from guard_core.events import utf8_bytes
from guard_core.summaries.base import Summary

SUMMARY = "__context_guard_summary_"
SUMMARIZED_AT = "__context_guard_summarized_at_"
CONTENTS = "__context_guard_contents_at_compaction_"
REAL_TOKENS = "__context_guard_real_tokens_"
LAST_HEURISTIC = "__context_guard_last_heuristic_"
TODOS = "todos"


class GuardMemory(msgspec.Struct, frozen=True):
    """Persisted: summary, watermark, real tokens, last heuristic, summarized_at. The rest is of this run alone.

    `request_event` is the event that began the turn of the last compaction, for the profile that repeats its request.
    """

    summary_bytes: int = 0
    summary_text: str | None = None
    watermark: int = 0
    real_tokens: int = 0
    last_heuristic: int = 0
    summarized_at: int = 0
    real_as_of: int = -1
    calls: int = 0
    request_event: int = -2
    request_bytes: int = 0
    request_text: str | None = None

    @property
    def summary(self) -> Summary:
        return Summary(self.summary_bytes, self.summary_text)


def load_memory(state: Mapping[str, Any], agent: str) -> GuardMemory:
    """What an agent's state holds."""
    summary = state.get(SUMMARY + agent)
    text = summary if isinstance(summary, str) else ""
    return GuardMemory(
        summary_bytes=utf8_bytes(text),
        summary_text=text,
        watermark=_number(state.get(CONTENTS + agent)),
        real_tokens=_number(state.get(REAL_TOKENS + agent)),
        last_heuristic=_number(state.get(LAST_HEURISTIC + agent)),
        summarized_at=_number(state.get(SUMMARIZED_AT + agent)),
    )


def dump_memory(memory: GuardMemory, agent: str) -> dict[str, Any]:
    """The state keys of an agent; a summary of which only the size is known is left out."""
    state: dict[str, Any] = {
        CONTENTS + agent: memory.watermark,
        REAL_TOKENS + agent: memory.real_tokens,
        LAST_HEURISTIC + agent: memory.last_heuristic,
        SUMMARIZED_AT + agent: memory.summarized_at,
    }
    return state if memory.summary_text is None else {SUMMARY + agent: memory.summary_text, **state}


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if math.isfinite(value) else 0
