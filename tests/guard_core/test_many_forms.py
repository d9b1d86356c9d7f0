"""A form that is asked for few events is priced on these alone: the numbers are those of columns."""

from __future__ import annotations

import cProfile

import numpy as np
import pytest

from guard_core.estimation.estimators import Heuristic
from guard_core.events import Event, Role
from guard_core.forms import Arguments, CutToEnds, WithoutCalls, get_form
from guard_core.ledger import FEW_EVENTS, MOST_FORMS, Ints, Ledger
from guard_core.policies.agno import COSTS, Headed
from guard_core.policies.deepagents_files import MovedToFile
from guard_core.policies.inspect_ai.edit import CallsAsTexts
from guard_core.policies.strands.sliding_window import CutResults
from guard_core.sessions import Session
from guard_core.views import Span
from tests.builders import model, tool_call, tool_result, user
from tests.profiling import calls_of

FORMS = (
    *(
        form.name
        for kind in (Headed, MovedToFile, CallsAsTexts, WithoutCalls, Arguments)
        for form in (kind(), kind((0,)))
    ),
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


def asked(made: Ledger, form: str) -> Ledger:
    """The ledger, once it was asked for so many events in a form that this has columns, if there are any left."""
    for event in range(FEW_EVENTS + 1):
        made.span(event, event + 1, form)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_one_event_in_a_form_of_few_events_costs_what_its_columns_say(form):
    columns, single = asked(ledger(), form), ledger()
    assert (single.alone(3, 4, form) is not None) == get_form(form).is_local
    assert columns.alone(3, 4, form) is None
    for event in range(columns.event_count):
        span = Span(event, event + 1, form)
        assert Heuristic.of(single).segment(span) == Heuristic.of(columns).segment(span)
        assert COSTS.segment(single, span) == COSTS.segment(columns, span)
        assert single.span(event, event + 1, form) == columns.span(event, event + 1, form)
        assert single.changed_in(event, event + 1, form).tolist() == columns.changed_in(event, event + 1, form).tolist()


def test_one_event_is_priced_from_the_columns_that_its_form_reads():
    alone = ledger().alone(3, 4, "headed")
    alone.in_form("text_tokens", "headed")
    assert {*alone.events} == {"flags", "text_tokens"}
    assert not alone.steps


def test_what_thousands_of_rewritten_events_cost_is_computed_once():
    many = Ledger.of(Session(events=(tool_result("wörter", id="1"),) * 12_000))
    asked_of = []

    def number(alone: Ledger, form: str) -> Ints:
        asked_of.append(alone)
        return np.ones(1, dtype=np.int64)

    for _ in range(2):
        for event in range(many.event_count):
            for key in "abc":
                many.of_one(event, event + 1, f'compressed:{{"size":{event}}}', key, number)
    assert len(asked_of) == 3 * many.event_count


ENDS = [
    (
        "ends",
        (
            CutToEnds(head=9, tail=5, marker=".."),
            CutToEnds(head=1, marker="…"),
            CutToEnds(over=50, tail=3),
            CutToEnds(head=9_999),
        ),
    ),
    ("texts", (CutToEnds(what="text", head=1, marker="."), CutToEnds(what="text", tail=2), CutToEnds(head=3, tail=3))),
    (
        "answers",
        tuple(map(get_form, ('compressed:{"size":70}', 'compressed:{"text":"kürzer"}', 'compressed:{"size":9}'))),
    ),
    ("parts", (CutToEnds(which=(0,), head=3, marker="."), CutToEnds(which=(0,), head=4, marker="."))),
    (
        "kinds",
        (CutToEnds(head=3), get_form('compressed:{"size":70}'), Headed(), get_form('replaced:{"excluded":["read"]}')),
    ),
]


@pytest.mark.parametrize("forms", [forms for _, forms in ENDS], ids=[name for name, _ in ENDS])
def test_events_in_forms_of_their_own_cost_together_what_each_costs(forms):
    together, single = ledger(), ledger()
    spans = [Span(event, event + 1, form.name) for event in range(together.event_count) for form in forms]
    together.look_up_changes(spans)
    assert Heuristic.of(together).segments(spans) == [Heuristic.of(single).segment(span) for span in spans]
    assert [together.span(*key(span)) for span in spans] == [single.span(*key(span)) for span in spans]


def test_what_is_known_to_be_changed_is_not_looked_up_and_costs_the_same():
    known, single = ledger(), ledger()
    spans = [Span(event, event + 1, f'compressed:{{"size":{70 + event}}}') for event in (3, 5, 7)]
    assert [single.span(*key(span)) for span in spans] == spans
    known.know_changed(spans)
    with cProfile.Profile() as profile:
        assert [known.span(*key(span)) for span in spans] == spans
    assert calls_of(profile, Ledger.alone) == 0
    assert [COSTS.segment(known, span) for span in spans] == [COSTS.segment(single, span) for span in spans]


def key(span: Span) -> tuple[int, int, str]:
    return span.start, span.stop, span.form


def test_forms_that_are_looked_up_together_are_not_made_one_by_one():
    many, asked_of = ledger(), []

    def number(ledger: Ledger, form: str) -> Ints:
        asked_of.append(ledger.event_count)
        return ledger.in_form("bytes", form)

    forms = [CutToEnds(head=1 + event, marker="..").name for event in range(many.event_count)]
    many.look_up([Span(event, event + 1, form) for event, form in enumerate(forms)], "bytes", number)
    for event, form in enumerate(forms):
        many.of_one(event, event + 1, form, "bytes", number)
    assert asked_of == [many.event_count]


def test_a_message_without_parts_costs_nothing_in_a_form_of_its_own():
    empty = Ledger.of(Session(events=(model("begin"), Event(Role.USER, ()))))
    spans = [Span(1, 2, CutToEnds(what="text", head=3).name)]
    assert Heuristic.of(empty).segments(spans) == [0]


def test_no_more_than_so_many_forms_have_columns_until_they_are_forgotten():
    many = ledger()
    *first, last = (f'compressed:{{"size":{1_000 + size}}}' for size in range(MOST_FORMS + 1))
    for form in first:
        assert asked(many, form).alone(3, 4, form) is None
    assert asked(many, last).alone(3, 4, last) is not None
    costs = [Heuristic.of(many).segment(Span(3, 4, form)) for form in (first[0], last)]
    many.forget_forms()
    assert asked(many, last).alone(3, 4, last) is None
    assert [Heuristic.of(many).segment(Span(3, 4, form)) for form in (first[0], last)] == costs


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ('ends:{"head":5,"marker":"[cut]"}', "0123456789"),
        (CutResults().name, "y" * 447),  # the note of 47 characters in place of the 47 beyond the ends
        ('line count:{"wording":"first"}', "x" * len("Old output ommitted (1 lines)")),
    ],
)
def test_a_result_is_changed_into_a_text_of_the_same_length(form, text):
    made = Ledger.of(Session(events=(model("begin"), tool_call("read", "1"), tool_result(text, id="1"))))
    assert int(made.parts_in(form)["chars"][-1]) == len(text)
    assert made.changed_by(form).tolist() == [False, False, True]
