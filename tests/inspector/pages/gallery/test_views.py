"""The gallery's pages: every state is an address, works without JavaScript and says in words what is wrong."""

import re

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import POLICIES
from guard_core.simulator.flow import play
from guard_core.simulator.scenarios import SCENARIOS
from inspector.ingest.importing import run_import
from inspector.models import GalleryRun, Import, Session, default_project
from inspector.pages.gallery import runs as service
from inspector.pages.gallery import step as telling
from inspector.pages.gallery.presenter import PAGE
from inspector.pages.gallery.table import PolicyChoice, all_profiles, guards, make_policy, play_trace

CURRENT = (PolicyChoice("contextguard", "current"),)
GUARDS = guards(POLICIES, all_profiles())
# How runs are stored and loaded, test_runs.py says on both databases.
pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture(autouse=True)
def _impatient(settings):
    """No worker runs beside these tests, so nothing waits for one."""
    settings.ANSWER_WAIT_SECONDS = 0


@pytest.fixture(scope="module")
def result():
    """The table of a run, as it is stored."""
    return service.packed(service.play_all(CURRENT))


@pytest.fixture
def played(result):
    run = service.start_run(default_project(), CURRENT)
    GalleryRun.unscoped.filter(pk=run.pk).update(state=GalleryRun.State.DONE, done=run.total, result=result)


def text(response):
    return response.content.decode()


def names(response):
    return re.findall(r'scenario-name">([^<]+)', text(response))


def test_before_the_first_run_it_offers_to_play(client):
    response = client.get("/gallery/")
    assert response.status_code == 200
    assert "Not run yet" in text(response)
    assert GalleryRun.unscoped.count() == 0


def test_playing_leads_to_the_progress_of_that_choice(client):
    response = client.post("/gallery/run", {"policy": ["contextguard", "none"], "profile": ["early"]}, follow=True)
    assert response.redirect_chain[0][0] == "/gallery/?policy=none&policy=contextguard&profile=early"
    assert "waiting for the worker" in text(response)
    assert '<noscript><meta http-equiv="refresh"' in text(response)


def test_progress_is_fetched_as_a_part_that_fetches_itself(client, part_of):
    service.start_run(default_project(), CURRENT)
    part = text(part_of("/gallery/", "gallery"))
    assert "<html" not in part
    assert 'hx-trigger="load delay:350ms"' in part


def test_a_cancelled_run_says_so_and_can_be_played_again(client):
    service.start_run(default_project(), CURRENT)
    response = client.post("/gallery/cancel", {"policy": "contextguard", "profile": "current"}, follow=True)
    assert "Cancelled. The scenarios run so far were not stored." in text(response)
    assert "Not run yet" in text(response)


