"""Events are appended to a stored session, and all of it is as if it had been stored at once."""

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from guard_core.errors import GuardError
from guard_core.estimation.attribution import attribute
from guard_core.estimation.grown import extended
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall
from inspector.models import Session, SessionChunk
from inspector.storage import chunks, loading, storing
from inspector.storage.appending import append
from inspector.storage.assessment import assess
from inspector.storage.contents import key_of, packed
from inspector.storage.texts import store_texts
from tests.big_sessions import big_session
from tests.builders import user
from tests.inspector.pages.conftest import stored
from tests.inspector.storage.test_chunks import before_chunks, beginning, digests, whole
from tests.plugins.tiers import mostly_long

pytestmark = pytest.mark.django_db
COUNTS = ("events", "calls", "reported_calls", "turns", "tool_calls", "tool_results")
SUMS = ("prompt_tokens_max", "prompt_tokens_sum")


def append_from(row, start: int, stop: int):
    """Append the events from one place to another, with the calls that they answer."""
    calls = [call for call in whole.calls if start <= call.response < stop]
    append(row, whole.events[start:stop], calls)
    row.refresh_from_db()


# Where a chunk ends is arithmetic; that rows are appended and replaced, two places show.
@pytest.mark.parametrize(
    "start",
    mostly_long([chunks.ROWS, 0, 1, 40, chunks.ROWS - 4, 4_100], short=[chunks.ROWS, 0]),
)
def test_an_appended_session_is_the_one_stored_at_once(start):
    row, at_once = stored(beginning(whole, start)), stored(whole, title="at once")
    middle = min(start + 30, len(whole.events))
    append_from(row, start, middle)
    append_from(row, middle, len(whole.events))
    assert loading.load_ledger(row).to_bytes() == loading.load_ledger(at_once).to_bytes()
    assert loading.load_session(row) == whole
    assert digests(row) == digests(at_once)
    assert [getattr(row, name) for name in (*COUNTS, *SUMS)] == [getattr(at_once, name) for name in (*COUNTS, *SUMS)]


def test_a_session_whose_model_is_known_later_is_counted_by_its_tokenizer_from_the_beginning():
    some = beginning(whole, 40)
    value = msgspec.structs.replace(
        some, calls=tuple(msgspec.structs.replace(call, model="gpt-5.4") for call in some.calls)
    )
    row, at_once = stored(beginning(value, 1)), stored(value, title="at once")
    append(row, value.events[1:12], [call for call in value.calls if call.response < 12])
    append(row, value.events[12:], [call for call in value.calls if call.response >= 12])
    row.refresh_from_db()
    ledger = loading.load_ledger(row)
    assert ledger.events["tokenizer_tokens"].all()
    assert ledger.to_bytes() == loading.load_ledger(at_once).to_bytes()
    assert digests(row) == digests(at_once)


def test_only_the_last_chunks_are_written():
    row = stored(beginning(whole, 4_100))
    before = digests(row)
    append_from(row, 4_100, 4_120)
    changed = {place for place, digest in digests(row).items() if before.get(place) != digest}
    assert changed == {("events", 2), ("marks", 2), ("calls", 1), ("head calls", 1)}


def test_its_attribution_is_extended_and_learnt_again_after_a_tenth():
    short = beginning(whole, 2_000)
    row = stored(short)
    learnt = attribute(Ledger.of(short))
    append_from(row, 2_000, 2_100)
    assert loading.load_attribution(row).to_bytes() == extended(learnt, loading.load_ledger(row)).to_bytes()
    storing.ensure_current(row)
    assert loading.load_attribution(row).fitted_events == 2_000
    append_from(row, 2_100, 2_300)
    storing.ensure_current(row)
    assert loading.load_attribution(row).to_bytes() == attribute(loading.load_ledger(row)).to_bytes()


