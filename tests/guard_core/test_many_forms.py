"""Forms that change one event each are priced on that event once there are many: the numbers are those of columns."""

from __future__ import annotations

import pytest

from guard_core.estimators import Heuristic
from guard_core.forms import get_form
from guard_core.ledger import MOST_FORMS, Ledger
from guard_core.policies.agno import COSTS
from guard_core.sessions import Session
from guard_core.views import Span
from tests.builders import model, tool_call, tool_result, user

FORMS = (
    'compressed:{"size":70}',
    'ends:{"head":9,"marker":"..","tail":5}',
    'replaced:{"text":"[cleared]"}',
    'removed:{"what":"result"}',
    'replaced:{"excluded":["read"],"text":"[cleared]"}',
)


def ledger() -> Ledger:
    events = [user("begin"), model("ééé")]
    for number in range(4):
        events += [tool_call("read", str(number), path="x"), tool_result("wörter " * (number + 5), id=str(number))]
    return Ledger.of(Session(events=tuple(events)))


@pytest.mark.parametrize("form", FORMS)
def test_one_event_in_one_of_many_forms_costs_what_its_columns_say(form):
    few, many = ledger(), ledger()
    for size in range(MOST_FORMS):
        many.span(3, 4, f'compressed:{{"size":{1_000 + size}}}')
    assert (many.alone(3, 4, form) is not None) == get_form(form).is_local
    assert few.alone(3, 4, form) is None
    for event in range(few.event_count):
        span = Span(event, event + 1, form)
        assert Heuristic.of(many).segment(span) == Heuristic.of(few).segment(span)
        assert COSTS.segment(many, span) == COSTS.segment(few, span)
        assert many.span(event, event + 1, form) == few.span(event, event + 1, form)
        assert many.changed_in(event, event + 1, form).tolist() == few.changed_in(event, event + 1, form).tolist()
