"""Work for which no page waits is done in slices, one queued after the other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from inspector.jobs import queue, slices
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


def test_a_session_that_grows_while_it_is_worked_on_waits_a_moment(monkeypatch):
    worked_on = []

    def grows(session: Session) -> bool:
        worked_on.append(session.title)
        Session.unscoped.filter(pk=session.pk).update(revision=F("revision") + 1)
        return True

    (growing,) = titles("")
    Session.unscoped.update(revision=3)
    some = job(grows)
    some.run("somebody")
    assert worked_on == [""]
    assert not queue.entries("test_titles").exists()
    some.resume()
    assert not queue.entries("test_titles").exists()
    titles("")  # one that does not grow is ready
    some.resume()
    assert queue.entries("test_titles").exists()
    Session.unscoped.exclude(pk=growing.pk).delete()
    monkeypatch.setattr(slices, "AGAIN", 0.0)
    some.run("somebody", seconds=0)
    assert worked_on == ["", ""]


def test_a_session_that_has_grown_is_worked_on_in_as_many_steps_as_it_takes():
    steps = []

    def step(session: Session) -> bool:
        steps.append(session)
        return named(session) if len(steps) == 3 else True

    titles("")
    Session.unscoped.update(revision=3)
    job(step).run("somebody")
    assert len(steps) == 3


def test_a_page_that_asks_again_queues_nothing_twice():
    titles("")
    job().ensure_prepared()
    job().ensure_prepared()
    job().resume()
    assert queue.entries("test_titles").count() == 1
