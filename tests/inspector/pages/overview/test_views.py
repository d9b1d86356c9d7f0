"""The overview of a session, its what-if and its chart."""

import html
import json
import re
from base64 import b64decode
from html.parser import HTMLParser

import msgspec
import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guard_core.recordings.formats import native
from guard_core.sessions import UNRECORDED_COMPACTIONS, Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted, Span
from inspector.models import Session
from inspector.pages.shared.listing import about
from inspector.pages.shared.numbers import short
from tests.builders import model, session, tool_result, transcript, user
from tests.guard_core.checker.cases import clearing, exchange, in_characters
from tests.guard_core.outcomes.cast import SONNET, counted
from tests.inspector.pages.conftest import stored


def page(client, row, query=""):
    return client.get(row.get_absolute_url() + query)


def test_it_opens_with_a_verdict_and_four_figures(client, gap):
    text = page(client, gap).content.decode()
    assert "1 compaction" in text
    assert all(name in text for name in ("peak fill", "tokens saved by compaction", "estimator bias", "compactions"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("agent", "badge", "named"),
    [
        ("Kilo Code", "Kilo Code", "Kilo Code"),
        ("OpenCode", "OpenCode", "OpenCode"),
        ("mine", "OpenCode", "OpenCode (mine)"),
    ],
)
def test_its_badge_names_who_wrote_the_recording_where_several_agents_write_its_format(agent, badge, named, client):
    written = msgspec.structs.replace(session(user("a"), model("b")), format="opencode", agent=agent)
    row = stored(written)
    shown = page(client, row).context
    assert shown["session"]["badges"][0]["text"] == badge
    assert next(fact["value"] for fact in shown["facts"] if fact["name"] == "agent") == named
    assert about(row).startswith(f"{named}, ")


@pytest.mark.django_db
def test_calls_of_several_windows_are_said_of_the_session_and_of_its_replay(client):
    row = stored(counted((*(50_000,) * 5, 300_000), names=(*(SONNET,) * 5, "gemini-2.5-pro")))
    shown = page(client, row, "?policy=codex")
    sizes = "The calls have 2 windows, in tokens: 200,000 (5 calls), 1,048,576 (1 call)."
    assert next(fact["value"] for fact in shown.context["facts"] if fact["name"] == "windows").startswith(sizes)
    assert shown.context["comparison"]["windows"].endswith("the policy compacts by 200,000 at every call.")
    assert shown.context["comparison"]["windows"].startswith(sizes)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "steps", "context", "rule", "estimator"])
def test_counts_of_characters_are_called_so_on_every_page_of_their_session(client, path):
    row = stored(in_characters())
    words = "The recorded counts seem to count characters"
    assert words in client.get(row.get_absolute_url() + path).content.decode()
    assert (
        words not in client.get(stored(session(user("go"), model("look"))).get_absolute_url() + path).content.decode()
    )


@pytest.mark.django_db
def test_the_largest_count_of_characters_is_no_peak_in_tokens(client):
    row = stored(in_characters())
    text = page(client, row).content.decode()
    assert "largest count" in text
    assert "above the stated window" not in text
    assert "perhaps characters" in client.get("/").content.decode()


@pytest.mark.django_db
def test_an_overflow_that_no_setting_is_searched_for_is_not_denied(client):
    row = stored(session(user("go"), *[model("look"), tool_result("file " * 400)] * 3, refused=(5,)))
    text = page(client, row).content.decode()
    assert "failed as too long" in text
    assert "No overflow, near miss" not in text
    assert "No setting is searched for" in text


@pytest.mark.django_db
def test_nothing_is_said_to_be_kept_or_saved_where_what_was_removed_is_not_in_the_file(client):
    events = [event for _ in range(6) for event in (model("look " * 40), tool_result("file " * 400))]
    whole = RecordedCompaction(
        6, Evidence.MATCHED, "summary+tail", (Inserted(0), Span(0, 6)), (user("What was done before"),)
    )
    text = page(client, stored(session(user("Fix the reader and add a test."), *events, compactions=(whole,)))).content
    words = text.decode()
    assert "No request of a user" not in words
    assert "What compaction 1 removed is not in the file: whether later requests still have what was said" in words
    assert "Not known: the file does not show all that left the context." in words
    assert "that are not in the cache; without it" not in words
    assert "not known →" in words


