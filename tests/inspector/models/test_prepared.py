"""Statements that are compiled once do what Django's queries do, with other values each time."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from inspector.models import Recording, Session, SessionChunk, default_project
from inspector.models.prepared import Insert, Select, Slot, Update
from tests.inspector.rows import session_row

pytestmark = pytest.mark.django_db

COLUMNS = ("session", "kind", "number", "digest", "body")


def chunk(row: Session, number: int, body: bytes, kind: str = "new") -> dict[str, object]:
    return {"session": row.pk, "kind": kind, "number": number, "digest": b"d", "body": body}


def test_a_query_gives_the_columns_of_the_rows_with_these_values():
    rows, counts = (
        [session_row(), session_row()],
        Select(Session.objects.of(Slot(Session, "project")).values_list("id", "deleted")),
    )
    assert sorted(counts.all(project=default_project().pk)) == sorted((row.pk, None) for row in rows)
    assert counts.all(project=0) == []
    assert counts.first(project=0) is None
    one = Select(Session.unscoped.filter(pk=Slot(Session, "id")).values_list("recording", "events"))
    assert [one.first(id=row.pk) for row in rows] == [(row.recording_id, row.events) for row in rows]


def test_a_row_comes_as_its_model_and_loads_the_rest_when_it_is_used(django_assert_num_queries):
    row = session_row()
    some = Select(Session.unscoped.filter(pk=Slot(Session, "id")).only("title", "events"))
    assert some.row(id=uuid4()) is None
    with django_assert_num_queries(1):
        found = some.row(id=row.pk)
        assert (found, found.title, found.events) == (row, row.title, row.events)
    with django_assert_num_queries(1):
        assert found.recording_id == row.recording_id


def test_one_query_has_slots_of_one_column_under_names_of_their_own():
    row, add = session_row(), Insert(SessionChunk, *COLUMNS)
    add.run(chunk(row, number, b"%d" % number) for number in range(3))
    at = {number: Slot(SessionChunk, "number", f"number {number}") for number in (0, 1)}
    some = SessionChunk.objects.in_session(Slot(SessionChunk, "session")).filter(kind="new", number__in=at.values())
    two = Select(some.order_by("number").values_list("body"))
    assert [bytes(body) for (body,) in two.all(session=row.pk, **{"number 0": 2, "number 1": 1})] == [b"1", b"2"]


def test_an_update_changes_only_its_rows_and_says_how_many():
    row, other = session_row(), session_row()
    change = Update(Session.unscoped.filter(pk=Slot(Session, "id")), "title", "window_override", model="a")
    assert change.run(id=row.pk, title="100 %s", window_override=None) == 1
    assert change.run(id=uuid4(), title="none", window_override=5) == 0
    row.refresh_from_db()
    assert (row.title, row.window_override, row.model) == ("100 %s", None, "a")
    assert Session.unscoped.get(pk=other.pk).title != "100 %s"
    before = row.recording.size
    more = Update(Recording.unscoped.filter(pk=Slot(Recording, "id")), size=F("size") + Slot(Recording, "size"))
    for size in (5, 7):
        more.run(id=row.recording_id, size=size)
    assert Recording.unscoped.get(pk=row.recording_id).size == before + 12


def test_rows_are_inserted_and_where_they_are_there_changed_or_refused():
    row = session_row()
    put = Insert(SessionChunk, *COLUMNS, unique=("session", "kind", "number"))
    put.run([])
    put.run([chunk(row, 0, b"a"), chunk(row, 1, b"b")])
    put.run([chunk(row, 1, b"c")])
    stored = SessionChunk.objects.in_session(row).filter(kind="new").order_by("number")
    assert [bytes(body) for body in stored.values_list("body", flat=True)] == [b"a", b"c"]
    with pytest.raises(IntegrityError), transaction.atomic():
        Insert(SessionChunk, *COLUMNS).run([chunk(row, 1, b"d")])


def test_a_statement_is_compiled_once():
    row = session_row()
    rows = Session.unscoped.filter(pk=Slot(Session, "id")).values_list("title")
    with CaptureQueriesContext(connection) as queries:
        one = Select(rows)
        assert one.first(id=row.pk) == (row.title,)
        rows.query = Session.unscoped.none().query  # from which nothing can be compiled
        assert one.first(id=row.pk) == (row.title,)
    first, second = (query["sql"] for query in queries)
    assert first == second
