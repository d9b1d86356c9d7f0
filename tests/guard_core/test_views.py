"""A view becomes the messages it stands for."""

import pytest

from guard_core.costs import EVENT_COLUMNS, event_columns
from guard_core.ledger import Ledger
from guard_core.requests import materialise, synthetic_text
from guard_core.views import Rewritten, Span, Synthetic, content_count
from tests.builders import bundled, tool_result, user


def test_spans_and_synthetic_messages_become_events(tool_heavy):
    view = (Synthetic("summary", 5, "hello"), Span(2, 4), Rewritten(4, user("cut"), "pruned"))
    messages = materialise(view, tool_heavy)
    assert len(messages) == content_count(view) == 4
    assert messages[0].parts[0].text == "hello"
    assert messages[1:3] == tool_heavy.events[2:4]
    assert messages[3] == user("cut")


@pytest.mark.parametrize("size", [0, 3, 60, 5_000])
def test_a_size_without_text_keeps_its_size(size):
    assert len(synthetic_text(Synthetic("summary", size))) == size


def test_inserted_messages_are_those_of_their_compaction():
    session = bundled("long-coding")
    ledger = Ledger.of(session)
    for step in range(len(session.calls)):
        view, epoch = ledger.recorded_view(step)
        messages = materialise(view, session, epoch)
        assert sum(event_columns(item)["bytes"] for item in messages) == ledger.price(view, "bytes", epoch=epoch)


def test_a_priced_view_costs_what_its_messages_cost(tool_heavy):
    view = (Synthetic("summary", 700), Span(3, 11), Rewritten(12, tool_result("gone"), "pruned"))
    ledger = Ledger.of(tool_heavy)
    for name in ("text_tokens", "bytes", "chars", "inline_tokens"):
        assert name in EVENT_COLUMNS
        assert ledger.price(view, name) == sum(event_columns(item)[name] for item in materialise(view, tool_heavy))
