"""The steps with matches of a search, marked on the strip of its page and of the steps page that it leads to."""

from __future__ import annotations

import re

import pytest

from guard_core.recordings.formats import native
from inspector.jobs import indexing
from inspector.models import Session
from inspector.storage import search
from inspector.storage.query_words import parse
from tests.builders import model, session, user
from tests.guard_core.findings.cases import compaction
from tests.guard_core.findings.test_requests import talk

pytestmark = pytest.mark.django_db


def stored(bring, recording) -> Session:
    bring(native.write(recording))
    while indexing.pending().exists():
        indexing.TEXT_INDEX.run("test")
    return Session.unscoped.get()


@pytest.fixture
def row(bring) -> Session:
    """Four steps; the needle is in the request of the first, in the answer of the second, and in that of the third."""
    events = (user("a <b>needle</b>?"), model("where"), user("here"), model("the needle"), user("and"), model("no"))
    return stored(bring, session(*events, user("needles"), model("yes"), title="Hay"))


def marks(text: str) -> list[str]:
    """Where the marks are on the strip, in its thousand units."""
    drawn = re.search(r'class="strip-matches" d="([^"]*)"', text)
    return re.findall(r"M([0-9.]+) ", drawn[1]) if drawn else []


def test_the_search_page_marks_the_steps_of_all_matches(client, row):
    text = client.get(f"/s/{row.pk}/search?q=needle").text
    assert marks(text) == ["125", "625", "875"]
    assert "3 steps with matches, marked above." in text
    assert f'href="/s/{row.pk}/steps?search=needle"' in text


def test_a_search_without_matches_marks_nothing(client, row):
    assert marks(client.get(f"/s/{row.pk}/search?q=absent").text) == []
    assert marks(client.get(f"/s/{row.pk}/steps?search=absent").text) == []
    assert "no matches" in client.get(f"/s/{row.pk}/steps?search=absent").text
    assert "search-line" not in client.get(f"/s/{row.pk}/steps").text


def test_the_steps_page_has_the_same_marks_and_keeps_them(client, row):
    text = client.get(f"/s/{row.pk}/steps?at=2&search=needle").text
    assert marks(text) == ["125", "625", "875"]
    assert "3 steps with matches, marked on the strip" in text
    assert re.search(r'data-key="n"\s+title="next step with a match \(n\)"\s+href="[^"]*at=3&amp;search=needle"', text)
    assert re.search(r'data-key="N"[^>]*href="[^"]*at=1&amp;search=needle"', text)
    steps = re.findall(r'data-step="\d+"[^>]*href="([^"]*)"|href="([^"]*)"[^>]*data-step="\d+"', text)
    assert len(steps) == 4
    assert all("search=needle" in "".join(url) for url in steps)


def test_the_words_of_a_search_are_text(client, row):
    text = client.get(f"/s/{row.pk}/steps", {"search": '<b>needle"\u202e'}).text
    assert "&lt;b&gt;needle&quot;⟨U+202E⟩" in text
    assert "<b>needle" not in text
    assert "\u202e" not in re.sub('value="[^"]*"', "", text)  # a form sends on what was typed


def test_a_match_in_a_summary_marks_the_step_of_its_compaction(client, bring):
    row = stored(bring, talk(compaction(3, summary="half is done"), compaction(5, summary="the café")))
    assert marks(client.get(f"/s/{row.pk}/search?q=cafe").text) == ["750"]


def test_the_index_gives_every_event_with_the_words_once(row):
    assert search.events(parse("needle"), row) == [0, 3, 6]
    assert search.events(parse("needle where"), row) == []
    assert search.events(parse(""), row) == []
