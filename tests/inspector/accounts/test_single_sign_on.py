"""Signing in at an OpenID provider, against one that answers on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from inspector.accounts import audit, invitations, limits, memberships, oidc
from inspector.models import Account, AccountRole, AuditRecord, Identity, Membership, Project, Spent, default_project
from inspector.pages.account.single_sign_on import COOKIE
from inspector.project.checks import single_sign_on_is_whole
from tests.inspector.accounts.openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, Running
from tests.inspector.people import PASSWORD, browser, person

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]
START, BACK = "/login/sso/", "/login/sso/done"


@pytest.fixture(scope="module")
def running():
    server = Running()
    yield server
    server.close()


@pytest.fixture
def provider(running, team, settings) -> Provider:
    """As it answers by default; the settings name it."""
    address = running.provider.address
    running.provider.__init__(address=address)  # type: ignore[misc]  # every field as at the begin
    oidc._client.cache_clear()
    values = {"OIDC_ISSUER": address, "OIDC_CLIENT_ID": CLIENT_ID, "OIDC_CLIENT_SECRET": CLIENT_SECRET}
    for name, value in {**values, "OIDC_NAME": "Example login", "OIDC_DOMAINS": [], "SSO_ROLE": ""}.items():
        setattr(settings, name, value)
    return running.provider


@pytest.fixture
def client(team_handler):
    return browser(team_handler)


def agreed(location: str) -> str:
    """Where the provider sends the browser of a person who agrees: path and query."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        urllib.request.build_opener(Stay).open(location)
    except urllib.error.HTTPError as redirect:
        redirect.close()
        back = urlsplit(redirect.headers["Location"])
        assert back.netloc == "testserver"
        return f"{back.path}?{back.query}"
    raise AssertionError("the provider did not send the browser back")


def signed_in(client: Any, start: str = START) -> Any:
    """There and back."""
    return client.get(agreed(client.get(start)["Location"]))


def invitation(role: AccountRole = AccountRole.EDITOR, account: Account | None = None) -> str:
    _, token = invitations.invite(default_project(), role, "alice", account)
    return f"/join/{token}/"


def refused(answer: Any, status: int, words: str) -> None:
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert "You are not signed in" in answer.text
    assert answer.client.get("/account/").status_code == 302


def test_an_invitation_lets_a_person_in_who_signs_in_at_the_provider(provider, client):
    join = invitation()
    page = client.get(join)
    assert "Join with Example login" in page.text
    assert signed_in(client, f"{START}?next={join}")["Location"] == "/"
    account = Account.objects.get()
    assert (account.name, account.has_usable_password()) == ("dora", False)
    assert Membership.objects.of(default_project()).get().role == "editor"
    assert client.get("/").status_code == 200
    assert client.get(join).status_code == 404  # it works once


def test_later_the_person_signs_in_without_one_whatever_the_name_is_by_then(provider, client, team_handler):
    signed_in(client, f"{START}?next={invitation()}")
    provider.person["preferred_username"] = "Dorothea"
    later = browser(team_handler)
    assert "Sign in with Example login" in later.get("/login/").text
    assert signed_in(later, f"{START}?next=/triggers/%3Frow=2")["Location"] == "/triggers/?row=2"
    assert later.get("/triggers/").status_code == 200
    assert [row.name for row in Account.objects.all()] == ["dora"]
    assert AuditRecord.objects.filter(what="signed in", about="dora").count() == 2


def test_a_person_without_an_invitation_is_told_what_to_do(provider, client):
    refused(signed_in(client), 403, "Example login knows you as Dora, and there is no account for you here yet.")
    assert not Account.objects.exists()


def test_an_account_of_that_name_is_not_theirs(provider, client):
    person("dora", default_project())
    refused(signed_in(client), 403, "no account for you")
    signed_in(client, f"{START}?next={invitation()}")
    assert sorted(row.name for row in Account.objects.all()) == ["dora", "dora-2"]


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"email": "dora@example.org", "email_verified": True}, 302),
        ({"email": "dora@EXAMPLE.org", "email_verified": True}, 302),
        ({"email": "dora@example.org", "email_verified": False}, 403),
        ({"email": "dora@example.org"}, 403),
        ({"email": "dora@example.org.evil.invalid", "email_verified": True}, 403),
        ({"email": "example.org", "email_verified": True}, 403),
    ],
)
def test_a_verified_address_of_a_domain_that_the_operator_allows_needs_no_invitation(
    provider, client, settings, claims, status
):
    settings.OIDC_DOMAINS, settings.SSO_ROLE = ["example.org"], "viewer"
    provider.person |= claims
    assert signed_in(client).status_code == status
    assert [row.role for row in Membership.unscoped.all()] == (["viewer"] if status == 302 else [])


