"""Compactions beside one another: the figures are those of their own pages, and what is wrong is a sentence."""

from __future__ import annotations

import csv
import html
import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from guard_core.bridge import recorded_bridge
from guard_core.outcomes.words import dollars
from guard_core.sessions import ModelCall
from inspector.models import Share
from inspector.replays.analysis import analyse
from inspector.replays.choice import Choice
from tests.builders import model, session, user
from tests.guard_core.findings.cases import compaction
from tests.inspector.pages.share.tools import published


def shown(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def cells(text: str, name: str) -> list[str]:
    """The cells of a row of the table of figures."""
    row = re.search(rf"<tr>\s*<th scope=\"row\">{re.escape(name)}</th>(.*?)</tr>", text, re.S)
    assert row, name
    return re.findall(r">([^<]*)</td>", row[1])


@pytest.fixture
def path(coding: Any) -> str:
    return f"{coding.get_absolute_url()}c/1/compare"


def test_the_figures_are_those_of_each_compaction_with_the_difference_to_the_first(client, coding, path):
    text = shown(client, f"{path}?with=recorded/2&with=recorded/3")
    analysis = analyse(coding, Choice())
    bridges = [
        recorded_bridge(analysis.ledger, analysis.attribution, analysis.observed, item.place)
        for item in analysis.facts.counts.compactions[:3]
    ]
    for name, values in (
        ("request without it, tokens", [bridge.uncompacted for bridge in bridges]),
        ("first request after, tokens", [bridge.total("after") for bridge in bridges]),
    ):
        first, *others = values
        expected = [f"{first:,}"]
        for value in others:
            difference = f"{value - first:+,}".replace("-", "−") if value != first else "±0"
            expected += [f"{value:,}", difference]
        assert cells(text, name) == expected
    prices = [price.saved for price in analysis.recorded_payback[:3]]
    assert len(set(prices)) > 1
    assert len(cells(text, "saved since")) == 5
    assert "A: what it inserted" in text
    assert "C: what it inserted" in text


@pytest.mark.parametrize("query", ["with=recorded/2", "with=replayed/1&window=60000"])
def test_each_column_of_tokens_adds_up_to_the_first_request_after(client, coding, path, query):
    figures = json.loads(client.get(f"{path}?{query}&format=json").content)["compactions"]
    assert len(figures) == 2
    for figure in (one["figures"] for one in figures):
        removed = sum(value for name, value in figure.items() if name.startswith("removed: "))
        changed = figure["inserted, tokens"] + figure["not explained by the file, tokens"] - removed
        assert figure["request without it, tokens"] + changed == figure["first request after, tokens"]


def test_a_share_is_compared_in_points(client, coding, path):
    first, other, difference = cells(shown(client, f"{path}?with=recorded/2"), "remaining, of the request without it")
    assert first != other
    assert re.fullmatch(r"[+−][\d.]+ points", difference)


def test_a_recorded_compaction_is_compared_with_a_replayed_one(client, coding):
    url = coding.get_absolute_url()
    text = shown(client, f"{url}c/1/compare?window=60000&with=replayed/1")
    assert "B: Replayed compaction 1" in text
    assert f"<title>Compare Compaction 1, Replayed compaction 1 – {coding.title} – " in text
    assert f'href="{url}c/1/?window=60000&side=replayed"' in text


def test_one_of_another_session_is_named_by_the_address_of_its_page(client, gap, path):
    for text in (f"http://127.0.0.1:8000{gap.get_absolute_url()}c/1/?at=3", f"{gap.pk}/1"):
        page = shown(client, f"{path}?with={html.escape(text).replace('&', '%26').replace('?', '%3F')}")
        assert f'href="{gap.get_absolute_url()}c/1/">B: Compaction 1</a>' in page
        assert gap.title in page


def test_the_address_of_a_replayed_one_is_that_one_under_its_own_settings(client, coding, gap, path):
    for url in (gap.get_absolute_url(), coding.get_absolute_url()):
        address = f"{url}c/1/?window=100000&side=replayed"
        text = shown(client, f"{path}?with={quote(address)}")
        assert f'href="{address}">B: Replayed compaction 1</a>' in text
        assert f'value="{url.removeprefix("/s/").rstrip("/")}/1?window=100000&side=replayed"' in text
    wrong = quote(f"{gap.get_absolute_url()}c/1/?window=many&side=replayed")
    assert "B: " not in shown(client, f"{path}?with={wrong}")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("with=recorded/99", "The recording has 3 compactions, numbered from 1."),
        ("with=nonsense", "A compaction is named by the address of its page"),
        ("with=00000000-0000-0000-0000-000000000000/1", "There is no such session."),
        ("with=------------------------------------/1", "There is no such session."),
        ("with=recorded/1", "Compaction 1 is already compared."),
        ("with=recorded/2&with=recorded/3&with=recorded/1&with=recorded/2", "At most 4 are compared"),
    ],
)
def test_what_cannot_be_compared_is_said(client, path, query, sentence):
    assert sentence in shown(client, f"{path}?{query}")


