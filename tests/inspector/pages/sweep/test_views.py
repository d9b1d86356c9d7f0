"""Sweeps in the browser: the form, the jobs, the heat map as a table, links to replays, downloads."""

import csv
import html
import io
import json
import re
from datetime import timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone
from msgspec.structs import replace

from guard_core.policies import POLICIES
from guard_core.sweep import MEASURES
from inspector.jobs import queue, recovery
from inspector.jobs.leased import MAX_ATTEMPTS
from inspector.models import Project, Recording, Session, Sweep, SweepSlice, default_project
from inspector.pages.library import tagging
from inspector.pages.sweep import presenter, runs
from inspector.pages.sweep.heat import colour
from inspector.pages.sweep.question import Question, parse_question
from inspector.pages.sweep.runs import SWEEP_SLICES, answer_of, progress_of, run_slice
from inspector.pages.sweep.views import MOST_SESSIONS
from inspector.replays.analysis import analyse
from inspector.replays.choice import parse_choice
from inspector.storage import deleting
from tests.builders import model, session, user
from tests.guard_core.outcomes.cast import counted
from tests.inspector.pages.conftest import stored

pytestmark = pytest.mark.django_db
FORM = {"policy": "contextguard", "axis1": "buffer", "values1": "500, 3000, 6k", "axis2": "cap", "values2": "2:5:3"}

SLIDING = {"policy": "strands-sliding-window", "axis2": "", "values2": ""}


def talk(turns: int, size: int, title: str) -> Session:
    events = [item for n in range(turns) for item in (user(f"{n} " + "x" * size), model("y" * 400))]
    return stored(session(*events, title=title, model="gpt-4o", window=20_000), title=title)


@pytest.fixture
def two(db) -> list[Session]:
    return [talk(30, 4_000, "first"), talk(24, 5_000, "second")]


def work() -> None:
    """What waits, done as a worker would."""
    while (row := SweepSlice.unscoped.filter(state="received").first()) is not None:
        run_slice(str(row.pk), store_every=0.0)


def started(client, **changes) -> Sweep:
    response = client.post("/sweeps/new", {**FORM, **changes})
    assert response.status_code == 302, re.findall(r'field-error"[^>]*>([^<]*)', response.content.decode())
    return Sweep.objects.of(default_project()).latest("created")


def test_more_sessions_than_a_sweep_takes_are_counted_and_not_loaded(client, django_assert_max_num_queries):
    project, many = default_project(), range(MOST_SESSIONS + 1)
    recordings = Recording.objects.of(project).bulk_create(
        Recording(sha256=f"{number:064}", name=f"{number}.jsonl", size=1) for number in many
    )
    rows = (Session(recording=row, title="t", calls=1, events=0, window=1_000, turns=0) for row in recordings)
    Session.objects.of(project).bulk_create(rows)
    with django_assert_max_num_queries(40) as captured:
        answer = client.post("/sweeps/new", FORM)
    assert answer.status_code == 422
    assert "501 sessions match; at most 500 are swept together" in answer.content.decode()
    assert not any('"verdict"' in query["sql"] for query in captured.captured_queries)


def test_an_empty_list_offers_the_first_sweep(client):
    page = client.get("/sweeps/").content.decode()
    assert "No sweeps yet" in page
    assert 'href="/sweeps/new"' in page


def test_a_sweep_is_played_and_recommends_with_both_directions_of_the_check(client, two):
    sweep = started(client)
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert "0 of 12 replays" in page
    work()
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert page.count("Chosen on 1 session") == 2
    answer = answer_of(sweep)
    assert presenter.recommendation(answer)["sentence"].split(":", 1)[1].strip() in page.replace("&#x27;", "'")
    assert [item["name"] for item in presenter.rows(presenter.heat(answer, MEASURES["peak"]))] == ["2", "5"]


