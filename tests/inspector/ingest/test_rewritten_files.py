"""Recordings that their agent writes anew each time: the same sessions, longer, in bytes that are not the old ones."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.urls import reverse
from django.utils import timezone

from guard_core.simulator.flow import Simulation, Turn
from inspector.ingest import importing, submitting
from inspector.jobs import indexing
from inspector.models import Event, Payload, Recording, Session, default_project
from inspector.pages.gallery import runs
from inspector.pages.library import tagging
from inspector.storage import deleting, loading, search
from inspector.storage.query_words import parse
from tests.recordings.seeds import database

pytestmark = pytest.mark.django_db


def answer(number: int, *, words: str = "", done: bool = True) -> dict[str, Any]:
    """A message of the assistant; without its end it is still being written."""
    info = {"id": f"a{number}", "role": "assistant", "modelID": "m", "time": {"created": 2_000 + number}}
    end = {"type": "step-finish", "tokens": {"input": 100 + number, "output": 5, "cache": {"read": 0, "write": 0}}}
    parts = [{"type": "text", "text": words or f"answer {number}"}]
    return {"info": info, "parts": [*parts, end] if done else parts}


def question(number: int) -> dict[str, Any]:
    info = {"id": f"q{number}", "role": "user", "time": {"created": 1_000 + number}}
    return {"info": info, "parts": [{"type": "text", "text": f"question {number}"}]}


def export(turns: int, *more: dict[str, Any], name: str = "ses_1", title: str = "", spaces: int | None = None) -> bytes:
    """What `opencode export` writes of a session."""
    talk = [message for number in range(turns) for message in (question(number), answer(number))]
    info = {"id": name, "title": title, "time": {"created": 1_000}}
    return json.dumps({"info": info, "messages": [*talk, *more]}, indent=spaces).encode()


def items(turns: int) -> list[dict[str, Any]]:
    roles = ((role, number) for number in range(turns) for role in ("user", "assistant"))
    return [{"role": role, "content": f"{role} says {number}"} for role, number in roles]


def library(**turns: int) -> bytes:
    """A database of openai-agents with so many turns in each session."""
    rows = [
        {"session_id": name, "message_data": json.dumps(item)} for name, count in turns.items() for item in items(count)
    ]
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    return database({"agent_sessions": [{"session_id": name} for name in turns], "agent_messages": numbered})


def words_of(row: Session) -> list[str]:
    return [event.parts[0].text for event in loading.load_session(row).events]


def chats(turns: int, *names: str) -> bytes:
    """An export of Claude.ai with these conversations."""
    talk = [
        {"uuid": f"{sender}{number}", "sender": sender, "content": [{"type": "text", "text": f"{sender} {number}"}]}
        for number in range(turns)
        for sender in ("human", "assistant")
    ]
    return json.dumps([{"uuid": name, "name": name, "chat_messages": talk} for name in names]).encode()


def test_a_later_export_of_chats_extends_their_sessions_and_brings_new_ones(bring):
    bring(chats(1, "a"), "conversations.json")
    row = Session.unscoped.get()
    bring(chats(2, "b", "a"), "conversations.json")
    row.refresh_from_db()
    assert (row.events, sorted(Session.unscoped.values_list("source_id", flat=True))) == (4, ["a", "b"])


def test_an_export_that_has_grown_extends_its_session(bring):
    bring(export(2), "a.json")
    row = Session.unscoped.get()
    tagging.tag(default_project(), Session.unscoped.all(), ["mine"])
    report = bring(export(3, spaces=1), "b.json")
    longer = Session.unscoped.get()
    assert (longer.pk, longer.events, longer.calls, longer.reported_calls) == (row.pk, 6, 3, 3)
    assert words_of(longer) == [f"{kind} {number}" for number in range(3) for kind in ("question", "answer")]
    assert [tag.name for tag in longer.tags.all()] == ["mine"]
    assert longer.recording == report.recording


def test_the_older_file_can_be_downloaded_and_opens_the_same_session(bring, client):
    first = bring(export(2), "a.json")
    bring(export(3), "a.json")
    newest = bring(export(4), "b.json")
    for job, turns in ((first, 2), (newest, 4)):
        job.refresh_from_db()
        raw = client.get(reverse("recording_raw", args=[job.recording_id]))
        assert b"".join(raw.streaming_content) == export(turns)
    row = Session.unscoped.get()
    assert client.get(first.get_absolute_url()).headers["location"] == row.get_absolute_url()
    assert bring(export(2), "again.json").pk == first.pk
    assert Session.unscoped.get().events == 8


def test_older_files_go_with_their_session(bring, django_capture_on_commit_callbacks):
    jobs = [bring(export(turns), "a.json") for turns in (2, 3, 4)]
    paths = [job.recording.path for job in jobs]
    deleting.delete(default_project(), Session.unscoped.all())
    with django_capture_on_commit_callbacks(execute=True):
        deleting.purge(timezone.now() + timedelta(seconds=1))
    assert not Recording.unscoped.exists()
    assert not any(path.exists() for path in paths)


def test_a_failed_reading_of_an_older_file_takes_nothing_away(bring):
    first = bring(export(2), "a.json")
    bring(export(3), "a.json")
    job = submitting.start_import(first.recording)
    submitting.cancel_import(job)
    assert first.recording.path.exists()
    assert Recording.unscoped.count() == 2


def test_what_came_anew_is_found_and_what_was_there_is_found_once(bring):
    bring(export(2))
    bring(export(3))
    indexing.index_everything()
    row = Session.unscoped.get()
    assert [place.seq for place in search.hits(parse("question"), row, 0, 9)] == [0, 2, 4]


def test_a_session_that_went_back_stands_beside_the_stored_one(bring):
    bring(export(2))
    bring(export(1, question(7), answer(7)))
    assert sorted(row.events for row in Session.unscoped.all()) == [4, 4]


def test_a_shorter_copy_is_the_longer_session(bring, django_capture_on_commit_callbacks):
    paths = [bring(export(3)).recording.path, (shorter := bring(export(2))).recording.path]
    row = Session.unscoped.get()
    assert row.events == 6
    assert submitting.report_of(shorter).sessions == submitting.report_of(shorter).known == (str(row.pk),)
    assert submitting.report_of(shorter).extended == ()
    assert bring(export(2)).pk == shorter.pk
    bring(export(4))
    assert Session.unscoped.get().events == 8
    deleting.delete(default_project(), Session.unscoped.all())
    with django_capture_on_commit_callbacks(execute=True):
        deleting.purge(timezone.now() + timedelta(seconds=1))
    assert not Recording.unscoped.exists()
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize(("done", "sessions"), [(False, 1), (True, 2)])
def test_a_copy_that_ends_within_an_answer_is_the_longer_session_unless_it_has_a_count(bring, done, sessions):
    bring(export(1, question(1), answer(1, words="I look into the folder")))
    bring(export(1, question(1), answer(1, words="I look into", done=done)))
    assert Session.unscoped.count() == sessions
    assert "I look into the folder" in {words_of(row)[-1] for row in Session.unscoped.all()}


def test_a_shorter_copy_with_another_count_of_tokens_is_another_session(bring):
    bring(export(3))
    bring(export(2).replace(b'"input": 100,', b'"input": 999,'))
    assert sorted(row.events for row in Session.unscoped.all()) == [4, 6]


def test_another_count_of_tokens_is_another_session(bring):
    bring(export(2))
    bring(export(3).replace(b'"input": 100,', b'"input": 999,'))
    assert Session.unscoped.count() == 2


def test_another_beginning_is_another_session(bring):
    bring(export(2))
    bring(export(3).replace(b'"title": "", "time": {"created": 1000}', b'"title": "", "time": {"created": 7}'))
    assert Session.unscoped.count() == 2


def test_an_answer_that_was_being_written_is_written_to_its_end(bring):
    bring(export(1, question(1), answer(1, words="I look into", done=False)))
    row = Session.unscoped.get()
    bring(export(1, question(1), answer(1, words="I look into the folder")))
    whole = Session.unscoped.get()
    assert (whole.pk, words_of(whole)[-1]) == (row.pk, "I look into the folder")
    assert whole.reported_calls == 2


@pytest.mark.parametrize(("done", "words"), [(False, "Something else"), (True, "I look into the folder")])
def test_an_answer_that_became_another_one_is_another_session(bring, done, words):
    bring(export(1, question(1), answer(1, words="I look into", done=done)))
    bring(export(1, question(1), answer(1, words=words)))
    assert Session.unscoped.count() == 2


def test_a_title_that_the_agent_finds_later_is_taken_but_not_over_a_persons_own(bring):
    bring(export(1), "first.json")
    assert Session.unscoped.get().title == "question 0"  # what the user wrote first
    bring(export(2, title="Listing files"))
    assert Session.unscoped.get().title == "Listing files"
    tagging.rename(Session.unscoped.get(), "mine")
    bring(export(3, title="Listing more files"))
    assert Session.unscoped.get().title == "mine"


def test_a_deleted_session_is_not_gone_on_with(bring):
    bring(export(2))
    deleting.delete(default_project(), Session.unscoped.all())
    bring(export(3))
    assert Session.unscoped.get(deleted=None).events == 6


def test_the_sessions_of_a_database_go_on_each_by_its_name(bring):
    bring(library(one=2, two=2, three=1), "agent.db")
    old = {row.source_id: row for row in Session.unscoped.all()}
    job = bring(library(zero=1, three=1, one=3, two=2), "agent.db")
    rows = {row.source_id: row for row in Session.unscoped.all()}
    assert {name: row.events for name, row in rows.items()} == {"zero": 2, "three": 2, "one": 6, "two": 4}
    assert {name: row.pk for name, row in rows.items() if name != "zero"} == {n: row.pk for n, row in old.items()}
    assert {row.recording_id for row in rows.values()} == {job.recording_id}
    assert len({row.ordinal for row in rows.values()}) == 4


def test_a_session_that_is_the_same_is_left_as_it_was(bring):
    bring(library(one=2, two=2), "agent.db")
    bring(library(one=3, two=2), "agent.db")
    assert dict(Session.unscoped.values_list("source_id", "revision")) == {"one": 2, "two": 1}


def test_many_sessions_without_names_go_on_each_at_its_place(bring):
    def chats(turns: int) -> bytes:
        return json.dumps([{"messages": items(turns + number % 2)} for number in range(60)]).encode()

    bring(chats(1), "chats.json")
    keys = dict(Session.unscoped.values_list("ordinal", "pk"))
    bring(chats(2), "chats.json")
    assert len(keys) > 20
    assert dict(Session.unscoped.values_list("ordinal", "pk")) == keys


def test_a_database_keeps_what_a_newer_one_has_no_more(bring):
    bring(library(one=2, two=2), "agent.db")
    bring(library(two=3), "agent.db")
    assert sorted((row.events, row.recording.newer.count()) for row in Session.unscoped.all()) == [(4, 1), (6, 0)]


def test_messages_without_a_name_go_on_in_a_file_of_the_same_name(bring):
    history = [{"role": "user", "content": "look"}, {"role": "assistant", "content": "I look"}]
    more = [*history, {"role": "user", "content": "and?"}, {"role": "assistant", "content": "nothing"}]
    bring(json.dumps(history).encode(), "api_conversation_history.json")
    row = Session.unscoped.get()
    bring(json.dumps(more).encode(), "other.json")
    assert Session.unscoped.count() == 2
    bring(json.dumps(more, indent=1).encode(), "api_conversation_history.json")
    assert Session.unscoped.get(pk=row.pk).events == 4


def test_sessions_of_one_file_are_never_taken_for_one_another(bring):
    """Two of one id that went on differently after their first turn."""
    twice = b"[" + export(2) + b"," + export(1, question(7), answer(7)) + b"]"
    bring(twice, "both.json")
    assert Session.unscoped.count() == 2
    bring(twice + b" ", "both.json")
    assert Session.unscoped.count() == 2
    assert len({row.recording_id for row in Session.unscoped.all()}) == 1


def test_events_that_were_stored_on_the_way_are_moved_and_their_row_goes(bring):
    """A large file's session is stored before anybody knows its name."""
    pace = importing.PACE._replace(own_process_from=0, batch=2)
    bring(claude(2, padding=""), "a.jsonl", pace=pace)
    row = Session.unscoped.get()
    bring(claude(4, padding=" "), "b.jsonl", pace=pace)
    deleting.purge_slice()
    longer = Session.unscoped.get()
    assert (longer.pk, longer.events) == (row.pk, 8)
    assert Event.unscoped.count() == 8 == Payload.objects.count()
    indexing.index_everything()
    assert search.count(parse("says"), longer) == 8


