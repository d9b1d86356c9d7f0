"""The page of all policies: one row each, in any order, with what the figures rest on."""

import html
import json
import re
from itertools import pairwise
from urllib.parse import parse_qs

import pytest
from django.urls import reverse
from msgspec.structs import replace

from guard_core.outcomes.bill import Prices
from guard_core.outcomes.outcome import recorded_outcome
from guard_core.policies import POLICIES
from guard_core.sessions import ModelCall, Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from inspector.models import Event, Import, Payload, Recording, Session
from inspector.pages.comparison.presenter import COLUMNS, VIEWS
from inspector.replays import comparing
from inspector.replays.choice import Choice
from inspector.replays.messages import POLICIES as ALL_POLICIES
from inspector.replays.messages import PROFILES
from inspector.storage import deleting
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import in_characters
from tests.guard_core.outcomes.cast import SONNET, counted, facts_of
from tests.inspector.pages.conftest import same_sample, stored

PROMPTS = tuple(20_000 + 6_000 * k for k in range(40))
TITLES = [kind.title for kind in POLICIES.values()]


def address(row, query=""):
    """The address of the page, which finds everything stored: how long a request may compute is tested elsewhere."""
    given = parse_qs(query.removeprefix("?"))
    work = PROFILES if "profiles" in given else ALL_POLICIES
    comparing.compare_whole(row, Choice(window=given.get("window", [""])[0]), work, lambda done: None)
    return reverse("session_policies", args=[row.pk]) + query


def page(client, row, query=""):
    response = client.get(address(row, query))
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def whole(client, row, query=""):
    """The table over all its pages."""
    texts, url = [], address(row, query)
    while url:
        texts.append(client.get(url).content.decode())
        later = re.search(r'href="([^"]+)">Later rows', texts[-1])
        url = html.unescape(later[1]) if later else ""
    return texts


def names(client, row, query=""):
    """The titles of the rows, in order; the recording, which is on top of every page, once."""
    labels = [
        html.unescape(name)
        for text in whole(client, row, query)
        for name in re.findall(r'<th scope="row">\s*<a href="[^"]*(?:policy|/s/)[^"]*">([^<]+)</a>', text)
    ]
    return [name for place, name in enumerate(labels) if name != "Recording" or place == 0]


@pytest.fixture(scope="module")
def growing(django_db_setup, django_db_blocker):
    """A session that stays in the database for the tests of this file: its comparison is stored with the first."""
    with django_db_blocker.unblock():
        row = stored(counted(PROMPTS, cached=(0, *PROMPTS[:-1])))
        yield row
        row.recording.delete()
        deleting.drop_texts()
        left = [
            model.__name__ for model in (Recording, Import, Session, Event, Payload) if model._base_manager.exists()
        ]
    assert left == []  # else another file's tests find it


def test_the_recording_is_on_top_and_every_policy_follows(client, growing):
    assert names(client, growing) == ["Recording", *TITLES]


@pytest.mark.parametrize("key", ["compactions", "cost", "prompt", "parted", "held"])
def test_it_is_ordered_by_any_column_either_way(client, growing, key):
    up, down = names(client, growing, f"?sort={key}"), names(client, growing, f"?sort=-{key}")
    assert up[0] == down[0] == "Recording"
    assert sorted(up) == sorted(down) == sorted(["Recording", *TITLES])


def test_the_cheapest_is_first_when_ordered_by_cost(client, growing):
    rows = json.loads(client.get(address(growing, "?format=json")).content)["rows"][1:]
    costs = {row["title"]: row["outcome"]["costs"]["total"] for row in rows}
    shown = names(client, growing, "?sort=cost")[1:]
    assert [costs[name] for name in shown] == sorted(costs.values())


def test_each_column_is_in_a_view_and_sorting_by_it_shows_that_view(client, growing):
    assert {key for _, keys in VIEWS.values() for key in keys} == {column.key for column in COLUMNS}
    assert "Peak" in page(client, growing)
    text = page(client, growing, "?sort=-held")
    assert "Held" in text
    assert "Peak" not in text


def test_a_page_has_at_most_thirty_policies_below_the_recording(client, growing):
    pages = whole(client, growing)
    policies = [min(30, len(POLICIES) - first) for first in range(0, len(POLICIES), 30)]
    assert [text.count('class="trend"') for text in pages] == [1 + count for count in policies]
    assert all(">Recording</a>" in text for text in pages)


def test_an_order_that_there_is_not_changes_nothing(client, growing):
    assert names(client, growing, "?sort=nonsense") == names(client, growing)


def test_each_row_opens_its_replay_beside_the_recording(client, growing):
    text = "".join(whole(client, growing))
    for kind in POLICIES.values():
        if kind.name != "contextguard":
            assert f"/s/{growing.pk}/?policy={kind.name}" in text


def test_what_the_figures_rest_on_is_said(client, growing):
    text = page(client, growing, "?show=tokens")
    assert "at most 5 minutes earlier" in text
    assert "List prices of claude-sonnet-4-5 of Anthropic" in text
    assert "costs least" in text
    assert "reported 97." in text or "reported 9" in text


def test_profiles_have_rows_when_asked_for(client, growing):
    expected = 1 + sum(max(1, len(kind.profiles)) for kind in POLICIES.values())
    assert len(names(client, growing, "?profiles=all")) == expected


def test_another_window_is_taken_from_the_address(client, growing):
    assert "In a window of 60,000 tokens" in page(client, growing, "?window=60000")


