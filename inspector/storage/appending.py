"""Appending to a stored session what has happened since, without reading what it holds: a few milliseconds, however
long the session is.

The last chunk of each kind is rewritten; texts, numbered events and counts are added. What is computed of the whole
session follows in jobs: its verdict when the list is looked at, the words of the text search, tokenizer counts, and its
attribution, which until then is extended by what was learnt before.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from guard_core.errors import GuardError
from guard_core.events import Event
from guard_core.sessions import ModelCall
from guard_core.sessions import Session as CoreSession
from inspector.models import Recording, Session, SessionData
from inspector.storage import chunks, convert
from inspector.storage.compression import compressed, decompressed
from inspector.storage.counts import ToolCount
from inspector.storage.texts import insert_events, store_texts

_READ = ("events", "project")  # columns of a row that grows


def append(row: Session, events: Sequence[Event], calls: Sequence[ModelCall] = ()) -> None:
    """Add events, and the model calls over the log up to them, at the end of a session: all of it or nothing.

    Calls come in the order of their `at`, none before the last one that is stored, and with the event that answered
    them. A recorded compaction changes what earlier calls are compared with: a session that has a new one is stored
    whole (`convert.extend_session`). Raises GuardError where a call is out of order.
    """
    with transaction.atomic():
        row = Session.objects.row(row).select_for_update().only(*_READ).get()
        _check_order(row, len(events), calls)
        data = SessionData.objects.in_session(row).only("in_chunks", "ledger")
        known = data.get()
        if not convert.is_current(known):
            convert.recount(row)
            known = data.get()
        state = chunks.append(row, decompressed(known.ledger), events, calls)
        insert_events(row, store_texts(events).keys, row.events)
        SessionData.objects.in_session(row).update(ledger=compressed(state))
        _count(row, events, calls)


def extend(
    row: Session,
    recording: Recording,
    ordinal: int,
    value: CoreSession,
    events: Sequence[Event],
    calls: Sequence[ModelCall],
) -> Session:
    """The same session as a longer recording has it: `value`, which ends with these events and calls. Its window
    is looked up again when it is assessed. Raises as `append`."""
    with transaction.atomic():
        known = SessionData.objects.in_session(row).only("in_chunks", "head").get()
        columns = convert.longer_columns(row, recording, ordinal, value, convert.own_window(row), known)
        append(row, events, calls)
        SessionData.objects.in_session(row).update(head=compressed(chunks.short_head(value)))
        Session.objects.row(row).update(**columns)
    row.refresh_from_db()
    return row


def _check_order(row: Session, more: int, calls: Sequence[ModelCall]) -> None:
    last = 0
    for call in calls:
        end = row.events + more
        if not last <= call.at <= end or not (call.response is None or call.at <= call.response < end):
            raise GuardError(f"a call over {call.at:,} events cannot follow one over {last:,} in a log of {end:,}")
        last = call.at


def _count(row: Session, events: Sequence[Event], calls: Sequence[ModelCall]) -> None:
    """Bring the counts of the list up to date; its verdict is assessed again by a job."""
    counts = [call.prompt_tokens for call in calls if call.prompt_tokens]
    tools = ToolCount(events).counts
    Session.objects.row(row).update(
        revision=F("revision") + 1,
        events=F("events") + len(events),
        calls=F("calls") + len(calls),
        reported_calls=F("reported_calls") + len(counts),
        turns=F("turns") + sum(event.starts_turn() for event in events),
        prompt_tokens_max=Greatest("prompt_tokens_max", max(counts, default=0)),
        prompt_tokens_sum=F("prompt_tokens_sum") + sum(counts),
        assessed_by="",
        content=None,
        **{name: F(name) + count for name, count in tools.items()},
    )
