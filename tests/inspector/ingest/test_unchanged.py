"""Sessions that a longer recording has as they were stay as they are stored; only the others are counted."""

from __future__ import annotations

import json

import pytest

from inspector.ingest.submitting import report_of
from inspector.models import Session, default_project
from inspector.storage import deleting

pytestmark = pytest.mark.django_db


def span(conversation: str, call: int, second: int) -> dict:
    """A model call of a conversation, which sends all of it again."""
    entries = []
    for number in range(call + 1):
        entries += [("user", f"{conversation} question {number}"), ("assistant", f"{conversation} answer {number}")]
    messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in entries]
    texts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.conversation.id": conversation,
        "gen_ai.input.messages": json.dumps(messages[:-1]),
        "gen_ai.output.messages": json.dumps(messages[-1:]),
    }
    attributes = [{"key": key, "value": {"stringValue": text}} for key, text in texts.items()]
    attributes.append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": str(100 * (call + 1))}})
    start = str(10**18 + second * 10**9)
    return {
        "traceId": f"{second:032x}",
        "spanId": f"{second:016x}",
        "name": "chat gpt-4o",
        "startTimeUnixNano": start,
        "endTimeUnixNano": start,
        "attributes": attributes,
    }


def lines(*spans: dict) -> bytes:
    service = [{"key": "service.name", "value": {"stringValue": "program"}}]
    return b"".join(
        json.dumps(
            {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [one]}]}]}
        ).encode()
        + b"\n"
        for one in spans
    )


def named(name: str) -> Session:
    return Session.objects.of(default_project()).get(source_id=name)


BEGUN = lines(*(span(name, call, 10 * place + call) for place, name in enumerate("abc") for call in range(3)))


def test_only_what_has_grown_is_counted_again(bring):
    bring(BEGUN, "p.otlp.jsonl")
    before = {name: named(name) for name in "abc"}
    job = bring(BEGUN + lines(span("b", 3, 40), span("d", 0, 50)), "p.otlp.jsonl")
    assert job.state == "done", job.message
    after = {name: named(name) for name in "abcd"}
    for name in "ac":
        assert (after[name].pk, after[name].revision) == (before[name].pk, before[name].revision)
        assert after[name].recording_id == job.recording_id
    assert (after["b"].pk, after["b"].calls) == (before["b"].pk, 4)
    assert after["d"].calls == 1
    report = report_of(job)
    assert set(report.known) == {str(row.pk) for row in before.values()}
    assert report.extended == (str(after["b"].pk),)
    assert report.steps == 11


def test_a_session_that_began_earlier_takes_its_place_and_the_others_move(bring, client):
    bring(BEGUN, "p.otlp.jsonl")
    keys = {name: named(name).pk for name in "abc"}
    bring(BEGUN + lines(span("z", 0, -5)), "p.otlp.jsonl")
    rows = {name: named(name) for name in "abcz"}
    assert [rows[name].ordinal for name in "zabc"] == [0, 1, 2, 3]
    assert {name: rows[name].pk for name in "abc"} == keys
    for row in rows.values():
        assert client.get(f"/s/{row.pk}/steps").status_code == 200


def test_what_was_appended_or_stored_otherwise_since_is_counted_again(bring):
    bring(BEGUN, "p.otlp.jsonl")
    Session.objects.row(named("a")).update(content=None)
    job = bring(BEGUN + lines(span("d", 0, 50)), "p.otlp.jsonl")
    assert named("a").content is not None
    assert named("a").recording_id == job.recording_id
    assert report_of(job).extended == ()


def test_a_session_that_was_deleted_stays_deleted(bring):
    bring(BEGUN, "p.otlp.jsonl")
    deleting.delete(default_project(), Session.objects.row(named("a")))
    bring(BEGUN + lines(span("d", 0, 50)), "p.otlp.jsonl")
    assert named("a").deleted is not None
    assert named("d").deleted is None
