"""Folders and rows that start empty, and short words for importing in a test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client, override_settings
from django.test.client import ClientHandler

from guard_core.recordings.formats import native
from guard_core.sessions import Session as CoreSession
from inspector.ingest.importing import PACE, ImportPace, run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import Import, Project, default_project
from inspector.models.projects import DEFAULT_SLUG
from inspector.project import team_urls  # noqa: F401 - every page, loaded while nothing is searched for garbage
from inspector.project.health import beat
from inspector.project.settings import middleware
from tests.builders import model, session, tool_call, tool_result, user

Importer = Callable[..., Import]
STATIC_FILES = "servestatic.middleware.ServeStaticMiddleware"

MADE_WITH_THE_TABLES = (ContentType, Permission, Project)
NO_WORDS = {
    "sqlite": "INSERT INTO inspector_text (inspector_text) VALUES ('delete-all')",
    "postgresql": "DELETE FROM inspector_text",
}

VERBATIM = re.compile(rb"(<(?:pre|textarea|script|style)\b.*?</(?:pre|textarea|script|style)>)", re.DOTALL)
BLOCKS = (
    rb"article|aside|body|caption|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|h1|h2|h3|head|"
    rb"header|html|legend|li|link|main|meta|nav|ol|option|p|section|select|summary|table|tbody|td|tfoot|th|thead|"
    rb"title|tr|ul"
)
BEFORE_BLOCK = re.compile(rb" (?=</?(?:" + BLOCKS + rb")\b)")
AFTER_BLOCK = re.compile(rb"(</?(?:" + BLOCKS + rb")\b[^\"'>]*(?:(?:\"[^\"]*\"|'[^']*')[^\"'>]*)*>) ")


def as_displayed(html: bytes) -> bytes:
    """A page without the white space that a browser ignores, and without blanks at the end of tags."""
    pieces = VERBATIM.split(html)
    for place in range(0, len(pieces), 2):
        words = pieces[place].split()  # at ASCII white space: a non-breaking space is displayed
        before, after = (b" " * edge.isspace() for edge in (pieces[place][:1], pieces[place][-1:]))
        plain = before + b" ".join(words) + after * bool(words)
        plain = plain.replace(b" >", b">").replace(b" />", b"/>")  # in text it is written "&gt;"
        pieces[place] = AFTER_BLOCK.sub(rb"\1", BEFORE_BLOCK.sub(b"", plain))
    return b"".join(pieces)


class PageClient(Client):
    """Gets pages as a browser displays them, so that no test depends on how a template is broken into lines."""

    def __init__(self, handler: ClientHandler, **options: Any) -> None:
        super().__init__(**options)
        self.handler = handler

    def request(self, **request: Any) -> HttpResponse:
        response = super().request(**request)
        if not response.streaming and response.headers.get("Content-Type", "").startswith("text/html"):
            response.content = as_displayed(response.content)
        return response


class PageHandler(ClientHandler):
    """Resolves addresses by the module that the client names: a changed setting would build its resolver anew."""

    def get_response(self, request: WSGIRequest) -> HttpResponse:
        if "TEST_URLS" in request.META:
            request.urlconf = request.META["TEST_URLS"]
        return super().get_response(request)


def page_handler(enforce_csrf_checks: bool = False) -> PageHandler:
    """The middleware that pages pass. The one of the static files is asynchronous, and each request of a client would
    start a thread for it: those who ask for such a file use Django's own `Client`."""
    loaded = PageHandler(enforce_csrf_checks=enforce_csrf_checks)
    with override_settings(MIDDLEWARE=[name for name in settings.MIDDLEWARE if name != STATIC_FILES]):
        loaded.load_middleware()
    return loaded


@pytest.fixture(scope="session")
def handler() -> ClientHandler:
    """Loaded once."""
    return page_handler()


@pytest.fixture(scope="session", autouse=True)
def on_any_machine() -> Iterator[None]:
    """Hashes of passwords without the million rounds that make them slow, and replays in the request however long they
    take, so that no test depends on the machine's speed: servers, in tests of their own, keep both limits."""
    quick = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with override_settings(PASSWORD_HASHERS=quick, PAGE_MILLISECONDS=60_000):
        yield


@pytest.fixture
def client(handler: ClientHandler) -> PageClient:
    return PageClient(handler)


