"""The estimator page: it waits for the job, then every number is there with its source."""

import re
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django_tasks_db.models import DBTaskResult

from guard_core.estimation.comparison import GIVENS
from guard_core.estimation.forecast import forecast
from guard_core.estimation.measurement import interpolate
from inspector.jobs import estimating
from inspector.pages.shared.numbers import percent, signed_percent
from inspector.storage import estimates, loading
from tests.builders import model, session, user
from tests.inspector.conftest import as_displayed
from tests.inspector.pages.conftest import stored_sample


def finish():
    while estimating.pending().exists():
        DBTaskResult.objects.all().delete()
        estimating.TOKEN_COUNTS.run("test")


def address(row, name="session_estimator"):
    return reverse(name, args=[row.pk])


@pytest.fixture(scope="module")
def counted(django_db_setup, django_db_blocker):
    """The key of a session, its ledger, and its page once its texts are counted; none of it stays in the database."""
    with django_db_blocker.unblock(), transaction.atomic():
        row = stored_sample("long-coding", title="long coding")
        finish()
        pages = [as_displayed(Client().get(address(row) + query).content).decode() for query in ("", "?table=1")]
        shown = SimpleNamespace(pk=row.pk, ledger=loading.load_ledger(row), html=pages[0], table=pages[1])
        transaction.set_rollback(True)
    return shown


@pytest.fixture
def small(db):
    """10 steps, one compaction."""
    return stored_sample("small-window")


@pytest.fixture
def html(counted):
    return counted.html


def test_until_the_job_is_through_it_says_so_and_asks_again(client, coding):
    html = client.get(address(coding)).content.decode()
    assert "counting …" in html
    assert 'hx-trigger="load delay:1s"' in html
    assert DBTaskResult.objects.filter(queue_name="count_tokens").count() == 1


def test_it_shows_the_forecast_first_with_a_link_to_the_worst_call(html, counted):
    errors = forecast(counted.ledger)
    for name, words in (
        ("1", "1 call ahead"),
        ("10", "10 calls ahead"),
        ("compaction", "first call after a compaction"),
    ):
        row = html.partition(words)[2].partition("</tr>")[0]
        assert percent(errors[name].mape, 1, 2) in row
        assert f"{reverse('session_steps', args=[counted.pk])}?at={errors[name].worst_step + 1}" in row
    assert html.index("Forecast from the past") < html.index("Interpolation between known neighbours")
    assert "hx-trigger" not in html.partition('id="estimator"')[2].partition(">")[0]


def test_the_interpolation_is_called_so_and_says_what_it_measures(html, counted):
    measurement = interpolate(counted.ledger)
    assert percent(measurement.overall.mape, 1, 2) in html
    assert "95 % of such predictions lie between two known counts" in html
    assert f"In this session that is {percent(measurement.between, 1)} of them." in html


def test_it_compares_estimators_on_the_same_calls(html):
    for name in ("chars/4", "bytes/4", "o200k_base", "cl100k_base", "heuristic", "calibrated", "after tool results"):
        assert f">{name} <" in html or f">{name}<" in html
    for source in ("provider", "modelled", "recomputed"):
        assert f'data-source="{source}"' in html


def test_each_estimator_stands_under_what_it_is_given(html):
    alone, first, before = (html.index(f">{name}</th>") for name in GIVENS)
    assert alone < html.index(">heuristic <") < first < before < html.index(">calibrated <")


def test_a_ratio_that_nothing_measured_is_called_assumed(html):
    rows = {row.partition("</th>")[0]: row.partition("</tr>")[0] for row in html.split('<th scope="row">')}
    assert 'data-source="assumed"' in rows["media"]
    assert 'data-source="modelled"' in rows["tool results"]


def test_it_begins_with_a_sentence_and_a_histogram_and_folds_the_long_tables(html, counted):
    ahead = forecast(counted.ledger)["1"]
    assert f"mean error of {percent(ahead.mape, 1, 2)} ({ahead.calls} calls" in html
    places = [html.index(words) for words in ("verdict-sentence", "histogram-title", "scatter-title", "bias-title")]
    assert places == sorted(places)
    bars = html.partition("histogram-title")[2].partition("</section>")[0]
    calls = re.findall(r"<td class=\"num\">([\d,]+)</td>", bars)
    assert sum(int(count.replace(",", "")) for count in calls) == int((counted.ledger.steps["prompt_tokens"] > 0).sum())
    folded = html.partition("<details")[2]
    assert "Interpolation between known neighbours" in folded
    assert "Forecast from the past" not in folded


def test_the_figure_can_be_read_as_a_table(counted):
    assert counted.table.count("<tr>") > 50
    assert "steps?at=1" in counted.table


def test_a_part_carries_no_script_and_its_figure_can_be_fetched(client, small, part_of):
    finish()
    html = part_of(address(small), "estimator").content.decode()
    assert "<script" not in html
    assert "estimator/figure.json" in html
    assert len(client.get(address(small, "estimator_figure")).json()["data"][-1]["customdata"]) > 0


def test_a_session_without_usage_says_so(client, store):
    row = store(session(user("a question"), model("an answer"), reported=False))
    finish()
    html = client.get(address(row)).content.decode()
    assert "No call in this file has the provider&#x27;s count of prompt tokens" in html
    assert "o200k_base" in html


def test_an_overhead_that_only_a_recorded_total_gives_says_so(client, store):
    totals = {"prompt_tokens_total": 90_000, "total_calls": 1}
    row = store(session(user("a question"), model("an answer"), reported=False, **totals))
    finish()
    html = client.get(address(row)).content.decode()
    overhead = html[html.index("overhead of every request") :].partition("</dd>")[0]
    assert 'data-source="modelled"' in overhead
    assert "average what the recorded total gives per call" in overhead


def test_the_steps_show_the_count_of_each_message_once_it_is_known(client, small):
    steps = reverse("session_steps", args=[small.pk])
    assert "o200k <b>" not in client.get(steps).content.decode()
    finish()
    first = estimates.load_counts(small)["o200k"][0]
    assert f"o200k <b>{first:,}</b>" in client.get(steps).content.decode()


def test_the_bias_of_the_overview_is_explained_with_its_sums(client, coding):
    html = client.get(address(coding)).content.decode()
    tile = next(kpi for kpi in client.get(coding.get_absolute_url()).context["kpis"] if kpi["name"] == "estimator bias")
    section = html.partition('id="bias-title"')[2].partition("</section>")[0]
    sums = [int(number.replace(",", "")) for number in re.findall(r"[\d,]{5,}(?= tokens| is|\.)", section)]
    estimated, recorded = sums[0], sums[-1]
    assert tile["value"] in section
    assert signed_percent(estimated / recorded - 1) == tile["value"]
    assert f"{address(coding)}#bias-title" in client.get(coding.get_absolute_url()).content.decode()


def test_an_error_that_rounds_to_nothing_has_no_direction():
    assert [signed_percent(ratio, 2) for ratio in (-0.00001, 0.0, 0.00001, -0.0001)] == [
        "±0.00\u00a0%",
        "±0.00\u00a0%",
        "±0.00\u00a0%",
        "−0.01\u00a0%",
    ]