def test_the_chart_has_a_caption_in_words_and_a_table_of_the_same_steps(client, gap):
    text = page(client, gap, "?table=1").content.decode()
    assert "Recorded prompt tokens peak at 70.0\u00a0% of the window at step 48" in text
    assert text.count('<th scope="row" class="num"><a href') == 40
    assert f'<th scope="row" class="num"><a href="{gap.get_absolute_url()}steps?at=1">1</a></th>' in text
    assert "Steps 1 to 40 of 55" in text


def test_the_script_that_draws_is_asked_for_with_the_page_and_not_again_with_its_parts(client, part_of, gap):
    content = page(client, gap).content.decode()
    drawing = re.search(r'data-plotly="([^"]+)"', content)[1]
    preload = f'<link rel="preload" as="script" href="{drawing}">'
    assert preload in content
    part = part_of(gap.get_absolute_url() + "?window=150000", "chart").content.decode()
    assert f'data-plotly="{drawing}"' in part
    assert preload not in part


@pytest.mark.parametrize(("counted_calls", "missing"), [(0, None), (4, None), (4, 0)])
def test_what_was_not_counted_has_one_size_in_tile_caption_chart_table_and_steps(client, store, counted_calls, missing):
    """Of ten calls only the first have a count."""
    value = exchange(10, tokens=lambda call: 9_000 + 1_500 * call if call < counted_calls else missing, size=9_000)
    row = store(value)
    response = page(client, row, "?table=1&policy=none")
    tile = response.context["kpis"][0]
    peak = re.match(r"([\d,]+) of", tile["note"]).group(1)
    drawn = {trace["name"]: trace["y"] for trace in response.context["figure"]["data"]["data"]}
    estimated = drawn["estimated prompt tokens"]
    assert f"{np.nanmax(np.frombuffer(b64decode(estimated['bdata']), estimated['dtype'])):,.0f}" == peak
    assert ("recorded prompt tokens" in drawn) == (counted_calls > 0)
    assert f'<td class="num">≈{peak}</td>' in response.content.decode()
    words = "The figures of 6 of the 10 recorded calls are estimates: the file has no count of them."
    assert (words in response.content.decode()) == (counted_calls > 0)
    assert "estimated prompt tokens" in [path.name for path in response.context["figure"]["picture"].paths]
    shown = client.get(row.get_absolute_url() + "steps?at=10").content.decode()
    assert f"≈{peak} prompt tokens (estimated), no provider count" in shown
    sizes = re.findall(r'step-tokens">≈([^<]+)<', shown)
    assert sizes[-1] == short(int(peak.replace(",", "")))
    assert len(sizes) == 10 - counted_calls


def test_findings_lead_to_their_steps(client, gap):
    assert f"{gap.get_absolute_url()}steps?at=49" in page(client, gap).content.decode()


def test_a_changed_setting_is_replayed_and_compared(part_of, gap):
    response = part_of(gap.get_absolute_url() + "?window=100000", "chart")
    text = response.content.decode()
    assert "<html" not in text
    assert response["HX-Push-Url"] == gap.get_absolute_url() + "?window=100000"
    assert "100,000" in text
    swapped = {"headline", "answers", "results", "about", "session-bar", "what-if"}
    assert set(re.findall(r'id="([a-z-]+)"[^>]* hx-swap-oob="true"', text)) == swapped


