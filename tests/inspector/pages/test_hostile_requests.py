"""Requests that nobody's browser makes, to every address there is: the list of them is the application's own."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test import Client, override_settings
from django.urls import NoReverseMatch, get_resolver, reverse
from django_tasks_db.models import DBTaskResult

import inspector
from guard_core.recordings.formats import native
from inspector.models import Session
from inspector.pages.gallery.form import ScenarioForm
from inspector.pages.shared.listing import Listing
from inspector.project.health import beat
from inspector.replays.choice import NAMES
from tests.builders import bundled
from tests.inspector.conftest import PageClient, imported, page_handler

pytestmark = pytest.mark.django_db

UNKNOWN = UUID("00000000-0000-4000-8000-000000000000")
POLICY = (
    "base-uri 'none'; connect-src 'self'; default-src 'none'; font-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; img-src 'self' data: blob:; object-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'"
)
# Of what a token opens, and of the answer to any other: no script, no request, in no frame.
REPORT = "base-uri 'none'; default-src 'none'; form-action 'self'; frame-ancestors 'none'; style-src 'self'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# What is hostile as a text is so in every part of a longer one; what is read as a number or a date stands by itself.
FOR_DATABASES = (  # not the same to every database
    b"a\x00b\xed\xa0\x80\xff\xfe",
    b"9" * 19,
    b"9" * 5000,
    b"10000-01-01",
    b"0001-01-01",
)
LONGER_THAN_COLUMNS = b"x" * 2_000
FOR_PYTHON = (
    b"-1",
    "१२".encode(),
    b"1e400",
    b"NaN",
    b"'\"><script>alert(1)</script>{{7*7}}%../../etc/passwd\r\nX-Injected: 1" + LONGER_THAN_COLUMNS,
    str(UNKNOWN).encode(),
)
VALUES = [
    pytest.param(FOR_DATABASES, id="for databases"),
    pytest.param(FOR_PYTHON, id="for Python", marks=(pytest.mark.once, pytest.mark.long)),  # at first the others,
]
BODIES = (b"", b"\x00\xff", b"{" * 1000, b"--x\r\nContent-Disposition: form-data\r\n\r\n")
KINDS = ("multipart/form-data; boundary=x", "multipart/form-data", "application/json", "\x7f")
# They have no cookie, and take only content types that no form of another site can send.
BY_PROGRAMS = {"/v1/traces", "/v1/logs"}
# What a page may put into the queue, once, because it is made only for those who ask; nothing a person stored changes.
PREPARED_WHEN_ASKED = {"index_texts", "count_tokens"}
READING = re.compile(r'(?:GET|POST)\.get(?:list)?\(\s*"(\w+)"|number\([\w.]+, "(\w+)"|_whole\(\w+\.GET\.get\("(\w+)"')


def parameters() -> list[str]:
    """Every name that a view reads from a query string or a form."""
    collected = {"page", "sort", "dir", "group", "show", "csrfmiddlewaretoken", *NAMES, *ScenarioForm.base_fields}
    collected |= {field.name for field in fields(Listing)}
    for path in Path(inspector.__file__).parent.rglob("*.py"):
        collected |= {name for names in READING.findall(path.read_text()) for name in names if name}
    return sorted(collected)


PARAMETERS = parameters()


def routes(patterns=None, converters=()) -> Iterator[tuple[str, dict[str, str]]]:
    """Names of all addresses, each with the kinds of its parameters."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        own = {name: type(kind).__name__ for name, kind in getattr(pattern.pattern, "converters", {}).items()}
        own |= dict.fromkeys(pattern.pattern.regex.groupindex.keys() - own.keys(), "regex")
        kinds = {**dict(converters), **own}
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern.url_patterns, kinds.items())
        else:
            yield pattern.name, kinds


def addresses(*keys: object) -> list[str]:
    """Every address, with each of these keys wherever an address takes one."""
    choices = {
        "UUIDConverter": list(keys),
        "IntConverter": [0, 10**30],
        "SlugConverter": ["small-window", "-"],
        "regex": ["r0", "p0", "r999999"],
    }
    urls = {}
    for name, kinds in routes():
        for values in itertools.product(*(choices.get(kind, ["x"]) for kind in kinds.values())):
            try:
                urls[reverse(name, kwargs=dict(zip(kinds, values, strict=True)))] = name
            except NoReverseMatch:
                continue
    return list(urls)


