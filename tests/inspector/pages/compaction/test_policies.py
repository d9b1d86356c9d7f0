"""The page of a compaction that a policy of another agent would have made."""

from __future__ import annotations

import pytest

from tests.guard_core.policies.test_opencode import conversation

POLICIES = (
    "policy=pi",
    "policy=pi&profile=seed",
    "policy=opencode",
    "policy=opencode&profile=v2",
    "policy=crush",
    "policy=codex",
    "policy=hermes",
)


def page(client, coding, query, number=1):
    return client.get(f"{coding.get_absolute_url()}c/{number}/?{query}&window=60000&side=replayed").content.decode()


@pytest.mark.parametrize("policy", POLICIES)
def test_it_says_what_that_policy_compared_and_nothing_of_another_agents_prompt(client, coding, policy):
    text = page(client, coding, policy)
    assert "Replayed compaction 1 of" in text
    assert "The policy compacts: " in text
    assert "the summariser's prompt only names them" not in text


def test_it_says_how_much_of_a_result_the_summariser_was_given(client, coding):
    text = page(client, coding, "policy=pi")
    assert "Parts of messages: the result was cut to its first 2,000 characters." in text
    assert "dropped to fit its own window" not in text
    assert 'class="is-summarised"' in text


def test_results_that_were_cleared_are_rewritten_and_nothing_was_summarised(client, store):
    row = store(conversation("u a25000 a15000 a20000 a18000 u a50000 u a1000 u a"))
    address = f"{row.get_absolute_url()}c/1/?policy=opencode&profile=before-1.0&side=replayed"
    text = client.get(address).content.decode()
    assert "old tool results are cleared at the end of a turn" in text
    assert "no summary asked for" in text
    assert text.count('class="is-rewritten"') == 2
    assert "What it never saw" not in text