class FormFields(HTMLParser):
    """The form of a page: its shape, and of each element that is brought up to date its attributes."""

    def __init__(self, text):
        super().__init__()
        self.shape, self.fresh = "", {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.shape = attributes.get("data-shape", self.shape)
        if "data-fresh" in attributes:
            self.fresh[attributes["data-fresh"]] = attributes


@pytest.mark.parametrize("query", ["?window=100000", "?cap=3&factor=no", "?cap=many", "?window=5&buffer=7%25"])
def test_a_page_with_the_same_fields_gets_what_is_beside_them_as_data(client, gap, query):
    url, asked = gap.get_absolute_url() + query, {"HX-Request": "true", "HX-Target": "chart"}
    known = FormFields(page(client, gap).content.decode())
    whole = client.get(url, headers=asked).content.decode()
    text = client.get(url, headers={**asked, "Form-Shape": known.shape}).content.decode()
    assert 'id="set-window"' in whole
    assert 'id="set-window"' not in text
    beside = json.loads(html.unescape(re.search(r"<div data-beside[^>]*>(.*?)</div>", text)[1]))
    fresh = FormFields(whole).fresh
    assert fresh.keys() - beside.keys() == {"about-policy"}  # it stays as the policy does
    for name in fresh.keys() & beside.keys():
        for key, said in beside[name].items():
            written = fresh[name].get(key, "")
            assert key in ("text", "value") or said == ((key in fresh[name]) if isinstance(said, bool) else written)
    assert beside["window"]["value"] == fresh["window"]["value"]
    assert beside["profile"]["value"] == "current"


def test_a_page_with_other_fields_gets_the_whole_form(client, gap):
    known = FormFields(page(client, gap).content.decode())
    asked = {"HX-Request": "true", "HX-Target": "chart", "Form-Shape": known.shape}
    text = client.get(gap.get_absolute_url() + "?policy=none", headers=asked).content.decode()
    assert 'id="set-window"' in text
    assert "data-beside" not in text


def test_the_address_holds_only_settings_that_were_changed(part_of, gap):
    response = part_of(gap.get_absolute_url() + "?window=&buffer=auto&profile=current&cap=3", "chart")
    assert response["HX-Push-Url"] == gap.get_absolute_url() + "?cap=3"


def test_settings_that_the_policy_does_not_use_leave_the_address_and_say_why(part_of, gap):
    response = part_of(gap.get_absolute_url() + "?policy=none&buffer=10%25&cap=many&window=64000", "chart")
    assert response["HX-Push-Url"] == gap.get_absolute_url() + "?policy=none&window=64000"
    text = response.content.decode()
    assert 'name="buffer"' not in text  # a policy without settings has no fields for them
    assert text.count("Sends the whole log at every call.") == 1


def test_the_whole_page_shows_the_same_replay_without_javascript(client, gap):
    assert "buffer 40%" in page(client, gap, "?buffer=40%25").content.decode()


def test_a_setting_that_is_not_allowed_is_named_once_with_what_is(client, gap):
    response = page(client, gap, "?window=5&profile=newest&cap=many")
    text = response.content.decode()
    assert response.status_code == 200
    assert text.count("256 to 100,000,000 tokens") == 1
    assert text.count("current, tail, early, fixed") == 1
    assert text.count("a number from 0 to 100") == 1
    assert text.count('aria-invalid="true"') == 3


def test_settings_that_contradict_each_other_are_an_error_in_words(client, gap):
    response = page(client, gap, "?floor=4&cap=2")
    assert response.status_code == 200
    assert response.content.decode().count("The floor 4 is above the cap 2.") == 1


def test_a_setting_that_is_not_allowed_changes_the_line_beside_its_field_and_nothing_else(part_of, gap):
    response = part_of(gap.get_absolute_url() + "?window=5", "chart")
    assert (response.status_code, response["HX-Push-Url"], response["HX-Reswap"]) == (200, "false", "none")
    text = response.content.decode()
    assert "256 to 100,000,000 tokens" in text
    assert 'id="chart"' not in text
    assert 'id="headline"' not in text


def test_an_open_table_stays_open_when_a_setting_changes(part_of, gap):
    text = part_of(gap.get_absolute_url() + "?window=100000&table=1", "chart").content.decode()
    assert text.count('<th scope="row" class="num"><a href') == 40
    assert "autofocus" not in text
    assert "autofocus" in part_of(gap.get_absolute_url() + "?table=1", "table").content.decode()


def test_a_zoom_gets_its_own_points(client, coding):
    figure = json.loads(page(client, coding, "figure.json?from=10&to=20").content)
    assert figure["layout"]["xaxis"]["range"] == [9.5, 20.5]


@pytest.mark.django_db
def test_the_points_of_changed_settings_ask_no_table_twice_and_none_for_what_a_page_says(client):
    row = stored(msgspec.structs.replace(counted((50_000, 60_000, 70_000)), format="claude-code"))
    page(client, row)
    with CaptureQueriesContext(connection) as queries:
        assert page(client, row, "figure.json?window=90000").status_code == 200
    tables = [re.search(r' FROM "inspector_(\w+)"', query["sql"])[1] for query in queries.captured_queries]
    assert sorted(tables) == ["estimate", "project", "rulesetting", "session"]


@pytest.mark.django_db
def test_a_session_is_replayed_under_the_policy_of_its_own_agent_until_another_is_chosen(client):
    counts = (50_000, 100_000, 154_000, 160_000, 165_000)
    row = stored(msgspec.structs.replace(counted(counts), format="claude-code", versions=((0, "2.1.14"),)))
    shown = page(client, row)
    assert "Replayed under Claude Code, profile until-2.1.19: 1 compaction, first at step 5" in html.unescape(
        shown.text
    )
    assert shown.context["form"]["policy"] == "claude-code"
    assert not shown.context["form"]["changed"]
    assert f"/sweeps/new?session={row.pk}&amp;policy=claude-code" in shown.text
    changed = page(client, row, "?policy=contextguard&buffer=50%25")
    assert "Replayed under ContextGuard, profile current, buffer 50%" in html.unescape(changed.text)
    assert "?policy=contextguard&amp;buffer=50%25" in changed.text  # its links keep the policy


def test_settings_that_are_not_allowed_have_no_points(client, coding):
    assert page(client, coding, "figure.json?window=90000").status_code == 200
    response = page(client, coding, "figure.json?cap=many")
    assert (response.status_code, response.content) == (204, b"")


def test_a_session_without_model_calls_has_an_overview(client, store):
    response = page(client, store(session(user("hello"))))
    assert response.status_code == 200
    text = response.content.decode()
    assert "No model calls in this recording" in text
    assert "data-figure" not in text


def test_what_is_known_without_model_calls_is_told_with_its_source(client, store):
    value = session(user("hello " * 100), tool_result("found " * 400, "grep", "c1"), user("thanks"))
    text = page(client, store(value)).content.decode()
    assert "3 messages" in text
    assert 'data-source="recomputed"' in text
    assert [kind in text for kind in (">user<", ">tool results<", ">model<")] == [True, True, False]
    assert "hello hello" in text


def test_many_messages_without_model_calls_are_a_short_page(client, store):
    text = page(client, store(session(*[user(f"line {n}") for n in range(400)]))).content.decode()
    assert "30 of 400 messages" in text
    assert text.count("line ") < 40


def test_markup_in_a_session_is_shown_as_text(client, store):
    value = session(user("<img src=x onerror=alert(1)>"), title="<script>alert(1)</script>")
    text = page(client, store(value)).content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_deleted_session_is_not_found(client, gap, settings):
    gap.deleted = "2026-01-01T00:00:00Z"
    gap.save()
    assert page(client, gap).status_code == 404


@pytest.mark.parametrize(
    ("ats", "words"), [((4,), "no call came after a compaction"), ((2, 4), "1 of them at the end of the recording")]
)
def test_a_compaction_that_no_call_came_after_is_counted_everywhere(client, bring, ats, words):
    events = (user("one"), model("two"), user("three"), model("four"))
    cuts = tuple(RecordedCompaction(at, Evidence.DECLARED, "summary", (Span(0, 1),)) for at in ats)
    bring(native.write(session(*events, compactions=cuts)))
    row = Session.unscoped.get()
    text = page(client, row).content.decode()
    assert row.compactions == len(ats)
    assert f'<span class="badge badge-compaction">{len(ats)} compaction{"s" * (len(ats) > 1)}</span>' in text
    assert words in text


def test_where_compactions_are_is_kept_apart_from_who_asked_for_them(client, coding):
    """Separated by commas alone, "at steps 38, 86, 125, 3 automatic" names a step 3."""
    text = client.get(coding.get_absolute_url()).content.decode()
    assert "at steps 38, 86, 125; 3 automatic" in text


def test_another_window_judges_the_replay_and_not_the_recording(client, gap):
    shown = client.get(gap.get_absolute_url() + "?window=100000").content.decode()
    cells = re.findall(r'row">([^<]+)</th><td[^>]*>([^<]+)</td><td[^>]*>([^<]+)', shown)
    rows = {name: (recorded, replayed) for name, recorded, replayed in cells}
    assert rows["context window, tokens"] == ("200,000", "100,000")
    assert rows["overflows"][0] == "0"
    assert 'badge-overflow">' not in shown.partition('id="overview"')[0]


def test_the_chart_and_the_panel_keep_the_recordings_window_apart_from_the_replays(client, gap):
    response = client.get(gap.get_absolute_url() + "?window=100000")
    drawn = {trace["name"]: trace for trace in response.context["figure"]["data"]["data"]}
    assert "overflow" not in drawn
    assert "recorded prompt tokens" in drawn
    assert "overflow" not in [path.name for path in response.context["figure"]["picture"].paths]
    assert response.context["strip"]["overflows"] == ""
    (window,) = [fact for fact in response.context["facts"] if fact["name"] == "context window"]
    assert window["value"] == "200,000 tokens"
    assert window["note"].endswith("the replay uses 100,000")


def test_a_session_with_totals_only_is_not_said_to_hold_no_counts_at_all(client, store):
    totals = {"prompt_tokens_total": 90_001, "total_calls": 2}
    row = store(session(user("one"), model("two"), model("three"), reported=False, **totals))
    text = client.get(row.get_absolute_url()).content.decode()
    assert "the lines are estimates" in text
    assert "No provider counts in this file" not in text
    assert "only totals are recorded, 90,001 prompt tokens over 2 calls, 45,001 on average" in text


def test_what_a_reader_of_the_replays_counts_must_know_is_beside_them(client, part_of, store):
    events = [part for _ in range(6) for part in (user("question " * 150), model("answer " * 150))]
    prompts = (30_000, 30_700, 45_000, 45_700, 46_400, 47_100)
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(prompts))
    row = store(session(*events, calls=calls), title="a rise")
    noted = "The recorded prompt rose from 30,700 to 45,000 tokens at step 3"
    other = client.get(row.get_absolute_url() + "?window=50000").content.decode()
    assert noted in other.partition('id="comparison-title"')[2]
    assert noted in part_of(row.get_absolute_url() + "?window=50000", "chart").content.decode()
    same = page(client, row).content.decode()
    assert "The replay sends exactly what was recorded" in same
    assert "replay-notes" not in same
    plain = store(session(*events), title="plain")
    assert "replay-notes" not in page(client, plain).content.decode()


