"""What each request of a session still holds: instructions, details, and any text that is typed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from guard_core.facts.lanes import Snippet
from guard_core.facts.proposals import TYPED
from guard_core.facts.words import METHOD, blind_words, summary_words
from guard_core.quoting import normalised
from inspector.pages.facts import presenter as present
from inspector.pages.facts.listed import INSTRUCTIONS, QUICK_STEPS, SHOWN, lanes_of, listed
from inspector.pages.session.frame import Frame, frame, number
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.paging import pager
from inspector.pages.shared.parts import visible
from inspector.storage.snippets import MOST_PLACES

ROWS = 40  # of one page: with at most 7 shapes in each picture about 1,000 elements
LONGEST = 300  # characters of a typed text


@require_safe
def session_facts(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The ledger of instructions, or of details; with ?q= the lane of a text, under ?policy= those of a replay.

    The lane of a text in a long session does not wait for the ledger: the page asks for it when it comes into sight.
    """
    page = frame(request, session_id)
    if page.choice.changed and "side" not in request.GET and page.analysis.diverges:
        page = replace(page, side="replayed")
    show = request.GET.get("show", "")
    show = show if show in SHOWN else INSTRUCTIONS
    typed = request.GET.get("q", "").replace("\x00", " ").strip()[:LONGEST]
    is_part = wants_part(request, "ledger")
    is_later = typed and "show" not in request.GET and page.count > QUICK_STEPS
    tabs = [
        {"label": name, "url": _url(page, show=name if name != INSTRUCTIONS else ""), "current": name == show}
        for name in SHOWN
    ]
    context = {
        **page.context("facts"),
        "sides": _sides(page),
        "policy": page.choice.words() if page.side == "replayed" else "",
        "method": METHOD,
        "query": typed,
        "fields": {**page.choice.pairs(), **({"side": page.shown_side} if page.shown_side else {})},
        "action": page.paths["facts"],
        **({} if is_part else _typed(page, typed)),
        "show": show,
        "tabs": tabs,
        **({"later": _url(page, q=typed, show=show)} if is_later else _listed(page, show)),
    }
    return render_part(request, "ledger", "inspector/facts/_ledger.html", "inspector/facts/index.html", context)


def _typed(page: Frame, typed: str) -> dict[str, Any]:
    """The lane of a typed text; a reason where it cannot be followed."""
    if not typed:
        return {}
    if not normalised(typed):
        return {"untold": "Nothing to search for in this text."}
    lanes, left_out = lanes_of(page, (Snippet(TYPED, typed),))
    if left_out:
        return {"untold": f"More than {MOST_PLACES:,} messages have this text, or the index cannot look it up."}
    lane = lanes[0]
    if not lane.changes:
        words = f"“{visible(typed)}” as whole words, and no summary in a request says it"
        side = "replay" if page.side == "replayed" else "recording"
        return {"untold": f"No request of the {side} has {words}."}
    return {"lane": present.row(lane, page), "changes": present.changes(lane, page)}


def _listed(page: Frame, show: str) -> dict[str, Any]:
    """A window of the ledger, worst first."""
    known = listed(page, show)
    first = number(page.request, "from", 1, 1, max(1, len(known.lanes))) - 1
    notes = (
        summary_words(known.lanes, has_system_prompt=page.analysis.facts.has_system_prompt),
        blind_words(page.analysis.facts) if page.side == "recorded" else "",
    )
    rows = pager(len(known.lanes), first, ROWS, lambda row: _url(page, show=show, **{"from": row}))
    return {
        "headline": " ".join(filter(None, notes)) if show == INSTRUCTIONS else "",
        "rows": [present.row(lane, page) for lane in known.lanes[rows.shown]],
        "pager": rows,
        "left_out": counted(known.left_out, "text") if known.left_out else "",
    }


def _sides(page: Frame) -> list[dict[str, Any]]:
    """The two sides as links, where a replay is chosen that differs from the recording."""
    if not page.analysis.diverges:
        return []
    query = page.request.GET.get("q", "")[:LONGEST]
    return [
        {
            "label": side,
            "url": page.paths["facts"] + page.choice.query(side=side, q=query),
            "current": side == page.side,
        }
        for side in ("recorded", "replayed")
    ]


def _url(page: Frame, **more: Any) -> str:
    side = page.side if page.choice.changed else page.shown_side
    return page.paths["facts"] + page.choice.query(side=side, **more)
