"""Filters under a name: saved for the project, chosen from a menu, deleted."""

from __future__ import annotations

import re

import pytest

from inspector.models import AccountRole, Project, SavedView, Session, default_project
from inspector.pages.shared.saved_queries import MOST
from tests.inspector.people import browser, person
from tests.inspector.rows import session_row

pytestmark = pytest.mark.django_db
PAGES = {
    "/sessions/views": ("/", "?q=one&sort=-peak"),
    "/triggers/views": ("/triggers/", "?agent=Claude+Code&since=2026-01-02"),
}


@pytest.fixture
def one() -> Session:
    return session_row("one")


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("save", PAGES)
def test_a_view_is_saved_chosen_and_deleted(client, save):
    path, query = PAGES[save]
    answer = client.post(save, {"name": " Worst  first ", "query": f"{query}&evil=%0d%0ax&page=9"})
    assert (answer.status_code, answer["Location"]) == (302, f"{path}{query}#saved")
    menu = client.get(path).text
    assert re.search(f'<a href="{re.escape(path + query.replace("&", "&amp;"))}"[^>]*>Worst first</a>', menu)
    assert re.search("View:</span> <b[^>]*>Worst first</b>", client.get(path + query).text)
    view = SavedView.unscoped.get()
    answer = client.post(f"{save}/{view.pk}/delete", {"query": query})
    assert answer["Location"].startswith(f"{path}{query}&undo=")
    assert not SavedView.unscoped.exists()


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("save", PAGES)
def test_a_view_is_renamed(client, save):
    path, query = PAGES[save]
    client.post(save, {"name": "taken", "query": "?"})
    client.post(save, {"name": "old", "query": query})
    view = SavedView.unscoped.get(name="old")
    assert f'action="{save}/{view.pk}/rename"' in client.get(path).text
    answer = client.post(f"{save}/{view.pk}/rename", {"name": "taken", "query": query})
    assert answer["Location"].startswith(f"{path}{query}&refused=")
    assert "There is a view with the name “taken” already" in client.get(answer["Location"]).text
    answer = client.post(f"{save}/{view.pk}/rename", {"name": "Worst first", "query": query})
    assert (answer.status_code, answer["Location"]) == (302, f"{path}{query}#saved")
    assert SavedView.unscoped.get(pk=view.pk).name == "Worst first"
    assert re.search("View:</span> <b[^>]*>Worst first</b>", client.get(path + query).text)


def undo_of(page: str) -> str:
    """What the offer to undo a deletion sends; empty where there is none."""
    match = re.search('name="undo" value="([^"]*)"', page)
    return match[1] if match else ""


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("query", ["?", "own"])
@pytest.mark.parametrize("save", PAGES)
def test_a_deletion_is_undone_once_and_whole(client, save, query):
    path, own = PAGES[save]
    asked = own if query == "own" else ""
    client.post(save, {"name": "kept", "query": own})
    view = SavedView.unscoped.get()
    shown = client.get(path + asked).text
    assert "Delete the view" not in shown
    deleted = client.post(f"{save}/{view.pk}/delete", {"query": asked or "?"})["Location"]
    page = client.get(deleted).text
    assert "The view “kept” was deleted." in page
    for _ in range(2):
        answer = client.post(f"{save}/restore", {"undo": undo_of(page) or undo_of(shown), "query": asked or "?"})
        assert (answer.status_code, answer["Location"]) == (302, f"{path}{asked}#saved")
    again = SavedView.unscoped.get()
    assert (again.pk, again.name, again.query, again.page) == (view.pk, view.name, view.query, view.page)
    assert not undo_of(client.get(deleted).text)


@pytest.mark.usefixtures("one")
def test_an_undo_brings_no_view_to_another_page(client):
    client.post("/sessions/views", {"name": "mine", "query": "?q=one"})
    deleted = client.post(f"/sessions/views/{SavedView.unscoped.get().pk}/delete")["Location"]
    client.post("/triggers/views/restore", {"undo": undo_of(client.get(deleted).text)})
    assert not SavedView.unscoped.exists()


@pytest.mark.usefixtures("one")
def test_a_view_of_one_page_is_no_view_of_the_other(client):
    client.post("/sessions/views", {"name": "mine", "query": "?q=one"})
    assert "mine" not in client.get("/triggers/").text
    assert client.post(f"/triggers/views/{SavedView.unscoped.get().pk}/delete").status_code == 404
    assert client.post(f"/triggers/views/{SavedView.unscoped.get().pk}/rename", {"name": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "A view needs a name"),
        ("\u202e", "A view needs a name"),
        ("x" * 61, "at most 60 characters; this one has 61"),
        ("taken", "with the name “taken” already"),
    ],
)
def test_a_wrong_name_is_refused(client, name, words):
    client.post("/sessions/views", {"name": "taken", "query": ""})
    answer = client.post("/sessions/views", {"name": name, "query": "?q=x"})
    assert words in client.get(answer["Location"]).text
    assert SavedView.unscoped.get().query == "?"


@pytest.mark.usefixtures("one")
def test_a_page_has_a_hundred_views_at_most(client):
    rows = [SavedView(page="sessions", name=str(number), query="?") for number in range(MOST)]
    SavedView.objects.of(default_project()).bulk_create(rows)
    answer = client.post("/sessions/views", {"name": "more"})
    assert "at most 100 saved views" in client.get(answer["Location"]).text
    assert client.post("/triggers/views", {"name": "more"}).status_code == 302


@pytest.mark.usefixtures("one")
def test_views_belong_to_a_project(client):
    client.post("/sessions/views", {"name": "zanzibar", "query": "?q=one"})
    SavedView.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert "zanzibar" not in client.get("/").text
    assert client.post(f"/sessions/views/{SavedView.unscoped.get().pk}/delete").status_code == 404
    assert client.post("/sessions/views", {"name": "zanzibar", "query": ""}).status_code == 302


@pytest.mark.usefixtures("one")
def test_a_viewer_chooses_views_and_changes_none(team, team_handler):
    editor, viewer = (
        browser(team_handler, person(role.value, default_project(), role))
        for role in (AccountRole.EDITOR, AccountRole.VIEWER)
    )
    assert "saved-queries" not in viewer.get("/").text
    editor.post("/sessions/views", {"name": "shown", "query": "?q=one"})
    page = viewer.get("/").text
    menu = re.search(r'<details class="saved-queries">.*?</ul>.*?</details>', page)[0]
    assert "shown" in menu
    assert "<form" not in menu
    assert viewer.post("/sessions/views", {"name": "mine", "query": ""}).status_code == 403
    assert viewer.post("/sessions/views/restore").status_code == 403