def test_an_address_that_the_id_token_lacks_is_asked_for(provider, client, settings):
    settings.OIDC_DOMAINS = ["example.org"]
    provider.userinfo = {"email": "dora@example.org", "email_verified": True}
    assert signed_in(client).status_code == 302
    assert provider.asked[-1] == "/userinfo"
    assert client.get("/").status_code == 403  # SSO_ROLE says no role: an account without a project


def test_what_is_said_of_another_subject_does_not_count(provider, client, settings):
    settings.OIDC_DOMAINS = ["example.org"]
    provider.userinfo = {"sub": "other", "email": "dora@example.org", "email_verified": True}
    assert signed_in(client).status_code == 403


@pytest.mark.once  # refused before any account is looked for
@pytest.mark.parametrize(
    "wrong",
    [
        {"signs_with": "second"},  # under the name of the first key
        {"header": {"alg": "none"}},
        {"header": {"alg": "HS256", "kid": "first"}},
        {"header": {"alg": "RS256", "kid": "unknown"}},
        {"claims": {"aud": "another-client"}},
        {"claims": {"aud": ["another-client"], "azp": CLIENT_ID}},
        {"claims": {"iss": "https://evil.invalid"}},
        {"claims": {"exp": 1_700_000_000}},
        {"claims": {"iat": 4_000_000_000, "exp": 4_000_000_300}},
        {"claims": {"exp": None}},
        {"claims": {"nonce": "another"}},
        {"claims": {"nonce": None}},
        {"claims": {"sub": None}},
        {"claims": {"sub": ""}},
        {"claims": {"sub": "a\x00b"}},
        {"claims": {"sub": "x" * 256}},
        {"claims": {"sub": 7}},
        {"answers": {"/token": (200, b'{"access_token": "a", "token_type": "Bearer"}')}},
        {"answers": {"/token": (200, b'{"id_token": "a.b.c", "access_token": "a", "token_type": "Bearer"}')}},
        {"answers": {"/token": (200, b'{"id_token": 7}')}},
        {"answers": {"/token": (200, b"[]")}},
        {"answers": {"/keys": (200, b'{"keys": "none"}')}},
    ],
    ids=str,
)
def test_what_cannot_be_verified_signs_nobody_in(provider, client, wrong):
    join = invitation()
    for name, value in wrong.items():
        setattr(provider, name, value)
    refused(signed_in(client, f"{START}?next={join}"), 400, "could not be verified")
    assert not Account.objects.exists()
    assert client.get(join).status_code == 200  # the invitation is as it was


def test_a_new_key_of_the_provider_is_looked_up(provider, client):
    signed_in(client, f"{START}?next={invitation()}")
    provider.publishes, provider.signs_with = ("second",), "second"
    provider.header = {"alg": "RS256", "kid": "second"}
    assert signed_in(client).status_code == 302


def test_a_code_works_once(provider, client, team_handler):
    signed_in(client, f"{START}?next={invitation()}")
    other = browser(team_handler)
    back = agreed(other.get(START)["Location"])
    cookie = other.cookies[COOKIE].value
    assert other.get(back).status_code == 302
    refused(
        browser(team_handler).get(back), 400, "This browser started no sign-in"
    )  # another person's, who saw the address
    thief = browser(team_handler)
    thief.cookies[COOKIE] = cookie
    refused(thief.get(back), 400, "could not be verified")
    assert other.get("/account/").status_code == 200


def test_the_answer_to_another_begin_is_not_taken(provider, client):
    first = agreed(client.get(START)["Location"])
    client.get(START)
    refused(client.get(first), 400, "A newer sign-in was started")


def test_an_answer_of_another_issuer_is_not_taken(provider, client):
    back = agreed(client.get(START)["Location"])
    refused(client.get(f"{back}&iss=https://evil.invalid"), 400, "could not be verified")


def test_a_cookie_that_was_changed_is_none(provider, client):
    back = agreed(client.get(START)["Location"])
    client.cookies[COOKIE] = client.cookies[COOKIE].value[:-3] + "AAA"
    refused(client.get(back), 400, "started no sign-in")


def test_a_person_who_says_no_at_the_provider_is_told_so(provider, client):
    state = parse_qs(urlsplit(client.get(START)["Location"]).query)["state"][0]
    refused(client.get(f"{BACK}?error=access_denied&state={state}"), 403, "Example login did not sign you in")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_a_provider_that_is_down_is_said_to_be(provider, client, path):
    provider.answers[path] = (500, b"")
    start = client.get(START)
    answer = start if start.status_code != 302 else client.get(agreed(start["Location"]))
    refused(answer, 503, "Example login cannot be reached")
    provider.answers.clear()
    assert client.get(START).status_code == 302  # and up again


def test_a_provider_that_nobody_answers_for_is_said_to_be_down(provider, client, settings):
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    refused(client.get(START), 503, "cannot be reached")


