"""Spans over HTTP: stored once, acknowledged, and in sessions that grow."""

from __future__ import annotations

import gzip
import json
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.ingest import spans
from inspector.ingest.importing import run_import
from inspector.models import Import, Recording, Session, SpanBatch, SpanPlace
from inspector.models.projects import default_project
from inspector.storage import deleting
from inspector.storage.loading import load_events
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]


def messages(*texts: str) -> str:
    roles = ("user", "assistant")
    return json.dumps(
        [{"role": roles[number % 2], "parts": [{"type": "text", "content": text}]} for number, text in enumerate(texts)]
    )


def exported(number: int, *said: str, service: str = "agent", conversation: str = "c-1") -> dict[str, Any]:
    """One model call of a conversation, as an exporter sends it: all that was said, the last of it the answer. Without
    the name of the `conversation` where that is empty."""
    values = {
        "gen_ai.operation.name": "chat",
        **({"gen_ai.conversation.id": conversation} if conversation else {}),
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.input.messages": messages(*said[:-1]),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": said[-1]}], "finish_reason": "stop"}]
        ),
    }
    return export_of(number, values, {"gen_ai.usage.input_tokens": 100 * number}, service=service)


def export_of(
    number: int, texts: dict[str, str], counts: dict[str, int], *, service: str = "agent", trace: int = 0
) -> dict[str, Any]:
    """One span with these attributes, in a trace of its own where none is named."""
    attributes: list[dict[str, Any]] = [{"key": key, "value": {"stringValue": text}} for key, text in texts.items()]
    attributes += [{"key": key, "value": {"intValue": str(count)}} for key, count in counts.items()]
    span = {
        "traceId": f"{trace or number:032x}",
        "spanId": f"{number:016x}",
        "name": texts["gen_ai.operation.name"],
        "startTimeUnixNano": str(10**18 + number * 10**9),
        "endTimeUnixNano": str(10**18 + number * 10**9 + 5),
        "attributes": attributes,
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def logged(number: int, *events: tuple[str, dict[str, Any]], trace: int = 0, service: str = "agent") -> dict[str, Any]:
    """Events of the span of this number, as an exporter of log records sends them."""
    records = [
        {
            "traceId": f"{trace or number:032x}",
            "spanId": f"{number:016x}",
            "eventName": name,
            "body": {"kvlistValue": {"values": [{"key": key, "value": value_of(item)} for key, item in body.items()]}},
        }
        for name, body in events
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}


def value_of(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"stringValue": item}
    return {"kvlistValue": {"values": [{"key": key, "value": value_of(inner)} for key, inner in item.items()]}}


def post(client, body: Any, **headers: str):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    address = "/v1/logs" if isinstance(body, dict) and "resourceLogs" in body else "/v1/traces"
    return client.post(address, data, content_type=headers.pop("kind", "application/json"), headers=headers)


def work() -> None:
    """What the worker would do."""
    for source in set(SpanBatch.unscoped.filter(taken=False).values_list("source", flat=True)):
        if first := SpanBatch.unscoped.filter(has_calls=True, source=source).first():
            spans.run(str(first.pk))
    for job in Import.unscoped.filter(state="received"):
        run_import(str(job.pk))


def test_spans_become_a_session_and_later_ones_extend_it(client):
    assert post(client, exported(1, "Hello", "Hi.")).status_code == 200
    work()
    row = Session.unscoped.get()
    assert (row.calls, row.prompt_tokens_max) == (1, 100)
    assert post(client, exported(2, "Hello", "Hi.", "And now?", "Done.")).json() == {}
    work()
    longer = Session.unscoped.get()
    assert (longer.pk, longer.calls, longer.events, longer.prompt_tokens_max) == (row.pk, 2, 4, 200)


def test_an_export_that_is_sent_again_is_stored_once(client):
    for _ in range(3):
        assert post(client, exported(1, "Hello", "Hi.")).status_code == 200
    assert SpanBatch.unscoped.count() == 1


def test_spans_of_other_work_are_stored_and_bring_no_failed_import(client):
    other = exported(1, "a", "b")
    other["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = []
    assert post(client, other).status_code == 200
    spans.resume()
    assert not Import.unscoped.exists()
    assert SpanBatch.unscoped.get().has_calls is False


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_body_may_be_packed(client, coding, pack):
    packed = pack(json.dumps(exported(1, "Hello", "Hi.")).encode())
    headers = {"Content-Encoding": coding}
    assert post(client, packed, **headers).status_code == 200
    assert post(client, packed[:-20], **headers).status_code == 400
    assert post(client, b"not packed", **headers).status_code == 400


def test_a_packed_body_may_have_several_members_and_nothing_else_behind_them(client):
    body = json.dumps(exported(1, "Hello", "Hi.")).encode()
    members = gzip.compress(body[:50]) + gzip.compress(body[50:])
    headers = {"Content-Encoding": "gzip"}
    assert post(client, members + b"more", **headers).status_code == 400
    assert post(client, zlib.compress(body) + b"more", **{"Content-Encoding": "deflate"}).status_code == 400
    assert not SpanBatch.unscoped.exists()
    assert post(client, members, **headers).status_code == 200
    assert SpanBatch.unscoped.count() == 1


def test_another_coding_is_refused_with_those_that_are_read(client):
    answer = post(client, b"x", **{"Content-Encoding": "br"})
    assert (answer.status_code, "gzip or deflate" in answer.json()["error"]) == (415, True)


@pytest.mark.parametrize("address", ["/v1/metrics", "/api/v2/sessions"])
def test_a_program_that_asks_another_address_gets_a_sentence_and_no_page(client, address):
    answer = client.post(address, b"{}", content_type="application/json")
    assert (answer.status_code, "spans go to /v1/traces" in answer.json()["error"]) == (404, True)


def test_a_body_that_unpacks_to_too_much_is_refused(client, settings):
    settings.MAX_BATCH_BYTES = 1_000
    answer = post(client, gzip.compress(b" " * 1_001), **{"Content-Encoding": "gzip"})
    assert (answer.status_code, "more than 1,000 bytes" in answer.json()["error"]) == (413, True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 1_000, b'{"resourceSpans": NaN}'])
def test_what_is_no_export_is_refused_in_words(client, body):
    answer = post(client, body or b" ")
    assert answer.status_code == 400
    assert len(answer.json()["error"]) > 10
    assert not SpanBatch.unscoped.exists()


def test_who_may_not_send_is_refused(client):
    body = exported(1, "Hello", "Hi.")
    assert post(client, body, Origin="https://evil.invalid").status_code == 403
    assert post(client, body, kind="text/plain").status_code == 415
    assert client.get("/v1/traces").status_code == 405
    assert not SpanBatch.unscoped.exists()


def test_a_refusal_of_protobuf_is_protobuf(client):
    answer = post(client, b"\xff\xff\xff", kind="application/x-protobuf")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/x-protobuf")
    assert b"not an OTLP request" in answer.content


def texts_stored() -> int:
    """Rows that still have the text of spans."""
    return SpanBatch.unscoped.exclude(body=b"").count()


def age_all(days: int = 2) -> None:
    SpanBatch.unscoped.update(created=timezone.now() - timedelta(days=days))


def test_the_spans_of_a_deleted_session_go_with_it(client):
    post(client, exported(1, "Hello", "Hi."))
    work()
    deleting.delete(default_project(), Session.unscoped.all())
    assert deleting.purge(timezone.now()) == 1
    assert not SpanBatch.unscoped.exists()


def test_a_program_that_goes_on_after_its_session_was_deleted_does_not_bring_the_old_spans_again(client):
    post(client, exported(1, "Hello", "Hi."))
    work()
    deleting.delete(default_project(), Session.unscoped.all())
    post(client, exported(1, "Hello", "Hi."))  # sent again by the exporter
    post(client, exported(2, "Something else", "Done."))
    work()
    assert [row.calls for row in Session.unscoped.filter(deleted=None)] == [1]
    assert SpanBatch.unscoped.count() == 2


def test_the_spans_of_a_silent_program_lie_in_its_recording_alone(client):
    post(client, exported(1, "Hello", "Hi."))
    work()
    spans.forget_silent()
    assert texts_stored() == 1
    age_all()
    spans.forget_silent()
    assert not SpanBatch.unscoped.exists()
    assert Session.unscoped.get(deleted=None).calls == 1


def test_spans_that_no_recording_has_are_not_forgotten(client):
    post(client, exported(1, "Hello", "Hi."))
    age_all()
    spans.forget_silent()
    assert texts_stored() == 1
    work()
    assert Session.unscoped.get().calls == 1


def test_spans_of_other_work_are_forgotten_after_a_day(client):
    other = exported(1, "a", "b")
    other["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = []
    post(client, other)
    age_all()
    spans.forget_silent()
    assert not SpanBatch.unscoped.exists()


def test_a_program_whose_recording_is_full_goes_on_in_another_one(client, settings):
    post(client, exported(1, "Hello", "Hi." * 500))
    work()
    settings.MAX_UPLOAD_BYTES = Recording.unscoped.get().size + 100
    post(client, exported(2, "And now?", "Done."))
    work()  # finds that the recording is full
    work()
    assert Recording.unscoped.count() == 2
    assert sorted(row.prompt_tokens_max for row in Session.unscoped.filter(deleted=None)) == [100, 200]
    assert texts_stored() == 1
    post(client, exported(1, "Hello", "Hi." * 500))  # sent again by the exporter
    assert SpanBatch.unscoped.count() == 2


MEANWHILE = 1.0  # seconds in which the second of two would be stored; on a slow machine less is tried
LONG = "word " * (spans.ENOUGH // 5)


def calls_by_name() -> dict[str, int]:
    """The calls of each session that is not deleted, by the name of its conversation."""
    return {row.source_id: row.calls for row in Session.unscoped.filter(deleted=None)}


def test_a_new_conversation_behind_a_long_one_has_a_recording_of_its_own(client):
    """So that a span of one does not cost reading the other again."""
    post(client, exported(1, LONG, "Hi."))
    work()
    post(client, exported(2, "Something else", "Done.", conversation="c-2"))
    work()
    assert Recording.unscoped.count() == 2
    before = Import.unscoped.count()
    post(client, exported(3, "Something else", "Done.", "And now?", "Ready.", conversation="c-2"))
    work()
    post(client, exported(4, LONG, "Hi.", "More", "Yes."))
    work()
    assert calls_by_name() == {"c-1": 2, "c-2": 2}
    assert Import.unscoped.count() == before + 2


def test_short_conversations_of_a_program_share_a_recording(client):
    for number in range(1, 6):
        post(client, exported(number, f"Question {number}", "Done.", conversation=f"c-{number}"))
    work()
    assert Recording.unscoped.count() == 1
    assert calls_by_name() == {f"c-{number}": 1 for number in range(1, 6)}


@pytest.mark.parametrize("result_first", [True, False])
def test_a_span_without_a_name_belongs_to_the_conversation_of_its_trace(client, result_first):
    post(client, exported(9, LONG, "Hi.", conversation="earlier"))  # so that its recording is not the first of all
    work()
    call = {"type": "tool_call", "name": "read", "id": "t-1", "arguments": {}}
    chat = export_of(
        1,
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": "c-1",
            "gen_ai.input.messages": messages("Read it"),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call], "finish_reason": "stop"}]),
        },
        {"gen_ai.usage.input_tokens": 100},
        trace=7,
    )
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "t-1"}
    result = export_of(2, {**tool, "gen_ai.tool.call.result": "the text"}, {}, trace=7)
    for body in (result, chat) if result_first else (chat, result):
        post(client, body)
        work()
    assert Session.unscoped.get(source_id="c-1").events == 3
    assert SpanBatch.unscoped.filter(taken=True).values("source").distinct().count() == 2


