"""Lines of a running agent, sent over HTTP: stored once, acknowledged after the commit, in the session they make."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db.models.functions import Now
from django.test import Client

from guard_core.recordings.formats import native
from guard_core.sessions import Session as CoreSession
from inspector.ingest import live
from inspector.ingest.uploads import drop_unused
from inspector.jobs.assessing import ASSESSMENTS
from inspector.models import Project, PurgedStream, Recording, Session, Stream, StreamBatch, default_project
from inspector.storage import deleting, loading
from inspector.streams.messages import from_json
from tests.big_sessions import big_session
from tests.inspector.streamed import lines_of, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]
ASSESSED = ("verdict", "severity", "kinds", "peak_tokens", "compactions", "threshold", "window", "events", "calls")


@pytest.fixture
def lines(agent_session: CoreSession) -> list[dict[str, Any]]:
    return lines_of(agent_session)


def test_the_first_batch_makes_the_session_and_the_answer_says_where_it_is(client, lines):
    answer = send(client, "my-agent", 0, lines[:2])
    assert answer.status_code == 200
    document = answer.json()
    assert (document["acknowledged"], document["stored"], document["repeated"]) == (2, 2, 0)
    assert client.get(document["url"]).status_code == 200
    assert "Staging" in client.get("/").content.decode()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_streamed_session_equals_the_uploaded_one_whatever_the_batches(client, lines, bring, size, agent_session):
    for first in range(0, len(lines), size):
        assert send(client, "a", first, lines[first : first + size]).status_code == 200
    streamed = Session.unscoped.get()
    ASSESSMENTS.run("test", seconds=60)
    bring(native.write(agent_session))
    uploaded = Session.unscoped.exclude(pk=streamed.pk).get()
    streamed.refresh_from_db()
    assert native.digest(loading.load_session(streamed)) == native.digest(loading.load_session(uploaded))
    assert loading.load_ledger(streamed).to_bytes() == loading.load_ledger(uploaded).to_bytes()
    assert [getattr(streamed, name) for name in ASSESSED] == [getattr(uploaded, name) for name in ASSESSED]


def test_the_lines_of_a_stream_can_be_downloaded_and_imported(client, lines, bring):
    send(client, "a", 0, lines[:2])
    send(client, "a", 2, lines[2:])
    streamed = Session.unscoped.get()
    answer = client.get(f"/recordings/{streamed.recording_id}/raw")
    body = b"".join(answer.streaming_content)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert [msgspec.json.decode(line) for line in body.splitlines()] == lines
    assert bring(body).state == "done"
    imported = Session.unscoped.exclude(pk=streamed.pk).get()
    assert native.digest(loading.load_session(streamed)) == native.digest(loading.load_session(imported))


def test_beyond_the_quota_of_its_project_a_stream_is_taken_once_there_is_room_again(client, lines):
    assert send(client, "a", 0, lines[:2]).status_code == 200
    Project.objects.update(quota_bytes=Recording.unscoped.get().size)
    refused = send(client, "a", 2, lines[2:])
    assert refused.status_code == 507
    assert "would exceed its quota" in refused.json()["error"]
    assert send(client, "a", 0, lines[:2], beside={"ended": True}).json()["repeated"] == 2, "needs no room"
    assert send(client, "b", 0, lines).status_code == 507
    assert Stream.unscoped.count() == Recording.unscoped.count() == 1
    Project.objects.update(quota_bytes=None)
    assert send(client, "a", 2, lines[2:]).json()["acknowledged"] == len(lines)


def test_compactions_that_come_late_are_in_the_session_as_if_it_were_uploaded(client):
    whole = big_session(200, 3)
    lines = lines_of(whole)
    for first in range(0, len(lines), 50):
        assert send(client, "a", first, lines[first : first + 50]).status_code == 200
    row = Session.unscoped.get()
    assert row.compactions == len(whole.compactions) > 0
    assert native.digest(loading.load_session(row)) == native.digest(whole)


def test_a_repeat_is_acknowledged_and_changes_nothing(client, lines):
    send(client, "a", 0, lines[:3])
    row = Session.unscoped.get()
    answer = send(client, "a", 1, lines[1:3]).json()
    assert (answer["acknowledged"], answer["stored"], answer["repeated"]) == (3, 0, 2)
    assert Session.unscoped.get().revision == row.revision
    assert StreamBatch.objects.count() == 1


def test_other_content_under_a_known_number_is_a_conflict_that_names_it(client, lines):
    send(client, "a", 0, lines[:3])
    answer = send(client, "a", 1, [lines[1], {"index": 1, "events": {"role": "user", "parts": []}}, lines[3]])
    assert answer.status_code == 409
    assert (answer.json()["index"], answer.json()["expected"]) == (2, 3)
    assert "already stored with different content" in answer.json()["error"]
    assert Stream.unscoped.get().received == 3


def test_a_gap_is_refused_with_what_is_expected_and_leaves_nothing(client, lines):
    answer = send(client, "a", 2, lines[2:])
    assert (answer.status_code, answer.json()["expected"]) == (409, 0)
    assert not Stream.unscoped.exists()
    assert not Recording.unscoped.exists()


def test_lines_may_be_sent_as_lines(client, lines):
    body = b"\n".join(map(msgspec.json.encode, lines))
    answer = client.post("/api/v1/sessions/a/events?first=0&ended=true", body, content_type="application/x-ndjson")
    assert answer.json()["acknowledged"] == len(lines)
    assert Stream.unscoped.get().ended is not None
    assert send(client, "a", 0, lines).json()["repeated"] == len(lines)  # the same in the other form


def test_an_empty_batch_asks_how_far_a_stream_is_and_begins_none(client, lines):
    assert send(client, "a", 0, []).json()["acknowledged"] == 0
    assert not Stream.unscoped.exists()
    send(client, "a", 0, lines[:2])
    assert send(client, "a", 0, []).json()["acknowledged"] == 2


def test_lines_that_make_no_sense_are_refused_with_their_place_and_the_batch_with_them(client, lines):
    for bad, status, reason in (
        ({"index": 1, "events": {"role": "wizard", "parts": []}}, 400, "not a valid Event"),
        ({"index": -1, "events": {"role": "user", "parts": []}}, 400, "not a valid index"),
        ({"calls": {"at": 1, "timestamp": 1e15}}, 400, "`float` <= 253402300799.0"),
        ({"wishes": 1}, 400, "allowed is one of"),
        ({**lines[0], "version": True}, 400, "an export of version True"),
        ({"index": 7, "events": {"role": "user", "parts": []}}, 409, "the next one is 1"),
        ({"calls": {"at": 9}}, 409, "an entry at event 9"),
        ({"calls": {"at": 1, "response": 4}}, 409, "answered by event 4"),
        (lines[0], 409, "a second header"),
    ):
        answer = send(client, "a", 0, [*lines[:2], bad])
        assert (answer.status_code, answer.json()["index"]) == (status, 2), bad
        assert reason in answer.json()["error"]
    assert not Stream.unscoped.exists()


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 2**256 - 1, 10**300 - 1], ids=int.bit_length)
def test_an_integer_beyond_64_bits_in_a_stream_is_kept_as_text(client, lines, bring, number):
    call = {"type": "tool_call", "name": "pay", "arguments": {"sums": [number, 7]}, "id": "c"}
    wide = {"index": 0, "events": {"role": "model", "parts": [call]}}
    next_one = {"index": 1, "events": {"role": "user", "parts": [{"type": "text", "text": "and then"}]}}
    assert send(client, "a", 0, [lines[0], wide]).status_code == 200
    assert send(client, "a", 1, [wide, next_one]).json()["repeated"] == 1
    row = Session.unscoped.get()
    first, second = loading.load_events(row, 0, 2)
    assert (first.parts[0].arguments, second.parts[0].text) == ({"sums": [str(number), 7]}, "and then")
    answer = client.get(f"/recordings/{row.recording_id}/raw")
    assert bring(b"".join(answer.streaming_content)).state == "done"


def test_an_integer_of_too_many_digits_is_refused_with_its_line_and_reason(client, lines):
    body = b'%s\n{"index": 0, "events": {"role": "user", "parts": [{"type": "other", "kind": "k", "value": 1%s}]}}'
    body %= (msgspec.json.encode(lines[0]), b"0" * 300)
    answer = client.post("/api/v1/sessions/a/events?first=0", body, content_type="application/x-ndjson")
    assert (answer.status_code, answer.json()["index"]) == (400, 1)
    sentence = "Line 1 of the batch cannot be read as JSON at byte 90: a number of 301 digits (limit 300)."
    assert answer.json()["error"] == sentence


def test_a_body_with_a_content_encoding_is_refused_by_that_name(client, lines):
    body = gzip.compress(msgspec.json.encode({"first": 0, "lines": lines[:1]}))
    packed = {"content_type": "application/json", "HTTP_CONTENT_ENCODING": "gzip"}
    answer = client.post("/api/v1/sessions/a/events", body, **packed)
    assert answer.status_code == 415
    assert "content encoding" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        *(" ", "{", "[]", "null", "[" * 10_000, "9" * 5_000, '{"first": -1}', '{"first": true}', '{"first": NaN}'),
        *(
            '{"first": 0, "lines": [1]}',
            '{"first": 0, "lines": {}}',
            '{"first": 0, "more": 1}',
            '{"first": 99999999999}',
        ),
    ],
)
def test_a_body_that_is_no_message_is_refused_in_words(client, body):
    answer = client.post("/api/v1/sessions/a/events", body, content_type="application/json")
    assert answer.status_code == 400
    assert len(answer.json()["error"]) > 10


def test_too_many_lines_are_refused_with_how_many_are_taken(client):
    answer = send(client, "a", 0, [{}] * 1_001)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "A batch of 1,001 lines; at most 1,000 are accepted at once.",
    )


@pytest.mark.parametrize("name", [".hidden", "a b", "x" * 101, "é"])
def test_an_id_of_other_characters_is_refused(client, name):
    assert send(client, name, 0, []).status_code == 400


def test_pages_of_other_servers_and_forms_are_refused(client, lines):
    for origin in ("https://evil.invalid", "http://testserver:3000", "null", "http://[::1", ""):
        answer = send(client, "a", 0, lines, headers={"origin": origin})
        assert (answer.status_code, "Only programs on this machine" in answer.json()["error"]) == (403, True), origin
        assert client.get("/api/v1/sessions", headers={"origin": origin}).status_code == 403
    form = client.post("/api/v1/sessions/a/events", json.dumps({"first": 0}), content_type="text/plain")
    assert form.status_code == 415
    assert not Stream.unscoped.exists()


def test_other_machines_are_refused(client, lines):
    assert send(client, "a", 0, lines, REMOTE_ADDR="192.0.2.7").status_code == 403
    assert client.get("/api/v1/sessions", REMOTE_ADDR="192.0.2.7").status_code == 403


def test_pages_of_this_very_server_may_send_without_a_form_token(lines):
    client = Client(enforce_csrf_checks=True)
    assert send(client, "a", 0, lines, headers={"origin": "http://testserver"}).status_code == 200


def test_a_stream_whose_session_was_deleted_is_gone(client, lines):
    send(client, "a", 0, lines[:2])
    deleting.delete(default_project(), Session.unscoped.all())
    answer = send(client, "a", 2, lines[2:])
    assert answer.status_code == 410
    assert "begin another stream" in answer.json()["error"]
    deleting.purge(Session.unscoped.get().deleted)
    assert not Stream.unscoped.exists()


def test_what_a_client_still_has_of_a_session_that_was_deleted_for_good_makes_no_new_one(client, lines):
    send(client, "a", 0, lines[:2])
    deleting.delete(default_project(), Session.unscoped.all())
    deleting.purge(Session.unscoped.get().deleted)
    for late in ([], lines):  # a spool asks how far the server is, and then sends all it has
        answer = send(client, "a", 0, late)
        assert (answer.status_code, "deleted for good" in answer.json()["error"]) == (410, True)
    assert not any(model.unscoped.exists() for model in (Stream, Recording, Session))
    assert send(client, "b", 0, lines).status_code == 200


def test_the_name_of_a_stream_that_was_deleted_for_good_is_free_again_after_a_while(client, lines):
    send(client, "a", 0, lines[:2])
    deleting.delete(default_project(), Session.unscoped.all())
    deleting.purge(Session.unscoped.get().deleted)
    PurgedStream.unscoped.update(purged=Now() - live.PURGED_FOR + timedelta(minutes=1))
    live.forget_purged()
    assert send(client, "a", 0, lines).status_code == 410
    PurgedStream.unscoped.update(purged=Now() - live.PURGED_FOR - timedelta(minutes=1))
    live.forget_purged()
    assert send(client, "a", 0, lines).status_code == 200


def test_what_a_dead_process_left_is_taken_over_by_a_worker(client, lines):
    send(client, "a", 0, lines[:2])
    row = Session.unscoped.get()
    Stream.unscoped.update(applied=0)  # as if it had been killed behind the commit of the lines
    row.delete()
    stream = Stream.unscoped.get()
    live.run(str(stream.pk))
    stream.refresh_from_db()
    assert (stream.applied, Session.unscoped.get().events) == (2, 1)


def test_lines_that_another_process_took_over_meanwhile_are_taken_over_once(client, lines):
    send(client, "a", 0, lines[:4])
    stale = Stream.unscoped.get()
    row = live.session_of(stale)
    send(client, "a", 4, lines[4:])
    stale.received = len(lines)
    taken = live.apply(stale, row)
    assert taken is not None
    assert (taken.events, taken.revision) == Session.unscoped.values_list("events", "revision").get()
    assert taken.events == len(lines) - 3


def test_a_batch_of_one_line_asks_the_database_few_questions(client, lines, django_assert_max_num_queries):
    send(client, "a", 0, lines[:4])
    with django_assert_max_num_queries(16):  # transactions and savepoints among them
        send(client, "a", 4, lines[4:5])


def test_two_streams_of_one_name_in_two_projects_are_apart(client, lines):
    other = Project.objects.create(slug="other", name="Other")
    live.take(other, "a", from_json(json.dumps({"first": 0, "lines": lines}).encode()))
    assert send(client, "a", 0, lines).json()["stored"] == len(lines)
    assert client.get("/api/v1/sessions").json()["count"] == 1


def test_what_a_person_set_stays_while_the_session_grows(client, lines):
    send(client, "a", 0, lines[:2])
    Session.unscoped.update(title="Mine", window_override=50_000)
    send(client, "a", 2, lines[2:])
    row = Session.unscoped.get()
    assert (row.title, row.window_override) == ("Mine", 50_000)


def test_what_is_acknowledged_and_in_no_session_yet_is_never_swept_away(client, lines):
    send(client, "a", 0, lines[:2])
    Session.unscoped.all().delete()
    Stream.unscoped.update(applied=0)  # as between the two transactions of a first batch
    assert not drop_unused(Recording.unscoped.get().pk)
    assert send(client, "a", 2, lines[2:]).json()["acknowledged"] == len(lines)
    assert Session.unscoped.get().events == len(lines) - 3
