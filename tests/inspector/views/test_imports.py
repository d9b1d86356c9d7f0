"""The page of an import: while it runs, when it failed, and its report."""

from __future__ import annotations

from uuid import uuid4

import pytest

from inspector.models import Import, Session
from inspector.services.importing import submit
from inspector.services.uploads import receive

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(folders, recording) -> Import:
    """An import that no worker has taken."""
    return submit(receive([recording], "waiting.jsonl"))


def test_a_running_import_shows_its_phase_and_can_be_cancelled(client, waiting):
    page = client.get(waiting.get_absolute_url())
    assert 'aria-current="step"' in page.text
    assert f"/imports/{waiting.pk}/cancel" in page.text


def test_the_status_is_a_part_of_the_same_page(client, waiting):
    part = client.get(f"/imports/{waiting.pk}/status")
    assert part.text.strip().startswith('<div id="import"')
    assert "<html" not in part.text


def test_cancelled_is_said(client, waiting):
    answer = client.post(f"/imports/{waiting.pk}/cancel", follow=True)
    assert "Nothing was stored" in answer.text


def test_a_clean_import_goes_on_to_its_session(client, bring, recording):
    job = bring(recording)
    session = Session.objects.get().get_absolute_url()
    assert client.get(job.get_absolute_url())["Location"] == session
    assert client.get(f"/imports/{job.pk}/status")["HX-Redirect"] == session


def test_the_report_stays_in_reach(client, bring, recording):
    page = client.get(f"{bring(recording).get_absolute_url()}?report")
    assert page.status_code == 200
    for fact in ("Compaction Inspector export", "200,000 tokens", "Staging", "100 %"):
        assert fact in page.text


def test_a_failed_import_says_why(client, bring):
    page = client.get(bring(b"plain words", "notes.txt").get_absolute_url())
    assert "Nothing was imported" in page.text
    assert "plain words" in page.text
    assert "notes.txt" in page.text


def test_an_import_that_is_none_is_not_found(client):
    for address in (f"/imports/{uuid4()}/", f"/imports/{uuid4()}/status", f"/recordings/{uuid4()}/raw"):
        assert client.get(address).status_code == 404


def test_bytes_that_are_gone_are_not_found(client, bring, recording):
    job = bring(recording)
    job.recording.path.unlink()
    assert client.get(f"/recordings/{job.recording.pk}/raw").status_code == 404