def test_every_cell_opens_a_replay_with_the_figures_of_the_cell(client, two):
    sweep = started(client, session=str(two[0].pk))
    work()
    answer = answer_of(sweep)
    assert any(cell.compactions for cell in answer.result.cells)
    assert len({cell.peak for cell in answer.result.cells}) > 1
    for cell in answer.result.cells:
        address = presenter.link(answer, cell)
        assert client.get(address).status_code == 200
        choice, errors = parse_choice(QueryDict(address.partition("?")[2]).dict())
        assert errors == {}
        trace = analyse(two[0], choice).replayed
        assert len(trace.compactions) == cell.compactions
        assert int(trace.columns["modelled_prompt_tokens"].max()) == cell.peak
        assert int(trace.columns["overflow"].sum()) == cell.overflow_steps


def test_a_cell_of_a_profile_opens_the_session_in_that_profile_and_not_in_that_of_the_agents_version(client, db):
    old = replace(counted((9_000, 20_000)), format="claude-code", versions=((0, "2.1.14"),))
    profiles = POLICIES["claude-code"].profile_names
    axis = {"axis1": "profile", "values1": ",".join(profiles), "axis2": "", "values2": ""}
    sweep = started(client, session=str(stored(old).pk), policy="claude-code", **axis)
    work()
    answer = answer_of(sweep)
    for cell, profile in zip(answer.result.cells, profiles, strict=True):
        shown = client.get(presenter.link(answer, cell)).text
        assert f"Replayed under Claude Code, profile {profile}" in shown


def test_sessions_with_one_title_are_told_apart_by_what_else_is_known_of_them(client, db):
    talk(30, 4_000, "one task")
    deleted = talk(24, 5_000, "one task")
    sweep = started(client)
    work()
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert "gpt-4o, 30 calls, added " in page
    assert "gpt-4o, 24 calls, added " in page
    Session.objects.of(default_project()).filter(pk=deleted.pk).update(deleted=timezone.now())
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert "24 calls" not in page
    assert page.count(">one task<") == 2


def test_one_recording_says_that_it_cannot_be_checked(client, two):
    sweep = started(client, session=str(two[0].pk))
    work()
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert "cannot be checked on others" in page


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ("2.1, 2.2, 2.3", "2 other settings with the same result: buffer=500, cap=2.2; buffer=500, cap=2.3."),
        ("2.1:2.8:0.1", "cap=2.5; buffer=500, cap=2.6; and 2 more."),
    ],
)
def test_settings_with_the_same_result_are_told_apart(client, two, caps, words):
    sweep = started(client, values1="500", values2=caps)
    work()
    assert words in client.get(sweep.get_absolute_url()).text


def test_cost_and_dropped_requests_are_shown_where_they_were_asked_for(client, two):
    sweep = started(client, figure="cost", values1="500, 6k", axis2="", values2="")
    work()
    page = client.get(sweep.get_absolute_url() + "?figure=requests").content.decode()
    assert "User requests dropped" in page
    plain = started(client, values1="500, 6k", axis2="", values2="")
    work()
    assert "figure=cost" in page
    assert "figure=cost" not in client.get(plain.get_absolute_url()).content.decode()