@pytest.fixture(scope="module", autouse=True)
def unhurried():
    """No answer waits for an import, which no worker takes."""
    with override_settings(ANSWER_WAIT_SECONDS=0):
        yield


@pytest.fixture(scope="module")
def there(shared_rows):
    """A stored session with a compaction, its import and its recording, and what is left of a refused file."""
    with shared_rows():
        job = imported(native.write(bundled("small-window")))
        failed = imported(b"no session", "bad.txt")
        session = Session.unscoped.get()
    known = {"/s/": {session.pk}, "/imports/": {job.pk, failed.pk}, "/recordings/": {job.recording_id}}
    keys = set().union(*known.values())
    foreign = tuple(f"{start}{key}" for start, own in known.items() for key in keys - own)  # mere 404s, and many
    urls = [url for url in addresses(*sorted(keys)) if not url.startswith(foreign)]
    return SimpleNamespace(session=session, job=job, urls=urls)


class CalmClient(PageClient):
    """Gives a failure of ours as the answer a person would see, as it was sent, and looks at its headers."""

    def request(self, **request):
        answer = Client.request(self, **request)
        check_headers(answer)
        return answer


def check_headers(answer):
    """What every answer carries, whatever was asked."""
    url = answer.wsgi_request.path
    headers = {name: answer.headers.get(name) for name in HEADERS}
    is_report = url.startswith("/r/")
    assert (url, headers) == (url, {**HEADERS, **({"Referrer-Policy": "no-referrer"} if is_report else {})})
    assert "HX-Request" in answer["Vary"], url
    policy = answer["Content-Security-Policy"]
    sandboxed = answer.get("Content-Disposition", "").startswith("attachment")
    parts = "; ".join(sorted(part.strip() for part in policy.split(";") if part.strip()))
    assert parts == ("default-src 'none'; sandbox" if sandboxed else REPORT if is_report else POLICY), url


@pytest.fixture(scope="module")
def calm(handler):
    return CalmClient(handler, raise_request_exception=False)


@pytest.fixture(scope="module")
def taken(there, calm):
    """The addresses that do something for a GET or a POST: what any other is sent besides is not looked at."""

    @cache
    def addresses_taking(method):
        answers = {url: undone(lambda url=url: calm.generic(method, url)).status_code for url in there.urls}
        return [url for url, status in answers.items() if status not in (404, 405)]

    return addresses_taking


@pytest.fixture(scope="session")
def strict_handler():
    """The middleware that pages pass, which asks for the token of a form."""
    return page_handler(enforce_csrf_checks=True)


def undone(ask):
    """The answer to a request whose changes are taken back."""
    with transaction.atomic():
        beat()  # a worker does every two seconds
        answer = ask()
        if answer.streaming:
            answer.getvalue()
        transaction.set_rollback(True)
    return answer


@cache
def queries(values: tuple[bytes, ...]) -> list[str]:
    """Query strings in which every parameter has every value once, beside other values of the others: what the first
    that is looked at says hides nothing of the rest."""
    turns = [values[turn:] + values[:turn] for turn in range(len(values))]
    return [
        "&".join(f"{name}={quote(value)}&{name}={quote(value)}" for name, value in zip(PARAMETERS, cycle(turn)))
        for turn in turns
    ]


def dump() -> dict[str, str]:
    """A hash of every table in the database."""
    tables = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows = sorted(repr([bytes(v) if isinstance(v, memoryview) else v for v in row]) for row in cursor)
            tables[table] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return tables


def test_every_address_is_walked(there):
    names = {name for name, _ in routes()}
    assert {"home", "upload", "session_overview", "compaction", "gallery", "recording_raw", "import_status"} <= names
    assert len(there.urls) > len(names)


@pytest.mark.long("more")
@pytest.mark.parametrize("values", VALUES)
def test_no_query_string_breaks_a_page(values, taken, calm, request):
    """Every page is asked with each query string, in `make test` with one of them in turn."""
    broken = {}
    assert len(taken("GET")) > len(queries(values))
    every = itertools.product(taken("GET"), queries(values))
    for url, query in zip(taken("GET"), cycle(queries(values))) if request.config.getoption("short") else every:
        answer = undone(lambda asked=f"{url}?{query}": calm.get(asked))
        if answer.status_code >= 500 or "X-Injected" in answer.headers:
            broken[url, query] = answer.status_code
    assert broken == {}


