"""The page on which folders are chosen; that they are watched, tests/services/test_watching.py shows."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest

from inspector.ingest.importing import run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import Project, Session, WatchedPlace, default_project
from inspector.pages.watching.choosing import MOST_PLACES, NotWatched, checked
from inspector.pages.watching.views import line_of

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the person who runs the server, with the folder of one agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".codex/sessions").mkdir(parents=True)
    return tmp_path.resolve()


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


def add(client: Any, path: object) -> Any:
    return client.post("/watching/add", {"path": str(path)}, follow=True)


def test_the_folders_of_agents_that_are_there_are_offered_until_they_are_watched(client, home):
    assert f'value="{home}/.codex/sessions"' in text(client.get("/watching/"))
    page = text(add(client, "~/.codex/sessions"))
    assert f"Stop watching {home}/.codex/sessions" in page
    assert f'value="{home}/.codex/sessions"' not in page
    assert [row.path for row in WatchedPlace.unscoped.all()] == [f"{home}/.codex/sessions"]


def test_the_same_place_is_watched_once_and_no_longer_when_it_is_stopped(client, home):
    add(client, home / ".codex/sessions")
    add(client, home / ".codex/../.codex/sessions/")
    (place,) = WatchedPlace.unscoped.all()
    page = text(client.post(f"/watching/{place.pk}/remove", follow=True))
    assert "No folder is watched" in page
    assert not WatchedPlace.unscoped.exists()


def test_a_file_that_took_longer_to_read_than_the_answer_waited_is_linked_to_its_session_once_it_is_read(
    folders, recording
):
    project = default_project()
    job = submit(project, receive([recording], "claude.jsonl"))
    line = f"claude.jsonl: http://127.0.0.1:8000{job.get_absolute_url()}"
    assert line_of(project, line) == ("claude.jsonl", job.get_absolute_url())
    run_import(str(job.pk))
    session = Session.objects.of(project).get()
    assert line_of(project, line) == ("claude.jsonl", session.get_absolute_url())
    assert line_of(Project.objects.create(name="other", slug="other"), line).path == job.get_absolute_url()
    assert line_of(project, "claude.jsonl: line 3 is no JSON").path == ""


def test_a_place_that_has_gone_is_named(client, home):
    (home / "runs").mkdir()
    add(client, home / "runs")
    (home / "runs").rmdir()
    assert "not there now" in text(client.get("/watching/"))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Type the path"),
        ("~/nowhere", "There is no folder or file at ~/nowhere"),
        ("a\x00b", "Type the path"),
        ("~nobody-of-this-name/x", "There is no folder or file"),
        ("x" * 5000, "of at most 1,000 characters"),
        ("~", "The home folder as a whole is not watched from here"),
        ("/etc", "is not below the home folder"),
        ("~/out", "is not below the home folder"),  # a link that leads elsewhere
        ("~/notes.txt", "is neither a folder nor a session file"),
        ("<script>alert(1)</script>", "There is no folder or file at <script>"),
    ],
)
def test_what_cannot_be_watched_comes_back_with_the_reason(client, home, typed, words):
    (home / "notes.txt").touch()
    (home / "out").symlink_to("/etc")
    answer = add(client, typed)
    assert answer.status_code == 422
    assert words in text(answer)
    assert b"<script>alert" not in answer.content
    assert not WatchedPlace.unscoped.exists()


def test_a_path_that_no_file_system_holds_is_not_watched():
    with pytest.raises(NotWatched, match="no folder or file"):
        checked("~/\ud800")


def test_there_is_a_limit_to_places(client, home):
    for number in range(MOST_PLACES + 1):
        (home / f"runs-{number}").mkdir()
        answer = add(client, home / f"runs-{number}")
    assert answer.status_code == 422
    assert "stop watching one of them first" in text(answer)
    assert WatchedPlace.unscoped.count() == MOST_PLACES


def test_where_others_reach_the_pages_nothing_is_watched(client, home, monkeypatch):
    assert "watch a folder" in text(client.get("/"))
    monkeypatch.setenv("LOGIN_PROXY", "1")
    assert client.get("/watching/").status_code == 404
    assert add(client, home / ".codex/sessions").status_code == 404
    assert client.post("/watching/1/remove").status_code == 404
    assert "watch a folder" not in text(client.get("/"))
