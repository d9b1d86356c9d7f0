"""Rows from engine values: the one place where a session is put into the database.

A session is stored as columns (ledger, attribution, marks), a head (everything but the events) and one payload per
distinct message.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

import msgspec
import numpy as np
from django.db import transaction
from django.db.models import F

from guard_core.chunks import read_state
from guard_core.counts import counted_compactions
from guard_core.errors import OtherVersion
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.grown import is_due
from guard_core.facts.searchable import text_of
from guard_core.findings.presence import RequestWords
from guard_core.ledger import Ledger, counter_for
from guard_core.packing import encode
from guard_core.sessions import Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from guard_core.titles import first_words
from guard_core.windows.models import main_model
from inspector.models import Event, Recording, Session, SessionData, SummaryText
from inspector.models.windows import stated_window
from inspector.storage import chunks
from inspector.storage.compression import compressed, decompressed
from inspector.storage.loading import (
    Outdated,
    _attribution,
    kept_of,
    keys_of,
    load_ledger,
    load_only_head,
    marks_of,
    short_head,
    stored_events,
    stored_texts,
)
from inspector.storage.query_words import words_of
from inspector.storage.texts import StoredTexts, insert_events

BEGINNING = 50  # messages in which the first words of the user are looked for
MOST_SUMMARIES = 2_000  # inserted messages of one session that the search knows


def store_session(
    recording: Recording,
    ordinal: int,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    *,
    window: Sourced,
    counts: dict[str, Any],
) -> Session:
    """Put one session on the list, whole or not at all. `counts` are further columns of the row.

    Its events may be stored already (`texts.store_texts` with a row): then that row becomes the session.
    """
    with transaction.atomic():
        texts = stored_texts(value)
        columns = {
            "ordinal": ordinal,
            "deleted": None,
            "started_at": _moment(value.started_at),
            "title": (value.title or first_request(texts) or recording.name)[:200],
            **_columns(value, window, recording),
            **counts,
        }
        if texts.row is None:
            sessions = Session.objects.of(recording.project_id)
            row = sessions.create(recording=recording, **columns)  # type: ignore[misc]  # taken for one column
            insert_events(row, texts.keys)
        else:
            row = texts.row
            Session.objects.row(row).update(**columns)
            for name, column in columns.items():
                setattr(row, name, column)
        data, _ = _data_of(row, value, ledger, attribution, texts, is_new=True)
        SessionData.objects.in_session(row).create(**data)  # type: ignore[misc]  # as above
        if value.compactions:
            store_summaries(row, value)
    return row


def extend_session(  # noqa: PLR0913 - what one transaction stores of a session
    row: Session,
    recording: Recording,
    ordinal: int,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    *,
    window: Sourced,
    counts: dict[str, Any],
    same: int,
) -> Session:
    """The same session, longer: its first `same` events stay, its tags, a person's own name for it and own window too.
    Where nothing of it is new, what was computed of it stays, too.

    A row that has the events of `value` already is left behind, with those of imports that did not end well.
    """
    with transaction.atomic():
        texts = stored_texts(value)
        known = SessionData.objects.in_session(row).get()
        columns = {**longer_columns(row, recording, ordinal, value, window, known), "content": None, **counts}
        data, changed = _data_of(row, value, ledger, attribution, texts, same if is_current(known) else None)
        if not same == row.events == len(texts) or changed or not _is_stored(known, data):
            columns["revision"] = F("revision") + 1
            Event.objects.in_session(row).filter(seq__gte=same).delete()
            SessionData.objects.in_session(row).update(**data)
            store_summaries(row, value)
            insert_events(row, list(islice(keys_of(texts), same, None)), same)
        Session.objects.row(row).update(**columns)
    row.refresh_from_db()
    return row


def longer_columns(
    row: Session, recording: Recording, ordinal: int, value: CoreSession, window: Sourced, known: SessionData
) -> dict[str, Any]:
    """The columns of the row of a session that a recording continues, but for its counts."""
    columns = {"recording": recording, "ordinal": ordinal, **_columns(value, window, recording)}
    columns["started_at"] = _moment(value.started_at)
    if row.window_source == Provenance.USER.value and window.source != Provenance.USER:
        columns["window_override"] = row.window_override or row.window
    title = short_head(known).title
    if value.title != title or row.title == row.recording.name:  # else nothing that it may be made of has changed
        words = first_request(row)
        if row.title in {name[:200] for name in (title, words, row.recording.name) if name}:
            columns["title"] = (value.title or words or recording.name)[:200]
    return columns


def first_request(texts: Session | StoredTexts) -> str:
    """What the user of a session wrote first, as its title where its agent gave it none; empty where that is not among
    its first messages."""
    return first_words(islice(stored_events(texts), BEGINNING))


def _is_stored(known: SessionData, data: dict[str, Any]) -> bool:
    """Do the columns hold these values already; a database may give bytes in a type of its own."""
    values = ((getattr(known, name), value) for name, value in data.items())
    return all(stored == value if stored is None else type(value)(stored) == value for stored, value in values)


def is_current(known: SessionData) -> bool:
    """Are the columns in chunks of this version."""
    try:
        return known.in_chunks and bool(read_state(decompressed(known.ledger)))
    except OtherVersion:
        return False


def _columns(value: CoreSession, window: Sourced, recording: Recording) -> dict[str, Any]:
    model = main_model(value)[:200]
    return {
        "format": value.format[:40],
        "source_id": value.source_id[:200],
        "parent_source": value.parent[:200],
        "agent": value.agent[:200],
        "model": model,
        "model_window": stated_window(recording.project_id, model, value.format, window.source.value),
        **window_columns(window),
    }


def window_columns(window: Sourced) -> dict[str, Any]:
    """The columns of a row that say what its window is and where that comes from."""
    return {"window": window.value, "window_source": window.source.value, "window_note": window.note[:200]}


def _data_of(
    row: Session,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    texts: StoredTexts,
    same_texts: int | None = None,
    *,
    is_new: bool = False,
) -> tuple[dict[str, Any], bool]:
    """Store the chunks of a session: the columns of its SessionData, and whether a chunk has changed."""
    stored = chunks.store(row, value, ledger, texts.marks, same_texts, is_new=is_new)
    columns = {
        "in_chunks": True,
        "ledger": compressed(stored.state),
        "head": compressed(stored.head),
        "attribution": compressed(attribution.to_bytes()) if attribution else None,
        "lines": None,
    }
    return columns, stored.changed


def has_current_columns(row: Session) -> bool:
    """Are the columns of a session in chunks of this version."""
    return is_current(SessionData.objects.in_session(row).only("in_chunks", "ledger").get())


def ensure_current(row: Session) -> None:
    """For jobs: make the columns of a session again where an earlier version stored them, and learn its attribution
    again where the session has grown by a tenth since that was learnt."""
    try:
        ledger, learnt = load_ledger(row), cast(Attribution | None, kept_of(row, _attribution))
    except Outdated:
        recount(row)
        return
    if ledger.event_count and (learnt is None or (len(learnt.tokens) < ledger.event_count and is_due(learnt, ledger))):
        body = compressed(attribute(ledger).to_bytes())
        with transaction.atomic():
            if Session.objects.row(row).filter(revision=row.revision).update(revision=F("revision") + 1):
                SessionData.objects.in_session(row).update(attribution=body)
        row.refresh_from_db(fields=["revision"])


def recount(row: Session) -> None:
    """Make the columns of a session again from its texts, and store them."""
    head = load_only_head(row)
    counter = counter_for(head)
    marks = marks_of(str(row.pk))
    timestamps = np.frombuffer(marks.timestamps, dtype="<f8")
    for event, seconds in zip(stored_events(row), timestamps.tolist(), strict=True):
        counter.add(msgspec.structs.replace(event, timestamp=None if math.isnan(seconds) else seconds))
    ledger = Ledger.counted(head, counter)
    texts = StoredTexts(ledger.event_count, [], marks, row)
    with transaction.atomic():
        data, _ = _data_of(row, head, ledger, attribute(ledger) if ledger.event_count else None, texts)
        SessionData.objects.in_session(row).update(**data)


def store_summaries(row: Session, value: CoreSession) -> None:
    """Make what recorded compactions inserted searchable, in the place of what was known of them."""
    SummaryText.objects.in_session(row).delete()
    if not value.compactions:
        return
    counted = counted_compactions(value).compactions
    messages = ((index, value.compactions[item.place].messages) for index, item in enumerate(counted))
    texts = ((index, number, text_of(event.parts)) for index, some in messages for number, event in enumerate(some))
    SummaryText.objects.in_session(row).bulk_create(
        SummaryText(session=row, compaction=index, message=number, words=words_of(text))
        for index, number, text in islice(texts, MOST_SUMMARIES)
    )


def request_columns(words: tuple[RequestWords, ...]) -> dict[str, Any]:
    """The column of a session's row for them."""
    return {"requests": encode(words)}


def _moment(seconds: float | None) -> datetime | None:
    """A time that both databases can keep; a year outside 1 to 9999 is not a time."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