# -- the rule of the recording's own agent


def test_a_recording_is_explained_by_its_own_rule(client, store):
    text = client.get(store(transcript()).get_absolute_url()).content.decode()
    assert "compacts at 155,000: 200,000 − 32,000 (max output) − 13,000. Recorded at 155,010 (last prompt," in text
    assert "threshold of Claude Code" in text
    assert "1 of 1 compaction agrees" in text
    assert '"calibrated estimate"' not in text


def test_the_tile_has_the_threshold_at_the_last_call_where_the_version_changed(client, store):
    built = transcript(version="2.1.21")
    changed = msgspec.structs.replace(built, versions=((0, "2.1.21"), (built.calls[-1].at, "2.1.14")))
    row = store(changed)
    assert (row.threshold, row.threshold_source) == (155_000, "rule")
    assert "threshold of Claude Code at the last call" in page(client, row).content.decode()


def test_its_table_has_the_count_and_the_margin(client, store):
    text = client.get(store(transcript()).get_absolute_url() + "?table=1").content.decode()
    assert "count compared" in text
    assert "3,990" in text


def test_a_threshold_that_the_recording_excludes_is_shown_as_a_default_beside_the_inferred_one(client, store):
    text = client.get(store(transcript(version="2.1.62")).get_absolute_url()).content.decode()
    assert "Claude Code default" in text
    assert "Claude Code threshold" not in text
    assert "threshold at most (inferred)" in text
    assert "≤ 155,010" in text


