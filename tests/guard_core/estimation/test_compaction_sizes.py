"""Bytes of the segments of views."""

from guard_core.estimation.compaction_sizes import CompactionSizes
from guard_core.forms import CutToEnds
from guard_core.ledger import Ledger
from guard_core.views import Span
from tests.builders import session, tool_call, tool_result


def test_a_span_in_a_form_is_smaller_by_what_the_form_takes_from_its_own_events():
    sizes = (10, 900, 2_000)
    pairs = [event for size in sizes for event in (tool_call("read", "c"), tool_result("y" * size, "read", "c"))]
    ledger, form = Ledger.of(session(*pairs)), CutToEnds(head=100, tail=100, over=300, marker="…").name
    whole, cut = (CompactionSizes(ledger).of(Span(2, 6, each)) for each in ("", form))
    assert whole - cut == 900 + 2_000 - 2 * (200 + len("…".encode()))
