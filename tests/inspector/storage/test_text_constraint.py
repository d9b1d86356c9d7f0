"""Deleting a text costs the same however many events there are."""

from __future__ import annotations

import pytest
from django.db import connection

from inspector.models import Event


@pytest.mark.django_db
def test_no_constraint_makes_each_deleted_text_a_scan_of_all_events():
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, Event._meta.db_table)
    foreign = [item["columns"] for item in constraints.values() if item["foreign_key"]]
    indexed = [item["columns"][0] for item in constraints.values() if item["index"] or item["unique"]]
    assert foreign == [["session_id"]]
    assert "session_id" in indexed