def test_traces_without_a_name_that_continue_each_other_are_one_session(client):
    post(client, exported(1, "Hello", "Hi.", conversation=""))
    post(client, exported(2, "Something else", "Done.", conversation="c-2"))
    work()
    post(client, exported(3, "Hello", "Hi.", "And now?", "Ready.", conversation=""))
    work()
    assert sorted(calls_by_name().values()) == [1, 2]


def test_a_conversation_of_an_earlier_version_stays_in_its_recording(client):
    post(client, exported(1, "Hello", "Hi.", conversation=""))
    SpanBatch.unscoped.update(size=0, trace="")  # as a version stored it that knew no places
    post(client, exported(2, "Hello", "Hi.", "And now?", "Done."))
    work()
    assert SpanBatch.unscoped.values("source").distinct().count() == 1
    assert Recording.unscoped.count() == 1


def test_places_are_forgotten_with_the_spans_of_a_silent_program(client):
    post(client, exported(1, "Hello", "Hi."))
    work()
    age_all()
    SpanPlace.unscoped.update(created=timezone.now() - timedelta(days=2))
    spans.forget_silent()
    assert not SpanPlace.unscoped.exists()


def test_an_export_without_a_name_that_is_sent_again_is_stored_once_after_its_trace_was_named(client):
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "t-1"}
    unnamed = export_of(2, tool, {}, trace=1)
    for body in (unnamed, exported(1, "Hello", "Hi."), unnamed):
        post(client, body)
    assert SpanBatch.unscoped.count() == 2
    assert SpanBatch.unscoped.values("source").distinct().count() == 1


