"""A search for snippets in the requests of a stored session, recorded or replayed."""

from __future__ import annotations

from collections.abc import Sequence

from guard_core.events import Event
from guard_core.facts.lanes import Search, Snippet
from guard_core.outcomes.sent import SentRequests
from inspector.models import Session
from inspector.replays.analysis import Analysis
from inspector.storage import convert
from inspector.storage.snippets import places


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
        return dict(convert.load_messages(row, [event]))[event]

    return Search(sent, tuple(snippet for snippet, _ in followed), tuple(events for _, events in followed), message)
