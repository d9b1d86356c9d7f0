"""Text search: everything said is found, once it is indexed, and nothing that is gone."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from guard_core.recordings.formats import native
from inspector.jobs import indexing
from inspector.models import Session, default_project
from inspector.storage import search
from inspector.storage.query_words import parse
from tests.builders import bundled, model, session, tool_call, tool_result, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def indexed(bring):
    """Imports events as a session and indexes it."""

    def make(*events, title: str = "a session") -> Session:
        job = bring(native.write(session(*events, title=title)))
        while indexing.pending().exists():
            indexing.TEXT_INDEX.run("test")
        return job.recording.sessions.get()

    return make


def places(row: Session, words: str) -> list[int]:
    return [place.seq for place in search.hits(parse(words), row, 0, 50)]


def titles(words: str) -> list[str]:
    return [match.session.title for match in search.everywhere(default_project(), parse(words), None, 20, 3)]


def test_messages_calls_and_results_are_found_at_their_place(indexed):
    row = indexed(
        user("Which branch is on staging?"),
        tool_call("run_sql", "c1", statement="select branch\nfrom deployments"),
        tool_result({"rows": [["release/2.4", None, 17]]}, "run_sql", "c1"),
        model("Staging runs the release.", reasoning="perhaps a rollback"),
    )
    assert places(row, "staging") == [0, 3]
    assert places(row, "from deployments") == [1]
    assert places(row, "release/2.4") == places(row, "17") == [2]
    assert places(row, "rollback") == [3]


def test_all_words_must_be_in_one_message(indexed):
    row = indexed(user("alpha beta"), model("alpha gamma"))
    assert places(row, "beta alpha") == [0]
    assert places(row, "beta gamma") == []


def test_quoted_words_are_found_as_they_stand(indexed):
    row = indexed(user("the parser failed"), model("failed the parser"))
    assert places(row, '"parser failed"') == [0]
    assert places(row, '"parse"') == []
    assert places(row, "parse") == [0, 1]


def test_accents_do_not_matter_on_either_database(indexed):
    row = indexed(user("Le café est fermé"), model("ЖУРНАЛ готов"))
    assert places(row, "CAFE ferme") == [0]
    assert places(row, "журнал") == [1]


def test_a_very_long_result_is_found_to_its_end(indexed):
    row = indexed(user("go"), tool_result("lorem ipsum " * 40_000 + "needle"), model("ok"))
    assert places(row, "needle") == [1]


HOSTILE = (
    "\x00",
    '"',
    "AND",
    "a* OR b",
    "words:x",
    "NEAR(a)",
    "'; drop table",
    "^a",
    "1e400",
    "0x1f",
    "-",
    "{}",
    "a" * 3000,
)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_find_or_find_not_but_never_fail(indexed, words):
    row = indexed(user("a b"), model("c"))
    search.count(parse(words), row)
    assert titles(words) in ([], ["a session"])


def test_hits_come_in_pages_in_the_order_of_the_session(indexed):
    row = indexed(*[user(f"needle {number}") for number in range(7)], model("done"))
    first = [place.seq for place in search.hits(parse("needle"), row, 0, 4)]
    rest = [place.seq for place in search.hits(parse("needle"), row, 4, 4)]
    assert first + rest == list(range(7))
    assert search.count(parse("needle"), row) == 7


def test_every_session_with_a_hit_is_named_the_newest_first(indexed):
    for title in ("first", "second", "third"):
        indexed(*[user(f"needle {title} {number}") for number in range(30)], title=title)
    results = search.everywhere(default_project(), parse("needle"), None, 2, 3)
    assert [item.session.title for item in results] == ["third", "second"]
    assert [len(item.hits) for item in results] == [3, 3]
    older = search.everywhere(default_project(), parse("needle"), results[-1].before, 2, 3)
    assert [item.session.title for item in older] == ["first"]


def test_a_deleted_session_is_not_found(indexed):
    row = indexed(user("needle"), title="gone")
    indexed(user("needle too"), title="stays")
    Session.unscoped.filter(pk=row.pk).update(deleted="2026-01-01T00:00:00Z")
    assert titles("needle") == ["stays"]


def test_a_forgotten_session_leaves_nothing_in_the_index(indexed):
    row = indexed(user("needle"), model("found"))
    search.forget(row)
    assert places(row, "needle") == []
    assert Session.unscoped.get().indexed == 0


@pytest.fixture
def unindexed(bring):
    """Imports a recording and takes its words out of the index again: as what a session has grown by."""

    def importer(content: bytes) -> Session:
        bring(content)
        row = Session.unscoped.get()
        search.forget(row)
        return row

    return importer


def test_what_is_not_indexed_yet_is_queued_behind_imports(unindexed, recording):
    unindexed(recording)
    indexing.TEXT_INDEX.prepare("test")
    queued = DBTaskResult.objects.get(queue_name="index_texts")
    assert queued.priority < 0
    indexing.TEXT_INDEX.ensure_prepared()
    assert DBTaskResult.objects.filter(queue_name="index_texts").count() == 1


def test_a_worker_that_died_while_indexing_is_replaced(unindexed, recording):
    unindexed(recording)
    indexing.TEXT_INDEX.prepare("test")
    long_ago = timezone.now() - 2 * indexing.TEXT_INDEX.dead_after
    DBTaskResult.objects.update(status="RUNNING", started_at=long_ago)
    indexing.TEXT_INDEX.ensure_prepared()
    assert DBTaskResult.objects.filter(queue_name="index_texts", status="READY").count() == 1


def test_a_session_changed_under_the_hand_is_not_indexed_twice(unindexed, recording):
    seen_by_two = unindexed(recording)
    assert search.index_some(seen_by_two)
    stale = Session.unscoped.get()
    stale.indexed = 0
    assert not search.index_some(stale)


@pytest.mark.django_db(transaction=True)
def test_somebody_else_may_write_while_texts_are_read(unindexed):
    unindexed(native.write(session(*[user(f"needle {number}") for number in range(200)], model("done"))))
    steps = 0
    with connection.execute_wrapper(then_written_elsewhere):
        while (row := Session.unscoped.get()).indexed < row.events:
            assert search.index_some(row, step_chars=500)
            steps += 1
    assert steps > 2
    assert search.count(parse("needle"), row) == 200


def then_written_elsewhere(execute, sql, params, many, context):
    """Runs a query; before the texts that it gives are read, the web process writes."""
    result = execute(sql, params, many, context)
    if sql.startswith("SELECT") and "body" in sql:
        written_elsewhere()
    return result


def written_elsewhere() -> None:
    """A write over a connection of its own, as the web process does."""

    def write() -> None:
        Session.unscoped.update(title="other")
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()


def test_loops_and_fallback_summaries_are_counted_by_the_import(bring):

    for name in ("unpersisted-loop", "small-window", "healthy"):
        bring(native.write(bundled(name)))
    counted = dict(Session.unscoped.values_list("window", "loops"))
    assert Session.unscoped.filter(loops__gt=0).count() == 1, counted
    assert Session.unscoped.get(fallbacks__gt=0).window == 8_000
