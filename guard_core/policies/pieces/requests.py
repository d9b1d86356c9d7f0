"""The messages of the person that agents keep when all else becomes a summary."""

from __future__ import annotations

import numpy as np

from guard_core.costs import TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.views import Span

BYTES_PER_TOKEN = 4  # ceil(bytes / 4): Codex, specification of policies section 4.1; taken for the others, too


def newest_requests(ledger: Ledger, stop: int, budget: int) -> tuple[Span, ...]:
    """The newest messages of the person before an event within `budget` tokens, in the log's order; the one that does
    not fit is cut in its middle to what is left, and the walk ends."""
    return tuple(reversed(_within(ledger, requests_before(ledger, stop)[::-1], budget)))


def requests_before(ledger: Ledger, stop: int) -> list[int]:
    """The events before `stop` that are messages of the person."""
    events: list[int] = ledger.turn_starts[: np.searchsorted(ledger.turn_starts, stop)].tolist()
    return events


def request_tokens(ledger: Ledger, event: int) -> int:
    """What a message of the person is estimated at."""
    sizes = ledger.prefix_by("bytes of texts", _text_bytes)
    return -(-(sizes.item(event + 1) - sizes.item(event)) // BYTES_PER_TOKEN)


def _within(ledger: Ledger, events: list[int], budget: int) -> list[Span]:
    """The first of some events within a budget; the one that does not fit is cut to what is left, and ends it."""
    left, spans = budget, []
    for event in events:
        tokens = request_tokens(ledger, event)
        if tokens > left:
            if left:
                spans.append(Span(event, event + 1, f"cut:{left * BYTES_PER_TOKEN}"))
            break
        spans.append(Span(event, event + 1))
        left -= tokens
    return spans


def _text_bytes(ledger: Ledger) -> Ints:
    """UTF-8 bytes of the texts of each event."""
    return ledger.by_event(np.where(ledger.parts["kind"] == TEXT, ledger.parts["bytes"], 0))