def test_rules_that_are_gone_and_results_read_again_are_figures_of_their_own(client, db):
    """The rule is in the first message, which the smaller window drops and the larger one keeps."""
    rule = user("Never touch the folder vendor, and do not edit generated files. " + "x" * 4_000)
    talking = [item for n in range(29) for item in (user(f"{n} " + "x" * 4_000), model("y" * 400))]
    stored(session(rule, model("ok"), *talking, title="ruled", model="gpt-4o", window=20_000), title="ruled")
    sweep = started(client, figure="instructions", axis1="window", values1="20k,100k", axis2="", values2="")
    work()
    cells = answer_of(sweep).result.cells
    assert [cell.values["window"] for cell in cells] == [20_000, 100_000]
    assert cells[0].rules_gone > cells[1].rules_gone == 0
    assert [cell.read_again for cell in cells] == [0, 0]
    page = client.get(sweep.get_absolute_url() + "?figure=instructions").content.decode()
    assert "Stated rules whose message the last request lacks" in page
    assert "0 stated rules whose message the last request lacks" in page


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values1": "9:1:1"}, "A range is written FROM:TO:STEP"),
        ({"values1": ""}, "The values are a range such as"),
        ({"axis1": ""}, "Choose what this axis varies."),
        ({"axis2": ""}, "Choose what this axis varies, or empty its values."),
        ({"axis1": "colour"}, "has no setting &#x27;colour&#x27;"),
        ({"values2": "-1"}, "a number from"),
        ({"window": "tiny"}, "a number of tokens such as 200000"),
        ({"settings": "buffer"}, "written name=value"),
        ({"settings": "cap=3"}, "is an axis and cannot have a fixed value too"),
        ({"axis2": "buffer"}, "both axes vary"),
        ({"profile": "tail"}, "Factor cap (cap) has no effect in profile tail."),
        ({"settings": "max_turns=3"}, "(max_turns) has no effect in profile current."),
        ({"policy": "goose", "axis2": "profile", "values2": "x", "axis1": "threshold"}, "Goose has no profiles."),
        (
            {**SLIDING, "axis1": "compression_threshold", "values1": "50%"},
            "Share of the window (compression_threshold) has no effect while Act before a call (proactive) is off",
        ),
        ({**SLIDING, "axis1": "window_size", "settings": "compression_threshold=0.5"}, "is off: fix that, too."),
        ({"policy": "nothing"}, "no policy"),
        ({"figure": "beauty"}, "no figure"),
        ({"values1": "1:2600:1", "axis2": "", "values2": ""}, "at most 2,500 are allowed"),
        ({"tag": "unknown"}, "No session with a model call matches"),
        ({"session": "x"}, "There is no such session"),
    ],
)
def test_what_is_not_allowed_is_said_beside_its_field_and_starts_nothing(client, two, changes, words):
    response = client.post("/sweeps/new", {**FORM, **changes})
    assert response.status_code == 422
    assert words.lower() in response.content.decode().lower()
    assert not Sweep.unscoped.exists()


def test_a_form_that_has_no_session_yet_says_what_to_do_and_shows_no_error(client, db):
    page = client.get("/sweeps/new").content.decode()
    assert "There is no session with a model call yet: import a recording" in page
    assert "notice-error" not in page


def test_another_policy_brings_its_own_settings_into_the_form(client, two):
    page = client.get("/sweeps/new", {**FORM, "policy": "codex", "policy_before": "contextguard"}).content.decode()
    assert 'value="buffer" selected' not in page
    assert re.search(r'<option value="codex" selected', page)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": "proactive=yes"},
        {"axis2": "proactive", "values2": "yes, no"},
        {"policy": "opencode", "axis1": "prune_protect", "values1": "10k,20k"},  # a recording may turn it on
        {"policy": "contextguard", "axis1": "cap", "values1": "5", "axis2": "profile", "values2": "tail,early"},
    ],
)
def test_a_setting_may_be_swept_where_it_can_have_an_effect(client, two, changes):
    assert started(client, **(SLIDING | {"axis1": "compression_threshold", "values1": "0.5"} | changes))


def options(page: str, axis: int) -> list[str]:
    menu = re.search(f'<select[^>]*name="axis{axis}".*?</select>', page, re.DOTALL)[0]
    return re.findall('<option value="([a-z_]+)"', menu)


def test_the_form_says_which_profile_is_replayed_where_none_is_chosen(client, two):
    page = html.unescape(client.get("/sweeps/new", {"policy": "claude-code"}).text)
    assert '<option value="">that of the agent\'s version, else from-2.1.310</option>' in page


def test_only_settings_that_have_an_effect_in_the_profile_are_offered(client, two):
    assert "max_turns" not in options(client.get("/sweeps/new").text, 1)
    changed = {**FORM, "profile": "tail", "policy_before": "contextguard"}
    page = client.get("/sweeps/new", changed).text
    assert not {"cap", "floor", "default_factor"} & set(options(page, 1) + options(page, 2))
    assert 'value="cap" selected' not in page
    sliding = client.get("/sweeps/new?policy=strands-sliding-window").text
    assert "Share of the window (needs act before a call)" in sliding
    assert "profile" not in options(sliding, 1)
    kept = client.get("/sweeps/new", FORM | {"policy_before": "contextguard", "profile": "early", "values1": "1k"}).text
    assert re.search('value="1k"', kept), "what was typed stays where it has an effect"


def test_policies_can_be_an_axis(client, two):
    sweep = started(client, axis1="policy", values1="none, contextguard, codex", axis2="window", values2="15k,30k")
    work()
    answer = answer_of(sweep)
    assert len(answer.result.cells) == 6
    assert answer.left_out == ()
    assert client.get(presenter.link(answer, answer.result.cells[-1])).status_code == 200


