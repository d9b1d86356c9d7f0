"""What a proxy says is believed from proxies alone; single sign-on rests on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from inspector.accounts import audit, limits
from inspector.models import Account, Membership, default_project
from inspector.project.proxies import Proxies
from inspector.project.settings import middleware
from tests.inspector.conftest import STATIC_FILES, team_middleware
from tests.inspector.people import browser, person

OURS, STRANGER = "10.1.0.7", "203.0.113.9"


def passed_on(peer: str, *headers: tuple[bytes, bytes], kind: str = "http") -> dict[str, Any]:
    """The scope that the application gets of a request from a peer."""
    seen: dict[str, Any] = {}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope)

    scope = {
        "type": kind,
        "scheme": "ws" if kind == "websocket" else "http",
        "client": (peer, 1),
        "headers": [*headers],
    }
    asyncio.run(Proxies(application, ["10.1.0.0/16", "::1"], "X-Signed-In")(scope, None, None))  # type: ignore[arg-type]
    return seen


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_proxy_of_ours_says_who_the_client_is(kind):
    seen = passed_on(OURS, (b"x-forwarded-for", STRANGER.encode()), (b"x-forwarded-proto", b"https"), kind=kind)
    assert seen["client"][0] == STRANGER
    assert seen["scheme"] == ("wss" if kind == "websocket" else "https")


def test_the_client_is_the_last_one_that_is_no_proxy():
    assert passed_on(OURS, (b"x-forwarded-for", b"1.2.3.4, 203.0.113.9, 10.1.0.8"))["client"][0] == STRANGER


@pytest.mark.parametrize(
    "name",
    [b"x-signed-in", b"X-Signed-In", b"x_signed_in", b"x-forwarded-for", b"x_forwarded_proto", b"x-forwarded-host"],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_from_anyone_else_nothing_of_it_arrives(name, kind):
    seen = passed_on(STRANGER, (name, b"root"), (b"accept", b"*/*"), kind=kind)
    assert seen["headers"] == [(b"accept", b"*/*")]
    assert (seen["client"][0], seen["scheme"]) == (STRANGER, "ws" if kind == "websocket" else "http")


def test_a_client_without_an_address_is_no_proxy():
    assert passed_on("", (b"x-signed-in", b"root"))["headers"] == []


def test_what_is_no_request_passes():
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(Proxies(application, [])({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


SSO = {
    "SSO_HEADER": "X-Signed-In",
    "AUTHENTICATION_BACKENDS": [
        "django.contrib.auth.backends.ModelBackend",
        "inspector.accounts.proxy.ProxyBackend",
    ],
}


@pytest.fixture
def proxied(team, settings):
    """The browser of someone whom a proxy has signed in."""
    for name, value in SSO.items():
        setattr(settings, name, value)
    return browser(team_middleware(**SSO))


@pytest.mark.django_db
def test_whom_a_proxy_has_signed_in_is_signed_in_here(proxied, settings):
    settings.SSO_ROLE = "viewer"
    assert proxied.get("/", headers={"X-Signed-In": "Dora@example.org"}).status_code == 200
    account = Account.objects.get()
    assert (account.name, account.has_usable_password()) == ("dora@example.org", False)
    assert Membership.objects.of(default_project()).get().role == "viewer"
    assert proxied.get("/", headers={"X-Signed-In": "dora@example.org"}).status_code == 200
    assert Account.objects.count() == 1


@pytest.mark.django_db
def test_so_it_is_where_requests_are_served_asynchronously(team, settings):
    names = [name for name in middleware(team=True) if name != STATIC_FILES]
    for name, value in {**SSO, "SSO_ROLE": "viewer", "MIDDLEWARE": names}.items():
        setattr(settings, name, value)
    get = async_to_sync(AsyncClient().get)
    assert get("/account/").status_code == 302
    assert get("/account/", headers={"X-Signed-In": "x" * 61}).status_code == 302
    answer = get("/account/", headers={"X-Signed-In": "Dora"})
    assert answer.status_code == 200
    assert "dora" in answer.content.decode()


@pytest.mark.django_db
def test_a_new_name_belongs_to_no_project_unless_a_setting_says_so(proxied):
    assert proxied.get("/", headers={"X-Signed-In": "dora"}).status_code == 403
    assert not Membership.unscoped.exists()


@pytest.mark.django_db
def test_without_the_header_the_sign_on_ends(proxied):
    person("dora", default_project())
    assert proxied.get("/", headers={"X-Signed-In": "dora"}).status_code == 200
    assert proxied.get("/").status_code == 302


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\x00b", "tab\tname"])
def test_a_name_that_is_none_signs_nobody_in(proxied, name):
    assert proxied.get("/", headers={"X-Signed-In": name}).status_code == 302
    assert not Account.objects.exists()
    kinds = [record.what for record in audit.records(default_project())]
    assert kinds == (["single sign-on failed"] if name.strip() else [])  # without a name nobody has tried


@pytest.mark.django_db
def test_an_account_that_is_not_active_gets_in_by_no_proxy_and_that_is_on_record(proxied):
    dora = person("dora", default_project())
    dora.is_active = False
    dora.save()
    for _ in range(60):
        assert proxied.get("/", headers={"X-Signed-In": "Dora"}).status_code == 302
    records = audit.records(default_project())
    assert {(record.what, record.about) for record in records} == {("single sign-on of an inactive account", "dora")}
    assert len(records) == limits.RECORDED_ADDRESS.most


@pytest.mark.django_db
def test_without_the_setting_the_header_means_nothing(team, team_handler):
    person("dora", default_project())
    assert browser(team_handler).get("/", headers={"X-Signed-In": "dora", "Remote-User": "dora"}).status_code == 302
