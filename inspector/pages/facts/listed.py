"""The lanes of what a session proposes to follow, computed once for its recording and for each replay."""

from __future__ import annotations

from dataclasses import dataclass

from guard_core.facts.lanes import Lane, Snippet, worst_first
from guard_core.facts.proposals import details, events_to_read
from inspector.pages.session.frame import Frame
from inspector.pages.shared.snippets import instructions_of, search_for
from inspector.replays.analysis import StoredFacts
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 2_000_000
# Of 50,000 steps with 235 compactions a list takes a second and a half of a processor, and again a third of the time of
# a page with the lane of a typed text, where it is computed already.
QUICK_STEPS = 2_000
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
    replay = page.choice if page.side == "replayed" else None
    key = id(page.analysis.facts), page.row.indexed, replay, show
    return _cache.get(key, lambda: _follow(page, show))


def lanes_of(page: Frame, snippets: tuple[Snippet, ...]) -> tuple[tuple[Lane, ...], int]:
    """The lanes of snippets on the side of a page, and how many could not be followed."""
    search = search_for(page.row, page.analysis, page.side, snippets)
    return search.lanes(), len(snippets) - len(search.snippets)


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