@pytest.mark.parametrize("start", [3, 400])  # too little to learn from, and enough
def test_a_call_that_comes_after_its_answer_is_attributed(client, start):
    short = beginning(whole, start)
    last = msgspec.structs.replace(short, calls=short.calls[:-1])
    row = stored(last)
    append(row, (), short.calls[-1:])
    row.refresh_from_db()
    attribution = loading.load_attribution(row)
    assert len(attribution.residual) == loading.load_ledger(row).step_count == len(short.calls)
    assert client.get(reverse("session_overview", args=[row.pk])).status_code == 200


def test_its_verdict_is_assessed_again(client):
    row = stored(beginning(whole, 400))
    append_from(row, 400, 420)
    assert not row.is_assessed
    assert client.get(reverse("session_overview", args=[row.pk])).status_code == 200
    assess(row)
    assert row.is_assessed
    assert row.events == 420


def test_a_session_that_an_older_version_stored_is_put_into_chunks_first():
    short = beginning(whole, 100)
    row = stored(short)
    before_chunks(row, short)
    append_from(row, 100, 120)
    assert loading.load_session(row) == beginning(whole, 120)


@pytest.mark.parametrize(
    "call", [ModelCall(50, 50), ModelCall(2), ModelCall(41, 99)], ids=["later", "earlier", "answer"]
)
def test_a_call_out_of_order_is_refused_and_nothing_is_stored(call):
    row = stored(beginning(whole, 40))
    before = digests(row)
    calls = [ModelCall(40), call]
    with pytest.raises(GuardError, match="cannot follow"):
        append(row, [user("more"), user("more")], calls)
    row.refresh_from_db()
    assert (row.events, digests(row)) == (40, before)


def test_a_damaged_chunk_stops_it_and_nothing_is_stored():
    row = stored(beginning(whole, 40))
    SessionChunk.unscoped.filter(session=row, kind="events").delete()
    with pytest.raises(GuardError, match="import the session again"):
        append(row, [user("more")])
    assert Session.unscoped.get(pk=row.pk).events == 40
    assert msgspec.to_builtins(loading.load_head(row).calls)


def test_a_session_that_grows_before_it_is_read_whole_has_the_events_of_its_calls():
    row = stored(beginning(whole, 40))
    asked = Session.unscoped.get()
    append_from(row, 40, 60)
    loading.forget(row)
    read = loading.load_session(asked)
    assert (len(read.events), len(read.calls)) == (60, row.calls)


def test_what_is_read_of_a_long_session_that_grows_meanwhile_is_of_one_moment():
    long = big_session(3_000, 0)
    row = stored(beginning(long, 5_500))
    asked = Session.unscoped.get()
    loading.forget(row)
    head = loading.load_head(asked)
    append(row, long.events[5_500:5_600], [call for call in long.calls if 5_500 <= call.response < 5_600])
    ledger, attribution = loading.load_ledger(asked), loading.load_attribution(asked)
    assert (ledger.step_count, len(attribution.tokens)) == (len(head.calls), ledger.event_count)


def test_what_is_read_of_a_session_that_grows_meanwhile_is_of_one_moment():
    row = stored(beginning(whole, 40))
    asked = Session.unscoped.get()
    loading.forget(row)
    head = loading.load_head(asked)
    append_from(row, 40, 60)
    ledger, attribution = loading.load_ledger(asked), loading.load_attribution(asked)
    assert (ledger.step_count, len(attribution.tokens)) == (len(head.calls), ledger.event_count)
    grown = loading.load_ledger(row)
    assert len(loading.load_attribution(row).tokens) == grown.event_count > ledger.event_count


def test_texts_are_stored_in_one_order_so_that_batches_with_the_same_ones_never_wait_for_each_other():
    events = [user(f"text {number}") for number in range(40)]
    keys = [key.hex().upper() for key in sorted(key_of(packed(event)) for event in events)]
    for some in (events, events[::-1]):
        with CaptureQueriesContext(connection) as queries:
            store_texts(some)
        (insert,) = [query["sql"].upper() for query in queries if "INSERT" in query["sql"]]
        assert sorted(keys, key=insert.index) == keys
