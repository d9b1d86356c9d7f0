"""A compaction's page says what it cost, what it saved, and when that was earned back."""

import html
import re

import pytest
from django.urls import reverse

from guard_core.policies import POLICIES
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Span
from tests.builders import user
from tests.guard_core.outcomes.cast import counted


def page(client, row, number=1, query=""):
    response = client.get(reverse("compaction", args=[row.pk, number]) + query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def compacted(at, before):
    base = (Inserted(0), Span(at, at))
    summary = (user("summary " * 60),)
    return RecordedCompaction(at, Evidence.DECLARED, "summary", base, summary, "auto", tokens_before=before)


def long_tail(**more):
    return counted(
        (90_000, 100_000, *(20_000 + 100 * k for k in range(20))), compactions=(compacted(5, 100_100),), **more
    )


def test_it_was_earned_back_at_a_step(client, store):
    text = page(client, store(long_tail()))
    assert "What it cost, and what it saved" in text
    assert re.search(r"It was earned back at step \d+", text)
    grown = re.search(r"\+(\d+) since then", text)  # of the figure above it, the request without the compaction
    assert f"tokens that are not in the cache; without the compaction, {grown[1]}." in text


def test_one_that_the_next_follows_at_once_had_not_paid_by_then(client, store):
    calls = (90_000, 100_000, 80_000, 82_000, 30_000, 31_000)
    row = store(counted(calls, compactions=(compacted(5, 100_100), compacted(9, 82_100))))
    assert "By then it had not paid: in all it cost $" in page(client, row)


def test_without_prices_it_speaks_of_tokens(client, store):
    text = page(client, store(long_tail(names=("homemade",) * 22)))
    assert "Price unknown: the price table has none for homemade." in text
    assert "earned back" not in text


@pytest.mark.long
def test_a_replayed_compaction_has_a_price_under_every_policy(client, store):
    """What the panel says, recorded ones show above; the prices under every policy, the engine's laws."""
    row = store(counted(tuple(20_000 + 9_000 * k for k in range(40))))
    url = reverse("compaction", args=[row.pk, 1])
    answers = {policy: client.get(f"{url}?side=replayed&policy={policy}") for policy in POLICIES}
    assert {answer.status_code for answer in answers.values()} == {200, 404}  # 404: it never compacts here
    shown = {policy: answer.text for policy, answer in answers.items() if answer.status_code == 200}
    assert [policy for policy, text in shown.items() if "What it cost, and what it saved" not in text] == []


def test_one_after_which_no_call_came_saved_nothing(client, store):
    row = store(counted((90_000, 100_000), compactions=(compacted(5, 100_100),)))
    assert "No call was made with it, so it saved nothing." in page(client, row)


def test_one_at_the_beginning_of_a_file_says_that_its_price_is_not_known(client, store):
    row = store(counted((20_000, 20_100, 20_200), compactions=(compacted(0, 167_500),)))
    text = page(client, row)
    assert "What it removed is not in the file, so what it saved is unknown." in text
    assert "No call was made with it" not in text


def test_the_price_of_one_that_replaced_another_names_both(client, store):
    """The summary of the first was paid for, too, and the request without them is that before both."""
    calls = (90_000, 100_000, 20_000, 20_100)
    row = store(counted(calls, compactions=(compacted(5, 100_100), compacted(5, 20_000))))
    assert "Compaction 2 followed before any call was made; its page has the price of both." in page(client, row)
    assert "This is the price of compaction 1, too: no call came between." in page(client, row, 2)
