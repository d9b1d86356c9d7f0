"""Links that let one person in, once."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from inspector.accounts import invitations
from inspector.models import Account, AccountRole, Invitation, Membership, Project, default_project
from tests.inspector.people import browser, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("team")]
FORM = {"name": "Carol", "password1": "correct horse battery", "password2": "correct horse battery"}


def path_of(address: str) -> str:
    return "/join/" + address.rstrip("/").rpartition("/")[2] + "/"


def test_the_first_start_gives_a_link_that_makes_the_first_account(team_handler):
    path = path_of(invitations.setup_address("http://127.0.0.1:8000/"))
    client = browser(team_handler)
    assert "Create the first account" in client.get(path).content.decode()
    assert client.post(path, FORM)["Location"] == "/"
    assert client.get("/").status_code == 200
    membership = Membership.unscoped.get()
    assert (membership.account.name, membership.role, membership.project) == ("carol", "owner", default_project())
    assert invitations.setup_address("http://127.0.0.1:8000/") == ""


def test_another_start_ends_the_link_of_the_one_before(team_handler):
    first, second = (path_of(invitations.setup_address("http://x/")) for _ in range(2))
    assert browser(team_handler).get(first).status_code == 404
    assert browser(team_handler).get(second).status_code == 200


def test_a_link_works_once(team_handler):
    _, token = invitations.invite(default_project(), AccountRole.EDITOR, "alice")
    path = f"/join/{token}/"
    assert "alice invites you as editor" in browser(team_handler).get(path).content.decode()
    assert browser(team_handler).post(path, FORM).status_code == 302
    assert Membership.unscoped.get().role == "editor"
    again = browser(team_handler).post(path, {**FORM, "name": "mallory"})
    assert again.status_code == 404
    assert not Account.objects.filter(name="mallory").exists()


def test_unknown_used_revoked_and_expired_links_have_one_answer(team_handler):
    tokens = {
        name: invitations.invite(default_project(), AccountRole.VIEWER, "alice") for name in ("used", "revoked", "over")
    }
    Invitation.objects.row(tokens["used"][0]).update(used=timezone.now())
    invitations.revoke(tokens["revoked"][0])
    Invitation.objects.row(tokens["over"][0]).update(expires=timezone.now() - timedelta(seconds=1))
    asked = [token for _, token in tokens.values()] + ["unknown", "x" * 5_000]
    answers = [browser(team_handler).get(f"/join/{token}/") for token in asked]
    assert {answer.status_code for answer in answers} == {404}
    assert len({re.sub(r"\b[A-Za-z0-9]{64}\b", "", answer.content.decode()) for answer in answers}) == 1


def test_only_a_hash_of_a_link_is_stored():
    _, token = invitations.invite(default_project(), AccountRole.VIEWER, "alice")
    assert len(token) >= 43
    assert token not in repr(list(Invitation.unscoped.values()))


def test_someone_with_an_account_joins_with_it(team_handler):
    other = Project.objects.create(slug="other", name="Other")
    _, token = invitations.invite(other, AccountRole.VIEWER, "bob")
    client = browser(team_handler, person("alice", default_project()))
    assert "You are signed in as alice" in client.get(f"/join/{token}/").content.decode()
    assert client.post(f"/join/{token}/")["Location"] == "/"
    assert Membership.objects.of(other).get().role == "viewer"
    assert "Other" in client.get("/").content.decode()


def test_an_invitation_never_takes_a_role_away():
    owner = person("alice", default_project())
    row, _ = invitations.invite(default_project(), AccountRole.VIEWER, "alice")
    assert invitations.use(row, owner)
    assert Membership.unscoped.get().role == "owner"


def test_a_link_for_an_account_sets_its_password_and_nothing_else(team_handler):
    alice = person("alice", default_project(), AccountRole.VIEWER)
    _, token = invitations.invite(default_project(), AccountRole.OWNER, "the server", account=alice)
    client = browser(team_handler)
    assert "For the account alice" in client.get(f"/join/{token}/").content.decode()
    new = "another battery staple"
    assert client.post(f"/join/{token}/", {"new_password1": new, "new_password2": new}).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(new)
    assert Membership.unscoped.get().role == "viewer"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "alice"}, "already exists"),
        ({"name": "ALICE"}, "already exists"),
        ({"name": "<b>"}, "A name has letters"),
        ({"name": "a" * 61}, "at most 60"),
        ({"password2": "something else"}, "didn’t match"),
        ({"password1": "short", "password2": "short"}, "at least 12 characters"),
        ({"password1": "", "password2": ""}, "required"),
        ({"name": "nul\x00"}, "Null characters"),
    ],
)
def test_what_is_wrong_with_a_new_account_is_said_at_its_field(team_handler, changed, words):
    person("alice")
    _, token = invitations.invite(default_project(), AccountRole.VIEWER, "bob")
    answer = browser(team_handler).post(f"/join/{token}/", {**FORM, **changed})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Account.objects.count() == 1


def test_whoever_runs_the_server_makes_links_there(team_handler):
    person("alice", default_project())
    for arguments, words in (([], "invites you as viewer"), (["--account", "Alice"], "For the account alice")):
        address = StringIO()
        call_command("invite", *arguments, stdout=address)
        assert words in browser(team_handler).get(path_of(address.getvalue().strip())).content.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--account", "nobody"], "no account 'nobody'"), (["--project", "none"], "no project 'none'")],
)
def test_a_link_for_what_is_not_there_is_refused(arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("invite", *arguments)
