"""The pages of policies are made from what policies publish, and from replays of the bundled sessions."""

import html
import re

import pytest
from django.urls import reverse

from guard_core.policies import GROUPS, POLICIES
from guard_core.simulator.samples import SAMPLES
from tests.plugins.tiers import mostly_long


def text_of(client, address):
    response = client.get(address)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def page(client, name, query=""):
    return text_of(client, reverse("policy", args=[name]) + query)


def test_every_policy_is_listed_with_what_it_does(client, db):
    text = text_of(client, reverse("policies"))
    assert all(kind.title in text and kind.help in text for kind in POLICIES.values())
    links = client.get(reverse("policies")).content.decode()
    assert all(f'href="/policies/{name}"' in links for name in POLICIES)


def test_the_list_has_a_heading_for_each_group_with_its_policies_below(client, db):
    text = text_of(client, reverse("policies"))
    places = [text.index(f" {words} ") for group, kinds in GROUPS.items() for words in (group, kinds[0].help)]
    assert places == sorted(places)


@pytest.mark.parametrize("name", mostly_long(POLICIES, short=["contextguard", "claude-code", "hermes", "none"]))
def test_a_policy_has_its_settings_profiles_problems_and_examples(client, db, name):
    kind, text = POLICIES[name], page(client, name)
    for setting in kind.settings:
        assert setting.label in text
        assert setting.help in text
        assert setting.source in text
    assert all(profile.name in text and profile.help in text for profile in kind.profiles)
    assert all(problem.help in text for problem in kind.known_problems)
    assert all(result.help in text for result in kind.results)
    assert all(sample.title in text for sample in SAMPLES.values())
    assert "One decision: the bundled session" in text


def test_defaults_of_other_profiles_are_shown_where_they_differ(client, db):
    kind = POLICIES["codex"]
    text = page(client, "codex")
    assert "seed: no" in text  # count_pending
    assert kind.setting("count_pending").default is True


def test_another_profile_is_replayed_on_the_examples(client, db):
    assert "--policy contextguard --profile early" in page(client, "contextguard", "?profile=early")


def test_the_drawing_has_the_numbers_of_the_session_that_was_asked_for(client, db):
    text = page(client, "contextguard", "?sample=long-coding")
    assert "“Long coding session”" in text or SAMPLES["long-coding"].title in text
    assert "its first compaction there" in text
    assert re.search(r"[\d,]+ ≥ [\d,]+", text)


@pytest.mark.parametrize("query", ["?profile=nonsense", "?sample=nonsense", "?profile=&sample="])
def test_a_choice_that_there_is_not_shows_the_default(client, db, query):
    assert "ContextGuard" in page(client, "contextguard", query)


def test_a_policy_that_there_is_not_is_not_found(client, db):
    assert client.get("/policies/nonsense").status_code == 404


def test_the_comparison_and_the_form_of_settings_lead_to_it(client, coding):
    overview = client.get(reverse("session_overview", args=[coding.pk]) + "?policy=codex").content.decode()
    assert 'href="/policies/codex"' in overview


def test_default_values_are_grouped(client, db):
    text = page(client, "contextguard")
    assert "large_window" in text
    assert "200,000 tokens" in text
    assert "200000" not in text


def test_a_policy_says_when_it_checks_and_not_when_a_replay_asks_it(client, db):
    assert "The policy checks at the end of a turn and on an overflow whether to compact." in page(client, "pi")
    assert "The policy checks after tool results and before a turn whether to compact." in page(client, "codex")
    assert "The policy never compacts." in page(client, "none")


def test_a_correction_is_called_a_switch_that_turns_it_on(client, db):
    text = page(client, "contextguard")
    assert "Correct the lost request" in text
    assert "fix: later steps of the turn still name the user's request" in text
    assert "Fix:" not in text
