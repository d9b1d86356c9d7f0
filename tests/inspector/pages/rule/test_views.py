"""The rule page: the agent's own inequality with its numbers, and each compaction beside it."""

import html
import re
from pathlib import Path

import pytest
from django.urls import reverse

from guard_core.recordings import read
from guard_core.simulator.samples import SAMPLES
from tests.builders import model, session, user

SHARED = Path(__file__).parents[4] / "../shared"
LONG = SHARED / "samples/claude-code/long-2-compactions.jsonl"


def page(client, row, query=""):
    response = client.get(reverse("session_rule", args=[row.pk]) + query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


@pytest.fixture
def long(store):
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    return store(read(LONG).sessions[0])


def test_it_says_the_rule_with_its_sum_and_where_the_recording_compacted(client, long):
    text = page(client, long)
    assert "compacts at 155,000: 200,000 − 32,000 (max output) − 13,000. Recorded at 155,277 and 155,475." in text
    assert "2 of 2 compactions agree with the rule" in text
    assert text.count("155,277 >= 155,000") == 1
    assert "The threshold is above 154,693 and at most 155,277." in text


def test_a_setting_that_the_file_lacks_can_be_typed(client, long):
    text = page(client, long, "?set.max_output_tokens=8192")
    assert "178,808" in text
    assert "0 of 2 compactions agree with the rule" in text


def test_a_setting_that_is_no_number_is_one_line_beside_its_field(client, long):
    text = page(client, long, "?set.max_output_tokens=many&set.unknown=1")
    assert "'many'" in text
    assert "compacts at 155,000" in text


def test_a_session_whose_agent_has_no_known_rule_says_so(client, store):
    text = page(client, store(session(user("Hello"), model("Hi"), format="openai-chat", agent="Homemade")))
    assert "No rule is known for" in text
    assert "This recording has no compaction." in text


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_session_has_the_page(client, store, name):
    assert "The agent's own rule" in page(client, store(SAMPLES[name].build(), title=name)).replace("&#x27;", "'")


def test_session_text_on_it_is_escaped(client, store):
    hostile = session(user("Hello"), model("Hi"), format="x", agent="<script>alert(1)</script>")
    response = client.get(reverse("session_rule", args=[store(hostile).pk]))
    assert b"<script>alert" not in response.content
