"""The difference of two requests, and the mark that it begins with."""

import re

import pytest

from tests.inspector.conftest import PageClient


def test_a_step_can_be_marked_and_the_mark_stays_in_the_links(client: PageClient, gap):
    steps = gap.get_absolute_url() + "steps"
    page = client.get(steps + "?at=10").content.decode()
    assert f'data-key="m" title="Mark this step as A (m)" hx-boost="false" href="{steps}?at=10&amp;a=10"' in page
    later = client.get(steps + "?at=20&a=10").content.decode()
    assert f'href="{steps}?at=21&amp;a=10"' in later
    assert f"{gap.get_absolute_url()}difference?a=10&amp;b=20" in later


def bare(client, address: str) -> str:
    """A page whose cells have no attributes."""
    return re.sub(r"<(t[hd])\b[^>]*>", r"<\1>", client.get(address).content.decode())


def test_a_request_that_only_grew_has_messages_added_and_none_removed(client, gap):
    page = bare(client, gap.get_absolute_url() + "difference?a=10&b=20")
    sums = dict(re.findall(r"<th>(\w+)</th><td>all</td><td>([\d,]+)</td>", page))
    assert sums == {"added": "20", "removed": "0", "rewritten": "0", "kept": "19"}


def test_a_compaction_between_two_requests_removes_messages(client, gap):
    page = bare(client, gap.get_absolute_url() + "difference?a=48&b=51")
    removed = re.search(r"<th>removed</th><td>all</td><td>([\d,]+)</td>", page)
    assert int(removed[1]) > 50


def test_the_same_step_twice_differs_in_nothing(client, gap):
    page = client.get(gap.get_absolute_url() + "difference?a=30&b=30").content.decode()
    assert "±0 prompt tokens" in page


@pytest.mark.parametrize("address", ["difference?a=10&b=20", "difference?a=48&b=51", "context?at=51"])
def test_the_columns_of_a_difference_add_up_to_the_requests(client, gap, address):
    page = bare(client, gap.get_absolute_url() + address)
    cell = "<td>(−?[\\d,]+)</td>"
    rows = re.findall(f"<th>([a-z ]+)</th><td>[^<]*</td><td>[\\d,]*</td>{cell}{cell}", page)
    names, before, after = zip(*((name, number(one), number(two)) for name, one, two in rows), strict=True)
    assert names == ("added", "removed", "rewritten", "kept", "in no message", "the request")
    assert sum(before[:-1]) == before[-1]
    assert sum(after[:-1]) == after[-1]
    if "a=" in address:
        assert f">{before[-1]:,}</span> prompt tokens" in page
        assert f">{after[-1]:,}</span> prompt tokens" in page


def number(text: str) -> int:
    return int(text.replace(",", "").replace("−", "-"))