def test_the_form_offers_the_other_compactions_of_the_session_and_the_page_of_a_compaction_leads_to_it(client, path):
    text = shown(client, path)
    assert re.findall(r'value="recorded/(\d+)"', text)[:2] == ["2", "3"]
    assert "Choose at least one other compaction." in text
    assert f'href="{path}">Compare</a>' in shown(client, path.removesuffix("compare"))


def test_a_compaction_that_is_not_there_is_not_compared(client, coding):
    assert client.get(f"{coding.get_absolute_url()}c/99/compare?with=recorded/1").status_code == 404


def test_the_files_have_the_figures_of_the_page(client, coding, path):
    page = shown(client, f"{path}?with=recorded/2")
    files = {form: client.get(f"{path}?with=recorded/2&format={form}") for form in ("csv", "json")}
    assert all("attachment" in answer["Content-Disposition"] for answer in files.values())
    head, *lines = csv.reader(files["csv"].text.splitlines())
    assert head[0] == "figure"
    assert head[2].startswith("B: Compaction 2, step ")
    values = {line[0]: line[1:] for line in lines}
    name = "removed: tool results, tokens"
    assert cells(page, name)[:2] == [f"{int(value):,}" for value in values[name]]
    saved = float(values["saved since, US dollars"][1])
    assert cells(page, "saved since")[1] == dollars(round(saved * 1e12))
    first, second = files["json"].json()["compactions"]
    assert (first["compaction"], second["compaction"], second["side"]) == (0, 1, "recorded")
    for compared, column in ((first, 0), (second, 1)):
        for name, value in compared["figures"].items():
            assert values[name][column] == ("" if value is None else str(value))
    assert cells(page, "remaining, of the request without it")[0].startswith(
        f"{100 * first['figures']['remaining, of the request without it, as a share']:.1f}"
    )
    assert {row["after"] for row in first["instructions"]} == set(
        re.findall(r'<td data-label="[^"]*"><span\s+class="badge[^"]*">([^<]*)</span></td>\s*<td', page)
    )


def test_a_replayed_one_is_named_with_its_settings_in_the_files(client, coding):
    path = f"{coding.get_absolute_url()}c/1/compare?window=60000&with=replayed/1&format="
    second = client.get(f"{path}json").json()["compactions"][1]
    assert (second["side"], second["settings"]) == ("replayed", {"window": "60000"})
    assert "ContextGuard" in client.get(f"{path}csv").text.splitlines()[0]


def test_the_comparison_is_shared_without_the_words_of_the_session(client, coding, path):
    page = html.unescape(client.get(f"{path}?with=recorded/2").text)
    address = re.search(r'href="([^"]*)">Share</a>', page)[1]
    assert client.get(address).status_code == 200
    form = {"level": "numbers", "lifetime": "1d", "title": "", "remarks": "Mind the second"}
    assert client.post(address, form).status_code == 302
    link = published(client, Share.unscoped.latest("created"))
    report = html.unescape(client.get(link).text)
    document = client.get(f"{link}report.json").json()
    assert report.count("A: Compaction 1, step ") == 2, "in the title of the page and in its heading"
    first, second = document["tables"][0]["rows"][-1][1:]
    assert f"A {100 * first:.1f} %, B {100 * second:.1f} %." in report
    assert "Mind the second" in report
    assert coding.title not in report
    figures, held = document["tables"]
    values = {row[0]: row[1:] for row in figures["rows"]}
    name = "removed: tool results, tokens"
    assert cells(page, name)[:2] == [f"{value:,}" for value in values[name]]
    badges = re.findall(r'<td data-label="[^"]*"><span\s+class="badge[^"]*">([^<]*)</span></td>', page)
    assert sum(sum(row[1:]) for row in held["rows"]) == len(badges)


@pytest.mark.parametrize("query", ["", "?with=recorded/99", "?with=nonsense"])
def test_a_comparison_of_one_is_not_shared(client, path, query):
    assert client.get(f"{path}/share{query}").status_code == 404
    assert client.get(f"{path}?format=csv{query.replace('?', '&')}")["Content-Type"].startswith("text/html")


def told(rules: range) -> Any:
    """A session with these rules of its user, all of which its compaction drops."""
    events = [user(f"Never rename column number {rule} of the billing tables.") for rule in rules]
    events += [model("working on it") for _ in range(4)]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in range(1, len(events)))
    return session(*events, calls=calls, compactions=(compaction(len(rules) + 1, summary="Half is done."),))


def test_of_many_lost_instructions_each_is_in_the_column_of_every_compaction_that_lost_it(client, store):
    few, many = store(told(range(40, 45))), store(told(range(10, 45)))
    text = shown(client, f"{few.get_absolute_url()}c/1/compare?with={many.pk}/1")
    rows = re.findall(r"Never rename column number 4\d of the billing tables\.</th>(.*?)</tr>", text, re.S)
    assert [re.findall(r"gone|–", row) for row in rows] == [["gone", "gone"]] * 5
