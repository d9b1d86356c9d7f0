"""A session is stored in chunks: one that grows writes the last of each kind, and nothing of it is lost."""

import msgspec
import pytest
from django.urls import reverse

from guard_core.columns import bytes_of
from guard_core.costs import EVENT_COLUMNS, PART_COLUMNS
from guard_core.errors import GuardError
from guard_core.estimation.attribution import attribute
from guard_core.ledger import Ledger
from guard_core.packing import encode
from guard_core.sessions import ModelCall, Provenance, Session, Sourced
from inspector.models import Session as Row
from inspector.models import SessionChunk, SessionData
from inspector.storage import chunks, loading, storing
from inspector.storage.compression import compressed
from inspector.storage.texts import Marks
from tests.builders import bundled, model, tool_call, tool_result, user
from tests.inspector.pages.conftest import stored
from tests.plugins.tiers import mostly_long

pytestmark = pytest.mark.django_db
WINDOW = Sourced(200_000, Provenance.ASSUMED, "for a test")


def long_session(turns: int) -> Session:
    """Turns of four events, of which each has a time, a line and an id."""
    events = []
    for turn in range(turns):
        some = (
            user(f"ask {turn}"),
            tool_call("run", f"c{turn}"),
            tool_result("r" * 90, "run", f"c{turn}"),
            model("ok"),
        )
        for event in some:
            place = len(events)
            events.append(msgspec.structs.replace(event, line=place, timestamp=1e9 + place, source_id=f"e{place}"))
    calls = tuple(
        ModelCall(4 * turn + at, 4 * turn + at, 900 + 60 * turn + at, model="m", source_id=f"a{turn}")
        for turn in range(turns)
        for at in (1, 3)
    )
    return Session(events=tuple(events), calls=calls, format="claude-code", source_id="long", title="long")


def beginning(session: Session, events: int) -> Session:
    calls = tuple(call for call in session.calls if (call.response or 0) < events)
    return msgspec.structs.replace(session, events=session.events[:events], calls=calls)


def extend(row, value: Session, kept: int):
    """Store a longer session in the place of one whose first `kept` events it has."""
    ledger = Ledger.of(value)
    counts = {"events": ledger.event_count, "calls": ledger.step_count}
    attribution = attribute(ledger)
    storing.extend_session(row, row.recording, 0, value, ledger, attribution, window=WINDOW, counts=counts, same=kept)
    row.refresh_from_db()


def digests(row) -> dict[tuple[str, int], bytes]:
    rows = SessionChunk.unscoped.filter(session=row).values_list("kind", "number", "digest")
    return {(kind, number): bytes(digest) for kind, number, digest in rows}


def check_is(row, value: Session) -> None:
    """Everything that is stored of a session is that of this one."""
    loading.forget(row)
    ledger = Ledger.of(value)
    assert loading.load_ledger(row).to_bytes() == ledger.to_bytes()
    assert loading.load_attribution(row).to_bytes() == attribute(ledger).to_bytes()
    assert loading.load_session(row) == value


