"""The page of an import: while it runs, when it failed, and its report."""

from __future__ import annotations

import json
import re
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.utils import timezone

from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import Import, Session, default_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(folders, recording) -> Import:
    """An import that no worker has taken."""
    return submit(default_project(), receive([recording], "waiting.jsonl"))


def test_a_running_import_shows_its_phase_and_can_be_cancelled(client, waiting):
    page = client.get(waiting.get_absolute_url())
    assert 'aria-current="step"' in page.text
    assert f"/imports/{waiting.pk}/cancel" in page.text


def test_an_import_whose_file_is_on_another_server_says_what_it_waits_for(client, waiting):
    Import.objects.row(waiting).update(phase=Import.ELSEWHERE)
    page = client.get(waiting.get_absolute_url())
    assert "in the data folder of the server that received it" in page.text
    assert "after 7 days it fails" in page.text
    assert f"/imports/{waiting.pk}/cancel" in page.text


def test_the_status_is_a_part_of_the_same_page(client, waiting):
    part = client.get(f"/imports/{waiting.pk}/status")
    assert part.text.strip().startswith('<div id="import"')
    assert "<html" not in part.text


def test_a_script_hears_of_an_import_what_the_answer_to_the_upload_said(client, bring, waiting, recording):
    def heard(job: Import) -> dict:
        return client.get(f"/imports/{job.pk}/status", headers={"Accept": "application/json"}).json()

    assert (heard(waiting)["state"], heard(waiting)["url"]) == ("received", waiting.get_absolute_url())
    refused = heard(bring(b"plain words", "notes.txt"))
    assert (refused["name"], refused["state"]) == ("notes.txt", "failed")
    assert refused["error"]


def test_cancelled_is_said(client, waiting):
    answer = client.post(f"/imports/{waiting.pk}/cancel", follow=True)
    assert "Nothing was stored" in answer.text


def test_a_clean_import_goes_on_to_its_session(client, bring, recording):
    job = bring(recording)
    session = Session.unscoped.get().get_absolute_url()
    assert client.get(job.get_absolute_url())["Location"] == session
    assert client.get(f"/imports/{job.pk}/status")["HX-Redirect"] == session


def test_the_report_stays_in_reach(client, bring, recording):
    page = client.get(f"{bring(recording).get_absolute_url()}?report")
    assert page.status_code == 200
    for fact in ("Compaction Inspector export", "200,000 tokens", "Staging", "100 %"):
        assert fact in page.text


def test_the_report_counts_what_the_pages_of_its_sessions_count(client, bring):
    """Whatever a format counts as its messages: a log of requests has each message once."""
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "on it"}]
    lines = [
        {"request": {"model": "gpt-4o", "messages": messages}, "response": answer(tokens)}
        for messages, tokens in ((said[:1], 900), ([*said, {"role": "user", "content": "and then?"}], 1_200))
    ]
    job = bring("\n".join(map(json.dumps, lines)).encode(), "log.jsonl")
    session = Session.unscoped.get()
    text = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", client.get(f"{job.get_absolute_url()}?report").text))
    assert f"Model calls {session.calls}, 100 % with the provider’s count" in text
    assert f"Messages {session.events} " in text
    assert "Prompt tokens 2,100 in total, at most 1,200" in text


def answer(tokens):
    message = {"role": "assistant", "content": "on it"}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}


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


@pytest.fixture
def failures() -> list[Import]:
    """Three imports that have just failed."""
    values = {"state": Import.State.FAILED, "message": "No known format.", "finished": timezone.now()}
    return [Import.objects.of(default_project()).create(name=f"bad-{number}.txt", **values) for number in range(3)]


def failed_names(client, query: str = "") -> set[str]:
    return {job.name for job in client.get(f"/{query}").context["imports"]}


def test_one_failed_import_is_dismissed_and_comes_back_by_its_undo(client, failures):
    answer = client.post("/imports/dismiss", {"id": failures[1].pk, "list": "?q=x"})
    assert failed_names(client) == {"bad-0.txt", "bad-2.txt"}
    page = client.get(answer["Location"])
    assert "1 failed import dismissed" in page.text
    client.post("/imports/undismiss", {"dismissed": page.context["dismissed_before"]})
    assert len(failed_names(client)) == 3


def test_all_failed_imports_are_dismissed_at_once_and_later_ones_are_shown(client, failures):
    client.post("/imports/dismiss", {"id": failures[0].pk})
    answer = client.post("/imports/dismiss")
    page = client.get(answer["Location"])
    assert "2 failed imports dismissed" in page.text
    later = {"state": Import.State.FAILED, "finished": timezone.now()}
    Import.objects.of(default_project()).create(name="later.txt", **later)
    assert failed_names(client) == {"later.txt"}
    client.post("/imports/undismiss", {"dismissed": page.context["dismissed_before"]})
    assert failed_names(client) == {"bad-1.txt", "bad-2.txt", "later.txt"}


def test_dismissing_leaves_what_is_being_read(client, waiting):
    client.post("/imports/dismiss")
    assert failed_names(client) == {"waiting.jsonl"}


@pytest.mark.parametrize("text", ["", "x", "1.x", "9" * 30, "-1", ".".join(["1", *["a"] * 999]), "\x00", "٣"])
def test_a_dismissal_that_makes_no_sense_hides_nothing(client, failures, text):
    client.post("/imports/undismiss", {"dismissed": text})
    client.post("/imports/dismiss", {"id": text})
    assert len(failed_names(client, f"?dismissed={quote(text)}")) == 3


def test_a_part_of_the_page_dismisses_to_the_list_it_is_on(client, failures):
    headers = {"HX-Request": "true", "HX-Target": "imports", "HX-Current-URL": "http://testserver/?sort=title"}
    assert 'name="list" value="?sort=title"' in client.get("/?waiting=1", headers=headers).text
