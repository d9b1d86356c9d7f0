"""A session leaves the application in its own format, and comes back as the same session."""

import pytest
from django.urls import reverse

from guard_core.recordings import read
from guard_core.recordings.formats import native
from inspector.models import Session
from inspector.pages.export import views
from inspector.storage import loading
from tests.inspector.pages.share.tools import GITHUB, session_with_secrets

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(bring):
    bring(session_with_secrets())
    return Session.unscoped.get()


def test_an_export_is_the_same_session_by_its_digest(client, row):
    address = reverse("session_export", args=[row.pk])
    answer = client.get(address)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="session-{str(row.pk)[:8]}.jsonl"'
    (session,) = read(answer.content).sessions
    assert native.digest(session) == native.digest(loading.load_session(row))
    assert GITHUB in answer.text
    assert f'href="{address}"' in client.get(reverse("session_share", args=[row.pk])).text


def test_a_redacted_export_can_be_imported_and_holds_no_secret(client, row):
    answer = client.get(reverse("session_export", args=[row.pk]) + "?redact=1")
    (session,) = read(answer.content).sessions
    assert len(session.events) == row.events
    assert GITHUB not in answer.text
    assert "[redacted GitHub token 1]" in answer.text


def test_a_session_that_is_too_long_names_the_command_and_the_file(client, row):
    Session.unscoped.update(events=views.MOST_SEARCHED + 1)
    address = reverse("session_export", args=[row.pk])
    assert client.get(address).status_code == 200
    answer = client.get(address + "?redact=1")
    assert answer.status_code == 413
    assert "python -m guard_core export FILE -o session.jsonl --redact" in answer.text
    assert reverse("recording_raw", args=[row.recording_id]) in answer.text


def test_a_deleted_session_is_not_there(client, row):
    client.post(reverse("session_delete", args=[row.pk]))
    assert client.get(reverse("session_export", args=[row.pk])).status_code == 404
