"""Bringing sessions in by the web: what is answered while the worker is still busy, and when it is done."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from inspector.models import Import, Recording, Session

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]

JSON = {"Accept": "application/json"}


@pytest.fixture
def client(working_client):
    return working_client


def file(content: bytes, name: str = "recording.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def test_a_file_becomes_a_session_and_opens(client, recording):
    answer = client.post("/recordings/", {"file": file(recording)})
    assert answer.status_code == 302
    assert answer["Location"] == Session.unscoped.get().get_absolute_url()


def test_pasted_text_becomes_a_session(client, recording):
    answer = client.post("/recordings/", {"text": recording.decode()})
    assert answer["Location"] == Session.unscoped.get().get_absolute_url()
    assert Recording.unscoped.get().name == "pasted session"


def test_several_files_lead_to_the_list(client, recording):
    answer = client.post("/recordings/", {"file": [file(recording), file(b"\n" + recording, "b.jsonl")]})
    assert answer["Location"] == "/?sort=-added"  # those that came last at the top
    assert Session.unscoped.count() == 2


def test_one_bad_file_does_not_stop_the_others(client, recording):
    files = [file(b"no session", "bad.txt"), file(recording)]
    answer = client.post("/recordings/", {"file": files}, headers=JSON)
    states = {item["name"]: item["state"] for item in answer.json()["imports"]}
    assert states == {"bad.txt": "failed", "recording.jsonl": "done"}


def test_a_script_is_told_where_everything_is(client, recording):
    answer = client.post("/recordings/", {"file": file(recording)}, headers=JSON)
    (item,) = answer.json()["imports"]
    assert answer.status_code == 201
    assert item["url"] == Session.unscoped.get().get_absolute_url()
    assert client.get(item["raw"]).getvalue() == recording
    assert client.get(item["report"]).status_code == 200


def test_a_damaged_file_is_refused_with_line_and_reason(client, recording):
    lines = recording.splitlines(keepends=True)
    answer = client.post("/recordings/", {"file": file(b"".join([*lines[:2], b"{oops\n", *lines[3:]]))})
    assert answer.status_code == 422
    assert "Line 3" in answer.text
    assert not Session.unscoped.exists()


def test_the_same_damaged_file_is_taken_when_lines_may_be_left_out(client, recording):
    lines = recording.splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b"{oops\n", *lines[3:]])
    answer = client.post("/recordings/", {"file": file(damaged), "mode": "lenient"})
    report = client.get(answer["Location"])
    assert answer["Location"].startswith("/imports/")
    assert "line 3" in report.text
    assert Session.unscoped.get().title in report.text


@pytest.mark.parametrize("head", [b"// exported by hand\n", b"{broken\n"])
def test_a_damaged_first_line_offers_to_skip_it_at_once(head, client, recording):
    answer = client.post("/recordings/", {"file": file(head + recording)})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Line 1" in page
    assert 'value="lenient" checked' in page
    assert client.post("/recordings/", {"file": file(head + recording)}, headers=JSON).json()["imports"][0]["mendable"]
    assert client.post("/recordings/", {"file": file(head + recording), "mode": "lenient"}).status_code == 302
    assert Session.unscoped.count() == 1


@pytest.mark.parametrize(
    "content", [b'{"a": 1, "b": \n', b'{"type": "session", "version": 3, "id": "x"', b"{broken\n{broken\n"]
)
def test_what_would_be_nothing_without_its_damage_is_not_offered_to_be_read_without_it(content, client):
    answer = client.post("/recordings/", {"file": file(content)})
    assert answer.status_code == 422
    assert "skip damaged lines" not in answer.text
    assert "Without what is damaged, no session would be left of this file." in answer.text
    assert not client.post("/recordings/", {"file": file(content)}, headers=JSON).json()["imports"][0]["mendable"]


@pytest.mark.parametrize("fields", [{}, {"text": "   "}, {"window": "200000"}])
def test_nothing_chosen_is_told(fields, client):
    answer = client.post("/recordings/", fields)
    assert answer.status_code == 400
    assert "choose a file" in answer.text.lower()


@pytest.mark.parametrize("window", ["many", "-5", "0", "1e9", "१२३", "999999999999999"])
def test_a_window_that_is_none_is_told(window, client, recording):
    answer = client.post("/recordings/", {"file": file(recording), "window": window}, headers=JSON)
    assert answer.status_code == 400
    assert re.match("A window (is a number of tokens such as|has 256 to 100,000,000 tokens)", answer.json()["error"])
    assert not Import.unscoped.exists()


def test_a_window_may_be_given(client, recording):
    client.post("/recordings/", {"file": file(recording), "window": "128k"})
    assert Session.unscoped.get().window == 128_000


def test_an_empty_file_is_told(client):
    answer = client.post("/recordings/", {"file": file(b"")}, headers=JSON)
    assert answer.status_code == 400
    assert "empty" in answer.json()["error"]


def test_a_file_over_the_limit_is_told_with_the_limit(client, settings, recording):
    settings.MAX_UPLOAD_BYTES = 100
    answer = client.post("/recordings/", {"file": file(recording)}, headers=JSON)
    assert answer.status_code == 413
    assert "100 bytes" in answer.json()["error"]


def test_script_in_names_and_texts_is_shown_as_text(client, recording):
    hostile = b"<script>alert(1)</script>"
    content = recording.replace(b"Staging", hostile)
    answer = client.post("/recordings/", {"file": file(content, "<img src=x onerror=alert(1)>.json")})
    job = Import.unscoped.get()
    for page in (client.get(answer["Location"]), client.get(f"{job.get_absolute_url()}?report")):
        assert b"<script>alert" not in page.content
        assert b"<img src=x" not in page.content


def test_a_sample_opens(client):
    answer = client.post("/samples/small-window/")
    assert answer["Location"] == Session.unscoped.get().get_absolute_url()


def test_a_sample_that_is_none_is_told(client):
    answer = client.post("/samples/nothing/")
    assert answer.status_code == 404
    assert "healthy" in answer.text


@pytest.mark.parametrize("address", ["/recordings/", "/samples/healthy/"])
def test_looking_changes_nothing(address, client):
    assert client.get(address).status_code == 405
    assert not Import.unscoped.exists()


def test_without_its_token_a_form_is_refused(recording):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/recordings/", {"file": file(recording)})
    assert answer.status_code == 403
    assert "open the page again" in answer.text.lower()