def test_the_table_has_every_scenario(client, played):
    first = client.get("/gallery/")
    assert len(names(first)) == PAGE
    pages = -(-len(SCENARIOS) // PAGE)
    assert f"page={pages}" in text(first)
    shown = [name for page in range(1, pages + 1) for name in names(client.get(f"/gallery/?page={page}"))]
    assert shown == list(SCENARIOS)


def test_filters_and_order_are_in_the_address(client, played):
    later = names(client.get("/gallery/?group=later&window=8k"))
    assert later
    assert all(SCENARIOS[name].simulations[0].window == 8_000 for name in later)
    assert names(client.get("/gallery/?sort=-compactions"))[0] == "Stress_8k_HeavyToolDefinitions"
    assert set(names(client.get("/gallery/?show=loop"))) == {
        "Stress_8k_HeavyToolDefinitions",
        "Brutal_8k_SystemPromptLargerThanWindow",
        "Stress_CompactionNoInfiniteLoop",
    }


def test_a_sorted_column_is_marked_and_turns_round(client, played):
    page = text(client.get("/gallery/?sort=-peak"))
    assert 'aria-sort="descending"' in page
    assert "sort=peak" in page


def test_a_filter_that_nothing_fits_leads_back_to_all(client, played):
    assert "No matching scenario" in text(client.get("/gallery/?q=zebra"))


@pytest.mark.parametrize(
    "query", ["sort=%00", "group=x", "page=99999", "page=-1", "window=3", "q=%3Cscript%3E", "show=no"]
)
def test_an_odd_address_is_a_page(client, played, query):
    assert client.get(f"/gallery/?{query}").status_code == 200


def test_an_unknown_policy_is_told_with_the_known_ones(client):
    response = client.get("/gallery/?policy=hermit")
    assert response.status_code == 422
    assert "There is no policy" in text(response)
    assert client.post("/gallery/run", {"policy": "hermit"}).status_code == 422
    assert client.post("/gallery/run").status_code == 422


def test_a_row_opens_as_a_session_under_its_own_policy(client, folders):
    row = {"scenario": "Stress_8k_ToolBurst contextguard/early"}
    client.post("/gallery/open", row)
    run_import(str(Import.unscoped.get().pk))
    response = client.post("/gallery/open", row)
    stored = Session.unscoped.get()
    assert response["Location"] == f"{stored.get_absolute_url()}?policy=contextguard&profile=early"
    assert (stored.title, stored.window, stored.calls) == ("Stress_8k_ToolBurst", 8_000, 5)


def test_a_scenario_of_two_parts_opens_its_first(client, folders):
    row = {"scenario": "Stress_200k_LateUsageMetadata contextguard/current"}
    client.post("/gallery/open", row)
    run_import(str(Import.unscoped.get().pk))
    first = Session.unscoped.get(ordinal=0)
    assert client.post("/gallery/open", row)["Location"].startswith(first.get_absolute_url())
    assert first.title == "Stress_200k_LateUsageMetadata, part 1"


def test_its_session_replays_as_the_gallery_plays_it(client, store):
    simulation = SCENARIOS["Stress_200k_ToolHeavy"].simulations[0]
    row = store(play(simulation, title="Stress_200k_ToolHeavy").session, title="Stress_200k_ToolHeavy")
    page = text(client.get(row.get_absolute_url()))
    assert "1 compaction, first at step 22" in page
    assert "Simulated under ContextGuard, profile current: 1 compaction" in page
    assert "178,184 of 200,000 at step 21" in page


def test_its_steps_show_what_the_policy_sends_unless_asked_otherwise(client, store):
    simulation = SCENARIOS["Stress_200k_ToolHeavy"].simulations[0]
    row = store(play(simulation, title="Stress_200k_ToolHeavy").session, title="Stress_200k_ToolHeavy")
    steps = f"{row.get_absolute_url()}steps?at=24"
    assert "The replay&#x27;s decision" in text(client.get(steps))
    assert "9,633" in text(client.get(steps))
    assert "106,712" in text(client.get(f"{steps}&side=recorded"))


def test_the_card_of_a_simulated_step_leads_to_its_explanation(client, store):
    simulation = SCENARIOS["Stress_200k_ToolHeavy"].simulations[0]
    row = store(play(simulation, title="Stress_200k_ToolHeavy").session, title="Stress_200k_ToolHeavy")
    page = text(client.get(f"{row.get_absolute_url()}steps?at=22"))
    assert "/gallery/step?scenario=Stress_200k_ToolHeavy&amp;guard=contextguard&amp;at=22" in page


def test_an_unknown_scenario_is_not_opened(client):
    response = client.post("/gallery/open", {"scenario": "Stress_9k_Nothing none"})
    assert response.status_code == 404
    assert "There is no scenario" in text(response)


# ---- a scenario of one's own


def test_the_form_starts_with_a_preview(client):
    page = text(client.get("/gallery/new"))
    assert "1 compaction, at step 21." in page
    assert "At most 1,000 turns" in page


def test_the_preview_is_a_part_with_the_scenario_in_its_address(part_of):
    part = text(part_of("/gallery/new?window=8k&ratio=2&turns=3&user=100&reply=100&results=20k", "preview"))
    assert part.startswith('<section id="preview"')
    assert "compaction" in part


def test_a_wrong_field_is_told_in_the_page_and_in_the_live_preview(client, part_of):
    query = "/gallery/new?window=8k&ratio=2&turns=5000"
    assert client.get(query).status_code == 422
    assert "Turns is a whole number from 1 to 1,000" in text(client.get(query))
    assert "Turns is a whole number from 1 to 1,000" in text(part_of(query, "preview"))


def test_starting_from_a_scenario_fills_in_its_figures(client):
    page = text(client.get("/gallery/new?from=Stress_8k_ToolBurst"))
    assert 'value="8000"' in page
    assert "results=3000,3000,3000" in page
    assert client.get("/gallery/new?from=nothing").status_code == 422


def test_the_token_of_the_form_does_not_stay_in_an_address(client):
    response = client.get("/gallery/new?csrfmiddlewaretoken=secret&window=8k&ratio=2&turns=3")
    assert response["Location"] == "/gallery/new?window=8k&ratio=2&turns=3"


def test_making_the_session_stores_what_was_typed(client, folders):
    fields = {"title": "Mine <b>", "window": "8k", "ratio": "2", "turns": "3", "user": "100", "reply": "50"}
    response = client.post("/gallery/new", fields)
    job = Import.unscoped.get()
    assert response["Location"] == job.get_absolute_url()
    run_import(str(job.pk))
    row = Session.unscoped.get()
    assert (row.title, row.calls, row.window) == ("Mine <b>", 3, 8_000)


def test_a_wrong_post_makes_nothing(client):
    response = client.post("/gallery/new", {"window": "8k", "turns": "0"})
    assert response.status_code == 422
    assert Import.unscoped.count() == 0


# ---- one step


def test_one_step_is_told_with_the_arithmetic_of_the_timing_gap(client):
    page = text(client.get("/gallery/step"))
    for words in ("140,000 / 70,000", "trunc(90,009 × 2)", "180,018 ≥ 180,000", "140,000 &lt; 180,000"):
        assert words in page
    assert page.count('class="panel stage') == 9


def test_a_later_step_shows_the_summary_put_in(client):
    page = text(client.get("/gallery/step?scenario=Stress_200k_ToolHeavy&at=24"))
    assert "What it left replaces the first 43 events" in page
    assert "what the compaction left, and the events since" in page


@pytest.mark.parametrize("name", ["Stress_8k_ToolBurst", "Brutal_8k_SequentialChain_NoUsageMetadata"])
def test_every_policy_can_be_told_at_every_step(name):
    simulation = SCENARIOS[name].simulations[0]
    flow = play(simulation)
    ledger = Ledger.of(flow.session)
    for guard in GUARDS:
        trace = play_trace(simulation, guard, ledger)
        for at in range(len(trace)):
            step = telling.SimulatedStep(simulation, flow, ledger, trace, make_policy(guard).explain(trace, at), at)
            assert [stage["node"] for stage in telling.stages(step)] == list(telling.NODES), guard.name


@pytest.mark.parametrize("name", ["Stress_8k_ToolBurst", "Brutal_8k_SequentialChain_NoUsageMetadata"])
@pytest.mark.parametrize("guard", ["contextguard/early", "none", "codex", "langchain-trim-messages"])
def test_a_policy_has_a_page_at_every_step(client, name, guard):
    for at in (0, 1, 4, 999):
        assert client.get(f"/gallery/step?scenario={name}&guard={guard}&at={at}").status_code == 200


@pytest.mark.parametrize("query", ["scenario=x", "guard=hermit", "guard=contextguard/late"])
def test_a_step_that_does_not_exist_is_told(client, query):
    response = client.get(f"/gallery/step?{query}")
    assert response.status_code == 422
    assert "There is no" in text(response)


def test_looking_changes_nothing(client, played):
    for address in ("/gallery/", "/gallery/new", "/gallery/step"):
        client.get(address)
    assert (GalleryRun.unscoped.count(), Import.unscoped.count()) == (1, 0)


@pytest.mark.parametrize(("typed", "words"), [("99", "There is no step 99; showing step 2, the last."), ("2", "")])
def test_a_step_of_a_scenario_that_is_not_there_is_named(client, typed, words):
    note = client.get(f"/gallery/step?at={typed}").context["note"]
    assert note == words


def test_policies_that_the_gallery_is_not_about_are_folded_until_one_is_chosen(client):
    fold = '<details class="chooser-more"'
    before, _, behind = client.get("/gallery/").content.decode().partition(f"{fold}>")
    assert 'value="contextguard-sliding"' in before
    assert 'value="codex"' in behind
    assert re.search(r'>0\.35\s*<small class="muted">gptme</small>', behind)
    assert f"{fold} open>" in client.get("/gallery/?policy=codex").content.decode()