@pytest.mark.parametrize("values", VALUES)
def test_no_form_breaks_a_page(values, taken, calm):
    broken = {}
    assert taken("POST")
    for url, query in itertools.product(taken("POST"), queries(values)):
        form = {"data": query, "content_type": "application/x-www-form-urlencoded"}
        answer = undone(lambda url=url, form=form: calm.post(url, **form))
        if answer.status_code >= 500 or "X-Injected" in answer.headers:
            broken[url, query] = answer.status_code
    assert broken == {}


@pytest.mark.once
def test_no_body_breaks_a_page(taken, calm):
    """Every page takes each body and each content type; which of them come together, the pages take in turn."""
    broken = {}
    assert len(taken("POST")) >= len(KINDS)
    for place, url in enumerate(taken("POST")):
        for body, kind in zip(BODIES, [*KINDS, *KINDS][place % len(KINDS) :]):
            sent = {"data": body, "content_type": kind}
            answer = undone(lambda url=url, sent=sent: calm.post(url, **sent))
            if answer.status_code >= 500:
                broken[url, body, kind] = answer.status_code
    assert broken == {}


@pytest.mark.once
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
def test_no_method_breaks_a_page(method, there, calm):
    answers = {url: undone(lambda url=url: calm.generic(method, url)) for url in there.urls}
    assert {url: answer.status_code for url, answer in answers.items() if answer.status_code >= 500} == {}
    if method not in ("HEAD", "OPTIONS"):
        assert {answer.status_code for answer in answers.values()} <= {404, 405}


@pytest.mark.once
def test_nothing_is_done_without_the_token(there, strict_handler):
    strict = PageClient(strict_handler)
    before = dump()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answers = {url: strict.generic(method, url).status_code for url in there.urls}
        assert {answers.pop(url) for url in BY_PROGRAMS} <= {405, 415}, method
        assert (method, answers) == (method, dict.fromkeys(answers, 403))
    assert dump() == before


@pytest.mark.once
def test_another_host_name_is_refused_everywhere(there, calm):
    for url in there.urls:
        answer = calm.get(url, headers={"Host": "evil.invalid"})
        assert (answer.status_code, "evil" in answer.text) == (400, False)


def test_unknown_keys_are_told_in_our_words(there, calm):
    title = "Page not found"
    asked = [url for url in addresses(UNKNOWN) if str(UNKNOWN) in url]
    answers = {url: calm.get(url) for url in asked}
    assert {url: answer.status_code for url, answer in answers.items() if answer.status_code not in (404, 405)} == {}
    assert all(title in answer.text for answer in answers.values() if answer.status_code == 404)
    assert title in calm.get(f"{there.session.get_absolute_url()}events/{'9' * 5000}/parts/1").text


@pytest.mark.once
def test_every_answer_carries_the_headers(there, calm):
    """So do those of all other tests here: the client looks at each of them."""
    for url in (*addresses(UNKNOWN), "/.env"):
        calm.get(url, headers={"HX-Request": "true"})
    plain = Client(raise_request_exception=False)  # with the middleware of static files, too
    for headers in ({}, {"Host": "evil.invalid"}):
        for url in (there.session.get_absolute_url(), "/", "/.env"):
            check_headers(plain.get(url, headers=headers))


def test_a_download_is_never_a_page(there, client):
    answer = client.get(reverse("recording_raw", args=[there.job.recording_id]))
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer["Content-Security-Policy"]
    answer.getvalue()


@pytest.mark.once
def test_files_of_the_application_may_be_kept():
    answer = Client().get("/static/css/base.css")
    assert answer.status_code == 200
    assert "no-store" not in answer["Cache-Control"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="page"),
        pytest.param({"HX-Request": "true", "HX-Target": "imports"}, id="part", marks=pytest.mark.once),
    ],
)
def test_looking_changes_nothing(headers, there, calm):
    DBTaskResult.objects.all().delete()
    before = dump()
    for url, tail in itertools.product(there.urls, ("", "?" + urlencode({"q": "the", "at": 3, "side": "replayed"}))):
        answer = calm.get(url + tail, headers=headers)
        if answer.streaming:
            answer.getvalue()
    queued = sorted(DBTaskResult.objects.values_list("queue_name", flat=True))
    assert set(queued) <= PREPARED_WHEN_ASKED
    assert len(queued) == len(set(queued))
    DBTaskResult.objects.all().delete()
    assert dump() == before
