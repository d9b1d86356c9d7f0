"""One compaction, or the decision before one step, is shared alone: reviewed, in levels, verified."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from guard_core.__main__ import main
from inspector.models import Session, Share
from inspector.sharing.making import NAMES
from tests.inspector.pages.share.tools import GITHUB, drafted, published, session_with_secrets

pytestmark = pytest.mark.django_db
COMPACTION = {"scope": "compaction", "compaction": "1"}
DECISION = {"scope": "decision", "step": "6"}


@pytest.fixture
def content():
    return session_with_secrets()


@pytest.fixture
def row(bring, content) -> Session:
    bring(content)
    return Session.unscoped.get()


@pytest.mark.parametrize(
    ("query", "form"),
    [("", COMPACTION), ("?policy=codex", COMPACTION), ("", DECISION), ("?policy=codex", DECISION)],
    ids=["compaction", "replayed compaction", "decision", "replayed decision"],
)
def test_a_part_is_reviewed_published_and_verified(client, row, content, tmp_path, capsys, query, form):
    share = drafted(client, row, query, title="Look here", remarks="step 6: why?", **form)
    link = published(client, share)
    files = {name: client.get(link + name) for name in NAMES}
    assert {answer.status_code for answer in files.values()} == {200}
    page = client.get(link).text
    assert all(words in page for words in ("Look here", "why?", "The check before the call"))
    assert ("From before to after" in page) is (form is COMPACTION)
    assert "<script" not in page
    assert not [name for name, answer in files.items() if GITHUB in answer.content.decode()]
    report, recording = tmp_path / "report.json", tmp_path / "recording.jsonl"
    report.write_bytes(files["report.json"].content)
    recording.write_bytes(content)
    assert main(["verify", str(report), str(recording)]) == 0
    assert capsys.readouterr().out == "equal: digest and every figure of the recording\n"


def test_a_falsified_figure_is_found(client, row, content, tmp_path, capsys):
    link = published(client, drafted(client, row, level="numbers", **COMPACTION))
    report, recording = tmp_path / "report.json", tmp_path / "recording.jsonl"
    value = json.loads(client.get(link + "report.json").content)
    bridge = next(table for table in value["tables"] if table["heading"] == "From before to after")
    bridge["rows"][0][1] += 1
    report.write_text(json.dumps(value))
    recording.write_bytes(content)
    assert main(["verify", str(report), str(recording)]) == 1
    out = capsys.readouterr().out
    assert "digest" in out
    assert "tables." in out


def test_a_level_withholds_title_and_texts(client, row):
    leaks = {}
    for level in ("numbers", "names", "text"):
        value = client.get(published(client, drafted(client, row, level=level, **COMPACTION)) + "report.json").text
        leaks[level] = ("Deploy" in value, "So far:" in value)
    assert leaks == {"numbers": (False, False), "names": (True, False), "text": (True, True)}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"scope": "compaction"}, "Say which compaction"),
        ({"scope": "compaction", "compaction": "2"}, "Choose a compaction from 1 to 1"),
        ({"scope": "decision"}, "Choose a step from 1 to 10."),
        ({"scope": "decision", "step": "11"}, "Choose a step from 1 to 10."),
        ({"scope": "all"}, "Choose the whole session"),
    ],
)
def test_a_part_that_is_not_there_is_refused(client, row, form, words):
    answer = client.post(reverse("session_share", args=[row.pk]), {"level": "text", "lifetime": "7d", **form})
    assert (answer.status_code, words in answer.text) == (422, True)
    assert not Share.unscoped.exists()


def test_its_pages_lead_to_the_form_that_shares_it(client, row):
    form = reverse("session_share", args=[row.pk])
    for page, query in (
        (reverse("compaction", args=[row.pk, 1]), "scope=compaction&amp;compaction=1"),
        (reverse("session_steps", args=[row.pk]) + "?at=6", "scope=decision&amp;step=6"),
        (
            reverse("session_steps", args=[row.pk]) + "?at=6&policy=codex&side=replayed",
            "policy=codex&amp;scope=decision",
        ),
    ):
        assert f'href="{form}?{query}' in client.get(page).text
    text = client.get(f"{form}?scope=decision&step=6").text
    assert 'value="decision" checked' in text
    assert 'name="step" inputmode="numeric" maxlength="9" value="6"' in text
