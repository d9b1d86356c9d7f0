"""The steps of a session whose requests were the first to hold the matches of a text search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guard_core.decimation import Ints
from inspector.models import Session
from inspector.storage import search
from inspector.storage.query_words import Query


def matched_steps(row: Session, query: Query, at: Ints, compactions: Sequence[int]) -> Ints:
    """Steps with matches, ascending, counting from 0. `at`: where the request of each step ends in the log;
    `compactions`: the steps of the recorded compactions that count, whose summaries are searched, too; -1 for one that
    no request followed, which marks no step."""
    if not len(at) or not query:
        return np.empty(0, dtype=np.int64)
    events = np.array(search.events(query, row), dtype=np.int64)
    places = {place.compaction for place in search.summary_hits(query, row)}
    summaries = [step for place, step in enumerate(compactions) if place in places and step >= 0]
    steps = np.concatenate([np.searchsorted(at, events, side="right"), np.array(summaries, dtype=np.int64)])
    return np.unique(np.minimum(steps, len(at) - 1)).astype(np.int64)
