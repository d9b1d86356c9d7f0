"""The pages of the text search."""

from __future__ import annotations

import pytest

from guard_core.recordings.formats import native
from inspector.jobs import indexing
from inspector.models import Session
from inspector.storage import search
from tests.builders import model, session, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(bring) -> Session:
    bring(
        native.write(session(user("where is the needle?"), model("in the <b>needle</b> box"), user("ok"), title="Hay"))
    )
    while indexing.pending().exists():
        indexing.TEXT_INDEX.run("test")
    return Session.unscoped.get()


def test_a_hit_links_to_its_step(client, row):
    page = client.get("/search?q=needle").content.decode()
    assert f"/s/{row.pk}/steps?at=1&amp;search=needle#m1" in page
    assert "<mark>needle</mark>" in page


def test_the_link_of_every_hit_opens(client, row):
    hits = client.get(f"/s/{row.pk}/search?q=the").context["hits"]
    assert {client.get(hit["url"].partition("#")[0]).status_code for hit in hits} == {200}


def test_markup_in_a_message_is_text(client, row):
    page = client.get(f"/s/{row.pk}/search?q=box").content.decode()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


ODD = (
    *("", "q=", "q=%00", "q=%22", "q=*", "q=a%22+OR+b", "q=%FF%FE", "q=" + "a+" * 300, "q=NOT"),
    *("q=needle&before=x", "q=needle&before=99999999999999999999", "q=needle&from=-1"),
)


@pytest.mark.parametrize("query", ODD)
def test_no_query_is_a_server_error(client, row, query):
    for path in ("/search", f"/s/{row.pk}/search"):
        assert client.get(f"{path}?{query}").status_code == 200


def test_a_session_that_is_not_indexed_yet_says_so(client, bring, recording):
    bring(recording)
    search.forget(Session.unscoped.get())
    assert "Search is being prepared" in client.get("/search?q=staging").content.decode()


def test_a_search_that_finds_nothing_says_what_may_help(client, row):
    assert "No results for “absent”" in client.get("/search?q=absent").content.decode()


def test_htmx_gets_the_hits_alone(client, row):
    part = client.get("/search?q=needle", headers={"HX-Request": "true", "HX-Target": "hits"}).content.decode()
    assert part.strip().startswith('<div id="hits"')


def test_the_search_in_a_session_is_one_of_its_pages(client, row):
    for query in ("", "?q=needle", "?q=absent"):
        page = client.get(f"/s/{row.pk}/search{query}").content.decode()
        assert [tab for tab in ("Overview", "Rule", "Facts") if f">{tab}</a>" not in page] == []
        assert 'aria-current="page">Search</a>' in page
        assert page.count('id="strip"') == (query == "?q=needle")
