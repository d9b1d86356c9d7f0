"""What owners do: members, invitations, keys; and what the log says of it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from inspector.models import (
    AccountRole,
    ApiKey,
    AuditRecord,
    Invitation,
    Membership,
    Project,
    Session,
    Share,
    default_project,
)
from tests.inspector.people import browser, person
from tests.inspector.rows import session_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("team")]


@pytest.fixture
def owner(team, team_handler):
    return browser(team_handler, person("olga", default_project()))


@pytest.fixture
def vera(team) -> Membership:
    person("vera", default_project(), AccountRole.VIEWER)
    return Membership.objects.of(default_project()).get(account__name="vera")


def test_an_owner_changes_a_role_and_it_counts_at_once(owner, vera, team_handler):
    client = browser(team_handler, vera.account)
    assert client.post("/gallery/cancel").status_code == 403
    assert owner.post(f"/team/members/{vera.pk}", {"role": "editor"}).status_code == 302
    assert client.post("/gallery/cancel").status_code != 403
    owner.post(f"/team/members/{vera.pk}", {"role": "remove"})
    assert client.get("/").status_code == 403


def test_the_list_that_goes_anywhere_has_what_whoever_asks_may_see(owner, vera, team_handler):
    places = {
        "webh": "/webhooks/",
        "members": "/team/",
        "audit": "/team/audit",
        "account": "/account/",
        "watch": "/watching/",
    }

    def reachable(client):
        return {words for words, place in places.items() if f'href="{place}"' in client.get(f"/go?q={words}").text}

    assert reachable(owner) == {"webh", "members", "audit", "account"}  # a server of a team watches no folders
    assert reachable(browser(team_handler, vera.account)) == {"account"}


def test_a_project_keeps_an_owner(owner, vera):
    mine = Membership.objects.of(default_project()).get(account__name="olga")
    for role in ("viewer", "remove"):
        answer = owner.post(f"/team/members/{mine.pk}", {"role": role})
        assert answer.status_code == 422
        assert "needs an owner" in answer.content.decode()
    owner.post(f"/team/members/{vera.pk}", {"role": "owner"})
    assert owner.post(f"/team/members/{mine.pk}", {"role": "viewer"}).status_code == 302


def test_members_of_another_project_are_out_of_reach(owner):
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    person("bob", elsewhere)
    theirs = Membership.objects.of(elsewhere).get()
    assert owner.post(f"/team/members/{theirs.pk}", {"role": "remove"}).status_code == 404
    assert "bob" not in owner.get("/team/").content.decode()


def test_an_invitation_is_shown_once_and_can_be_revoked(owner, team_handler):
    page = owner.post("/team/invitations", {"role": "editor"}).content.decode()
    link = re.search(r'value="http://testserver(/join/[\w-]{43,}/)"', page)[1]
    assert link not in owner.get("/team/").content.decode()
    assert browser(team_handler).get(link).status_code == 200
    owner.post(f"/team/invitations/{Invitation.unscoped.get().pk}/revoke")
    assert browser(team_handler).get(link).status_code == 404


def test_a_key_is_shown_once_stored_hashed_and_ends_when_it_is_revoked(owner, team_handler):
    page = owner.post("/team/keys", {"name": "CI", "scope": ["read"], "lifetime": "30"}).content.decode()
    text = re.search(r'value="(ci_[\w-]{43,})"', page)[1]
    assert text not in owner.get("/team/").content.decode()
    row = ApiKey.unscoped.get()
    assert text not in repr(ApiKey.unscoped.values())
    asking = {"Authorization": f"Bearer {text}"}
    assert browser(team_handler).get("/triggers/triggers.json", headers=asking).status_code == 200
    row.refresh_from_db()
    assert row.last_used is not None
    owner.post(f"/team/keys/{row.pk}/revoke")
    answer = browser(team_handler).get("/triggers/triggers.json", headers=asking)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")


def test_a_key_ends_at_its_time(owner, team_handler):
    page = owner.post("/team/keys", {"name": "CI", "scope": ["read"], "lifetime": "30"}).content.decode()
    asking = {"Authorization": "Bearer " + re.search(r'value="(ci_[\w-]+)"', page)[1]}
    ApiKey.unscoped.update(expires=timezone.now() - timedelta(seconds=1))
    assert browser(team_handler).get("/", headers=asking).status_code == 401


@pytest.mark.parametrize(
    "form",
    [{}, {"name": "x"}, {"scope": ["read"]}, {"name": "x", "scope": ["mint"]}, {"name": " ", "scope": ["read"]}],
)
def test_a_key_without_name_or_scope_is_refused(owner, form):
    answer = owner.post("/team/keys", {"lifetime": "30", **form})
    assert answer.status_code == 422
    assert "needs a name and at least one scope" in answer.content.decode()
    assert not ApiKey.unscoped.exists()


def test_the_log_says_who_did_what_to_whom(owner, vera):
    owner.post(f"/team/members/{vera.pk}", {"role": "editor"})
    owner.post("/team/invitations", {"role": "viewer"})
    owner.post("/team/keys", {"name": "CI", "scope": ["ingest"], "lifetime": ""})
    records = AuditRecord.objects.order_by("pk").values_list("actor", "what", "about")
    assert [(actor, what) for actor, what, _ in records] == [
        ("olga", "role editor"),
        ("olga", "invited"),
        ("olga", "key made"),
    ]
    page = owner.get("/team/audit").content.decode()
    assert "vera" in page
    assert page.index("key made") < page.index("role editor")


def test_the_log_of_another_project_is_not_shown(owner):
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    AuditRecord.objects.create(project=elsewhere, actor="bob", what="key made", about="secret plans")
    AuditRecord.objects.create(actor="", what="sign-in failed", about="bob")
    AuditRecord.objects.create(actor="", what="sign-in failed", about="olga")
    page = owner.get("/team/audit").content.decode()
    assert "secret plans" not in page
    assert page.count("sign-in failed") == 1


def test_a_long_log_has_pages(owner):
    AuditRecord.objects.bulk_create(
        AuditRecord(project=default_project(), what=f"thing {n:03}", actor="olga") for n in range(150)
    )
    page = owner.get("/team/audit").content.decode()
    older = re.search(r"\?before=(\d+)", page)[1]
    assert "thing 149" in page
    assert "thing 049" not in page
    assert "thing 049" in owner.get(f"/team/audit?before={older}").content.decode()
    assert owner.get("/team/audit?before=" + "9" * 40).status_code == 200


def test_what_is_done_with_sessions_and_shares_is_in_the_log(owner, team_handler):
    row = session_row("to go")
    owner.post(f"/s/{row.pk}/delete")
    share = Share.objects.of(default_project()).create(session=row, request=b"{}", lifetime=60)
    Session.objects.row(row).update(deleted=None)
    owner.post(f"/shares/{share.pk}/revoke")
    records = AuditRecord.objects.order_by("pk").values_list("actor", "what", "about")
    assert list(records) == [("olga", "session deleted", str(row.pk)), ("olga", "share revoked", str(share.pk))]
