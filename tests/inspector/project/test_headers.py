"""Headers of every kind of answer."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client
from django.utils import timezone

from inspector.models import Share, default_project
from inspector.project.asgi import application
from inspector.project.tokens import hash_of
from tests.waiting import PATIENCE

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


SHARED = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow", "Cache-Control": "no-store"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/r/x/", {}, 404),
        ("PUT", "/r/x/", {}, 405),
        ("POST", "/r/x/report.json", {}, 405),
        ("GET", "/r/x/y/z", {}, 404),
        ("GET", "/r/x", {}, 301),
        ("GET", "/r/x/", {"Host": "evil.invalid"}, 400),
        ("GET", "/r/x/", {"Content-Type": "text/plain; charset=utf-7"}, 415),
        ("GET", "/r/broken/", {}, 500),
    ],
)
def test_every_answer_below_r_has_the_headers_of_a_report(client, method, path, headers, status):
    client.raise_request_exception = False
    Share.objects.of(default_project()).create(
        request=b"",
        state=Share.State.PUBLISHED,
        files=b"damaged",
        lifetime=60,
        token_hash=hash_of("broken"),
        expires=timezone.now() + timedelta(minutes=1),
    )
    answer = client.generic(method, path, headers=headers)
    assert answer.status_code == status
    assert {name: answer[name] for name in SHARED} == SHARED
    parts = {part.strip() for part in answer["Content-Security-Policy"].split(";")}
    assert {"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'"} <= parts
    assert not [part for part in parts if part.startswith(("script-src", "connect-src"))]
    assert "<script" not in answer.text


async def test_so_it_has_where_the_body_is_too_large_to_be_read():
    scope = {"type": "http", "method": "POST", "path": "/r/x/", "query_string": b"", "client": ("127.0.0.1", 1)}
    headers = [(b"host", b"localhost"), (b"content-length", b"9" * 15)]
    server = ApplicationCommunicator(application, {**scope, "headers": headers})
    answer = await server.receive_output(PATIENCE)
    given = {name.decode().title(): value.decode() for name, value in answer["headers"]}
    assert answer["status"] == 413
    assert given.items() >= SHARED.items()
    assert len((await server.receive_output(PATIENCE))["body"]) == int(given["Content-Length"])
    await server.send_input({"type": "http.disconnect"})
    await server.receive_output(PATIENCE)
    await server.wait(PATIENCE)


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


PART = b'--x\r\nContent-Disposition: form-data; name="path"\r\n\r\n~/sessions\r\n--x--\r\n'


@pytest.mark.parametrize("name", ["rot13", "idna", "unicode_escape", "utf-16", "utf-7", "hex", "undefined"])
def test_encodings_in_which_nothing_on_the_web_is_written_are_refused(name, client):
    answer = client.generic("POST", "/watching/add", PART, f"multipart/form-data; boundary=x; charset={name}")
    assert answer.status_code == 415
    assert "Send it in UTF-8" in answer.text


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "us-ascii", "iso-8859-1", "windows-1252", "no-such-encoding"])
def test_encodings_of_forms_are_read(name, client):
    answer = client.generic("POST", "/watching/add", PART, f"multipart/form-data; boundary=x; charset={name}")
    assert answer.status_code == 422  # read, and such a folder is not there


@pytest.mark.parametrize(("name", "status"), [("utf-8", 422), ("iso-8859-1", 400), ("no-such-encoding", 422)])
def test_a_form_without_parts_is_in_utf_8(name, status, client):
    answer = client.generic(
        "POST", "/watching/add", b"path=%7E/x", f"application/x-www-form-urlencoded; charset={name}"
    )
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("text/plain; a*=nope''x", 404, b"Page not found"),
        ("text/plain; charset*=idna''utf-8", 404, b"Page not found"),
        ("text/plain; charset=rot13", 415, b"Send it in UTF-8"),
        ("text/plain; charset=idna", 415, b"Send it in UTF-8"),
        ("text/plain; charset=utf-7", 415, b"Send it in UTF-8"),
    ],
)
async def test_no_content_type_ends_in_an_internal_error(kind, status, words):
    scope = {"type": "http", "method": "GET", "path": "/nope", "query_string": b"q=%ff", "client": ("127.0.0.1", 1)}
    headers = [(b"host", b"localhost"), (b"content-type", kind.encode())]
    server = ApplicationCommunicator(application, {**scope, "headers": headers})
    await server.send_input({"type": "http.request", "body": b""})
    assert (await server.receive_output(PATIENCE))["status"] == status
    assert words in (await server.receive_output(PATIENCE))["body"]
    await server.wait(PATIENCE)


def test_an_error_of_ours_tells_nothing_of_the_inside(client, settings):
    settings.DATA_DIR = None  # which no code foresees
    client.raise_request_exception = False
    answer = client.get("/healthz")
    assert answer.status_code == 500
    assert "went wrong" in answer.text
    assert "Traceback" not in answer.text
