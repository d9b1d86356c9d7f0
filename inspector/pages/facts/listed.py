"""The lanes of what a session proposes to follow, computed once for its recording and for each replay."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from guard_core.facts.lanes import Lane, Snippet, worst_first
from guard_core.facts.proposals import details, events_to_read
from inspector.pages.session.frame import Frame
from inspector.pages.shared.snippets import instructions_of, search_for
from inspector.replays.analysis import StoredFacts
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 2_000_000
QUICK_STEPS = 2_000  # the lists of 50,000 steps with 235 compactions take a second and a half of a processor
BYTES_A_LANE, BYTES_A_CHANGE = 1_000, 150
INSTRUCTIONS, DETAILS = SHOWN = ("instructions", "details")


@dataclass(frozen=True)
class ListedLanes:
    """The lanes of one list, worst first, and how many of its texts could not be followed. It has the facts that it
    is of, so that its key in the cache holds as long as it does."""

    lanes: tuple[Lane, ...]
    left_out: int
    facts: StoredFacts


def listed(page: Frame, show: str) -> ListedLanes:
    """The lanes of a list, one of SHOWN, on the side of a page."""
    return _cache.get(_key(page, show), lambda: _follow(page, show))


def is_at_hand(page: Frame, show: str) -> bool:
    """Is that list computed already, or quick to compute."""
    return page.count <= QUICK_STEPS or _cache.known(_key(page, show)) is not None


def lanes_of(page: Frame, snippets: tuple[Snippet, ...]) -> tuple[tuple[Lane, ...], int]:
    """The lanes of snippets on the side of a page, and how many could not be followed."""
    search = search_for(page.row, page.analysis, page.side, snippets)
    return search.lanes(), len(snippets) - len(search.snippets)


def _key(page: Frame, show: str) -> tuple[Hashable, ...]:
    replay = page.choice if page.side == "replayed" else None
    return id(page.analysis.facts), page.row.indexed, replay, show


def _follow(page: Frame, show: str) -> ListedLanes:
    if show == INSTRUCTIONS:
        snippets = instructions_of(page.row, page.analysis)
    else:
        snippets = details(loading.load_messages(page.row, events_to_read(page.analysis.ledger).tolist()))
    lanes, left_out = lanes_of(page, snippets)
    return ListedLanes(worst_first(lanes), left_out, page.analysis.facts)


_cache: ByteCache[ListedLanes] = ByteCache(
    CACHE_BYTES, lambda known: sum(BYTES_A_LANE + BYTES_A_CHANGE * len(lane.changes) for lane in known.lanes)
)
