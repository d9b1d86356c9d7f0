"""The columns of a session's model calls: what was recorded of each, and where in the log and its turns it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guard_core.compaction_bases import CompactionBase
from guard_core.costs import STARTS_TURN, Ints
from guard_core.sessions import ModelCall

STEP_COLUMNS = (
    "at",  # events in the log when the request was built
    "response",  # index of the answering event, -1: none
    "prompt_tokens",  # reported by the provider, -1: not reported
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "pending_tokens",  # what the agent estimates of what was appended since the last answer, -1: not known
    "epoch",  # index of the recorded compaction whose base this call was built on, -1: none yet
    "user_event",  # index of the event that began the user turn this call belongs to, -1: none
    "turn",  # number of that turn, from 0; -1 before the first
    "model",  # which model answered, numbered in the order of their first calls; -1: not recorded
)
CALL_COLUMNS = (
    "at",
    "response",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "pending_tokens",
    "model",
)


def call_columns(calls: Sequence[ModelCall], models: dict[str, int]) -> dict[str, Ints]:
    """The columns of CALL_COLUMNS. `models` numbers the models known so far; new ones are added to it."""
    for call in calls:
        if call.model:
            models.setdefault(call.model, len(models))

    def column(name: str) -> Ints:
        values = [getattr(call, name) for call in calls]
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)

    columns = {name: column(name) for name in CALL_COLUMNS[:-1]}
    return {**columns, "model": np.array([models.get(call.model, -1) for call in calls], dtype=np.int64)}


def step_columns(calls: dict[str, Ints], events: dict[str, Ints], bases: tuple[CompactionBase, ...]) -> dict[str, Ints]:
    """The columns of STEP_COLUMNS: those of the calls, and what follows from the log and the recorded compactions."""
    starts = np.flatnonzero(events["flags"] & STARTS_TURN)
    boundaries = np.array([base.at for base in bases], dtype=np.int64)
    turn = np.searchsorted(starts, calls["at"], side="left") - 1
    columns = {
        **calls,
        "epoch": np.searchsorted(boundaries, calls["at"], side="right") - 1,
        "user_event": np.concatenate([np.array([-1], dtype=np.int64), starts])[turn + 1],
        "turn": turn,
    }
    return {name: columns[name] for name in STEP_COLUMNS}
