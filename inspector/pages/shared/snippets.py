"""Snippets of a stored session: its instructions, and a search for some in its requests, recorded or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guard_core.events import Event
from guard_core.facts.lanes import Search, Snippet
from guard_core.facts.proposals import events_to_read, instructions
from guard_core.outcomes.sent import SentRequests
from inspector.models import Session
from inspector.replays.analysis import Analysis, StoredFacts
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache
from inspector.storage.snippets import places

CACHE_BYTES = 2_000_000
BYTES_A_SNIPPET = 1_000


class _Instructions(NamedTuple):
    """The instructions of a recording. It has the facts that it is of, so that its key in the cache holds as long as
    it does."""

    snippets: tuple[Snippet, ...]
    facts: StoredFacts


def instructions_of(row: Session, analysis: Analysis) -> tuple[Snippet, ...]:
    """The instructions of a session, looked for once: those of 1,000 messages take half a second of a processor."""

    def find() -> _Instructions:
        events = loading.load_messages(row, events_to_read(analysis.ledger).tolist())
        return _Instructions(instructions(analysis.head, events), analysis.facts)

    return _cache.get(id(analysis.facts), find).snippets


_cache: ByteCache[_Instructions] = ByteCache(CACHE_BYTES, lambda known: BYTES_A_SNIPPET * (1 + len(known.snippets)))


def search_for(row: Session, analysis: Analysis, side: str, snippets: Sequence[Snippet]) -> Search:
    """The search for those of the snippets that can be followed (`inspector.storage.snippets`), on one side."""
    known = places(row, int(analysis.ledger.events["bytes"].sum()), snippets)
    followed = [(snippet, events) for snippet, events in zip(snippets, known, strict=True) if events is not None]
    sent = (
        SentRequests.replayed(analysis.facts, analysis.replayed)
        if side == "replayed"
        else SentRequests.recorded(analysis.facts)
    )

    def message(event: int) -> Event:
        return dict(loading.load_messages(row, [event]))[event]

    return Search(sent, tuple(snippet for snippet, _ in followed), tuple(events for _, events in followed), message)
