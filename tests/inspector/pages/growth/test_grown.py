"""What a followed page asks for at each new step: its parts, word for word as the whole page has them."""

import html
import json
import re
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guard_core.sessions import ModelCall
from inspector.models import AccountRole, Project, default_project
from inspector.storage import appending
from tests.builders import model, session, user
from tests.inspector.conftest import PageClient
from tests.inspector.pages.conftest import stored, stored_sample
from tests.inspector.people import browser, person

pytestmark = pytest.mark.django_db

GROWN = {"HX-Request": "true", "HX-Target": "grown"}
OOB = re.compile(r' hx-swap-oob="true"')
ISLAND = re.compile(r'<script[^>]* type="application/json">(.*?)</script>|<div data-points hidden>(.*?)</div>')
PRELOAD = re.compile(r'<link rel="preload"[^>]*>')
TOKENS = re.compile(r'name="(?:csrfmiddlewaretoken|token)" value="[^"]*"')


def asked(client, path):
    """The parts and the whole page, without what differs between any two answers."""
    answers = client.get(path, headers=GROWN), client.get(path)
    return [TOKENS.sub("", answer.content.decode()) for answer in answers]


def check_parts(parts, page, *names):
    """Each part stands in the page as it was sent."""
    pieces = re.split(f'(?=<(?:div|section)(?: class="[^"]*")? id="(?:{"|".join(names)})")', OOB.sub("", parts))[1:]
    assert [re.search('id="([^"]*)"', piece)[1] for piece in pieces] == [*names]
    for piece in pieces:
        assert piece.strip() in page


def test_the_parts_of_an_overview_are_those_of_the_page_without_its_settings(client):
    row = stored_sample("timing-gap")
    for query in ("", "?zoom=5-30", "?policy=codex&window=100000", "?table=1"):
        parts, page = asked(client, row.get_absolute_url() + query)
        (sent,), (shown,) = ISLAND.findall(parts), ISLAND.findall(page)
        assert json.loads(html.unescape(sent[1])) == json.loads(shown[0]), "the points of the chart come along"
        assert "<script" not in parts
        assert not PRELOAD.search(parts), "the page has the script that draws already"
        assert 'id="what-if"' not in parts
        whole = PRELOAD.sub("", ISLAND.sub("", page))
        check_parts(ISLAND.sub("", parts), whole, "chart", "headline", "results", "about", "session-bar")


def test_the_parts_of_a_step_are_the_step_the_list_its_filters_and_the_bar(client):
    row = stored_sample("timing-gap")
    for query in ("?at=7", "?at=3&list=compactions", f"?at={row.calls}&zoom=5-30", "?at=2&policy=codex"):
        parts, page = asked(client, f"{row.get_absolute_url()}steps{query}")
        (title,) = re.findall("<title>.*?</title>", parts)
        assert title in page
        check_parts(parts, page, "step", "steps", "steps-filter", "session-bar")


def test_a_session_without_calls_has_its_whole_page_for_an_answer(client):
    row = stored(session(user("a")))
    assert "<html" in client.get(f"{row.get_absolute_url()}steps", headers=GROWN).content.decode()


def test_a_page_says_which_values_its_settings_name_as_in_use(client):
    events = user("a"), model("b")
    small, large = (stored(session(*events, window=window), title=str(window)) for window in (50_000, 60_000))
    in_use = [re.search('data-in-use="([^"]*)"', asked(client, row.get_absolute_url())[0])[1] for row in (small, large)]
    assert "50,000" in in_use[0]
    assert "60,000" in in_use[1]


@pytest.fixture
def still(monkeypatch):
    """A clock that stands still, so that no test depends on when a second begins."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)


@pytest.mark.parametrize("tab", ["", "steps?at=2"])
def test_the_parts_are_made_once_for_all_viewers_and_anew_for_a_new_step(still, client, handler, tab):
    row = stored(session(user("a"), model("b"), user("c"), model("d")))
    path, other = row.get_absolute_url() + tab, PageClient(handler)
    counted = []
    for viewer in (client, other):
        viewer.get(path)
        with CaptureQueriesContext(connection) as queries:
            parts = viewer.get(path, headers=GROWN).content.decode()
        counted.append((len(queries), TOKENS.sub("", parts)))
    (first, made), (second, found) = counted
    assert found == made
    assert second < first / 2
    appending.append(row, [user("e"), model("f")], [ModelCall(at=5, response=5)])
    assert 'data-count="3"' in other.get(path, headers=GROWN).content.decode()


def test_each_viewer_gets_tokens_of_its_own_and_every_comment_at_once(still, client, handler):
    row = stored(session(user("a"), model("b")))
    path, viewers = f"{row.get_absolute_url()}steps?at=1", (client, PageClient(handler))
    parts = [viewer.get(path, headers=GROWN).content.decode() for viewer in viewers]
    for name in ("csrfmiddlewaretoken", "token"):
        (one,), (two,) = (set(re.findall(f'name="{name}" value="([^"]+)"', html)) for html in parts)
        assert one != two, "a comment is stored once for each of the latter"
    said = {"text": "Look here", "token": "x" * 22, "place": "step", "step": "1"}
    client.post(f"{row.get_absolute_url()}comments", said)
    for viewer in viewers:
        assert "Look here" in viewer.get(path, headers=GROWN).content.decode()


def test_the_parts_offer_what_a_role_may_and_nothing_to_another_project(still, team, team_handler):
    row, project = stored(session(user("a"), model("b"))), default_project()
    roles = [person(role, project, AccountRole(role)) for role in ("editor", "viewer")]
    stranger = person("stranger", Project.objects.create(slug="elsewhere", name="Elsewhere"))
    answers = [
        browser(team_handler, account).get(row.get_absolute_url(), headers=GROWN) for account in (*roles, stranger)
    ]
    offered = ['action="' in answer.content.decode() for answer in answers]
    assert offered == [True, False, False]
    assert [answer.status_code for answer in answers] == [200, 200, 404]