SAID = (
    ("gen_ai.user.message", {"content": "Hello"}),
    ("gen_ai.choice", {"message": {"role": "assistant", "content": "Hi."}}),
)


def silent(number: int, *, conversation: str = "", trace: int = 0) -> dict[str, Any]:
    """A model call whose span has no messages."""
    names = {"gen_ai.conversation.id": conversation} if conversation else {}
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", **names}
    return export_of(number, call, {"gen_ai.usage.input_tokens": 100}, trace=trace)


def texts_of(row: Session) -> list[str]:
    return [part.text for event in load_events(row, 0, row.events) for part in event.parts]


@pytest.mark.parametrize("conversation", ["", "c-1"])
@pytest.mark.parametrize("logs_first", [True, False])
def test_messages_that_come_as_log_records_are_in_the_session_of_their_spans(client, logs_first, conversation):
    post(client, exported(9, LONG, "Hi.", conversation="earlier"))  # so that its recording is not the first of all
    work()
    bodies = [logged(1, *SAID), silent(1, conversation=conversation)]
    for body in bodies if logs_first else reversed(bodies):
        assert post(client, body).status_code == 200
        work()
    row = Session.unscoped.exclude(source_id="earlier").get(deleted=None)
    assert (row.calls, texts_of(row)) == (1, ["Hello", "Hi."])
    assert not Import.unscoped.filter(state="failed").exists()


