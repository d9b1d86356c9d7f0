"""How long and how much a project keeps."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from guard_core.errors import LimitExceeded
from inspector.data_folder.sweeping import sweep_daily
from inspector.ingest.uploads import keep, receive
from inspector.models import AuditRecord, Project, Recording, Session, default_project
from inspector.storage import retention
from inspector.storage.retention import Rules
from tests.inspector.people import browser, person
from tests.inspector.rows import session_row

pytestmark = pytest.mark.django_db


def aged(title: str, days: float, size: int = 1_000, project: Project | None = None) -> Session:
    """A session that was imported so many days ago."""
    row = session_row(title, size=size, **({"project": project} if project else {}))
    moment = timezone.now() - timedelta(days=days)
    Session.objects.row(row).update(created=moment)
    Recording.objects.row(row.recording).update(created=moment)
    return row


def due(days: int | None = None, size: int | None = None) -> set[str]:
    rows = retention.due(default_project(), Rules(days, size), timezone.now())
    return {row.title for row in rows}


def test_what_is_older_is_due():
    aged("old", 31)
    aged("new", 29)
    assert due(days=30) == {"old"}
    assert due() == set()


def test_beyond_the_size_the_oldest_are_due():
    for title, days in (("first", 3), ("second", 2), ("third", 1)):
        aged(title, days)
    assert due(size=3_000) == set()
    assert due(size=2_999) == {"first"}
    assert due(size=999) == {"first", "second", "third"}


def test_a_recording_counts_once_however_many_sessions_it_has():
    first = aged("one", 2)
    session_row("two", recording=first.recording, ordinal=1)
    aged("new", 1)
    assert due(size=2_000) == set()
    assert due(size=1_999) == {"one", "two"}


def test_a_project_without_rules_keeps_everything_and_another_is_left_alone(folders):
    other = Project.objects.create(slug="other", name="Other", keep_days=10)
    mine, theirs = aged("mine", 400), aged("theirs", 11, project=other)
    sweep_daily()
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert mine.deleted is None
    assert theirs.deleted is not None
    record = AuditRecord.objects.get()
    assert (record.project, record.actor, record.about) == (other, "retention", "1")


def test_beyond_its_quota_a_project_takes_nothing_new(folders):
    Project.objects.update(quota_bytes=10)
    project = default_project()
    known = keep(project, receive([b"12345678"], "a.jsonl"))
    with pytest.raises(LimitExceeded, match=r"holds 8 bytes of recordings, and 3 more would exceed its quota of 10"):
        keep(project, receive([b"123"], "b.jsonl"))
    assert keep(project, receive([b"12345678"], "again.jsonl")) == known
    assert keep(project, receive([b"12"], "c.jsonl")).size == 2


@pytest.fixture
def owner(team, team_handler):
    return browser(team_handler, person("olga", default_project()))


def test_a_preview_names_what_would_be_deleted_and_changes_nothing(owner):
    aged("a very old session", 31)
    page = owner.post("/team/keeping", {"days": "30", "action": "preview"}).content.decode()
    assert "1 session would be deleted" in page
    assert "a very old session" in page
    assert 'value="30"' in page
    assert default_project().keep_days is None
    assert "No session would be deleted" in owner.post("/team/keeping", {"days": "32"}).content.decode()


def test_an_owner_sets_what_is_kept(owner):
    answer = owner.post("/team/keeping", {"days": "30", "keep": "5000", "quota": "6000", "action": "save"})
    assert answer.status_code == 302
    project = default_project()
    assert (project.keep_days, project.keep_bytes, project.quota_bytes) == (30, 5 * 10**9, 6 * 10**9)
    assert 'value="5000"' in owner.get("/team/").content.decode()
    owner.post("/team/keeping", {"action": "save"})
    assert default_project().keep_days is None


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "९", "9" * 7])
def test_a_number_that_is_none_is_refused(owner, value):
    answer = owner.post("/team/keeping", {"days": value, "action": "save"})
    assert answer.status_code == 422
    assert "whole number from 1 on" in answer.content.decode()
