"""The page of all policies: one row each, in any order, with what the figures rest on."""

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from django.urls import reverse

from guard_core.policies import POLICIES
from guard_core.recordings import read
from guard_core.simulator.samples import SAMPLES
from inspector.replays import comparing
from inspector.replays.choice import Choice
from inspector.replays.messages import POLICIES as ALL_POLICIES
from inspector.replays.messages import PROFILES
from tests.builders import model, session, user
from tests.guard_core.outcomes.cast import counted

LONG = Path(__file__).parents[4] / "../shared/samples/claude-code/long-2-compactions.jsonl"
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


def names(client, row, query=""):
    """The titles of the rows, in order."""
    found = client.get(address(row, query)).content.decode()
    return [
        html.unescape(name)
        for name in re.findall(r'<th scope="row">\s*<a href="[^"]*(?:policy|/s/)[^"]*">([^<]+)</a>', found)
    ]


@pytest.fixture
def growing(store):
    return store(counted(PROMPTS, cached=(0, *PROMPTS[:-1])))


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


def test_an_order_that_there_is_not_changes_nothing(client, growing):
    assert names(client, growing, "?sort=nonsense") == names(client, growing)


def test_each_row_opens_its_replay_beside_the_recording(client, growing):
    text = client.get(address(growing)).content.decode()
    for kind in POLICIES.values():
        if kind.name != "contextguard":
            assert f"/s/{growing.pk}/?policy={kind.name}" in text


def test_what_the_figures_rest_on_is_said(client, growing):
    text = page(client, growing)
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


def test_a_simulated_session_has_no_row_of_a_recording(client, store):
    simulated = session(user("hi " * 900), model("yes"), user("go " * 900), model("done"), usage_ratio=2.0)
    assert names(client, store(simulated)) == TITLES


def test_an_unknown_price_has_no_figure(client, store):
    text = page(client, store(counted(PROMPTS, names=("homemade",) * len(PROMPTS))))
    assert "Price unknown: the price table has none for homemade" in text
    assert "sends least" in text


def test_a_recording_without_a_call_says_so(client, store):
    assert "no model call to compare" in page(client, store(counted(())))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_bundled_session_can_be_compared(client, store, name):
    assert "Policies" in page(client, store(SAMPLES[name].build(), title=name))


def test_the_name_of_a_model_is_escaped(client, store):
    hostile = store(counted(PROMPTS[:3], names=("<script>alert(1)</script>",) * 3))
    assert b"<script>alert" not in client.get(address(hostile)).content


def test_a_session_that_is_not_there_is_not_found(client, db):
    assert client.get(reverse("session_policies", args=["00000000-0000-0000-0000-000000000000"])).status_code == 404


def test_a_real_recording_shows_where_text_alone_fills_the_window(client, store):
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    text = page(client, store(read(LONG).sessions[0]))
    assert "From step 142 on text alone fills it" in text
    assert "18.98M recorded" in text