@pytest.mark.parametrize("conversation", ["", "c-1"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("logs_first", [True, False])
def test_log_records_with_a_resource_of_their_own_are_in_the_session_of_their_spans(
    client, logs_first, named, conversation
):
    """Two providers of an SDK may be given different resources; trace and span say what belongs together, also where
    the events are `named` for a conversation."""
    bodies = [logged(1, *SAID, service="agent logs"), silent(1, conversation=conversation)]
    for record in bodies[0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"] if named else ():
        record["attributes"] = [{"key": "gen_ai.conversation.id", "value": {"stringValue": "c-1"}}]
    for body in bodies if logs_first else reversed(bodies):
        assert post(client, body).status_code == 200
        work()
    assert post(client, bodies[0]).status_code == 200  # sent again
    row = Session.unscoped.get(deleted=None)
    assert (row.calls, texts_of(row)) == (1, ["Hello", "Hi."])
    assert SpanBatch.unscoped.count() == 2
    assert not Import.unscoped.filter(state="failed").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("logs_first", [True, False])
def test_spans_and_their_events_find_each_other_also_where_they_come_at_the_same_moment(logs_first):
    bodies = [logged(1, *SAID, service="agent logs"), silent(1)]
    first, second = bodies if logs_first else reversed(bodies)

    def send() -> None:
        try:
            spans.store(default_project(), second)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            spans.store(default_project(), first)
            sent = threads.submit(send)
            wait([sent], MEANWHILE)
        assert sent.result(PATIENCE) is None
    assert SpanBatch.unscoped.values("source").distinct().count() == 1


def test_events_that_are_with_their_spans_are_not_read_again_when_further_spans_come(client):
    loaded: list[str] = []

    def note(instance: SpanBatch, **_: object) -> None:
        loaded.append(instance.trace)

    for number in range(1, 4):
        post(client, logged(number, *SAID, trace=1))
        post_init.connect(note, sender=SpanBatch)
        try:
            post(client, silent(number, trace=1))
        finally:
            post_init.disconnect(note, sender=SpanBatch)
        assert len(loaded) == 2 * number  # the row that is stored, and the one of which a job is queued


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_log_records_of_one_of_two_programs_in_a_trace_are_with_their_span(client, order):
    other = exported(7, LONG, "Done.", service="other", conversation="c-2")
    other["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = f"{1:032x}"
    bodies = [logged(1, *SAID), other, silent(1, conversation="c-1")]
    for number in order:
        post(client, bodies[number])
        work()
    row = Session.unscoped.get(deleted=None, source_id="c-1")
    assert texts_of(row) == ["Hello", "Hi."]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_log_records_of_two_programs_in_one_request_are_with_their_spans(client, order):
    """As a collector sends them on, under a resource that no program has."""
    said = (("gen_ai.user.message", {"content": "Go"}), ("gen_ai.choice", {"message": {"content": "Gone."}}))
    events, more = logged(1, *SAID, service="logs"), logged(2, *said, trace=1, service="logs")
    for body in (events, more):
        body["resourceLogs"][0]["scopeLogs"][0]["scope"] = {"name": "sdk"}
    events["resourceLogs"][0]["scopeLogs"] += more["resourceLogs"][0]["scopeLogs"]
    other = silent(2, conversation="c-2", trace=1)
    other["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"] = "other"
    bodies = [events, other, silent(1, conversation="c-1")]
    for number in (*order, *order):
        post(client, bodies[number])
        work()
    for name, texts in (("c-1", ["Hello", "Hi."]), ("c-2", ["Go", "Gone."])):
        assert texts_of(Session.unscoped.get(deleted=None, source_id=name)) == texts
    assert SpanBatch.unscoped.count() == 4


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_log_records_with_a_resource_of_their_own_are_with_their_span_in_a_trace_of_two_programs(client, order, named):
    other = exported(7, LONG, "Done.", service="other", conversation="c-2")
    other["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = f"{1:032x}"
    bodies = [logged(1, *SAID, service="agent logs"), other, silent(1, conversation="c-1" if named else "")]
    for number in order:
        post(client, bodies[number])
        work()
    row = Session.unscoped.exclude(source_id="c-2").get(deleted=None)
    assert (row.calls, texts_of(row)) == (1, ["Hello", "Hi."])


def test_spans_are_looked_at_once_for_log_records_of_many_traces_of_two_programs():
    project = default_project()

    def texts_read(first: int, count: int) -> int:
        """Queries that read stored texts for log records of this many traces, whose spans have not come."""
        logs: list[Any] = []
        for trace in range(first, first + count):
            for number, service in ((trace, "agent"), (10_000 + trace, "other")):
                call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
                spans.store(project, export_of(number, call, {}, service=service, trace=trace))
            logs += logged(20_000 + trace, *SAID, trace=trace, service="logs")["resourceLogs"][0]["scopeLogs"]
        body = logged(1, service="logs")
        body["resourceLogs"][0]["scopeLogs"] = logs
        with CaptureQueriesContext(connection) as queries:
            spans.store(project, body)
        return sum(item["sql"].startswith('SELECT "inspector_spanbatch"."body"') for item in queries)

    assert texts_read(1, 1) == texts_read(2, 8) == 2


def test_log_records_of_other_work_are_taken_and_not_stored(client):
    assert post(client, logged(1, ("started", {"port": "80"}), ("", {"message": "ready"}))).status_code == 200
    assert not SpanBatch.unscoped.exists()


def test_log_records_that_are_sent_again_are_stored_once(client):
    for _ in range(2):
        post(client, logged(1, *SAID))
    assert SpanBatch.unscoped.get().has_calls is False
