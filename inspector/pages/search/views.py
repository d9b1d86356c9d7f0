"""Text search over all sessions and over one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from inspector.jobs.indexing import TEXT_INDEX, pending
from inspector.models import Session
from inspector.pages.search import presenter as present
from inspector.pages.session.frame import frame
from inspector.pages.shared.htmx import wants_part
from inspector.pages.shared.numbers import message_index, message_number
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.project import project_of
from inspector.replays.analysis import ReplayUnderWay
from inspector.replays.processes import ProcessState
from inspector.storage import loading
from inspector.storage import search as searching
from inspector.storage.query_words import Query, parse
from inspector.storage.text_index import COUNT_UP_TO

SESSIONS = 15  # a page over all sessions
EACH = 3  # hits shown of each of them
HITS = 50  # a page over one session
MAX_ROW = 2**62


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """The newest sessions that have the words, a few hits of each."""
    query = parse(request.GET.get("q", ""))
    before = _whole(request.GET.get("before", ""), MAX_ROW)
    matches = searching.everywhere(project_of(request), query, before or None, SESSIONS + 1, EACH)
    shown = matches[:SESSIONS]
    context = {
        "query": query,
        "found": present.sessions(shown, query),
        "older": present.address(query, before=shown[-1].before) if len(matches) > SESSIONS else "",
        **_state(pending().filter(project=project_of(request)).count(), query),
    }
    return render(request, _template(request, "all"), context)


@require_safe
def session_search(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The hits of one session, in its order."""
    session = get_object_or_404(
        Session.objects.of(project_of(request)).select_related("recording"), pk=pk, deleted=None
    )
    query = parse(request.GET.get("q", ""))
    start = max(0, message_index(_whole(request.GET.get("from", ""), 2**31 - 1)))
    places = searching.hits(query, session, start, HITS + 1)
    inserted = searching.summary_hits(query, session, HITS)
    count = searching.count(query, session) + len(inserted)
    context = {
        "session": {"id": session.pk, "title": in_order(session.title)},
        "query": query,
        "hits": [
            *(present.summaries(session, inserted, query) if start == 0 else []),
            *present.hits(session, places[:HITS], query),
        ],
        "count": f"more than {COUNT_UP_TO:,}" if count > COUNT_UP_TO else f"{count:,}",
        "is_one": count == 1,
        "more": present.address(query, **{"from": message_number(places[HITS].seq)}) if len(places) > HITS else "",
        **_state(int(session.indexed < session.events), query),
        **_around(request, pk, query, has_matches=bool(places or inserted)),
    }
    if session.events:
        context["share"] = 100 * session.indexed // session.events
    return render(request, _template(request, "session"), context)


def _around(request: HttpRequest, pk: UUID, query: Query, *, has_matches: bool) -> dict[str, Any]:
    """The tabs of the session, and where the matches are in it; `curve_waits` while its replay is computed, nothing
    while its columns are. Raises ReplayUnderWay once it is done: the process that holds it makes the page."""
    try:
        page = frame(request, pk)
        return {**present.tabs(page), **(present.marks(page, query) if has_matches else {})}
    except loading.Outdated:
        return {}
    except ReplayUnderWay as under_way:
        if under_way.replay.state is ProcessState.READY:
            raise
        return {"curve_waits": has_matches and under_way.replay.state is not ProcessState.ENDED}


def _state(waiting: int, query: Query) -> dict[str, Any]:
    if waiting:
        TEXT_INDEX.ensure_prepared()
    return {"waiting": waiting, "address": present.address(query)}


def _template(request: HttpRequest, name: str) -> str:
    return f"inspector/search/{'_' if wants_part(request, 'hits') else ''}{name}.html"


def _whole(text: str, largest: int) -> int:
    return min(int(text), largest) if text.isascii() and text.isdigit() and len(text) < 20 else 0