def claude(turns: int, padding: str) -> bytes:
    """A transcript of Claude Code; with `padding` its bytes are others."""
    lines, before = [], None
    for number, item in enumerate(items(turns)):
        message = dict(item)
        if item["role"] == "assistant":
            usage = {"input_tokens": number, "output_tokens": 1}
            text = [{"type": "text", "text": item["content"]}]
            message |= {"id": f"m{number}", "model": "m", "content": text, "usage": usage}
        line = {"type": item["role"], "uuid": f"n{number}", "parentUuid": before, "sessionId": "s", "message": message}
        lines.append(padding + json.dumps(line))
        before = f"n{number}"
    return ("\n".join(lines) + "\n").encode()


def test_the_report_says_what_was_here_already(bring, client):
    bring(library(one=2, two=2), "agent.db")
    job = bring(library(one=3, two=2, three=1), "agent.db")
    page = client.get(f"{job.get_absolute_url()}?report").content.decode()
    assert "2 of them were imported before: 1 has new messages, 1 unchanged" in page
    assert page.count('<span class="badge badge-outline">longer</span>') == 1
    assert page.count('<span class="badge badge-outline">new</span>') == 1


def test_a_first_report_says_nothing_of_it(bring, client):
    job = bring(library(one=2, two=2), "agent.db")
    page = client.get(f"{job.get_absolute_url()}?report").content.decode()
    assert "imported before" not in page
    assert "badge-outline" not in page


