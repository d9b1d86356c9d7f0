"""Where the texts of a stored session hold snippets: by the text index where it can say, else by reading all texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from guard_core.facts.lanes import Snippet, places_of
from guard_core.facts.texts import has_unspaced
from guard_core.ledger import Ints
from inspector.models import Session
from inspector.storage import convert
from inspector.storage.byte_cache import ByteCache
from inspector.storage.query_words import Query, Term, words_of
from inspector.storage.text_index import text_index

MOST_PLACES = 1_000  # messages with a snippet; one that more have is too common to be followed
LONGEST_PHRASE = 12  # words that the index is asked for; what it finds is read and compared whole
READ_BYTES = 8_000_000  # of a session that is read as a whole where the index does not help
AT_ONCE = 200  # messages in memory
CACHE_BYTES = 2_000_000
ENTRY_BYTES = 500


class Places(NamedTuple):
    """The events that hold each snippet; None: it is too common, or cannot be looked up in so large a session."""

    events: tuple[Ints | None, ...]


_cache: ByteCache[Places] = ByteCache(
    CACHE_BYTES,
    lambda places: sum(ENTRY_BYTES + (0 if events is None else events.nbytes) for events in places.events),
)


def places(row: Session, size: int, snippets: Sequence[Snippet]) -> Places:
    """Where a session holds snippets. `size`: the bytes of all its texts."""
    key = str(row.pk), row.revision, row.indexed, tuple(snippet.text for snippet in snippets)
    return _cache.get(key, lambda: _places(row, size, snippets))


def _places(row: Session, size: int, snippets: Sequence[Snippet]) -> Places:
    by_index = row.indexed >= row.events
    phrases = [_phrase(snippet.text) if by_index else None for snippet in snippets]
    candidates = [None if phrase is None else _candidates(row, phrase) for phrase in phrases]
    events: list[Ints | None] = [None] * len(snippets)
    looked_up = [number for number, some in enumerate(candidates) if some is not None and len(some) <= MOST_PLACES]
    for number, places in zip(looked_up, _verified(row, snippets, candidates, looked_up), strict=True):
        events[number] = places
    unasked = [number for number, phrase in enumerate(phrases) if phrase is None]
    if unasked and size <= READ_BYTES:
        wanted = [snippets[number] for number in unasked]
        for number, places in zip(unasked, places_of(wanted, enumerate(convert.stored_events(row))), strict=True):
            events[number] = places
    return Places(tuple(events))


def _phrase(text: str) -> Query | None:
    """The words of a snippet for the index; None where it has none, or where the index does not know where a word
    ends."""
    words = tuple(words_of(text).split())[:LONGEST_PHRASE]
    return Query(text, (Term(words, False),)) if words and not has_unspaced(text) else None


def _candidates(row: Session, phrase: Query) -> list[int]:
    return [place.seq for place in text_index().in_session(phrase, row, 0, MOST_PLACES + 1)]


def _verified(
    row: Session, snippets: Sequence[Snippet], candidates: Sequence[list[int] | None], numbers: Sequence[int]
) -> list[Ints]:
    """Which of the candidates hold the snippets as the engine compares them; each message is read once."""
    if not numbers:
        return []
    wanted = [snippets[number] for number in numbers]
    asked = sorted({event for number in numbers for event in candidates[number] or ()})
    parts = [
        places_of(wanted, sorted(convert.load_some_events(row, asked[first : first + AT_ONCE]).items()))
        for first in range(0, len(asked), AT_ONCE)
    ]
    empty = np.zeros(0, dtype=np.int64)
    return [np.concatenate([empty, *(part[place] for part in parts)]) for place in range(len(wanted))]
