"""Renaming, tagging and deleting from the list, with one undo."""

from __future__ import annotations

import pytest

from inspector.models import Session, Tag
from tests.inspector.rows import session_row

pytestmark = pytest.mark.django_db


def listed(client, query: str = "") -> set[str]:
    return {row["title"] for row in client.get(f"/{query}").context.get("rows", [])}


def test_a_session_is_renamed_in_place_and_the_list_stays_as_it_was(client):
    row = session_row("old")
    answer = client.post(f"/s/{row.pk}/rename", {"title": "  new\x00 name ", "list": "?sort=title"})
    assert answer["Location"] == "/?sort=title"
    assert listed(client) == {"new name"}


def test_a_title_of_blanks_changes_nothing(client):
    row = session_row("old")
    client.post(f"/s/{row.pk}/rename", {"title": " \x00 "})
    assert listed(client) == {"old"}


def test_the_row_being_renamed_works_without_a_script(client):
    row = session_row("old")
    page = client.get(f"/?rename={row.pk}").content.decode()
    assert f'action="/s/{row.pk}/rename"' in page
    assert 'name="title" value="old"' in page


def test_one_undo_brings_back_all_that_were_deleted_together(client):
    rows = [session_row(f"s{number}") for number in range(3)]
    session_row("stays")
    answer = client.post("/sessions/bulk", {"action": "delete", "id": [row.pk for row in rows], "list": "?q=s"})
    assert listed(client) == {"stays"}
    page = client.get(answer["Location"])
    assert "3 sessions deleted" in page.content.decode()
    client.post("/sessions/restore", {"undo": page.context["undo"]})
    assert len(listed(client)) == 4


def test_an_undo_leaves_other_deletions_alone(client):
    first, second = session_row("first"), session_row("second")
    client.post(f"/s/{first.pk}/delete")
    answer = client.post(f"/s/{second.pk}/delete")
    client.post("/sessions/restore", {"undo": answer["Location"].partition("undo=")[2]})
    assert listed(client) == {"second"}


def test_chosen_sessions_are_compared_in_the_order_of_their_import(client):
    rows = [session_row(f"s{number}") for number in range(6)]
    answer = client.post("/sessions/bulk", {"action": "compare", "id": [rows[2].pk, rows[0].pk]})
    assert answer["Location"] == f"/compare/?side={rows[0].pk}&side={rows[2].pk}"
    answer = client.post("/sessions/bulk", {"action": "compare", "id": [row.pk for row in rows]})
    assert answer["Location"].count("side=") == 5, "the page says that one is left out"
    page = client.get(client.post("/sessions/bulk", {"action": "compare"})["Location"])
    assert page.status_code == 200, "none chosen: the form"


def test_everything_that_matches_is_chosen_beyond_the_page(client):
    for number in range(60):
        session_row(f"match {number}")
    session_row("other")
    client.post("/sessions/bulk", {"action": "delete", "all": "1", "list": "?q=match"})
    assert listed(client) == {"other"}


def test_tags_are_put_on_found_by_and_taken_off(client):
    row = session_row("one")
    session_row("two")
    client.post("/sessions/bulk", {"action": "tag", "id": row.pk, "tags": " #Slow ,slow, to show "})
    assert listed(client, "?tag=slow") == listed(client, "?tag=to+show") == {"one"}
    client.post("/sessions/bulk", {"action": "untag", "id": row.pk, "tags": "slow"})
    assert list(Tag.unscoped.values_list("name", flat=True)) == ["to show"]


@pytest.mark.parametrize(
    "form",
    [{}, {"action": "shout"}, {"action": "delete", "id": ["x", "\x00"]}, {"action": "tag", "tags": "\x00,,"},
     {"action": "delete", "all": "1", "list": "?page=\x00&since=x"}],
)  # fmt: skip
def test_a_form_that_makes_no_sense_is_no_server_error(client, form):
    session_row()
    assert client.post("/sessions/bulk", form).status_code < 500


def test_nobody_is_sent_to_another_site(client):
    row = session_row()
    answer = client.post(f"/s/{row.pk}/delete", {"list": "//evil.example/?q=x"})
    assert answer["Location"].startswith("/?")


def test_looking_at_a_page_deletes_nothing(client):
    row = session_row()
    assert client.get(f"/s/{row.pk}/delete").status_code == 405
    assert Session.unscoped.filter(deleted=None).count() == 1
