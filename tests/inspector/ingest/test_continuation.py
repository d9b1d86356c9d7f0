"""A file that has grown extends its session instead of standing beside it."""

from __future__ import annotations

import pytest

from guard_core import recordings
from guard_core.findings import Facts
from guard_core.recordings.formats import native
from inspector.ingest import continuation
from inspector.ingest.uploads import keep, receive
from inspector.jobs import indexing
from inspector.models import Recording, Session, default_project
from inspector.pages.library import tagging
from inspector.storage import search
from inspector.storage.counts import session_counts
from inspector.storage.loading import load_ledger, load_session
from inspector.storage.query_words import parse
from tests.builders import model, session, user

pytestmark = pytest.mark.django_db

LONG = "in a haystack of more bytes than a beginning must have to mean anything"
EVENTS = [
    *(user(f"first needle {LONG}"), model("one"), user("second needle"), model("two")),
    *(user("third needle"), model("three")),
]


def jsonl(count: int) -> bytes:
    """A chat of the first events, whose longer versions begin with the shorter ones' bytes."""
    lines = (f'{{"role": "{"user" if event.role == "user" else "assistant"}", "content": "{event.parts[0].text}"}}\n'
             for event in EVENTS[:count])  # fmt: skip
    return "".join(lines).encode()


def read_into(content: bytes) -> Recording:
    """What the import does with a file that may have grown."""
    recording = keep(default_project(), receive([content], "chat.jsonl"))
    recording_read = recordings.read(recording.path)
    extending = continuation.Continuation(recording)
    for ordinal, value in enumerate(recording_read.sessions):
        facts = Facts.of(value)
        more = {"window": facts.window.sourced, "counts": session_counts(facts), "explanation": facts.explanation}
        extending.store(ordinal, value, facts.ledger, facts.attribution, **more)
    extending.close(len(recording_read.sessions))
    return recording


def index_all() -> None:
    while indexing.pending().exists():
        indexing.TEXT_INDEX.run("test")


@pytest.fixture
def short(db, folders) -> Session:
    read_into(jsonl(4))
    return Session.unscoped.get()


def test_a_longer_file_extends_the_session_it_begins_with(short, django_capture_on_commit_callbacks):
    load_ledger(short)
    with django_capture_on_commit_callbacks(execute=True):
        longer = read_into(jsonl(6))
    row = Session.unscoped.get()
    assert (row.pk, row.events, row.recording_id) == (short.pk, 6, longer.pk)
    assert [event.parts for event in load_session(row).events] == [event.parts for event in EVENTS]
    assert load_ledger(row).event_count == 6
    assert list(Recording.unscoped.all()) == [longer]


def test_name_tags_and_window_of_a_person_stay(short):
    tagging.rename(short, "mine")
    tagging.tag(default_project(), Session.unscoped.all(), ["kept"])
    Session.unscoped.update(window_override=50_000)
    read_into(jsonl(6))
    row = Session.unscoped.get()
    assert (row.title, row.window_override, [tag.name for tag in row.tags.all()]) == ("mine", 50_000, ["kept"])


def test_what_was_added_is_found_and_what_was_there_is_found_once(short):
    index_all()
    read_into(native.write(session(user("between needle"), model("x"))))
    index_all()
    read_into(jsonl(6))
    index_all()
    row = Session.unscoped.get(pk=short.pk)
    assert [place.seq for place in search.hits(parse("needle"), row, 0, 9)] == [0, 2, 4]
    assert search.count(parse("needle"), row) == 3
    results = [item.session.pk for item in search.everywhere(default_project(), parse("needle"), None, 9, 3)]
    assert sorted(map(str, results)) == sorted(map(str, Session.unscoped.values_list("pk", flat=True)))


def test_a_file_with_another_beginning_is_another_session(short):
    read_into(b'{"role": "user", "content": "other"}\n' + jsonl(6))
    assert Session.unscoped.count() == 2


def test_a_file_read_again_keeps_its_address_and_name(short):
    index_all()
    tagging.rename(short, "mine")
    read_into(jsonl(4))
    index_all()
    row = Session.unscoped.get()
    assert (row.pk, row.title, row.events) == (short.pk, "mine", 4)
    assert search.count(parse("needle"), row) == 2
