"""OpenHands: its condenser compacts by the number of events."""

import pytest

from guard_core.rules import Agreement, explain
from guard_core.rules.words import headline
from tests.guard_core.recordings.checks import lines, read_as
from tests.guard_core.recordings.formats.test_openhands import FORMAT, PROMPT, action, message, observed, sdk


def recording(rounds, *, max_size=20, requested=()):
    """An agent that condenses before a step where its list has more than `max_size` events, down to about half: calls
    keep their results."""
    events, listed = [PROMPT, message("go", "u1")], ["p", "u1"]
    tail = max_size // 4 * 2
    for number in range(rounds):
        if len(listed) > max_size or number in requested:
            if number in requested:
                events.append(sdk("CondensationRequest", f"q{number}"))
            forgotten = listed[2:-tail]
            events.append(
                sdk("Condensation", f"c{number}", forgotten_event_ids=forgotten, summary="S", summary_offset=2)
            )
            listed = [*listed[:2], f"c{number}-summary", *listed[-tail:]]
        pair = f"a{number}", f"o{number}"
        events += [action(pair[0], f"t{number}", f"r{number}"), observed(pair[1], f"t{number}")]
        listed += pair
    return read_as(FORMAT, lines(*events)).sessions[0]


@pytest.mark.parametrize("max_size", [20, 31, 80])
def test_the_size_of_the_condenser_is_inferred_and_explains_every_condensation(max_size):
    session = recording(4 * max_size, max_size=max_size)
    (interval,) = explain(session).inference
    assert interval.contains(max_size)
    assert interval.counter == "events"
    assert max_size in [item.threshold for item in interval.hypotheses]
    typed = explain(session, typed={"condenser.max_size": str(max_size)})
    assert (typed.agrees, typed.missed) == (len(session.compactions), ())
    assert typed.auto > 3


def test_a_condensation_that_was_requested_proves_nothing():
    explained = explain(recording(6, requested=(5,)))
    (item,) = explained.compactions
    assert (item.verdict, explained.inference[0].at_most) == (Agreement.NOT_MODELLED, None)
    assert item.reason.startswith("it was requested")


def test_the_sentence_says_what_to_set_and_counts_events():
    explained = explain(recording(40))
    assert "the condenser's max_size is not in the file: set max_size" in headline(explained)
    elsewhere = explain(recording(40), typed={"max_size": "200"})
    assert elsewhere.rule.unit == "events"
    assert elsewhere.compactions[0].reason.startswith("200 (max_size) does not explain it")
