"""What a followed page asks for at each new step: its parts, word for word as the whole page has them."""

import html
import json
import re

import pytest

from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored, stored_sample

pytestmark = pytest.mark.django_db

GROWN = {"HX-Request": "true", "HX-Target": "grown"}
OOB = re.compile(r' hx-swap-oob="true"')
ISLAND = re.compile(r'<script[^>]* type="application/json">(.*?)</script>|<div data-points hidden>(.*?)</div>')
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
        assert 'id="what-if"' not in parts
        check_parts(ISLAND.sub("", parts), ISLAND.sub("", page), "chart", "headline", "results", "about", "session-bar")


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