def test_a_provider_that_describes_itself_as_another_one_is_not_trusted(provider, client):
    provider.described["issuer"] = "https://evil.invalid"
    refused(client.get(START), 400, "could not be verified")


def test_the_secret_is_sent_as_the_provider_takes_it(provider, client):
    provider.described["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert signed_in(client, f"{START}?next={invitation()}").status_code == 302


def test_an_account_with_a_password_is_connected_by_who_is_signed_in(provider, team_handler):
    mine = browser(team_handler, person("alice", default_project()))
    assert "Connect this account with Example login" in mine.get("/account/").text
    assert signed_in(mine, f"{START}?next=/account/")["Location"] == "/account/"
    assert "You can sign in to this account with Example login" in mine.get("/account/").text
    later = browser(team_handler)
    signed_in(later)
    assert "alice" in later.get("/account/").text
    assert Identity.objects.get().subject == "248289761001"


def disconnected(client: Any, identity: Identity) -> Any:
    return client.post(f"/account/identities/{identity.pk}/disconnect")


def test_an_identity_is_disconnected_and_signs_nobody_in_any_more(provider, team_handler):
    mine = browser(team_handler, person("alice", default_project(), password=PASSWORD))
    signed_in(mine, f"{START}?next=/account/")
    row = Identity.objects.get()
    page = mine.get("/account/").text
    assert f"/account/identities/{row.pk}/disconnect" in page
    assert "248289761001" in page
    assert disconnected(mine, row)["Location"] == "/account/"
    assert not Identity.objects.exists()
    assert "Connect this account with Example login" in mine.get("/account/").text
    record = audit.records(default_project()).get(what="single sign-on disconnected")
    assert (record.actor, record.about) == ("alice", f"alice: 248289761001 at {provider.address}")
    refused(signed_in(browser(team_handler)), 403, "no account for you")
    assert disconnected(mine, row).status_code == 404  # a second click


def test_a_person_whose_identity_is_disconnected_is_signed_out_in_every_other_browser(provider, client, team_handler):
    signed_in(client, f"{START}?next={invitation()}")
    other = browser(team_handler)
    signed_in(other)
    first = Identity.objects.get()
    Identity.objects.create(account=first.account, issuer=f"{provider.address}/", subject="x")
    assert other.get("/account/").status_code == 200
    disconnected(client, first)
    assert other.get("/account/").status_code == 302
    assert client.get("/account/").status_code == 200


def test_the_last_way_to_sign_in_stays(provider, client):
    signed_in(client, f"{START}?next={invitation()}")
    first = Identity.objects.get()
    Identity.objects.create(account=first.account, issuer="https://former.example", subject="x")  # signs nobody in
    answer = disconnected(client, first)
    assert (answer.status_code, "the last way to sign in" in answer.text) == (422, True)
    assert Identity.objects.filter(pk=first.pk).exists()
    second = Identity.objects.create(account=first.account, issuer=f"{provider.address}/", subject="x")
    assert disconnected(client, first).status_code == 302
    assert disconnected(client, second).status_code == 422


def test_nobody_disconnects_the_identity_of_another(provider, client, team_handler):
    signed_in(client, f"{START}?next={invitation()}")
    row = Identity.objects.get()
    for role in AccountRole:
        other = browser(team_handler, person(role, default_project(), role, PASSWORD))
        assert disconnected(other, row).status_code == 404
    assert disconnected(browser(team_handler), row).status_code == 401
    assert client.get(f"/account/identities/{row.pk}/disconnect").status_code == 405
    assert client.post(f"/account/identities/{10**30}/disconnect").status_code == 404
    assert Identity.objects.filter(pk=row.pk).exists()


def test_the_link_for_a_forgotten_password_connects_as_well(provider, client):
    alice = person("alice", default_project())
    link = invitation(account=alice)
    assert "Sign in with Example login from now on" in client.get(link).text
    assert signed_in(client, f"{START}?next={link}").status_code == 302
    assert "alice" in client.get("/account/").text
    assert Account.objects.count() == 1


def test_an_invitation_that_was_used_meanwhile_lets_nobody_in(provider, client):
    join = invitation()
    back = agreed(client.get(f"{START}?next={join}")["Location"])
    invitations.revoke(invitations.opened_by(join.split("/")[2]))
    refused(client.get(back), 404, "was used or revoked")
    assert not Account.objects.exists()


def test_an_account_that_is_not_active_gets_in_nowhere(provider, client, team_handler):
    signed_in(client, f"{START}?next={invitation()}")
    Account.objects.update(is_active=False)
    refused(signed_in(browser(team_handler)), 403, "not active")


def test_signing_out_leads_to_where_the_provider_ends_its_own_session(provider, client):
    signed_in(client, f"{START}?next={invitation()}")
    page = client.post("/logout/")["Location"]
    assert "sign out there, too" in client.get(page).text
    there = urlsplit(client.get("/login/sso/out")["Location"])
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{provider.address}/end"
    assert parse_qs(there.query)["post_logout_redirect_uri"] == ["http://testserver/login/"]
    assert client.get("/account/").status_code == 302


def test_a_provider_without_a_way_out_is_said_to_have_none(provider, client):
    description = {name: value for name, value in provider.description().items() if name != "end_session_endpoint"}
    provider.answers["/.well-known/openid-configuration"] = (200, str(description).replace("'", '"').encode())
    refused(client.get("/login/sso/out"), 404, "has no address for that")


@pytest.mark.parametrize("place", ["https://evil.invalid/", "//evil.invalid", "javascript:alert(1)", "/\\evil.invalid"])
def test_the_way_back_leads_to_no_other_server(provider, client, team_handler, place):
    signed_in(client, f"{START}?next={invitation()}")
    assert signed_in(browser(team_handler), f"{START}?next={place}")["Location"] == "/"


def test_nothing_is_stored_of_a_visitor_who_does_not_come_back(provider, client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get(START)
    cookie = answer.cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert CLIENT_SECRET not in str(answer.headers) + answer.text


def test_failures_are_in_the_log_without_what_was_secret(provider, client, team_handler, caplog):
    provider.claims = {"aud": "another-client"}
    back = agreed(client.get(START)["Location"])
    code = parse_qs(urlsplit(back).query)["code"][0]
    client.get(back)
    record = audit.records(default_project()).get()
    assert (record.what, record.address) == ("single sign-on failed", "127.0.0.1")
    assert "aud" in record.about
    assert code not in record.about
    olga = browser(team_handler, person("olga", default_project()))
    assert "single sign-on failed" in olga.get("/team/audit").text
    assert "aud" in caplog.text
    assert code not in caplog.text
    assert CLIENT_SECRET not in caplog.text


def test_a_person_without_an_account_and_an_inactive_account_are_in_the_log_of_whom_it_concerns(
    provider, client, team_handler
):
    signed_in(client)
    about = audit.records(default_project()).get().about
    assert about == f"'Dora' (248289761001 at {provider.address}) has no account and no invitation"
    join = invitation()
    signed_in(client, f"{START}?next={join}")
    other = Project.objects.create(slug="other", name="Other")
    memberships.join(Account.objects.get(), other, AccountRole.VIEWER)
    Account.objects.update(is_active=False)
    signed_in(browser(team_handler))
    for project in (default_project(), other):
        assert audit.records(project).first().what == "single sign-on of an inactive account"
    assert not audit.records(other).filter(what="single sign-on failed").exists()


def test_a_stranger_cannot_fill_the_log(provider, client):
    for _ in range(60):
        assert client.get(BACK).status_code == 400
    assert AuditRecord.objects.count() == limits.RECORDED_ADDRESS.most
    assert browser(client.handler).get(BACK, REMOTE_ADDR="192.0.2.7").status_code == 400
    assert AuditRecord.objects.count() == limits.RECORDED_ADDRESS.most + 1
    recorded = AuditRecord.objects.count()
    from_others = limits.RECORDED.most - 3 - recorded  # addresses that failed, too
    assert Spent.objects.filter(count=recorded).update(count=recorded + from_others) == 1
    for number in range(9):
        client.get(BACK, REMOTE_ADDR=f"198.51.100.{number}")
    assert AuditRecord.objects.count() == recorded + 3


def test_without_the_setting_there_is_no_such_address(team, team_handler):
    client = browser(team_handler)
    assert [client.get(path).status_code for path in (START, BACK, "/login/sso/out")] == [404, 404, 404]
    assert "login/sso" not in client.get("/login/").text


def test_what_is_missing_is_said_before_the_server_starts(settings, team):
    assert single_sign_on_is_whole(None) == []
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.TEAM = "https://login.example", "", False
    assert [error.msg for error in single_sign_on_is_whole(None)] == [
        "OIDC_ISSUER needs accounts: set TEAM=1.",
        "OIDC_ISSUER needs OIDC_CLIENT_ID.",
    ]


@pytest.mark.once
def test_the_library_is_loaded_when_somebody_signs_in_that_way(tmp_path):
    code = "import sys, inspector.project.asgi as _, inspector.project.team_urls as _; print('authlib' in sys.modules)"
    environment = {"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path), "TEAM": "1"}
    environment |= {"OIDC_ISSUER": "https://login.example", "OIDC_CLIENT_ID": CLIENT_ID}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("False", 0), done.stderr


def test_other_projects_stay_as_they_are(provider, client):
    other = Project.objects.create(slug="other", name="Other")
    signed_in(client, f"{START}?next={invitation()}")
    assert not Membership.objects.of(other).exists()
