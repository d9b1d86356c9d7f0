"""Comparisons, sweeps and thresholds are shared as the sessions are: searched for secrets, reviewed, under a link."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

import msgspec
import pytest
from django.urls import reverse

from guard_core.__main__ import main
from guard_core.rules import explain
from inspector.models import Session, Share
from inspector.pages.sweep.runs import SWEEP_SLICES, run_slice
from inspector.sharing.making import NAMES
from inspector.storage import explanations
from tests.builders import transcript
from tests.inspector.pages.conftest import stored
from tests.inspector.pages.share.tools import GITHUB, published
from tests.inspector.pages.triggers.test_views import keep as explained

pytestmark = pytest.mark.django_db
FORM = {"level": "names", "lifetime": "1d", "title": "For the team", "remarks": "Look\nhere"}


def keep(title: str) -> Session:
    value = msgspec.structs.replace(transcript(), title=title, source_id=title)
    row = stored(value, title=title)
    explanations.store(row, value, explain(value))
    return row


def comparison() -> str:
    sides = [keep(f"Deploy {GITHUB}").pk, keep("second").pk]
    return f"{reverse('compare_share')}?{urlencode([('side', side) for side in sides])}"


def shared(client, address: str, **changes: str) -> tuple[Share, str]:
    """A share made by the form of an address, and its link."""
    assert client.get(address).status_code == 200
    answer = client.post(address, {**FORM, **changes})
    assert answer.status_code == 302, re.findall(r'role="alert">(.*?)</p>', answer.text, re.DOTALL)
    share = Share.unscoped.latest("created")
    assert share.state == Share.State.DRAFT
    return share, published(client, share)


def test_a_comparison_is_reviewed_published_read_and_revoked(client, tmp_path, capsys):
    share, link = shared(client, comparison())
    page = client.get(link).text
    assert all(words in page for words in ("For the team", "Look", "A and B", "[redacted GitHub token 1]", "<svg"))
    assert "<script" not in page
    texts = {name: client.get(link + name) for name in NAMES}
    assert {answer.status_code for answer in texts.values()} == {200}
    assert GITHUB not in page + "".join(answer.text for answer in texts.values())
    report = json.loads(texts["report.json"].content)
    figures = {row[0]: row[1:] for row in report["tables"][0]["rows"]}
    assert figures["compactions"] == [1, 1]
    assert len(report["lines"][0]["marks"]) == 1
    file = tmp_path / "report.json"
    file.write_bytes(texts["report.json"].content)
    assert main(["verify", str(file)]) == 0
    assert capsys.readouterr().out == "equal: digest\n"
    file.write_bytes(texts["report.json"].content.replace(b"For the team", b"For my team"))
    assert main(["verify", str(file)]) == 1
    client.post(reverse("share_revoke", args=[share.pk]))
    assert {client.get(link + name).status_code for name in ("", *NAMES)} == {404}


def test_the_answer_of_a_sweep_holds_its_recommendation_and_every_setting(client):
    keep("first")
    form = {"policy": "contextguard", "axis1": "buffer", "values1": "500, 3000, 6k"}
    sweep = client.post("/sweeps/new", form).headers["Location"]
    assert client.get(f"{sweep}share").status_code == 404, "there is no answer yet"
    for row in SWEEP_SLICES.model.unscoped.all():
        run_slice(str(row.pk), store_every=0.0)
    sentence = client.get(sweep).context["recommendation"]["sentence"]
    _, link = shared(client, f"{sweep}share", level="numbers")
    report = json.loads(client.get(f"{link}report.json").content)
    assert report["sentences"][0] == sentence
    assert len(report["tables"][0]["rows"]) == 3
    assert report["tables"][1]["rows"][0][0] == "session 1"
    assert "first" not in json.dumps(report["tables"][1])


def test_the_thresholds_are_shared_for_the_filters_of_the_address(client):
    keep("first")
    address = f"{reverse('triggers_share')}?agent=Claude+Code"
    _, link = shared(client, address)
    report = json.loads(client.get(f"{link}report.json").content)
    (row,) = report["tables"][0]["rows"]
    named = dict(zip(report["tables"][0]["heads"], row, strict=True))
    assert (named["agent"], named["automatic"], named["threshold"]) == ("Claude Code", 1, 155_000)
    assert report["sentences"] == ["Known formulas explain 1 of 1 compaction with a count."]
    assert "<th" in client.get(link).text
    assert client.get(f"{link}report.md").text.startswith("# For the team\n")


def test_the_shared_thresholds_count_compactions_as_the_page_does(client):
    keep("first")
    explained("second", trigger="", prompts=(20_000, 150_000, 155_500, 9))
    explained("passed", prompts=(20_000, 150_000, 170_000, 9))
    explained("below", prompts=(20_000, 120_000, 130_000, 9))
    _, link = shared(client, f"{reverse('triggers_share')}?agent=Claude+Code")
    report = json.loads(client.get(f"{link}report.json").content)
    (row,) = report["tables"][0]["rows"]
    named = dict(zip(report["tables"][0]["heads"], row, strict=True))
    names = ("automatic", "unknown trigger", "manual", "sliding window")
    assert [named[name] for name in names] == [3, 1, 0, 0]
    assert report["sentences"][1:] == ["In 1 row no single threshold fits all checks."]
    page = client.get("/triggers/").text
    assert "What triggered 1 of them, the files do not say: taken as automatic." in page


def test_a_wrong_form_names_what_is_wrong_and_makes_nothing(client):
    answer = client.post(comparison(), {**FORM, "level": "all", "lifetime": "days", "days": "400"})
    assert answer.status_code == 422
    assert "Choose one of: numbers, names." in answer.text
    assert "a number of days from 1 to 365" in answer.text
    assert not Share.unscoped.exists()


@pytest.mark.parametrize("query", ["", "?side=", "?side=00000000-0000-0000-0000-000000000000&side=x"])
def test_a_comparison_that_is_none_cannot_be_shared(client, query):
    assert client.get(reverse("compare_share") + query).status_code == 404


def test_tables_stay_when_one_of_their_sessions_is_deleted(client):
    _, link = shared(client, comparison())
    Session.unscoped.all().delete()
    assert client.get(link).status_code == 200
    assert client.get(reverse("shares")).status_code == 200
