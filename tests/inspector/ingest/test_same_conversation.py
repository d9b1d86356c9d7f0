"""What is not the same conversation stays apart, what is stays one, and no byte goes while somebody may ask for it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inspector.ingest import continuation, importing, submitting
from inspector.models import Event, Payload, Session, default_project
from inspector.storage import deleting, loading, texts
from inspector.storage.assessment import assess
from tests.inspector.ingest.test_rewritten_files import answer, claude, export, question, words_of
from tests.recordings.seeds import SEEDS, database

pytestmark = pytest.mark.django_db

Item = dict[str, Any]


def asked(text: str) -> Item:
    return {"role": "user", "content": text}


def said(text: str) -> Item:
    return {"role": "assistant", "content": text}


def looked_at(picture: str) -> Item:
    url = f"data:image/png;base64,{'A' * 2400}{picture}"
    return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}


def library(**talks: list[Item]) -> bytes:
    """A database of openai-agents with these sessions."""
    rows = [{"session_id": name, "message_data": json.dumps(item)} for name, talk in talks.items() for item in talk]
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    return database({"agent_sessions": [{"session_id": name} for name in talks], "agent_messages": numbered})


def chats(*talks: list[Item]) -> bytes:
    return json.dumps([{"messages": talk} for talk in talks]).encode()


def history(task: int, turns: int) -> bytes:
    """What Cline keeps of a task, under the same file name for each."""
    roles = ((asked, "q"), (said, "a"))
    return json.dumps([make(f"task {task} {kind}{turn}") for turn in range(turns) for make, kind in roles]).encode()


def purge() -> None:
    deleting.purge(timezone.now() + timedelta(seconds=1))


TWO = {"one": [asked("a"), said("b")], "two": [asked("c"), said("d")]}
MORE = {"two": [*TWO["two"], asked("e")]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([asked("go on"), said("ok")], [asked("go on, but"), said("ok, I leave it")], id="edited"),
        pytest.param([said("Hello")], [said("Hello Bob"), asked("it ran")], id="a name that people give"),
        pytest.param(
            [looked_at("AAAA"), said("ok")], [looked_at("BBBBCCCC"), said("ok"), asked("more")], id="a picture"
        ),
    ],
)
def test_what_went_another_way_stands_beside(bring, before, after):
    bring(library(s=[asked("start"), *before]), "a.db")
    bring(library(s=[asked("start"), *after]), "a.db")
    assert Session.unscoped.count() == 2


def test_an_earlier_answer_cannot_have_gone_on(bring):
    talk = (answer(0, words="one", done=False), question(1), answer(1, words="two", done=False))
    longer = (answer(0, words="one and more", done=False), *talk[1:])
    bring(export(0, question(0), *talk))
    bring(export(0, question(0), *longer))
    assert Session.unscoped.count() == 2


def test_a_session_does_not_take_the_row_of_one_that_was_purged(bring):
    def line(task: int) -> bytes:
        talk = [asked("Shared first question " * 20), said(f"c{task} a"), asked(f"c{task} q"), said(f"c{task} last")]
        return json.dumps({"messages": talk}).encode() + b"\n"

    whole = b"".join(map(line, range(3)))
    bring(whole, "chats.jsonl")
    two = Session.unscoped.get(ordinal=2)
    before = words_of(two)
    deleting.delete(default_project(), Session.unscoped.filter(ordinal=1))
    purge()
    bring(whole + line(3), "chats.jsonl")
    two.refresh_from_db()
    assert words_of(two) == before


def test_a_conversation_that_is_written_late_does_not_take_the_place_of_another(bring):
    def conversation(name: str, number: int, start: int) -> bytes:
        def text(role: str, words: str) -> str:
            return json.dumps([{"role": role, "parts": [{"type": "text", "content": words}]}])

        values = {"operation.name": "chat", "conversation.id": name, "input.messages": text("user", "hi")}
        values["output.messages"] = text("assistant", f"answer {number}")
        one: Item = {"traceId": f"t{name}", "spanId": f"s{number}", "parentSpanId": "", "name": "x"}
        one["attributes"] = [{"key": f"gen_ai.{key}", "value": {"stringValue": value}} for key, value in values.items()]
        one |= {"startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9)}
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}).encode() + b"\n"

    bring(conversation("X", 1, 50), "t.jsonl")
    row = Session.unscoped.get()
    bring(conversation("X", 1, 50) + conversation("Y", 2, 10), "t.jsonl")
    row.refresh_from_db()
    assert (row.source_id, Session.unscoped.count()) == ("X", 2)


def test_a_file_stays_while_one_of_its_sessions_goes_on_elsewhere(bring, client):
    old = bring(library(**TWO), "agent.db")
    bring(library(**MORE), "agent.db")
    deleting.delete(default_project(), Session.unscoped.filter(source_id="one"))
    purge()
    assert old.recording.path.exists()
    assert client.get(f"{old.get_absolute_url()}?report").status_code == 200


def test_a_file_stays_while_any_of_two_newer_ones_does(bring):
    old = bring(library(**TWO), "agent.db")
    bring(library(one=[*TWO["one"], asked("e")]), "agent.db")
    bring(library(**MORE), "agent.db")
    deleting.delete(default_project(), Session.unscoped.filter(source_id="two"))
    purge()
    assert old.recording.path.exists()
    deleting.delete(default_project(), Session.unscoped.filter(source_id="one"))
    purge()
    assert not old.recording.path.exists()


def test_a_file_stays_beside_what_an_import_left_of_it(bring):
    old = bring(export(2), "a.json")
    texts.begin(old.recording)
    bring(export(3), "a.json")
    deleting.purge_unfinished()
    assert old.recording.path.exists()


def test_the_report_of_a_purged_file_still_opens(bring, client):
    job = bring(export(2), "a.json")
    deleting.delete(default_project(), Session.unscoped.all())
    purge()
    assert client.get(f"{job.get_absolute_url()}?report").status_code == 200


def test_a_short_task_is_found_among_many_long_ones_of_the_same_file_name(bring):
    for task in range(continuation.COMPARED + 1):
        bring(history(task, 5), "api_conversation_history.json")
    bring(history(99, 1), "api_conversation_history.json")
    bring(history(99, 2), "api_conversation_history.json")
    assert Session.unscoped.count() == continuation.COMPARED + 2


def test_conversations_go_on_where_the_first_of_them_is_gone(bring):
    def made(turns: int, first: int) -> bytes:
        return chats(*([make(f"c{n} {t}") for t in range(turns) for make in (asked, said)] for n in range(first, 30)))

    bring(made(1, 0), "chats.json")
    bring(made(2, 1), "chats.json")
    assert Session.unscoped.count() == 30


def test_a_fork_and_its_base_stay_themselves_in_another_order(bring):
    base = [asked("q"), said("a")]
    fork = [*base, asked("q2"), said("a2")]
    bring(chats(base, fork), "c.json")
    bring(chats([*fork, asked("z"), said("z")], [*base, asked("w"), said("w")]), "c.json")
    assert sorted(row.events for row in Session.unscoped.all()) == [4, 6]


@pytest.mark.parametrize("again", [True, False])
def test_an_older_file_that_is_read_again_brings_nothing_new(bring, again):
    old = bring(library(**TWO), "agent.db")
    bring(library(**MORE), "agent.db")
    if again:
        importing.run_import(str(submitting.start_import(old.recording).pk))
    else:
        bring(library(**TWO), "agent.db", window=50_000)
    assert sorted((row.source_id, row.events) for row in Session.unscoped.all()) == [("one", 2), ("two", 3)]


def test_a_first_message_may_have_grown_too(bring):
    whole = SEEDS["codex as printed"].replace(b"List files", b"List all the files " * 10)
    beginning = b"".join(whole.splitlines(keepends=True)[:2])
    assert len(beginning) > continuation.SMALLEST
    bring(beginning, "x.jsonl", strict=False)
    row = Session.unscoped.get()
    bring(whole, "x.jsonl")
    assert Session.unscoped.get().pk == row.pk


def test_counts_are_those_of_a_persons_own_window(bring):
    bring(export(2), "a.json")
    Session.unscoped.update(window_override=101)
    bring(export(3), "a.json")
    row = Session.unscoped.get()
    seen = (row.verdict, row.kinds)
    assess(row)
    assert seen == (row.verdict, row.kinds)
    assert row.verdict_kind == "window_contradicted"


def test_a_window_that_was_given_with_the_file_stays(bring):
    bring(export(2), "a.json", window=50_000)
    bring(export(3), "a.json")
    assert Session.unscoped.get().effective_window == 50_000


def test_the_beginning_is_that_of_the_longer_file(bring):
    old = claude(3, "")
    new = [json.loads(line) for line in claude(5, "").splitlines()][6:]
    later = [{**line, "timestamp": f"2026-03-01T10:00:{number:02d}.000Z"} for number, line in enumerate(new)]
    bring(old, "a.jsonl")
    bring(old + b"".join(json.dumps(line).encode() + b"\n" for line in later), "a.jsonl")
    row = Session.unscoped.get()
    assert row.started_at is not None
    assert row.started_at.timestamp() == loading.load_head(row).started_at


def test_a_deleted_session_comes_back_with_another_window(bring):
    bring(export(2), "a.json")
    deleting.delete(default_project(), Session.unscoped.all())
    bring(export(2), "a.json", window=50_000)
    assert Session.unscoped.get(deleted=None).effective_window == 50_000


def test_no_text_stays_that_was_replaced(bring):
    bring(export(1, question(1), answer(1, words="I look into", done=False)))
    bring(export(1, question(1), answer(1, words="I look into the folder")))
    deleting.purge_slice()
    assert Payload.objects.count() == Event.unscoped.values("payload_id").distinct().count() == 4