SIZE = chunks.ROWS
whole = long_session(SIZE // 2 + 20)  # 4,176 events: two full chunks and a part of one


def test_a_session_of_several_chunks_comes_back_as_it_was():
    row = stored(whole)
    assert SessionChunk.unscoped.filter(session=row, kind="events").count() == 3
    check_is(row, whole)


def test_growing_writes_the_last_chunk_of_each_kind_only():
    row = stored(beginning(whole, 4_100))
    before = digests(row)
    extend(row, whole, kept=4_100)
    after = digests(row)
    changed = {place for place, digest in after.items() if before.get(place) != digest}
    assert changed == {("events", 2), ("marks", 2), ("calls", 1), ("head calls", 1)}
    assert before.keys() <= after.keys()
    check_is(row, whole)


# Where a chunk ends is arithmetic; that chunks are written and replaced, two places show.
@pytest.mark.parametrize(
    "events",
    mostly_long([SIZE, 0, 1, SIZE - 1, SIZE + 1, 4_100], short=[SIZE, 0]),
)
def test_it_may_grow_from_anywhere(events):
    row = stored(beginning(whole, events))
    extend(row, whole, kept=events)
    check_is(row, whole)


def test_an_answer_that_was_still_being_written_is_written_again():
    unfinished = beginning(whole, 2_050)
    unfinished = msgspec.structs.replace(unfinished, events=(*unfinished.events[:-1], user("half")))
    row = stored(unfinished)
    extend(row, whole, kept=2_049)
    check_is(row, whole)


def test_other_times_of_the_same_texts_are_stored():
    row = stored(whole)
    events = tuple(msgspec.structs.replace(event, timestamp=2e9) for event in whole.events)
    later = msgspec.structs.replace(whole, events=events)
    extend(row, later, kept=len(events))
    check_is(row, later)


def test_storing_the_same_again_changes_nothing():
    row = stored(beginning(whole, 40))
    revision = row.revision
    extend(row, beginning(whole, 40), kept=40)
    assert row.revision == revision


def test_a_shorter_session_leaves_no_chunk_behind():
    row = stored(whole)
    short = beginning(whole, 40)
    extend(row, short, kept=40)
    assert {number for _, number in digests(row)} == {0}
    check_is(row, short)


def test_a_chunk_that_is_missing_is_said_in_a_sentence():
    row = stored(whole)
    SessionChunk.unscoped.filter(session=row, kind="events", number=1).delete()
    with pytest.raises(GuardError, match="import the session again"):
        loading.load_ledger(row)


def test_messages_are_read_with_the_places_of_their_own_chunk_alone():
    row = stored(whole)
    loading.forget(row)
    SessionChunk.unscoped.filter(session=row, kind=chunks.MARKS).exclude(number=1).delete()
    (event,) = loading.load_events(row, SIZE + 5, SIZE + 6)
    assert event == whole.events[SIZE + 5]
    with pytest.raises(GuardError, match="chunk 2 of places of events is missing: import the session again"):
        loading.load_some_events(row, [2 * SIZE + 1])


def test_what_is_loaded_of_a_ledger_is_as_narrow_as_its_values():
    row = stored(whole)
    loading.forget(row)
    ledger = loading.load_ledger(row)
    held = bytes_of(ledger.events) + bytes_of(ledger.parts)
    read = 8 * (len(EVENT_COLUMNS) * len(whole.events) + len(PART_COLUMNS) * len(ledger.parts["event"]))
    assert held < read / 2


def test_deleting_a_session_deletes_its_chunks():
    row = stored(beginning(whole, 40))
    Row.unscoped.filter(pk=row.pk).delete()
    assert not SessionChunk.unscoped.exists()


def before_chunks(row, value: Session) -> None:
    """Store a session as the version before chunks did."""
    ledger = Ledger.of(value)
    lines, moments = ([getattr(event, name) for event in value.events] for name in ("line", "timestamp"))
    marks = chunks.load_marks(row.pk)
    assert len(lines) == len(moments) == len(marks.source_ids)
    SessionData.unscoped.filter(session=row).update(
        in_chunks=False,
        ledger=compressed(ledger.to_bytes()),
        head=compressed(encode(msgspec.structs.replace(value, events=()))),
        lines=compressed(encode(Marks(marks.lines, marks.timestamps, marks.source_ids))),
    )
    SessionChunk.unscoped.filter(session=row).delete()
    loading.forget(row)


def test_a_session_that_an_older_version_stored_is_read_and_grows():
    short = beginning(whole, 2_100)
    row = stored(short)
    before_chunks(row, short)
    check_is(row, short)
    extend(row, whole, kept=2_100)
    assert SessionData.unscoped.get(session=row).in_chunks
    check_is(row, whole)


def test_counting_it_again_stores_it_in_chunks():
    short = beginning(whole, 60)
    row = stored(short)
    before_chunks(row, short)
    storing.recount(row)
    assert SessionData.unscoped.get(session=row).in_chunks
    check_is(row, short)


def test_compactions_are_in_chunks_too(client):
    value = bundled("long-coding")
    row = stored(value)
    loading.forget(row)
    assert loading.load_head(row).compactions == value.compactions
    assert client.get(reverse("session_overview", args=[row.pk])).status_code == 200
