"""Work for which no page waits is done in slices, one queued after the other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from inspector.jobs import queue
from inspector.jobs.slices import SlicedJob
from inspector.models import Session
from tests.inspector.rows import session_row

pytestmark = pytest.mark.django_db


def titles(*wanted: str) -> list[Session]:
    return [session_row(title) for title in wanted]


def job(work_on=lambda session: True) -> SlicedJob:
    """Work on sessions without a title of their own."""
    return SlicedJob("test_titles", lambda: Session.unscoped.filter(title=""), work_on, -10, timedelta(minutes=1))


def named(session: Session) -> bool:
    session.title = "named"
    session.save()
    return True


def test_a_slice_works_until_nothing_is_left_and_queues_no_other():
    titles("", "")
    job(named).run("somebody")
    assert not Session.unscoped.filter(title="").exists()
    assert not queue.entries("test_titles").exists()


def test_work_that_makes_way_is_queued_again_below_imports():
    titles("")
    job(lambda session: False).run("somebody")
    entry = queue.entries("test_titles").get()
    assert (queue.about(entry), entry.priority) == ("somebody", -10)


def test_a_page_that_asks_again_queues_nothing_twice():
    titles("")
    job().ensure_prepared()
    job().ensure_prepared()
    job().resume()
    assert queue.entries("test_titles").count() == 1
