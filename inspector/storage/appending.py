"""Appending to a stored session what has happened since, without reading what it holds: a few milliseconds, however
long the session is.

The last chunk of each kind is rewritten; texts, numbered events and counts are added. What is computed of the whole
session follows in jobs: its verdict when the list is looked at, the words of the text search, tokenizer counts, and its
attribution, which until then is extended by what was learnt before.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from guard_core.chunks import read_state
from guard_core.errors import GuardError
from guard_core.estimation.model_families import encoding_of
from guard_core.events import Event
from guard_core.sessions import ModelCall
from guard_core.sessions import Session as CoreSession
from inspector.models import Recording, Session, SessionData
from inspector.models.prepared import Select, Slot, Update
from inspector.storage import chunks, loading, storing
from inspector.storage.compression import compressed, decompressed
from inspector.storage.counts import ToolCount
from inspector.storage.texts import insert_events, store_texts

# What a session is counted by, as it grows: of a row in which nothing else is loaded.
COUNTS = (
    "revision",
    "events",
    "calls",
    "reported_calls",
    "turns",
    "tool_calls",
    "tool_results",
    "prompt_tokens_max",
    "prompt_tokens_sum",
)
_OF_SESSION = SessionData.objects.in_session(Slot(SessionData, "session"))
_DATA = Select(_OF_SESSION.values_list("in_chunks", "ledger"))
_SAVE_LEDGER = Update(_OF_SESSION, "ledger")
_ROW = Session.objects.of(Slot(Session, "project")).filter(pk=Slot(Session, "id"))
_SAVE_COUNTS = Update(_ROW, *COUNTS, assessed_by="", content=None)


def append(row: Session, events: Sequence[Event], calls: Sequence[ModelCall] = ()) -> Session:
    """Add events, and the model calls over the log up to them, at the end of a session: all of it or nothing. Gives the
    row with its new counts (COUNTS) and its project.

    Calls come in the order of their `at`, none before the last one that is stored, and with the event that answered
    them. A recorded compaction changes what earlier calls are compared with: a session that has a new one is stored
    whole (`storing.extend_session`). Raises GuardError where a call is out of order.
    """
    with transaction.atomic():
        row = Session.objects.row(row).select_for_update().only("project", *COUNTS).get()
        return append_to_locked(row, events, calls)


def append_to_locked(row: Session, events: Sequence[Event], calls: Sequence[ModelCall] = ()) -> Session:
    """The same of a row that the transaction around this has locked, as it is now."""
    _check_order(row, len(events), calls)
    in_chunks, ledger = _DATA.all(session=row.pk)[0]
    known = SessionData(session_id=row.pk, in_chunks=in_chunks, ledger=ledger)
    if not storing.is_current(known):
        storing.recount(row)
        known = SessionData.objects.in_session(row).only("in_chunks", "ledger").get()
    state = chunks.append(row, decompressed(known.ledger), events, calls)
    insert_events(row, store_texts(events).keys, row.events)
    _SAVE_LEDGER.run(session=row.pk, ledger=compressed(state))
    _count(row, events, calls)
    after = read_state(state)
    if encoding_of(after.models) != after.fixed.encoding:  # these are the first calls that name a model
        storing.recount(row)
    return row


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
        columns = storing.longer_columns(row, recording, ordinal, value, loading.own_window(row), known)
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
    """Bring the counts of a locked row up to date; its verdict is assessed again by a job."""
    counts = [call.prompt_tokens for call in calls if call.prompt_tokens]
    row.revision += 1
    row.events += len(events)
    row.calls += len(calls)
    row.reported_calls += len(counts)
    row.turns += sum(event.starts_turn() for event in events)
    row.prompt_tokens_max = max(row.prompt_tokens_max, *counts, 0)
    row.prompt_tokens_sum += sum(counts)
    for name, count in ToolCount(events).counts.items():
        setattr(row, name, getattr(row, name) + count)
    _SAVE_COUNTS.run(project=row.project_id, id=row.pk, **{name: getattr(row, name) for name in COUNTS})