def test_sessions_that_were_stored_without_a_name_are_given_theirs(bring):
    bring(library(one=2, two=1), "agent.db")
    Session.unscoped.update(source_id="")
    apps = MigrationLoader(connection).project_state().apps
    import_module("inspector.migrations.0010_source_id").name_sessions(apps, SimpleNamespace(connection=connection))
    assert set(Session.unscoped.values_list("source_id", "events")) == {("one", 4), ("two", 2)}


def test_sessions_that_changed_places_in_a_file_that_is_read_again_stay_themselves(bring):
    job = bring(library(one=2, two=2), "agent.db")
    keys = dict(Session.unscoped.values_list("source_id", "pk"))
    for name, place in (("one", 7), ("two", 0), ("one", 1)):
        Session.unscoped.filter(source_id=name).update(ordinal=place)
    again = submitting.start_import(job.recording)
    importing.run_import(str(again.pk))
    assert dict(Session.unscoped.values_list("source_id", "pk")) == keys
    assert dict(Session.unscoped.values_list("source_id", "ordinal")) == {"one": 0, "two": 1}


def test_sessions_of_one_file_without_titles_are_told_apart(bring):
    bring(library(one=1), "agent.db")
    assert Session.unscoped.get().title == "user says 0"
    bring(library(one=1, two=1), "agent.db")
    assert sorted(row.title for row in Session.unscoped.all()) == ["user says 0 · one", "user says 0 · two"]
    bring(library(one=2, two=2), "agent.db")
    assert sorted(row.title for row in Session.unscoped.all()) == ["user says 0 · one", "user says 0 · two"]


@pytest.mark.parametrize(("turns", "window"), [(5, 50_000), (3, 60_000)])
def test_simulations_of_one_name_are_sessions_of_their_own(db, folders, turns, window):
    for number, tokens in ((3, 50_000), (turns, window)):
        conversation = tuple(Turn(400) for _ in range(number))
        job = runs.open_simulation(default_project(), Simulation(window=tokens, turns=conversation), "chat")
        importing.run_import(str(job.pk))
    assert sorted(row.window for row in Session.unscoped.all()) == sorted((50_000, window))


def test_messages_without_a_name_under_another_window_are_another_session(bring):
    chat = json.dumps(items(2)).encode()
    bring(chat, "chat.json", window=50_000)
    bring(chat + b" ", "chat.json", window=60_000)
    assert Session.unscoped.count() == 2
