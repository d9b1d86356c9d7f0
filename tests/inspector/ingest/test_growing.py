"""A recording whose agent was still running comes again, longer."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from inspector.ingest import importing, submitting, uploads
from inspector.models import Import, Recording, Session, default_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]


def chat(turns: int) -> bytes:
    roles = [(role, turn) for turn in range(turns) for role in ("user", "assistant")]
    messages = ({"role": role, "content": f"{role} says {turn} " * 9} for role, turn in roles)
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def upload(turns: int) -> Session:
    job = submitting.submit(default_project(), uploads.receive([chat(turns)], "growing.jsonl"))
    importing.run_import(str(job.pk))
    job.refresh_from_db()
    assert job.state == Import.State.DONE, job.message
    return job.recording.sessions.get()


def test_a_file_that_has_grown_extends_its_session():
    first = upload(20)
    Session.unscoped.filter(pk=first.pk).update(title="Mine")
    grown = upload(30)
    assert (grown.pk, grown.title) == (first.pk, "Mine")
    assert (first.events, grown.events) == (40, 60)
    assert Session.unscoped.count() == 1


def test_the_shorter_file_goes_when_the_longer_one_is_stored(django_capture_on_commit_callbacks):
    upload(20)
    with django_capture_on_commit_callbacks(execute=True):
        upload(30)
    assert Recording.unscoped.get().size == len(chat(30))


def test_pages_of_a_grown_session_show_the_new_steps():
    address = reverse("session_steps", args=[upload(20).pk])
    assert b"of 20" in Client().get(address).content
    upload(30)
    assert b"of 30" in Client().get(address).content


def span(number: int, parent: str, **values: object) -> bytes:
    """A line of a trace: what a call said, or the conversation that calls belong to, which ends after them."""
    attributes = [{"key": f"gen_ai.{key}", "value": {"stringValue": value}} for key, value in values.items()]
    one = {"traceId": "t1", "spanId": f"s{number}", "parentSpanId": parent, "name": "x", "attributes": attributes}
    one |= {"startTimeUnixNano": str(number * 10**9), "endTimeUnixNano": str((number + 1) * 10**9)}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}).encode() + b"\n"


def called(number: int) -> bytes:
    """The call with this number: its request holds the earlier answers."""
    talk = [{"role": "user", "parts": [{"type": "text", "content": "which branch?"}]}]
    for count in range(1, number + 1):
        talk.append({"role": "assistant", "parts": [{"type": "text", "content": f"answer {count}"}]})
    texts = {"input.messages": json.dumps(talk[:-1]), "output.messages": json.dumps(talk[-1:])}
    return span(number, "s9", **{"operation.name": "chat", **texts})


def test_a_trace_that_is_told_its_conversation_in_the_end_stays_one_session():
    def stored(content: bytes) -> Session:
        job = submitting.submit(default_project(), uploads.receive([content], "trace.jsonl"))
        importing.run_import(str(job.pk))
        return Session.unscoped.get()

    first = stored(called(1))
    tail = span(9, "", **{"operation.name": "invoke_agent", "conversation.id": "conv-1"})
    whole = stored(called(1) + called(2) + tail)
    assert (whole.pk, whole.source_id) == (first.pk, "conv-1")
    assert first.source_id != "conv-1"
