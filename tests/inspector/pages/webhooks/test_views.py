"""The page of webhooks: added, tested and removed by owners, the secret shown once."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from inspector.jobs import queue
from inspector.models import AccountRole, AuditRecord, Delivery, Project, Webhook, default_project
from inspector.pages.webhooks.views import MOST_WEBHOOKS
from inspector.webhooks import deliveries, signing
from tests.inspector.people import browser, person
from tests.inspector.webhooks.receiver import receiving

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/ours"


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


def add(client: Any, url: str = URL, *kinds: str) -> Any:
    return client.post("/webhooks/add", {"url": url, "kind": kinds or ("near_miss", "loop")})


def test_an_address_is_added_and_its_secret_is_shown_once(client):
    page = text(add(client))
    (secret,) = re.findall(r'value="(whsec_[^"]+)"', page)
    row = Webhook.unscoped.get()
    assert (row.url, row.kinds) == (URL, "near_miss loop")
    assert signing.secret_of(row.salt).text == secret
    assert secret not in "".join(str(value) for value in Webhook.unscoped.values().get().values())
    again = text(client.get("/webhooks/"))
    assert "whsec_" not in again
    assert "near miss, loop" in again
    assert 'href="/webhooks/"' in text(client.get("/running/"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "begins with https://"),
        ("http://169.254.169.254/", "begins with https://"),
        ("https://127.0.0.1/", "not a public address"),
        ("https://x.example/<script>alert(1)</script>\x00", "and no spaces"),
    ],
)
def test_what_may_not_be_set_comes_back_with_the_reason(client, url, words):
    answer = add(client, url)
    assert answer.status_code == 422
    assert words in text(answer)
    assert b"<script>alert" not in answer.content
    assert not Webhook.unscoped.exists()


def test_one_of_an_address_a_kind_at_least_and_a_few_of_a_project(client):
    add(client)
    assert "already" in text(add(client))
    assert "at least one kind" in text(client.post("/webhooks/add", {"url": "https://b.example/", "kind": "other"}))
    for number in range(MOST_WEBHOOKS - 1):
        add(client, f"https://hooks.example/{number}")
    assert "at most 10" in text(add(client, "https://hooks.example/more"))
    assert Webhook.unscoped.count() == MOST_WEBHOOKS


def test_a_test_message_and_what_became_of_it_are_shown_until_the_webhook_is_removed(client, settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with receiving("error", "ok") as receiver:
        add(client, receiver.url)
        row = Webhook.unscoped.get()
        for words in (("waiting", "HTTP 500.", "next attempt from"), ("delivered", "HTTP 204.")):
            assert client.post(f"/webhooks/{row.pk}/test").status_code == 302
            assert queue.entries(deliveries.SEND).exists()
            deliveries.send(str(row.pk), 60)
            page = text(client.get("/webhooks/"))
            assert all(word in page for word in words), words
    assert client.post(f"/webhooks/{row.pk}/remove").status_code == 302
    assert "hooks?a=1" not in text(client.get("/webhooks/"))
    assert not Delivery.unscoped.exists()


def test_a_webhook_that_has_ended_says_why_and_takes_no_test(client):
    add(client)
    Webhook.unscoped.update(stopped="The receiver answered 410 Gone: it wants no more messages.")
    row = Webhook.unscoped.get()
    page = text(client.get("/webhooks/"))
    assert "Nothing is sent. The receiver answered 410 Gone" in page
    assert f"/webhooks/{row.pk}/test" not in page
    client.post(f"/webhooks/{row.pk}/test")
    assert not Delivery.unscoped.exists()


def test_owners_alone_have_the_page_and_only_their_projects_webhooks(team, team_handler, settings):
    settings.RATE_CHANGES = 1_000_000
    other = Project.objects.create(slug="other", name="Other")
    add(browser(team_handler, person("ada", default_project())))
    row = Webhook.unscoped.get()
    assert AuditRecord.objects.filter(what="webhook added", actor="ada", about=URL).exists()
    for role in (AccountRole.VIEWER, AccountRole.EDITOR):
        member = browser(team_handler, person(f"a-{role}", default_project(), role))
        assert member.get("/webhooks/").status_code == 403
        assert "/webhooks/" not in text(member.get("/running/"))
    stranger = browser(team_handler, person("bob", other))
    assert URL not in text(stranger.get("/webhooks/"))
    assert stranger.post(f"/webhooks/{row.pk}/test").status_code == 404
    assert stranger.post(f"/webhooks/{row.pk}/remove").status_code == 404
    assert Webhook.unscoped.exists()
