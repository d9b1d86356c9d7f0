"""Damaged files through the upload page: refused with nothing kept, or stored with pages that open.

What every one of them is read as, tests/guard_core/recordings/test_damaged.py says.
"""

from __future__ import annotations

import hashlib
from itertools import cycle

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from inspector.models import Event, Import, Payload, Recording, Session
from tests.recordings.damaged import CASES, LINE_CASES
from tests.recordings.damaged_formats import DAMAGES, FORMAT_CASES
from tests.recordings.seeds import SEEDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]

THIRD = {case.name for case in LINE_CASES}
# Broken lines that leave equal sessions, and the damages that every format has, take one way from here: some of each.
CHOSEN = [*(case for case in CASES if case.name not in THIRD), *LINE_CASES[::18], *FORMAT_CASES[::18]]
# Hostile words show in every format's own places; its other damages leave less of the same session, so each format
# has one of them, in turn. Archives differ in how they are read. The readers' own tests try every one.
GRID = {f"{seed} {damage}" for seed in SEEDS for damage in DAMAGES}
IN_TURN = {f"{seed} {damage}" for seed, damage in zip(SEEDS, cycle(DAMAGES), strict=False)}


def is_stored(case):
    """Does a lenient upload end in a session."""
    return bool(case.lenient) and isinstance(case.lenient, int)


def differs_on_pages(case):
    """Does a damaged file leave something on pages that the others do not."""
    if case.name in GRID:
        return case.name in IN_TURN or case.name.endswith("hostile words")
    return not case.name.startswith(("an .eval", "a Kimi CLI archive"))


def answered_otherwise(cases):
    """One case of each sentence of an error: the answer is made of nothing else."""
    return list({(type(case.lenient), case.strict, case.sentence): case for case in reversed(cases)}.values())[::-1]


TURNS = {case.name: turn for turn, case in enumerate([*CASES, *FORMAT_CASES])}
SENT = answered_otherwise([case for case in CHOSEN if isinstance(case.strict, str)])
WHOLE = [case for case in CASES if case.name not in THIRD and not isinstance(case.strict, str)]  # odd, and read whole
STORED = [case for case in FORMAT_CASES if case not in SENT and is_stored(case) and differs_on_pages(case)]
REFUSED = [case for case in SENT if not is_stored(case)]


# In `make test` every ninth of what is stored; its pages are made by the same templates.
SHORT = STORED[::9]
LONG = [case for case in STORED if case not in SHORT]


def named(cases, *marks):
    return [pytest.param(case, id=case.name, marks=marks) for case in cases]


@pytest.fixture(autouse=True)
def temporary(settings, folders):
    """Temporary files where they can be seen."""
    settings.FILE_UPLOAD_TEMP_DIR = str(folders / "incoming_dir")


@pytest.fixture
def client(working_client):
    return working_client


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
    document = answer.json()
    (item,) = document.get("imports", [document])
    assert not any(model._base_manager.exists() for model in (Recording, Session, Event, Payload))
    assert "Traceback" not in item["error"]
    assert "internal error" not in item["error"]
    line = item.get("line")
    return f"line {line}: {item['error']}", line


def pages(session, case):
    """The addresses at which a stored session is looked at: its first page and, in turn, one of the others; all of them
    where hostile words may show."""
    path = session.get_absolute_url()
    others = [path + tail for tail in ("figure.json", "steps", "search?q=List")]
    others += [path + tail for tail in ("steps/list", "messages") if session.calls]
    others += [path + "c/1/"] if session.compactions else []
    turn = TURNS[case.name] % len(others)
    return [path, *(others if "hostile" in case.name else others[turn : turn + 1])]


@pytest.mark.once  # what is refused is refused before any of it is stored
@pytest.mark.parametrize("case", named([*SENT, WHOLE[0]]))
def test_a_strict_upload_takes_all_or_nothing(case, send, folders):
    answer = send(case)
    if isinstance(case.strict, int) and case.strict:
        assert answer.status_code == 201
        return
    sentence, line = refusal(answer)
    assert case.sentence.lower() in sentence.lower()
    assert line == (3 if case.name in THIRD else case.line or line)
    assert not files(folders)


@pytest.mark.parametrize(
    "case",
    [
        *named([*filter(is_stored, SENT), *WHOLE[::9]]),
        *named([*REFUSED[::4], *SHORT], pytest.mark.once),
        *named(LONG, pytest.mark.once, pytest.mark.long),
    ],
)
def test_a_lenient_upload_is_refused_likewise_or_opens_everywhere(case, send, folders, client):
    answer = send(case, mode="lenient")
    if not is_stored(case):
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
        for url in [session.get_absolute_url()] if case.name in THIRD else pages(session, case):
            check_page(client.get(url), url, hostile="hostile" in case.name)
    if "hostile" in case.name:
        assert b"<img src=x" not in client.get("/").content


def check_page(answer, url, *, hostile):
    """A page that opens, on which the words of a session are text."""
    assert answer.status_code == 200, url
    if hostile and "json" not in answer["Content-Type"]:
        assert b"<script>document.title" not in answer.content, url
        assert b"<script>alert" not in answer.content, url


def test_the_front_page_search_and_list_open_over_all_that_was_stored(send, client):
    for case in FORMAT_CASES[::18]:
        assert send(case, mode="lenient").status_code < 500
    assert Import.unscoped.filter(state=Import.State.RUNNING).count() == 0
    for url in ("/", "/?sort=-peak", "/?q=List", "/search?q=List", "/search?q=title"):
        assert client.get(url).status_code == 200
