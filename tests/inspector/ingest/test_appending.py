"""A long recording that has grown: what is new is appended, and all of it is as if it had been stored at once."""

from __future__ import annotations

import json

import pytest

from inspector.ingest import growth, importing, submitting, uploads
from inspector.ingest.continuation import Continuation
from inspector.jobs.assessing import ASSESSMENTS
from inspector.models import Import, Project, Session, SessionChunk, default_project
from inspector.storage import loading

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]
LONG, LONGER = 1_100, 1_110  # turns
COLUMNS = ("events", "calls", "reported_calls", "turns", "tool_calls", "tool_results", "prompt_tokens_max")
ASSESSED = ("verdict", "severity", "kinds", "peak_tokens", "compactions", "threshold", "window")


def chat(turns: int, last: str = "") -> bytes:
    messages = [
        {"role": role, "content": f"{role} says {turn}"} for turn in range(turns) for role in ("user", "assistant")
    ]
    messages[-1]["content"] += last
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def upload(content: bytes, project: Project | None = None) -> Session:
    job = submitting.submit(project or default_project(), uploads.receive([content], "growing.jsonl"))
    importing.run_import(str(job.pk))
    job.refresh_from_db()
    assert job.state == Import.State.DONE, job.message
    return submitting.sessions_of(job).get()


def chunk_digests(row: Session) -> dict[tuple[str, int], bytes]:
    rows = SessionChunk.objects.in_session(row).values_list("kind", "number", "digest")
    return {(kind, number): bytes(digest) for kind, number, digest in rows}


def another() -> Project:
    return Project.objects.create(slug="other", name="Other")


def values(row: Session, names: tuple[str, ...]) -> list[object]:
    return [getattr(row, name) for name in names]


def test_what_is_new_is_appended_and_the_session_is_the_one_stored_at_once():
    first = upload(chat(LONG))
    assert first.events >= growth.LEAST_STORED
    before = chunk_digests(first)
    grown = upload(chat(LONGER))
    assert grown.pk == first.pk
    assert not grown.is_assessed  # it was appended to: a job assesses it
    changed = {place for place, digest in chunk_digests(grown).items() if before.get(place) != digest}
    assert changed == {("events", 1), ("marks", 1), ("calls", 0), ("head calls", 0)}
    at_once = upload(chat(LONGER), another())
    assert at_once.pk != grown.pk
    assert loading.load_session(grown) == loading.load_session(at_once)
    assert loading.load_ledger(grown).to_bytes() == loading.load_ledger(at_once).to_bytes()
    assert chunk_digests(grown) == chunk_digests(at_once)
    assert values(grown, COLUMNS) == values(at_once, COLUMNS)


def test_its_verdict_is_that_of_the_session_stored_at_once():
    upload(chat(LONG))
    grown = upload(chat(LONGER))
    ASSESSMENTS.run("test", seconds=60)
    grown.refresh_from_db()
    assert grown.is_assessed
    assert values(grown, ASSESSED) == values(upload(chat(LONGER), another()), ASSESSED)


def test_what_people_set_of_it_stays():
    first = upload(chat(LONG))
    Session.unscoped.filter(pk=first.pk).update(title="Mine", window_override=50_000)
    grown = upload(chat(LONGER))
    assert (grown.pk, grown.title, grown.window_override) == (first.pk, "Mine", 50_000)


def test_a_recording_of_another_project_is_never_appended_to():
    first = upload(chat(LONG))
    other = upload(chat(LONGER), another())
    first.refresh_from_db()
    assert other.pk != first.pk
    assert (first.events, other.events) == (2 * LONG, 2 * LONGER)
    assert (first.project_id, first.recording.name) == (default_project().pk, "growing.jsonl")


def test_a_session_whose_last_answer_has_changed_is_counted_as_a_whole():
    upload(chat(LONG))
    changed = upload(chat(LONG, last=" and more") + chat(1))
    assert changed.is_assessed
    at_once = upload(chat(LONG, last=" and more") + chat(1), another())
    assert loading.load_session(changed) == loading.load_session(at_once)
    assert values(changed, (*COLUMNS, *ASSESSED)) == values(at_once, (*COLUMNS, *ASSESSED))


def test_a_session_that_has_grown_by_much_is_counted_as_a_whole():
    first = upload(chat(LONG))
    grown = upload(chat(LONG + growth.MOST_ADDED))
    assert (grown.pk, grown.events) == (first.pk, 2 * LONG + 2 * growth.MOST_ADDED)
    assert grown.is_assessed


def test_nothing_is_appended_to_a_session_that_has_changed_since_it_was_compared():
    row = upload(chat(LONG))
    stored = loading.load_head(row)
    added = growth.Added(row, stored, [], ())
    Session.unscoped.filter(pk=row.pk).update(revision=row.revision + 1)
    assert Continuation(row.recording).append(0, added, stored) is None


def test_the_same_file_again_changes_nothing():
    first = upload(chat(LONG))
    job = submitting.start_import(first.recording)
    importing.run_import(str(job.pk))
    again = Session.unscoped.get()
    assert (again.pk, again.revision, again.assessed_by) == (first.pk, first.revision, first.assessed_by)