def test_a_filter_of_the_library_chooses_the_sessions(client, two):
    tagging.tag(default_project(), Session.objects.row(two[1]), ["long"])
    assert "1 session of 1 recording" in client.get("/sweeps/new?tag=long").content.decode()
    sweep = started(client, tag="long")
    assert [row.title for row in runs.slices_of(sweep)] == ["second"]


def test_a_cancelled_sweep_stores_nothing_more(client, two):
    sweep = started(client)
    client.post(f"/sweeps/{sweep.pk}/cancel")
    work()
    assert {row.state for row in runs.slices_of(sweep)} == {"cancelled"}
    assert "Cancelled after 0 of 12 replays" in client.get(sweep.get_absolute_url()).content.decode()
    assert client.get(f"/sweeps/{sweep.pk}/sweep.csv").status_code == 404


def test_a_worker_notices_a_cancel_in_the_middle(client, two):
    sweep = started(client)
    row = runs.slices_of(sweep).first()
    lease = SWEEP_SLICES.take(str(row.pk))
    runs.cancel(sweep)
    assert not SWEEP_SLICES.held(row.pk, lease).update(done=3)


def test_another_worker_goes_on_where_a_dead_one_stored_its_last_settings(client, two):
    sweep = started(client, session=str(two[0].pk))
    (row,) = runs.slices_of(sweep)
    run_slice(str(row.pk))
    whole = runs.unpacked(bytes(runs.slices_of(sweep).get().result))
    part = runs.SliceResult(whole.window, whole.steps, whole.figures[:2])
    late = timezone.now() - timedelta(seconds=16)
    rows = SweepSlice.unscoped.filter(pk=row.pk)
    rows.update(state="running", lease="dead", heartbeat=late, attempts=1, done=2, result=runs.packed(part))
    assert SWEEP_SLICES.recover() == 1
    assert rows.get().state == "received"
    assert progress_of(sweep).done == 2
    run_slice(str(row.pk))
    assert runs.unpacked(bytes(rows.get().result)) == whole
    rows.update(state="running", lease="dead", heartbeat=late, attempts=MAX_ATTEMPTS)
    SWEEP_SLICES.recover()
    assert rows.get().state == "failed"


def test_a_slice_makes_way_for_a_job_that_goes_first(client, two):
    sweep = started(client, session=str(two[0].pk))
    (row,) = runs.slices_of(sweep)
    queue.enqueue("import_recording", "somebody's")
    run_slice(str(row.pk), block=2)
    row.refresh_from_db()
    assert (row.state, row.done, row.attempts) == ("received", 2, 0)
    assert queue.entries(SWEEP_SLICES.kind).filter(status="READY").count() == 2


def test_a_session_that_was_deleted_is_left_out_with_the_reason(client, two):
    sweep = started(client)
    Session.objects.row(two[0]).update(deleted=timezone.now())
    work()
    answer = answer_of(sweep)
    assert answer.left_out == (("first", "The session was deleted before it was replayed."),)
    assert "The session was deleted before it was replayed" in client.get(sweep.get_absolute_url()).content.decode()


def test_a_sweep_of_deleted_sessions_alone_says_so(client, two):
    sweep = started(client, session=str(two[0].pk))
    Session.objects.row(two[0]).update(deleted=timezone.now())
    work()
    assert "No session could be replayed" in client.get(sweep.get_absolute_url()).content.decode()


def test_downloads_hold_every_setting_and_no_formula(client, two):
    sweep = started(client)
    work()
    lines = list(csv.reader(io.StringIO(client.get(f"/sweeps/{sweep.pk}/sweep.csv").content.decode())))
    assert lines[0][:3] == ["buffer", "cap", "sessions"]
    assert len(lines) == 7
    assert sum(line[-2] == "yes" for line in lines) == 1
    body = json.loads(client.get(f"/sweeps/{sweep.pk}/sweep.json").content)
    assert len(body["cells"]) == 6
    assert body["recommended"] == answer_of(sweep).result.cells[answer_of(sweep).result.recommended].values


