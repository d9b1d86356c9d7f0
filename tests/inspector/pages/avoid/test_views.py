"""What would have avoided it: on the overview, at each finding, and on a page of its own that can be downloaded."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guard_core.policies import get_policy
from inspector.models import Estimate
from inspector.replays import avoiding
from inspector.storage.estimates import EstimationResult, packed_result
from tests.guard_core.avoiding.test_avoiding import long_request, long_rules
from tests.guard_core.checker.cases import exchange, growing
from tests.guard_core.findings.cases import chat
from tests.inspector.pages.conftest import stored


@pytest.fixture(autouse=True)
def data_folder(tmp_path, settings):
    settings.DATA_DIR = tmp_path
    avoiding.forget()


@pytest.fixture
def lost(db):
    return stored(long_request(), title="lost")


def test_the_overview_says_rule_price_loss_and_remedy_in_this_order_below_the_chart(client, lost):
    text = client.get(lost.get_absolute_url()).content.decode()
    places = [text.index(words) for words in ('class="verdict-sentence"', 'id="chart"', ">In short<", ">What it cost<")]
    places += [text.index(words) for words in (">What was lost<", ">What would have avoided it<", ">Findings<")]
    assert places == sorted(places)
    assert "left the context at step 21" in text
    assert re.search(
        r"with a window of [\d,]+ tokens instead of 100,000 and without any compaction\. No overflow",
        text,
    )
    assert f'href="{lost.get_absolute_url()}avoid#request_lost-21"' in text


def test_the_overview_names_the_finding_that_nothing_avoids(client, db):
    row = stored(chat(1_990_000, window=2_000_000), window=2_000_000, title="full")
    client.get(row.get_absolute_url() + "avoid")
    text = client.get(row.get_absolute_url()).content.decode()
    assert re.search(r"Near miss \(step 1\): none of \d+ settings, windows and policies avoids this", text)


def test_each_remedy_opens_the_replay_that_it_speaks_of(client, lost):
    page = client.get(lost.get_absolute_url() + "avoid")
    text = page.content.decode()
    assert 'id="request_lost-21"' in text
    remedies = [item for answer in page.context["answers"] for item in answer["remedies"]]
    assert remedies
    for remedy in remedies:
        assert remedy["url"].startswith(lost.get_absolute_url() + "?")
        opened = client.get(remedy["url"])
        compactions = opened.context["comparison"]["rows"][-6]["replayed"]
        match = re.search(r"(no|[\d,]+) compactions? \(the recording has 1\)", remedy["sentence"])
        assert match[1].replace("no", "0") == compactions


def test_a_lost_rule_leads_from_the_overview_to_the_setting_that_keeps_it(client, db):
    url = stored(long_rules(), title="rules").get_absolute_url()
    assert f'href="{url}avoid#rule_lost-21"' in client.get(url).content.decode()
    page = client.get(url + "avoid").content.decode()
    assert 'id="rule_lost-21"' in page
    assert "and 1 more are in every request of its turn with a window of 200,000 tokens" in page


def test_its_download_has_every_remedy_as_settings_that_a_policy_takes(client, lost):
    report = json.loads(client.get(lost.get_absolute_url() + "avoid?format=json").content)
    ways = [item["way"] for answer in report["answers"] for item in answer["remedies"]]
    assert ways
    for way in ways:
        assert get_policy(way["policy"], **way["settings"]).name == way["policy"]


def test_answers_are_stored_and_a_second_look_replays_nothing(lost):
    steps = []
    first = avoiding.search_whole(lost, steps.append)
    assert steps
    avoiding.forget()
    steps.clear()
    assert avoiding.search_whole(lost, steps.append) == first
    assert not steps


def test_a_search_is_awaited_until_the_session_is_measured_unless_it_is_long(db):
    row = stored(long_request(), title="longer than a page searches")
    row.calls = avoiding.QUICK_CALLS + 1
    assert avoiding.answers_at_hand(row) == (None, True)
    with CaptureQueriesContext(connection) as queries:  # its columns are in memory by now
        assert avoiding.answers_at_hand(row) == (None, True)
    (only,) = queries.captured_queries
    assert ' FROM "inspector_estimate" ' in only["sql"]
    row.calls = avoiding.SEARCHED_CALLS + 1
    assert avoiding.answers_at_hand(row) == (None, False)


def test_a_measured_session_whose_answers_are_of_an_earlier_version_awaits_no_search(client, db):
    turns, built = avoiding.QUICK_CALLS + 40, long_request()
    tokens = [call.prompt_tokens for call in built.calls] + [30_000] * turns
    row = stored(exchange(turns, tokens=tokens.__getitem__, compactions=built.compactions, size=16_000), title="long")
    assert "Other settings are being replayed" in client.get(row.get_absolute_url()).content.decode()
    measured = {"revision": row.revision, "result": packed_result(EstimationResult())}
    Estimate.objects.in_session(row).update_or_create(defaults=measured)
    assert "Not searched yet." in client.get(row.get_absolute_url()).content.decode()
    with CaptureQueriesContext(connection) as queries:  # nothing is stored of it, which the data folder says
        assert "Not searched yet." in client.get(row.get_absolute_url() + "?window=90000").content.decode()
    assert not [query for query in queries.captured_queries if "inspector_sessionchunk" in query["sql"]]


def test_a_session_without_such_findings_has_nothing_to_avoid(client, db):
    row = stored(exchange(8, tokens=growing()), title="healthy")
    assert "lost request to avoid." in client.get(row.get_absolute_url()).content.decode()
    assert "lost request to avoid." in client.get(row.get_absolute_url() + "avoid").content.decode()


def test_the_words_of_a_session_are_escaped(client, db):
    words = "<script>alert(1)</script> please keep this exactly as it is, whatever happens"
    built = long_request()
    hostile = exchange(
        40,
        tokens=lambda turn: built.calls[turn].prompt_tokens,
        compactions=built.compactions,
        words=words,
        size=16_000,
    )
    row = stored(hostile, title="hostile")
    for url in ("", "avoid"):
        text = client.get(row.get_absolute_url() + url).content.decode()
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text
