"""Where a stored session holds a snippet: by the index, read and compared, up to the first message or in all."""

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guard_core.facts.lanes import Snippet
from inspector.storage import loading
from inspector.storage.search import index_some
from inspector.storage.snippets import occur_before, places
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored

pytestmark = pytest.mark.django_db

PATH = Snippet("path", "src/billing/models.py")
OTHER = Snippet("path", "src/other/views.py")
NO_WORDS = Snippet("quantity", "%%%")


@pytest.fixture
def row():
    """Six messages have the words of the path, which the index finds; the seventh has the path."""
    words = [model(f"the words src, billing and more: src billing models py, {n}") for n in range(6)]
    return stored(session(user("go on"), *words, model("I read src/billing/models.py"), model("done")))


@pytest.fixture(params=[True, False], ids=["indexed", "not indexed"])
def searched(row, request):
    if request.param:
        assert index_some(row)
        row.refresh_from_db()
    return row


def test_a_message_that_has_the_words_alone_does_not_hold_the_text(searched):
    assert [list(events) for events in places(searched, 1_000, [PATH, OTHER])] == [[7], []]


def test_the_first_message_that_holds_a_text_is_before_those_behind_it(searched):
    assert occur_before(searched, 1_000, [PATH, OTHER], 9) == (True, False)
    assert occur_before(searched, 1_000, [PATH, OTHER], 8) == (True, False)
    assert occur_before(searched, 1_000, [PATH, OTHER], 7) == (False, False)


def test_what_neither_the_index_knows_nor_can_be_read_is_not_known(row):
    assert occur_before(row, 10**9, [PATH, NO_WORDS], 9) == (None, None)
    assert places(row, 10**9, [PATH]) == [None]


def test_places_are_those_of_each_text_whichever_were_asked_before(searched):
    alone = places(searched, 1_000, [PATH])
    both = places(searched, 1_000, [OTHER, PATH])
    assert [list(events) for events in (both[1], both[0])] == [list(alone[0]), []]


def test_texts_alone_are_read_to_look_for_one(searched):
    with CaptureQueriesContext(connection) as queries:
        places(searched, 1_000, [PATH])
        occur_before(searched, 1_000, [PATH], 9)
    assert not any("sessiondata" in query["sql"] or "sessionchunk" in query["sql"] for query in queries)


def test_messages_without_place_and_time_have_all_else_of_them(row):
    whole = loading.load_some_events(row, [0, 7])
    bare = {"source_id": "", "line": None, "timestamp": None}
    expected = [(number, msgspec.structs.replace(event, **bare)) for number, event in whole.items()]
    assert loading.load_messages(row, [7, 0]) == expected