def test_a_download_has_the_same_rows(client, growing):
    lines = client.get(address(growing, "?format=csv")).content.decode().strip().split("\r\n")
    assert lines[0].startswith("policy,profile,compactions,overflows")
    assert [line.split(",")[0] for line in lines[1:]] == ["recording", *POLICIES]


def test_a_spreadsheet_says_where_its_figures_are_no_tokens(client, store):
    lines = client.get(address(store(in_characters()), "?format=csv")).content.decode().strip().split("\r\n")
    assert lines[1].endswith(",figures of tokens are characters")


def test_a_policy_that_rewrites_messages_when_they_are_recorded_says_so_in_its_row(client, store):
    results = (tool_call(), tool_result("x" * 400_000), model("done"))
    row = store(session(user("go"), *results, user("and now?"), model("yes")))
    text = client.get(address(row)).content.decode()
    notes = {
        name: after
        for line, after in pairwise(text.split("<tr"))
        for name in ("Codex", "Claude Code")
        if f">{name}</a>" in line
    }
    said = "rewrites each message when it is recorded, which counts as no compaction: the result was cut to"
    assert said in notes["Codex"]
    assert "rewrites each message" not in notes["Claude Code"]


def test_a_simulated_session_has_no_row_of_a_recording(client, store):
    simulated = session(user("hi " * 900), model("yes"), user("go " * 900), model("done"), usage_ratio=2.0)
    assert names(client, store(simulated)) == TITLES


def test_an_unknown_price_has_no_figure(client, store):
    text = page(client, store(counted(PROMPTS, names=("homemade",) * len(PROMPTS))))
    assert "Price unknown: the price table has none for homemade" in text
    assert "sends least" in text


def test_a_recording_without_a_call_says_so(client, store):
    assert "no model call to compare" in page(client, store(counted(())))


@pytest.mark.parametrize("name", ["healthy", "small-window", "timing-gap"])  # no compaction, an overflow, one
def test_a_bundled_session_can_be_compared(client, store, name):
    assert "Policies" in page(client, same_sample(name))


def test_the_name_of_a_model_is_escaped(client, store):
    hostile = store(counted(PROMPTS[:3], names=("<script>alert(1)</script>",) * 3))
    assert b"<script>alert" not in client.get(address(hostile)).content


def test_a_session_that_is_not_there_is_not_found(client, db):
    assert client.get(reverse("session_policies", args=["00000000-0000-0000-0000-000000000000"])).status_code == 404


def test_a_real_recording_shows_where_text_alone_fills_the_window(client, long):
    text = page(client, long, "?show=tokens")
    assert "From step 142 on text alone fills it" in text
    assert "18.98M recorded" in text


@pytest.mark.django_db
def test_a_session_of_several_windows_says_which_one_judges_what(client):
    row = stored(counted((*(50_000,) * 5, 300_000), names=(*(SONNET,) * 5, "gemini-2.5-pro")))
    text = page(client, row)
    assert "keep every request within the window of its call (2 windows)" in text
    assert "The calls have 2 windows, in tokens: 200,000 (5 calls), 1,048,576 (1 call)." in text
    document = json.loads(client.get(address(row, "?format=json")).content)
    assert document["windows"] == [{"tokens": 200_000, "calls": 5}, {"tokens": 1_048_576, "calls": 1}]


@pytest.mark.django_db
def test_the_words_of_a_picture_hold_the_peak_against_the_window_of_its_own_call(client):
    """It was held against the session's window, of which the fullest request is a small part."""
    row = stored(counted((50_000, 60_000, 12_000), names=(SONNET, SONNET, "voxtral-small-24b-2507")))
    text = client.get(address(row)).content.decode()
    assert "peak 12,000, 37 % of the window of 32,768;" in text
    assert "peak 12,000, 6 %" not in text


def test_a_policy_that_let_requests_overflow_says_why_it_did_not_act(client, db):
    text = "word " * 4_000
    events = [item for step in range(20) for item in (user(f"{step} {text}"), model("done"))]
    calls = [ModelCall(at=2 * step + 1, prompt_tokens=10_000 * (step + 1)) for step in range(20)]
    row = stored(CoreSession(tuple(events), tuple(calls)))
    shown = " ".join(re.sub(r"<[^>]+>", " ", text) for text in whole(client, row, "?window=150000"))
    assert "never reached its threshold by its own count; closest at step 20:" in shown


def test_no_replay_is_said_to_be_within_a_window_that_its_requests_are_larger_than(client, store):
    """No request is an overflow where an answered prompt disproves the window."""
    row = store(replace(counted(PROMPTS), window=Sourced(100_000, Provenance.RECORDER)))
    compared = comparing.compare_whole(row, Choice(), ALL_POLICIES, lambda done: None)
    within = [each for each in compared.rows if each.policy and each.outcome and each.outcome.peak <= 100_000]
    assert 0 < len(within) < len(POLICIES)
    assert f"{len(within)} of {len(POLICIES)} replays keep every request within the window of 100,000" in page(
        client, row
    )


@pytest.mark.parametrize(("least_room", "words"), [(5, "freed nothing at cycle 251"), (0, "made no room at cycle 251")])
def test_a_cycle_that_is_not_listed_is_said_to_make_no_room_only_where_one_makes_none(least_room, words):
    facts = facts_of(counted(PROMPTS))
    row = recorded_outcome(facts, Prices.of(facts.session, facts.ledger))
    [room] = [column for column in COLUMNS if column.key == "room"]
    assert room.cell(replace(row, least_room=least_room, stuck=250)).note == words