def test_a_deleted_sweep_is_nowhere_and_comes_back_by_an_undo(client, two):
    sweep = started(client)
    work()
    answer = client.post(f"/sweeps/{sweep.pk}/delete")
    shown = client.get(answer["Location"])
    assert sweep.name in html.unescape(shown.text)
    assert ">Undo<" in shown.text
    for address in (sweep.get_absolute_url(), f"/sweeps/{sweep.pk}/sweep.csv", f"/api/v1/sweeps/{sweep.pk}"):
        assert client.get(address).status_code == 404
    assert client.get("/api/v1/sweeps").json()["sweeps"] == []
    client.post("/sweeps/restore", {"undo": shown.context["undo"]})
    assert "Recommended" in client.get(sweep.get_absolute_url()).text
    assert client.post("/sweeps/restore", {"undo": "x"}).status_code == 302


def test_a_deleted_sweep_ends_and_is_gone_after_a_day(client, two):
    sweep = started(client)
    client.post(f"/sweeps/{sweep.pk}/delete")
    assert {row.state for row in SweepSlice.unscoped.all()} == {"cancelled"}
    deleting.purge(timezone.now() - deleting.UNDO_FOR)
    assert Sweep.unscoped.filter(pk=sweep.pk).exists()
    deleting.purge(timezone.now() + timedelta(seconds=1))
    assert not Sweep.unscoped.exists()


def test_the_sweeps_of_another_project_are_not_there(client, two):
    other = Project.objects.create(slug="other", name="Other")
    question = Question("contextguard", "", 0, (("buffer", "1k"),))
    theirs = runs.start(other, question, [])
    for address in ("", "sweep.csv", "sweep.json"):
        assert client.get(f"/sweeps/{theirs.pk}/{address}").status_code == 404
    for address in ("cancel", "delete"):
        assert client.post(f"/sweeps/{theirs.pk}/{address}").status_code == 404
    assert "No sweeps yet" in client.get("/sweeps/").content.decode()


def test_a_worker_that_is_asked_to_end_hands_its_slice_back(client, two):
    sweep = started(client, session=str(two[0].pk))
    (row,) = runs.slices_of(sweep)
    SWEEP_SLICES.take(str(row.pk))
    recovery.hand_back(str(row.pk))
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("received", 0)


def test_a_title_is_only_ever_text(client, db):
    row = talk(12, 4_000, "<script>alert(1)</script>")
    sweep = started(client, session=str(row.pk))
    work()
    page = client.get(sweep.get_absolute_url()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_question_is_read_as_it_was_typed():
    question, errors = parse_question(FORM, 1)
    assert errors == {}
    assert question.words() == "ContextGuard: buffer 500, 3000, 6k by cap 2:5:3"
    assert [point["cap"] for point in question.points[:2]] == [2, 5]


def test_each_setting_is_on_the_page_once_in_the_heat_map(client, two):
    sweep = started(client)
    work()
    for headers in ({}, {"HX-Request": "true", "HX-Target": "sweep"}):
        page = client.get(sweep.get_absolute_url(), headers=headers).content.decode()
        heat = page[page.index('class="heat-table"') : page.index("</table>")]
        assert heat.count("<td class=") == len(parse_question(FORM, 1)[0].points)
        assert "data-figure" not in page


@pytest.mark.parametrize("share", [0, 0.25, 0.45, 0.5, 0.55, 0.75, 1])
def test_text_on_every_colour_has_contrast(share):
    def luminance(channels):
        return sum(
            weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
            for weight, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True)
        )

    shade, is_black = colour(share)
    behind = luminance([float(value) / 255 for value in re.findall(r"[\d.]+", shade)])
    ratio = (behind + 0.05) / 0.05 if is_black else 1.05 / (behind + 0.05)
    assert ratio >= 4.5


def test_what_an_address_asks_wrongly_is_said_beside_its_field(client, two):
    text = html.unescape(client.get("/sweeps/new?window=many&settings=loud").content.decode())
    assert "A window is a number of tokens such as 200000, 200k or 1M, not 'many'." in text
    assert 'value="many"' in text
    assert text.count('aria-invalid="true"') == 2
    assert "aria-invalid" not in client.get("/sweeps/new").content.decode()
