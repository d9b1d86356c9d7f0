"""Every damaged file through the upload page: refused with nothing kept, or stored with pages that open."""

from __future__ import annotations

import hashlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from inspector.models import Event, Import, Payload, Recording, Session
from tests.recordings.damaged import CASES, LINE_CASES
from tests.recordings.damaged_formats import FORMAT_CASES

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("folders"),
    pytest.mark.urls("tests.inspector.working_urls"),
]

ALL = [*CASES, *FORMAT_CASES]


def some_once(cases):
    """All cases as parameters; of those that every format has, PostgreSQL meets each ninth."""
    again = {case.name for case in (*CASES, *FORMAT_CASES[::9])}
    return [pytest.param(case, id=case.name, marks=() if case.name in again else pytest.mark.once) for case in cases]


THIRD = {case.name for case in LINE_CASES}


@pytest.fixture(autouse=True)
def temporary(settings, folders):
    """Temporary files where they can be seen."""
    settings.FILE_UPLOAD_TEMP_DIR = str(folders / "incoming_dir")


@pytest.fixture
def send(client):
    def post(case, **fields):
        file = SimpleUploadedFile("../../x\x00<img src=x>.jsonl", case.content)
        return client.post("/recordings/", {"file": file, **fields}, headers={"Accept": "application/json"})

    return post


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def refusal(answer):
    """The sentence and the line of a refusal, which keeps nothing."""
    assert 400 <= answer.status_code < 500
    told = answer.json()
    (item,) = told.get("imports", [told])
    assert not any(model._base_manager.exists() for model in (Recording, Session, Event, Payload))
    assert "Traceback" not in item["error"]
    assert "internal error" not in item["error"]
    line = item.get("line")
    return f"line {line}: {item['error']}", line


def pages(session):
    """The addresses of a stored session, and what else shows it."""
    path = session.get_absolute_url()
    yield from (path, *(path + tail for tail in ("figure.json", "steps", "steps/list", "search?q=List")))
    if session.calls:
        yield path + "messages"
    if session.compactions:
        yield path + "c/1/"


@pytest.mark.once  # what is refused is refused before any of it is stored
@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_a_strict_upload_takes_all_or_nothing(case, send, folders):
    answer = send(case)
    if isinstance(case.strict, int) and case.strict:
        assert answer.status_code == 201
        return
    sentence, line = refusal(answer)
    assert case.sentence.lower() in sentence.lower()
    assert line == (3 if case.name in THIRD else case.line or line)
    assert not files(folders)


@pytest.mark.parametrize("case", some_once(ALL))
def test_a_lenient_upload_is_refused_likewise_or_opens_everywhere(case, send, folders, client):
    answer = send(case, mode="lenient")
    if not case.lenient or isinstance(case.lenient, str):
        assert refusal(answer)[0]
        assert not files(folders)
        return
    (item,) = answer.json()["imports"]
    report = client.get(item["report"])
    assert (answer.status_code, item["state"], report.status_code) == (201, "done", 200)
    if case.strict != case.lenient:
        assert b"left out" in report.content or b"line" in report.content
    raw = client.get(item["raw"]).getvalue()
    assert hashlib.sha256(raw).digest() == hashlib.sha256(case.content).digest()
    for session in Session.unscoped.all():
        opened = [session.get_absolute_url()] if case.name in THIRD else pages(session)  # those leave equal sessions
        assert {url: status for url in opened if (status := client.get(url).status_code) != 200} == {}


@pytest.mark.parametrize("case", [case for case in ALL if "hostile" in case.name], ids=lambda case: case.name)
def test_hostile_words_are_shown_as_text(case, send, client):
    send(case, mode="lenient")
    for session in Session.unscoped.all():
        for url in pages(session):
            answer = client.get(url)
            if "json" not in answer["Content-Type"]:
                assert b"<script>document.title" not in answer.content
                assert b"<script>alert" not in answer.content
    assert b"<img src=x" not in client.get("/").content


def test_the_front_page_search_and_list_open_over_all_that_was_stored(send, client):
    for case in FORMAT_CASES[::3]:
        assert send(case, mode="lenient").status_code < 500
    assert Import.unscoped.filter(state=Import.State.RUNNING).count() == 0
    for url in ("/", "/?sort=-peak", "/?q=List", "/search?q=List", "/search?q=title"):
        assert client.get(url).status_code == 200