@pytest.mark.django_db
def test_where_the_prompt_fell_without_a_compaction_cost_and_losses_are_not_known(client):
    text = page(client, stored(counted([80_000, 81_000, 9_000, 9_500, 10_000]))).content.decode()
    assert "nothing was compacted" not in text
    assert text.count("The recorded prompt fell from 81,000 to 9,000 tokens at step 3, and no compaction is") == 2
    assert "Not known: the file does not show all that left the context." in text


@pytest.mark.django_db
def test_results_that_were_cleared_without_a_compaction_are_what_was_lost(client):
    text = page(client, stored(clearing())).content.decode()
    assert "nothing was compacted" not in text
    assert (
        text.count("The tool results of 2 older messages were cleared or shortened") == 2
    )  # in short, and as a finding
    assert "what clearing tool results cost is not computed" in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("notes", "words"), [((), "Nothing: nothing was"), ((UNRECORDED_COMPACTIONS,), "Nothing that the")]
)
def test_that_nothing_was_compacted_is_not_said_of_a_file_that_need_not_record_it(client, notes, words):
    row = stored(msgspec.structs.replace(counted([80_000, 81_000]), notes=notes))
    assert page(client, row).content.decode().count(words) == 2
    assert ("it records no compaction" in page(client, row).content.decode()) == bool(notes)


