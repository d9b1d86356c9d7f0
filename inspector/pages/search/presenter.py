"""Hits of a text search: where they are, and the words around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse

from guard_core.facts.searchable import text_of
from guard_core.recordings import LABELS
from inspector.models import Session
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import compaction_number, message_number, step_number
from inspector.pages.shared.parts import in_order, role_of, visible
from inspector.storage import loading
from inspector.storage.query_words import Query, snippet
from inspector.storage.search import SessionHits, SummaryPlace, contents
from inspector.storage.text_index import TextPlace


def sessions(matches: list[SessionHits], query: Query) -> list[dict[str, Any]]:
    """Each session with its first hits."""
    return [
        {
            "title": in_order(item.session.title),
            "url": item.session.get_absolute_url(),
            "format": LABELS.get(item.session.format, item.session.format),
            "model": item.session.model,
            "added": item.session.created,
            "hits": [*summaries(item.session, item.summaries, query), *hits(item.session, list(item.hits), query)],
            "more": reverse("session_search", args=[item.session.pk]) + address(query) if item.more else "",
        }
        for item in matches
    ]


def hits(session: Session, places: list[TextPlace], query: Query) -> list[dict[str, Any]]:
    """Each hit with its step and the words around it."""
    if not places:
        return []
    stored = contents(places)
    at = _steps_at(session)
    steps = reverse("session_steps", args=[session.pk])
    rows = []
    for place in places:
        content = stored[place.payload_id]
        step, message = None if at is None else _step(at, place.seq), message_number(place.seq)
        url = session.get_absolute_url()
        if step is not None:  # on whose page the matches stay marked
            url = f"{steps}?{urlencode({'at': step_number(step), 'search': query.text})}"
        rows.append(
            {
                "step": None if step is None else f"{step_number(step):,}",
                "message": f"{message:,}",
                "url": url if step is None else f"{url}#m{message}",
                "who": role_of(content),
                "pieces": [(visible(piece.text), piece.hit) for piece in snippet(text_of(content.parts), query)],
            }
        )
    return rows


def _steps_at(session: Session) -> Any:
    """Where the request of each step ends in the log; None while the columns of an older session are made again."""
    try:
        return loading.load_only_ledger(session).steps["at"]
    except loading.Outdated:
        return None


def summaries(session: Session, places: Sequence[SummaryPlace], query: Query) -> list[dict[str, Any]]:
    """Each hit in a recorded summary, with the compaction that wrote it."""
    rows = []
    events = loading.load_inserted(session, [(place.compaction, place.message) for place in places])
    for place, event in zip(places, events, strict=True):
        number = compaction_number(place.compaction)
        rows.append(
            {
                "compaction": f"{number:,}",
                "url": reverse("compaction", args=[session.pk, number]),
                "who": "summary",
                "pieces": [(visible(piece.text), piece.hit) for piece in snippet(text_of(event.parts), query)],
            }
        )
    return rows


def address(query: Query, **more: Any) -> str:
    """The query string of a search."""
    return "?" + urlencode({"q": query.text, **more})


def tabs(page: Frame) -> dict[str, Any]:
    """The frame of a page of the session, without its strip: the one with the matches is beside them."""
    return {**page.context("search"), "strip": {"empty": True}}


def marks(page: Frame, query: Query) -> dict[str, Any]:
    """The strip of a session with the steps that have matches, and their number; both lead to the steps page."""
    matched = page.steps_matching(query)
    return {
        "marked_strip": page.strip(None, matched),
        "marked_urls": {"steps": page.paths["steps"] + "?" + urlencode({"search": query.text})},
        "matched": len(matched),
    }


def _step(at: np.ndarray, seq: int) -> int | None:
    """The first step whose request holds the event, or the last one."""
    if not len(at):
        return None
    return min(int(np.searchsorted(at, seq, side="right")), len(at) - 1)
