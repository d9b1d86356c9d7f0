"""Headers of every kind of answer."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
}


@pytest.fixture
def client():
    """All of the middleware."""
    return Client()


@pytest.fixture(params=["page", "health", "missing", "forbidden", "fragment"])
def answer(request, client):
    match request.param:
        case "page":
            return client.get("/")
        case "health":
            return client.get("/healthz")
        case "missing":
            return client.get("/.env")
        case "forbidden":
            return Client(enforce_csrf_checks=True).post("/recordings/")
        case _:
            return client.get(f"/imports/{uuid4()}/status", headers={"HX-Request": "true"})


def test_nothing_but_our_own_files_may_run_or_load(answer):
    assert {part.strip() for part in answer["Content-Security-Policy"].split(";")} == POLICY


def test_nothing_is_sniffed_embedded_shared_or_kept(answer):
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["Cache-Control"] == "no-store"


def test_a_fragment_never_stands_in_for_its_page(answer):
    assert "HX-Request" in answer["Vary"]


@pytest.mark.parametrize("host", ["evil.invalid", "127.0.0.1.evil.invalid", "localhost:8000@evil", ""])
def test_other_host_names_are_refused(host, client):
    assert client.get("/healthz", headers={"Host": host}).status_code == 400


def test_a_form_from_another_origin_is_refused(client):
    strict = Client(enforce_csrf_checks=True)
    token = strict.get("/missing/").cookies[next(iter(strict.cookies))].value
    answer = strict.post("/recordings/", headers={"X-CSRFToken": token, "Origin": "https://evil.invalid"})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/db.sqlite3", "/.git/config", "/static/../secret-key", "/static/%2e%2e/secret-key"])
def test_no_other_file_is_served(path, client):
    assert client.get(path).status_code == 404


def test_an_error_of_ours_tells_nothing_of_the_inside(client, settings):
    settings.DATA_DIR = None  # which no code foresees
    client.raise_request_exception = False
    answer = client.get("/healthz")
    assert answer.status_code == 500
    assert "went wrong" in answer.text
    assert "Traceback" not in answer.text
