"""Text search: looking things up in the index, adding a session to it step by step, and taking it out."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from guard_core.facts.searchable import text_of
from inspector.models import Event, Payload, Project, Session, SummaryText
from inspector.storage import loading
from inspector.storage.contents import Content
from inspector.storage.query_words import Query
from inspector.storage.text_index import IndexedText, TextPlace, text_index

log = logging.getLogger(__name__)

STEP_EVENTS = 2_000  # indexed in one transaction, which holds the one write lock of SQLite
STEP_CHARS = 2_000_000
FETCHED = 50  # messages in memory at once; one may be megabytes
FORGET_EVENTS = 100


class SummaryPlace(NamedTuple):
    """Where something was found in what a recorded compaction inserted; both count from 0."""

    compaction: int  # among those that count
    message: int


@dataclass(frozen=True)
class SessionHits:
    """What was found in one session: the first hits, and the row number from which to continue with older sessions."""

    session: Session
    hits: tuple[TextPlace, ...]
    more: bool
    before: int
    summaries: tuple[SummaryPlace, ...] = ()


def index_some(session: Session, *, step_chars: int = STEP_CHARS) -> bool:
    """Index the next events of a session, until they have so many characters, whole or not at all; False where another
    worker was first."""
    start = session.indexed
    rows = _rows(session, start, min(session.events, start + STEP_EVENTS))
    entries, chars = [], 0
    for row_id, text in rows:
        entries.append(IndexedText(row_id, text))
        chars += len(text)
        if chars >= step_chars:
            break
    stop = start + len(entries)
    if not entries:  # rows are missing: nothing more will come
        stop = session.events
    with transaction.atomic():
        mine = Session.objects.row(session).filter(revision=session.revision, indexed=start)
        if not mine.update(indexed=stop):
            return False
        text_index().add(session, entries)
    return True


def forget(session: Session, start: int = 0, *, until: float = math.inf) -> None:
    """Take a session, or its events from `start` on, out of the index. To be called before its rows are deleted.

    `until`: a moment of the monotonic clock after which it stops, having taken some, with `session.indexed` left above
    `start`.
    """
    if start == 0 and text_index().drop(session):
        session.refresh_from_db(fields=["indexed"])
    while session.indexed > start:
        stop = session.indexed
        first = max(start, stop - FORGET_EVENTS)
        with transaction.atomic():
            mine = Session.objects.row(session).filter(indexed=stop)
            if mine.update(indexed=first):
                text_index().remove(session, [IndexedText(*row) for row in _rows(session, first, stop)])
        session.refresh_from_db(fields=["indexed"])
        if time.monotonic() >= until:
            return


def hits(query: Query, session: Session, start: int, limit: int) -> list[TextPlace]:
    """Hits in one session from an event on, in its order."""
    return text_index().in_session(query, session, start, limit) if query else []


def events(query: Query, session: Session) -> list[int]:
    """The numbers of all events of a session that have the words, counting from 0, in its order."""
    return text_index().events(query, session) if query else []


def count(query: Query, session: Session) -> int:
    """How many events of a session have the words; text_index.COUNT_UP_TO + 1 means more."""
    return text_index().count(query, session) if query else 0


def everywhere(project: Project, query: Query, before: int | None, sessions: int, each: int) -> list[SessionHits]:
    """The newest sessions of a project with hits, a few hits of each."""
    if not query:
        return []
    index = text_index()
    places = [*index.sessions(project, query, before, sessions), *_summarised(project, query, before, sessions)]
    places = sorted(places, key=lambda place: -place[1])[:sessions]
    rows = Session.objects.of(project).select_related("recording").in_bulk([key for key, _ in places])
    hits = []
    for key, newest in places:
        if session := rows.get(key):
            some, inserted = index.in_session(query, session, 0, each + 1), summary_hits(query, session, each)
            hits.append(SessionHits(session, tuple(some[:each]), len(some) > each, newest, tuple(inserted)))
    return hits


def summary_hits(query: Query, session: Session, limit: int | None = None) -> list[SummaryPlace]:
    """Hits in what the recorded compactions of a session inserted, in its order; all of them without a limit."""
    rows = _with(query, SummaryText.objects.in_session(session)).order_by("compaction", "message")
    return [SummaryPlace(*place) for place in rows.values_list("compaction", "message")[:limit]] if query else []


def _summarised(project: Project, query: Query, before: int | None, limit: int) -> list[tuple[UUID, int]]:
    """Sessions whose summaries alone have the words, each with the row number of its first event."""
    first = Event.objects.of(project).filter(session=OuterRef("session"), seq=0).values("pk")
    rows = (
        _with(query, SummaryText.objects.of(project))
        .filter(session__deleted=None)
        .annotate(begins=Subquery(first))
        .order_by("-begins")
    )
    rows = rows.filter(begins__lt=2**62 if before is None else before)
    sessions = list(rows.values_list("session", "begins").distinct()[: 2 * limit])
    index, of = text_index(), Session.objects.of(project).in_bulk([key for key, _ in sessions])
    return [(key, begins) for key, begins in sessions if not index.in_session(query, of[key], 0, 1)][:limit]


def _with(query: Query, rows: QuerySet[SummaryText]) -> QuerySet[SummaryText]:
    """Those that have the words."""
    for phrase in query.phrases():
        rows = rows.filter(words__contains=phrase)
    return rows


def _rows(session: Session, start: int, stop: int) -> Iterator[tuple[int, str]]:
    """Row number and text of the events from `start` to `stop`, few in memory at a time.

    Each query is read to its end: on SQLite an open one would keep an old snapshot, from which no writing begins.
    """
    log = Event.objects.in_session(session).order_by("seq").values_list("id", "payload__body")
    for first in range(start, stop, FETCHED):
        for row_id, body in list(log.filter(seq__gte=first, seq__lt=min(stop, first + FETCHED))):
            yield row_id, text_of(loading.load_content(body).parts)


def contents(places: list[TextPlace]) -> dict[bytes, Content]:
    """The messages of hits, by the key of the payload."""
    wanted = {place.payload_id for place in places}
    bodies = Payload.objects.filter(sha256__in=wanted).values_list("sha256", "body")
    return {bytes(key): loading.load_content(body) for key, body in bodies}
