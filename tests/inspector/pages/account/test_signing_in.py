"""Signing in and out, passwords, and what is said to those who guess."""

from __future__ import annotations

import re

import pytest
from django.conf import settings as django_settings

from inspector.models import Account, AccountRole, AuditRecord, Project, default_project
from tests.inspector.conftest import PageClient, team_middleware
from tests.inspector.people import PASSWORD, browser, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("team")]
SESSION = django_settings.SESSION_COOKIE_NAME
NEW = "another battery staple"


@pytest.fixture
def alice(team) -> Account:
    return person("alice", default_project(), password=PASSWORD)


def sign_in(client: PageClient, name: str = "alice", password: str = PASSWORD, **more: str):
    form = {"username": name, "password": password, "next": more.pop("next", "")}
    return client.post("/login/", form, **more)


def test_the_right_password_opens_the_page_that_was_asked_for(alice, team_handler):
    client = browser(team_handler)
    asked = client.get("/triggers/?row=2")
    assert asked["Location"] == "/login/?next=%2Ftriggers%2F%3Frow%3D2"
    page = client.get(asked["Location"]).content.decode()
    assert 'name="next" value="/triggers/?row=2"' in page
    answer = sign_in(client, "Alice", next="/triggers/?row=2")
    assert (answer.status_code, answer["Location"]) == (302, "/triggers/?row=2")
    assert client.get("/triggers/?row=2").status_code == 200


@pytest.mark.parametrize("place", ["https://evil.invalid/", "//evil.invalid", "javascript:alert(1)", "/\\evil.invalid"])
def test_a_login_leads_to_no_other_server(alice, team_handler, place):
    assert sign_in(browser(team_handler), next=place)["Location"] == "/"


def test_a_wrong_password_and_an_unknown_name_have_one_answer(alice, team_handler):
    answers = [sign_in(browser(team_handler), name, "wrong password") for name in ("alice", "bobby")]
    assert {answer.status_code for answer in answers} == {422}
    texts = [answer.content.decode().replace("bobby", "alice") for answer in answers]
    assert "The name or the password is wrong." in texts[0]
    assert without_tokens(texts[0]) == without_tokens(texts[1])


def without_tokens(html: str) -> str:
    return re.sub(r"\b[A-Za-z0-9]{64}\b", "", html)


def test_after_five_wrong_passwords_none_is_looked_at_for_a_while(alice, team_handler):
    for _ in range(5):
        assert sign_in(browser(team_handler), password="wrong password").status_code == 422
    answer = sign_in(browser(team_handler))
    assert answer.status_code == 429
    assert 1 <= int(answer["Retry-After"]) <= 300
    assert "Too many attempts" in answer.content.decode()
    assert sign_in(browser(team_handler), headers={"X-Forwarded-For": "10.9.9.9"}).status_code == 429


def test_a_stranger_who_guesses_does_not_lock_the_owner_out(alice, team_handler):
    for _ in range(7):
        sign_in(browser(team_handler), password="wrong password", REMOTE_ADDR="203.0.113.9")
    assert sign_in(browser(team_handler)).status_code == 302


def test_a_login_gets_a_new_session_and_a_logout_ends_it(alice, team_handler):
    client = browser(team_handler)
    sign_in(client)
    cookie = client.cookies[SESSION]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    old = browser(team_handler)
    old.cookies[SESSION] = cookie.value
    assert old.get("/").status_code == 200
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert old.get("/").status_code == 302


def test_another_password_ends_every_other_session(alice, team_handler):
    here, there = browser(team_handler), browser(team_handler)
    sign_in(here)
    sign_in(there)
    form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert here.post("/account/password", form).status_code == 302
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302
    assert sign_in(browser(team_handler)).status_code == 422
    assert sign_in(browser(team_handler), password=NEW).status_code == 302


@pytest.mark.parametrize("bad", ["elevenchars", "123456789012345", "margaret.tudor1"])
def test_a_weak_password_is_refused_with_the_reason(team_handler, bad):
    client = browser(team_handler, person("margaret.tudor", default_project(), password=PASSWORD))
    answer = client.post("/account/password", {"old_password": PASSWORD, "new_password1": bad, "new_password2": bad})
    assert answer.status_code == 422
    assert "field-error" in answer.content.decode()


def test_an_account_that_is_not_active_gets_in_nowhere(alice, team_handler):
    client = browser(team_handler)
    sign_in(client)
    Account.objects.update(is_active=False)
    assert client.get("/").status_code == 302
    assert sign_in(browser(team_handler)).status_code == 422


def test_a_form_without_its_token_is_refused(alice):
    strict = PageClient(team_middleware(enforce_csrf_checks=True), enforce_csrf_checks=True)
    assert sign_in(strict).status_code == 403
    signed = browser(team_middleware(enforce_csrf_checks=True), alice)
    assert signed.post("/logout/").status_code == 403


def test_what_is_done_at_the_door_is_in_the_log(alice, team_handler):
    sign_in(browser(team_handler), password="wrong password", REMOTE_ADDR="203.0.113.9")
    client = browser(team_handler)
    sign_in(client)
    client.post("/logout/")
    records = AuditRecord.objects.order_by("pk").values_list("what", "about", "address")
    assert list(records) == [
        ("sign-in failed", "alice", "203.0.113.9"),
        ("signed in", "alice", "127.0.0.1"),
        ("signed out", "alice", "127.0.0.1"),
    ]


def test_one_works_in_one_project_at_a_time_and_chooses_which(alice, team_handler):
    client = browser(team_handler, alice)
    assert client.post("/account/projects", {"name": " Second  one "})["Location"] == "/"
    second = Project.objects.exclude(pk=default_project().pk).get()
    assert second.name == "Second one"
    assert "Second one" in client.get("/").content.decode()
    client.post("/account/project", {"project": "default"})
    assert "Second one" not in client.get("/").content.decode()
    foreign = Project.objects.create(slug="theirs", name="Theirs")
    assert client.post("/account/project", {"project": foreign.slug}).status_code == 404


def test_without_a_project_the_pages_say_what_to_do(team_handler):
    client = browser(team_handler, person("lonely"))
    answer = client.get("/")
    assert answer.status_code == 403
    assert "not in any project" in answer.content.decode()
    assert client.get("/account/").status_code == 200


def test_a_viewer_is_told_what_a_change_needs(team_handler):
    client = browser(team_handler, person("vera", default_project(), AccountRole.VIEWER))
    answer = client.post("/samples/small-window/")
    assert answer.status_code == 403
    assert "you are viewer, and this needs the role editor" in answer.content.decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Accept": "application/json"}, 401), ({"HX-Request": "true", "HX-Current-URL": "http://testserver/s/1"}, 401)],
    ids=["program", "part of a page"],
)
def test_whoever_is_not_signed_in_is_told_in_a_way_it_understands(team_handler, headers, status):
    answer = browser(team_handler).get("/triggers/", headers=headers)
    assert answer.status_code == status
    if "HX-Request" in headers:
        assert answer["HX-Redirect"] == "/login/?next=%2Fs%2F1"
    else:
        assert "Sign in" in answer.json()["error"]
