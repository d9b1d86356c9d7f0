"""Every query names its project, or begins at a row in hand."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.shortcuts import get_object_or_404

from inspector.models import Event, Project, Recording, Session, SessionData, Tag, TextCount, default_project
from inspector.models.projects import Owned, SessionPart, Unscoped
from tests.inspector.rows import recording_row, session_row

pytestmark = pytest.mark.django_db
SCOPED = [model for model in apps.get_app_config("inspector").get_models() if issubclass(model, Owned | SessionPart)]
# Texts under their hash, the projects, accounts, who they are elsewhere and what is counted and noted of them, lines of
# a stream in hand.
SHARED = {"Account", "AuditRecord", "Identity", "Payload", "Project", "Spent", "StreamBatch"}


@pytest.fixture
def other() -> Project:
    return Project.objects.create(slug="other", name="Other")


@pytest.mark.parametrize("ask", ["all", "first", "count", "exists", "delete", "values_list", "create"])
def test_a_query_without_a_project_is_refused(ask):
    for model in SCOPED:
        with pytest.raises(Unscoped, match=rf"{model.__name__}\.objects\.of\(project\)"):
            getattr(model.objects.filter() if ask == "delete" else model.objects, ask)()


def test_every_model_belongs_to_a_project_or_is_named_here():
    assert {model.__name__ for model in apps.get_app_config("inspector").get_models()} - SHARED == {
        model.__name__ for model in SCOPED
    }


def test_a_shortcut_of_django_is_refused_as_well():
    with pytest.raises(Unscoped):
        get_object_or_404(Session, pk=session_row().pk)


def test_a_project_answers_with_its_own_rows_alone(other):
    mine, theirs = session_row("mine"), session_row("theirs", project=other)
    assert list(Session.objects.of(default_project())) == [mine]
    assert list(Session.objects.of(other.pk)) == [theirs]


def test_what_is_created_in_a_project_belongs_to_it(other):
    tags = Tag.objects.of(other)
    assert tags.create(name="one").project == other
    assert tags.get_or_create(name="two")[0].project == other
    assert tags.filter(name="none").update_or_create(name="three")[0].project == other
    tags.bulk_create([Tag(name="four")])
    assert {tag.name for tag in Tag.objects.of(other)} == {"one", "two", "three", "four"}


def test_two_projects_may_have_a_tag_of_the_same_name(other):
    Tag.objects.of(other).create(name="kept")
    assert Tag.objects.of(default_project()).get_or_create(name="kept")[1]


def test_rows_in_hand_lead_to_those_that_hang_on_them(other):
    session = session_row("mine")
    SessionData.objects.in_session(session).create(ledger=b"", head=b"")
    Event.objects.in_session(session.pk).create(seq=0, payload_id=b"x")
    assert session.recording.sessions.get() == session
    assert session.log.count() == Event.objects.in_session(session).count() == 1
    assert session.data.ledger == b""
    assert not Event.objects.of(other).exists()
    assert not session.recording.newer.exists()


def test_a_row_in_hand_is_changed_under_a_condition():
    session = session_row("before")
    assert Session.objects.row(session).filter(title="after").update(title="never") == 0
    assert Session.objects.row(session).filter(title="before").update(title="after") == 1


def test_the_same_bytes_may_be_a_recording_of_two_projects(other):
    one = recording_row(name="a.jsonl")
    two = recording_row(sha256=one.sha256, name="b.jsonl", project=other)
    assert one.path == two.path
    assert Recording.objects.of(other).get() == two


def test_the_default_project_is_there_and_stays_the_same():
    assert default_project() == default_project()
    assert Project.objects.get().slug == "default"


def test_counts_of_a_text_belong_to_a_project(other):
    counts = {"o200k": 1, "cl100k": 1, "chars4": 1, "bytes4": 1}
    for project in (default_project(), other):
        TextCount.objects.of(project).create(sha256=b"x" * 32, **counts)
    assert TextCount.objects.of(other).count() == 1
