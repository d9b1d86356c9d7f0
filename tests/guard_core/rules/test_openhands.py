"""OpenHands: its condenser compacts by the number of events."""

import pytest
from msgspec.structs import replace

from guard_core.rules import Agreement, explain
from guard_core.rules.words import headline
from guard_core.sessions import AgentSetting, Provenance
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


def test_settings_in_the_file_are_those_of_the_rule_and_what_they_do_not_explain_was_made_at_the_limit_of_tokens():
    session = recording(40, requested=(5,))
    stated = (AgentSetting("max_size", 20, "in the file"), AgentSetting("keep_first", 2, "in the file"))
    explained = explain(replace(session, settings=stated))
    assert (explained.rule.threshold, explained.rule.settings[0].source) == (20, Provenance.RECORDER)
    assert explained.agrees == len(explained.compactions) - 1
    larger = explain(replace(session, settings=(AgentSetting("max_size", 100, "in the file"),)))
    assert {item.verdict for item in larger.compactions} == {Agreement.NOT_MODELLED}
    assert larger.compactions[-1].reason.endswith("its condenser's limit of tokens, not modelled")
    assert larger.inference[0].contains(100)
    typed = explain(replace(session, settings=stated), typed={"max_size": "100"})
    assert typed.compactions[-1].verdict is Agreement.OTHER_THRESHOLD


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