def test_of_an_unknown_rule_the_bounds_of_its_threshold_are_shown(client, store):
    text = client.get(store(transcript("homemade")).get_absolute_url()).content.decode()
    assert (
        "The rule by which the program that wrote this recording compacts is not known here. Recorded at 154,000 "
        "(prompt of the last request)." in text
    )
    assert "≤ 154,000" in text


def test_steps_at_which_only_one_side_compacts_are_listed_with_the_first_difference(client, gap):
    shown = page(client, gap, "?window=100000").context
    recorded, replayed = (shown["comparison"]["rows"][1][side] for side in ("recorded", "replayed"))
    steps = [row["step"] for row in shown["decisions"]["rows"]]
    same = int(shown["decisions"]["same"].split()[0])
    assert shown["decisions"]["count"] == f"{len(steps):,}"  # beside a heading that says of what
    assert len(steps) == int(recorded) + int(replayed) - 2 * same
    assert all("side=replayed" in row["url"] for row in shown["decisions"]["rows"] if row["side"] == "replayed")
    text = page(client, gap, "?window=100000").content.decode()
    first = shown["decisions"]["first"]
    assert f'href="{first["url"].replace("&", "&amp;")}">First difference: step {first["step"]}<' in text


def test_a_number_has_a_slider_that_is_not_sent_itself(client, gap):
    text = page(client, gap, "?cap=3").content.decode()
    slider = re.search(r'<input class="slider"[^>]*data-slider="set-cap"[^>]*>', text)[0]
    assert 'value="3"' in slider
    assert "name=" not in slider
    assert "set-policy" not in re.findall(r'data-slider="([^"]+)"', text)


def test_what_an_address_asks_wrongly_is_said_on_every_page_of_the_session(client, gap):
    for path in ("steps", "rule", "context", "facts", "estimator", "comments"):
        text = html.unescape(client.get(f"{gap.get_absolute_url()}{path}?policy=codex&window=many").content.decode())
        assert "Ignored in this address: A window is a number of tokens" in text, path
        assert "not 'many'" in text
    text = html.unescape(client.get(f"{gap.get_absolute_url()}?policy=nope&window=many").content.decode())
    assert 'value="many"' in text
    assert "Policy 'nope' is not known.<" in text
    assert "Not replayed: correct Policy, Context window." in text
