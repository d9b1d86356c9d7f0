"""A session without any model call: no request is known, so that only its messages are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from guard_core.costs import HAS_RESULT, MODEL, USER
from guard_core.events import Event
from guard_core.ledger import Ints, Ledger
from guard_core.sessions import Provenance, Sourced
from inspector.pages.shared.numbers import counted, percent, tokens
from inspector.pages.shared.parts import role_of, summary_line

FIRST = 30  # messages that are named
HEURISTIC = ("text_tokens", "inline_tokens", "metadata_tokens")  # what ContextGuard's estimate adds up


def known(ledger: Ledger, window: Sourced, load: Callable[[int, int], Sequence[Event]]) -> dict[str, Any]:
    """How many messages of which kind, how large by the heuristic estimate, and how the first of them begin."""
    sizes = np.sum([ledger.events[name] for name in HEURISTIC], axis=0)
    total = int(sizes.sum())
    return {
        "messages": counted(ledger.event_count, "message"),
        "tokens": tokens(total),
        "share": percent(total, window.value, 1),
        "window": tokens(window.value),
        "source": Provenance.RECOMPUTED.value,
        "kinds": _kinds(ledger.events["flags"], sizes, total),
        "first": [
            {"role": role_of(event), "text": summary_line(event), "tokens": tokens(int(sizes[seq]))}
            for seq, event in enumerate(load(0, min(FIRST, ledger.event_count)))
        ],
        "more": max(0, ledger.event_count - FIRST),
    }


def _kinds(flags: Ints, sizes: Ints, total: int) -> list[dict[str, str]]:
    result = (flags & HAS_RESULT) > 0
    groups = {
        "user": ((flags & USER) > 0) & ~result,
        "model": ((flags & MODEL) > 0) & ~result,
        "tool results": result,
        "other": (flags & (USER | MODEL | HAS_RESULT)) == 0,
    }
    return [
        {
            "name": name,
            "count": f"{int(group.sum()):,}",
            "tokens": tokens(int(sizes[group].sum())),
            "percent": f"{100 * int(sizes[group].sum()) / max(1, total):.1f}",
        }
        for name, group in groups.items()
        if group.any()
    ]
