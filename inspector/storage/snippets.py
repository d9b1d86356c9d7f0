"""Where the texts of a stored session hold snippets: by the text index where it can say, else by reading all texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from guard_core.facts.lanes import Snippet, places_of
from guard_core.facts.texts import has_unspaced
from guard_core.ledger import Ints
from inspector.models import Session
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache
from inspector.storage.query_words import Query, QueryTerm, words_of
from inspector.storage.text_index import text_index

MOST_PLACES = 1_000  # messages with a snippet; one that more have is too common to be followed
LONGEST_PHRASE = 12  # words that the index is asked for; what it finds is read and compared whole
READ_BYTES = 8_000_000  # of a session that is read as a whole where the index does not help
AT_ONCE = 200  # messages in memory
FIRST_READ = 2  # messages that are read for one that holds a snippet; then eight times as many each time
CACHE_BYTES = 2_000_000
ENTRY_BYTES = 500


class Places(NamedTuple):
    """The events that hold a snippet; None: it is too common, or cannot be looked up in so large a session."""

    events: Ints | None


_cache: ByteCache[Places] = ByteCache(
    CACHE_BYTES, lambda places: ENTRY_BYTES + (0 if places.events is None else places.events.nbytes)
)
_occurrences: ByteCache[tuple[bool | None, ...]] = ByteCache(CACHE_BYTES, lambda answers: ENTRY_BYTES * len(answers))


def places(row: Session, size: int, snippets: Sequence[Snippet]) -> list[Ints | None]:
    """Where a session holds each snippet; None where `Places` has none. `size`: the bytes of all its texts."""
    keys = [(str(row.pk), row.revision, row.indexed, snippet.text) for snippet in snippets]
    known = [_cache.known(key) for key in keys]
    missing = [number for number, value in enumerate(known) if value is None]
    for number, events in zip(missing, _places(row, size, [snippets[number] for number in missing]), strict=True):
        known[number] = _cache.get(keys[number], partial(Places, events))
    return [value.events for value in known if value is not None]


def occur_before(row: Session, size: int, snippets: Sequence[Snippet], event: int) -> tuple[bool | None, ...]:
    """Does a message before `event` hold each snippet; None where that cannot be looked up. Fewer messages are read
    than for its places: up to the first that does."""
    key = str(row.pk), row.revision, row.indexed, event, tuple(snippet.text for snippet in snippets)
    return _occurrences.get(key, lambda: _occur_before(row, size, snippets, event))


def _occur_before(row: Session, size: int, snippets: Sequence[Snippet], event: int) -> tuple[bool | None, ...]:
    phrases = [_phrase(snippet.text) if row.indexed >= row.events else None for snippet in snippets]
    answers = [
        None if phrase is None else _occurs_before(row, snippet, phrase, event)
        for snippet, phrase in zip(snippets, phrases, strict=True)
    ]
    unasked = [number for number, phrase in enumerate(phrases) if phrase is None]
    for number, events in zip(unasked, _read(row, size, [snippets[number] for number in unasked]), strict=True):
        answers[number] = None if events is None else bool((events < event).any())
    return tuple(answers)


def _occurs_before(row: Session, snippet: Snippet, phrase: Query, event: int) -> bool | None:
    start, limit = 0, FIRST_READ
    while limit <= MOST_PLACES:
        candidates = [place.seq for place in text_index().in_session(phrase, row, start, limit)]
        asked = [seq for seq in candidates if seq < event]
        if asked and len(places_of((snippet,), loading.load_messages(row, asked))[0]):
            return True
        if len(asked) < limit:
            return False
        start, limit = asked[-1] + 1, 8 * limit
    return None


def _places(row: Session, size: int, snippets: Sequence[Snippet]) -> list[Ints | None]:
    by_index = row.indexed >= row.events
    phrases = [_phrase(snippet.text) if by_index else None for snippet in snippets]
    candidates = [None if phrase is None else _candidates(row, phrase) for phrase in phrases]
    events: list[Ints | None] = [None] * len(snippets)
    looked_up = [number for number, some in enumerate(candidates) if some is not None and len(some) <= MOST_PLACES]
    for number, places in zip(looked_up, _verified(row, snippets, candidates, looked_up), strict=True):
        events[number] = places
    unasked = [number for number, phrase in enumerate(phrases) if phrase is None]
    for number, read in zip(unasked, _read(row, size, [snippets[number] for number in unasked]), strict=True):
        events[number] = read
    return events


def _read(row: Session, size: int, snippets: Sequence[Snippet]) -> Sequence[Ints | None]:
    """The places of snippets that the index cannot look up: by reading all texts, unless they are too many."""
    if not snippets or size > READ_BYTES:
        return [None] * len(snippets)
    return places_of(snippets, enumerate(loading.stored_events(row)))


def _phrase(text: str) -> Query | None:
    """The words of a snippet for the index; None where it has none, or where the index does not know where a word
    ends."""
    words = tuple(words_of(text).split())[:LONGEST_PHRASE]
    return Query(text, (QueryTerm(words, False),)) if words and not has_unspaced(text) else None


def _candidates(row: Session, phrase: Query) -> list[int]:
    """Messages that may hold a text, by the index; one more than `MOST_PLACES` shows that there are too many."""
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
        places_of(wanted, loading.load_messages(row, asked[first : first + AT_ONCE]))
        for first in range(0, len(asked), AT_ONCE)
    ]
    empty = np.zeros(0, dtype=np.int64)
    return [np.concatenate([empty, *(part[place] for part in parts)]) for place in range(len(wanted))]
