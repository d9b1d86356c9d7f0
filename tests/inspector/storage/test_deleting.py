"""Deleted sessions come back with one undo, and after a day nothing of them is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from guard_core.recordings.formats import native
from inspector.jobs import indexing
from inspector.models import Event, Import, Payload, Recording, Session, default_project
from inspector.storage import deleting, search
from inspector.storage.query_words import parse
from tests.builders import model, session, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(bring) -> tuple[Session, Session]:
    """Two indexed sessions that share one message."""
    for title in ("first", "second"):
        bring(native.write(session(user("shared question"), model(f"answer of the {title}"), title=title)))
    indexing.index_everything()
    return Session.unscoped.get(title="first"), Session.unscoped.get(title="second")


def purge_later() -> int:
    return deleting.purge(timezone.now() + timedelta(seconds=1))


def test_an_undo_brings_everything_back(two):
    key = deleting.delete(default_project(), Session.unscoped.all())
    assert deleting.restore(default_project(), key) == 2
    assert purge_later() == 0


def test_the_end_of_the_undo_is_planned_when_something_is_deleted(two):
    deleting.delete(default_project(), Session.unscoped.filter(pk=two[0].pk))
    planned = DBTaskResult.objects.get(queue_name="purge_deleted")
    assert planned.run_after >= timezone.now() + deleting.UNDO_FOR - timedelta(minutes=1)


def test_deleting_nothing_offers_no_undo(two):
    assert deleting.delete(default_project(), Session.unscoped.none()) == ""


def test_nothing_of_a_purged_session_is_left_and_the_other_is_whole(two, django_capture_on_commit_callbacks):
    deleted, stays = two
    path = deleted.recording.path
    deleting.delete(default_project(), Session.unscoped.filter(pk=deleted.pk))
    with django_capture_on_commit_callbacks(execute=True):
        assert purge_later() == 1
    assert not path.exists()
    assert list(Recording.unscoped.all()) == [stays.recording]
    assert Event.unscoped.count() == 2
    assert Payload.objects.count() == 2
    assert [match.session.pk for match in search.everywhere(default_project(), parse("answer"), None, 9, 3)] == [
        stays.pk
    ]


def test_a_purge_before_the_time_for_undo_is_over_leaves_everything(two):
    deleting.delete(default_project(), Session.unscoped.all())
    assert deleting.purge(timezone.now() - deleting.UNDO_FOR) == 0
    assert Session.unscoped.count() == 2


def test_a_file_uploaded_again_after_deletion_comes_back(two, bring):
    deleted, _ = two
    content = deleted.recording.path.read_bytes()
    deleting.delete(default_project(), Session.unscoped.filter(pk=deleted.pk))
    assert bring(content).state == Import.State.DONE
    assert Session.unscoped.filter(deleted=None).count() == 2


@pytest.mark.parametrize("key", ["", "x", "-1", "9" * 30, "\x00", "1.5"])
def test_a_key_that_makes_no_sense_restores_nothing(two, key):
    assert deleting.restore(default_project(), key) == 0
