"""A share holds the report of a session as it was, without what was found in it, for whoever has its link."""

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from guard_core.recordings import read
from guard_core.report import decode, verify
from inspector.models import Project, Session, Share
from inspector.sharing import publishing
from inspector.sharing.making import NAMES
from tests.inspector.pages.share.tools import GITHUB, MAIL, drafted, published, session_with_secrets

pytestmark = pytest.mark.django_db


@pytest.fixture
def content():
    return session_with_secrets()


@pytest.fixture
def row(bring, content):
    bring(content)
    return Session.unscoped.get()


def files(client, link):
    return {name: client.get(link + name) for name in NAMES}


def test_a_report_is_made_reviewed_published_read_and_revoked(client, row, tmp_path, content):
    share = drafted(client, row, title="Two weeks", remarks="Look here\nstep 8: this one", compaction="1")
    review = client.get(share.get_absolute_url()).text
    assert "GitHub token 1" in review
    assert MAIL in review
    assert GITHUB not in review
    preview = client.get(reverse("share_preview", args=[share.pk]))
    link = published(client, share)
    shown = client.get(link)
    assert shown.text == preview.text
    assert all(words in shown.text for words in ("Two weeks", "Look here", "this one", "[redacted GitHub token 1]"))
    assert "Compaction Inspector" not in shown.text
    assert "<script" not in shown.text
    assert {name: answer.status_code for name, answer in files(client, link).items()} == dict.fromkeys(NAMES, 200)
    for answer in (shown, *files(client, link).values()):
        assert (answer["Referrer-Policy"], answer["Cache-Control"]) == ("no-referrer", "no-store")
        assert "noindex" in answer["X-Robots-Tag"]
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        assert "unsafe" not in answer["Content-Security-Policy"]
        assert not [value for value in (GITHUB, GITHUB[:14], MAIL) if value in answer.content.decode()]
    file = tmp_path / "recording.jsonl"
    file.write_bytes(content)
    report = decode(client.get(link + "report.json").content)
    assert verify(report, read(str(file)).sessions) == []
    share.refresh_from_db()
    assert (share.views, share.draft) == (1, None)
    assert " Expires " in client.get(share.get_absolute_url()).text
    client.post(reverse("share_revoke", args=[share.pk]))
    assert "xpire" not in client.get(share.get_absolute_url()).text
    share.refresh_from_db()
    assert share.files is None
    assert {client.get(link + name).status_code for name in ("", *NAMES)} == {404}
    assert [record.what for record in share.records.all()] == ["requested", "published", "revoked"]


def test_what_the_author_keeps_is_shown(client, row):
    share = drafted(client, row)
    client.post(reverse("share_review", args=[share.pk]), {"keep": ["e-mail address"]})
    share.refresh_from_db()
    text = client.get(published(client, share)).text
    assert MAIL in text
    assert GITHUB not in text
    client.post(reverse("share_review", args=[share.pk]), {"keep": ["GitHub token"]})
    assert Share.unscoped.get(pk=share.pk).request == share.request  # published: nothing changes any more


def test_a_replay_and_a_level_are_those_of_the_form(client, row):
    share = drafted(client, row, "?policy=codex", level="numbers")
    report = json.loads(client.get(published(client, share) + "report.json").content)
    assert [side["policy"] for side in report["sides"]] == ["", "codex"]
    assert (report["level"], report["session"]["title"]) == ("numbers", "")


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"level": "all"}, "Choose one of: numbers, names, text."),
        ({"lifetime": "days", "days": "0"}, "a number of days from 1 to 365"),
        ({"lifetime": "days", "days": "366"}, "a number of days from 1 to 365"),
        ({"remarks": "step 9999: here"}, "There is no step 9,999"),
        ({"hide": "*"}, "A pattern needs two characters"),
        ({"compaction": "9"}, "Choose a compaction from 1 to 1"),
        ({"password": "x" * 201}, "at most 200 characters"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_made(client, row, form, words):
    given = {"level": "text", "lifetime": "7d", "title": "Mine", **form}
    answer = client.post(reverse("session_share", args=[row.pk]), given)
    assert answer.status_code == 422
    assert words in answer.text
    assert 'value="Mine"' in answer.text
    assert not Share.unscoped.exists()


def test_shares_are_listed_and_belong_to_a_project(client, row):
    share = drafted(client, row, title="Two weeks")
    assert "Two weeks" in client.get(reverse("shares")).text
    assert "Two weeks" in client.get(reverse("session_share", args=[row.pk])).text
    other = Project.objects.create(slug="other", name="Other")
    Share.unscoped.update(project=other)
    assert "Two weeks" not in client.get(reverse("shares")).text
    assert client.get(share.get_absolute_url()).status_code == 404
    for name in ("review", "publish", "revoke"):
        assert client.post(reverse(f"share_{name}", args=[share.pk])).status_code == 404


def test_what_has_ended_is_swept(client, row):
    old, expired, live = (drafted(client, row) for _ in range(3))
    links = [published(client, share) for share in (expired, live)]
    Share.unscoped.filter(pk=expired.pk).update(expires=timezone.now())
    Share.unscoped.filter(pk=old.pk).update(created=timezone.now() - publishing.DRAFTS_FOR)
    publishing.drop_ended()
    assert {share.pk: share.files is None for share in Share.unscoped.all()} == {expired.pk: True, live.pk: False}
    assert [client.get(link).status_code for link in links] == [404, 200]


def test_a_draft_can_be_discarded(client, row):
    share = drafted(client, row)
    client.post(reverse("share_revoke", args=[share.pk]))
    share.refresh_from_db()
    assert share.draft is None
    assert client.post(reverse("share_publish", args=[share.pk])).status_code == 404
    assert client.get(reverse("share_preview", args=[share.pk])).status_code == 404
    assert "discarded" in client.get(share.get_absolute_url()).text


def test_who_loads_the_answer_with_the_link_anew_comes_to_the_share(client, row):
    share = drafted(client, row)
    address = reverse("share_publish", args=[share.pk])
    assert client.get(address)["Location"] == share.get_absolute_url()
    assert "The link, shown only once" in client.post(address).text
    for answer in (client.post(address), client.get(address)):
        assert answer["Location"] == share.get_absolute_url()


def test_a_published_report_is_in_frames_of_named_origins_only(client, row, settings):
    link = published(client, drafted(client, row))
    answer = client.get(link)
    assert answer["Content-Security-Policy"].endswith("; frame-ancestors 'none'")
    assert answer["X-Frame-Options"] == "DENY"
    settings.EMBED_ORIGINS = ["https://wiki.example", "https://other.example:8443"]
    answer = client.get(link)
    assert answer["Content-Security-Policy"].endswith(
        "; frame-ancestors https://wiki.example https://other.example:8443"
    )
    assert "X-Frame-Options" not in answer
    assert client.get(reverse("shares"))["X-Frame-Options"] == "DENY"