@pytest.fixture
def working_client(handler: ClientHandler) -> PageClient:
    """A client of the application beside a worker that takes every import at once."""
    return PageClient(handler, TEST_URLS="tests.inspector.working_urls")


@pytest.fixture(autouse=True)
def worker_alive() -> None:
    """What a worker says of itself every two seconds."""
    beat()


@pytest.fixture(scope="module", autouse=True)
def nothing_left(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[None]:
    """No row outlives the tests of its file: it would decide what those of the next one find, whichever that is."""
    mine = [item for item in request.session.items if item.path == request.path]
    yield
    if not any(reaches_the_database(item) for item in mine):
        return
    with django_db_blocker.unblock():
        models = [model for model in apps.get_models(include_auto_created=True) if model not in MADE_WITH_THE_TABLES]
        left = [model.__name__ for model in models if model._base_manager.exists()]
        left += Project.objects.exclude(slug=DEFAULT_SLUG).values_list("name", flat=True)
        with connection.cursor() as cursor:
            cursor.execute(NO_WORDS[connection.vendor])  # the index is not a model: what flushes all tables leaves it
    assert left == []


def reaches_the_database(item: Any) -> bool:
    return bool(item.get_closest_marker("django_db")) or "django_db_setup" in item.fixturenames


def data_folder(place: Path) -> dict[str, Path]:
    """Empty folders of recordings, as settings."""
    chosen = {name: place / name.lower() for name in ("INCOMING_DIR", "RECORDINGS_DIR")}
    for folder in chosen.values():
        folder.mkdir()
    return chosen


@pytest.fixture
def folders(tmp_path: Path, settings) -> Path:
    """A data folder of this test alone."""
    for name, folder in data_folder(tmp_path).items():
        setattr(settings, name, folder)
    return tmp_path


@pytest.fixture(scope="module")
def shared_rows(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """What is stored in a block `with shared_rows():`, rows and files of recordings, is there for all tests of a file.

    What a test changes of it is taken back as ever. Not for files in which a test has transactions of its own.
    """
    around = transaction.atomic()
    with django_db_blocker.unblock():
        around.__enter__()
    with override_settings(**data_folder(tmp_path_factory.mktemp("shared"))):
        yield django_db_blocker.unblock
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        around.__exit__(None, None, None)


@pytest.fixture
def agent_session() -> CoreSession:
    """A question, a call, its result, an answer."""
    return session(
        user("Which branch is on staging?", line=2),
        tool_call("run_sql", "c1", statement="select 1"),
        tool_result({"rows": [["release/2.4"]]}, "run_sql", "c1"),
        model("Staging runs release/2.4.", timestamp=1_780_000_000.25, source_id="m-4"),
        system="You help with deployments.",
        title="Staging",
        agent="helper",
        model="gpt-4o",
    )


@pytest.fixture
def recording(agent_session: CoreSession) -> bytes:
    """The same, as a file."""
    return native.write(agent_session)


def imported(
    content: bytes, name: str = "recording.jsonl", pace: ImportPace = PACE, watching: Any = None, **options: object
) -> Import:
    """Bytes, received and read as the worker would; the import as it ended."""
    job = submit(default_project(), receive([content], name), **options)
    run_import(str(job.pk), pace, watching)
    job.refresh_from_db()
    return job


@pytest.fixture
def bring(db: None, folders: Path) -> Importer:
    """Imports into a database and folders that begin empty."""
    return imported


TEAM_MODE = {"TEAM": True, "ROOT_URLCONF": settings.TEAM_URLS}


def team_middleware(enforce_csrf_checks: bool = False, **changed: Any) -> ClientHandler:
    """The middleware of team mode, loaded under some settings."""
    loaded = ClientHandler(enforce_csrf_checks=enforce_csrf_checks)
    names = [name for name in middleware(team=True) if name != STATIC_FILES]
    with override_settings(**{**TEAM_MODE, "MIDDLEWARE": names, **changed}):
        loaded.load_middleware()
    return loaded


@pytest.fixture(scope="session")
def team_handler() -> ClientHandler:
    return team_middleware()


@pytest.fixture
def team(db: None, settings: Any) -> None:
    """Accounts, projects and roles."""
    for name, value in TEAM_MODE.items():
        setattr(settings, name, value)
