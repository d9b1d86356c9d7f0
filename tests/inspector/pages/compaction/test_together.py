"""Compactions beside one another: the figures are those of their own pages, and what is wrong is a sentence."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

import pytest

from guard_core.bridge import recorded_bridge
from inspector.replays.analysis import analyse
from inspector.replays.choice import Choice


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


def test_a_recorded_compaction_is_compared_with_a_replayed_one(client, coding):
    url = coding.get_absolute_url()
    text = shown(client, f"{url}c/1/compare?window=60000&with=replayed/1")
    assert "B: Replayed compaction 1" in text
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
        ("with=recorded/1", "Compaction 1 is compared already."),
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
