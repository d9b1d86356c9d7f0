"""Where ContextGuard splits contents: the original's walk, without looking at each content of a long tool chain."""

import random

import pytest

from guard_core.ledger import Ledger
from guard_core.policies.contextguard.contents import Contents, costs_of
from guard_core.policies.contextguard.settings import profile_settings
from guard_core.policies.contextguard.splits import is_call, is_result, safe_split
from guard_core.views import Span, Synthetic, content_count
from tests.builders import model, session, tool_call, tool_result, user


def walked(contents, index):
    """The original's walk, content by content."""
    if index <= 0 or index >= len(contents):
        return index

    def is_chained(place):
        flags = contents.flags(place)
        return is_result(flags) or is_call(flags)

    split = index
    while split > 0 and is_chained(split):
        split -= 1
    if split <= 0:
        split = index
        while split < len(contents) and is_chained(split):
            split += 1
            if is_result(contents.flags(split - 1)):
                break
    return max(1, min(split, len(contents) - 1))


def some_contents(dice, size=40):
    """A view of a log of chains and words in any order, with written messages between its spans."""
    kinds = [tool_call("read", "c"), tool_result("y", "read", "c"), user("u"), model("m")]
    events = [kinds[dice.choices(range(4), (6, 6, 1, 1))[0]] for _ in range(size)]
    edges = sorted(dice.sample(range(size + 1), 4))
    summary = Synthetic("summary", 10)
    view = [(Span(0, size),), (summary, Span(edges[1], size)), (Span(edges[0], edges[1]), summary, Span(*edges[2:]))]
    return Contents(dice.choice(view), costs_of(Ledger.of(session(*events)), profile_settings()))


@pytest.mark.parametrize("seed", range(60))
def test_a_split_is_where_the_original_walks_to(seed):
    contents = some_contents(random.Random(seed))
    places = range(-1, content_count(contents.view) + 2)
    assert [safe_split(contents, place) for place in places] == [walked(contents, place) for place in places]


class CountedContents(Contents):
    """Contents that count how often they are looked at."""

    looks = 0

    def flags(self, index):
        type(self).looks += 1
        return super().flags(index)


def test_a_long_tool_chain_is_not_walked_content_by_content():
    pairs = [event for _ in range(2_000) for event in (tool_call("read", "c"), tool_result("y", "read", "c"))]
    ledger = Ledger.of(session(user("q"), *pairs))
    contents = CountedContents((Span(0, ledger.event_count),), costs_of(ledger, profile_settings()))
    assert safe_split(contents, 3_000) == 3_001
    assert 0 < CountedContents.looks < 5
