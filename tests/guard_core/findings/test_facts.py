"""What is computed of a recording once, whoever asks for it."""

from dataclasses import replace

import msgspec
import pytest

from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts, replayed_findings
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.policies.base import Point
from guard_core.policies.pieces.request_numbers import REFUSED
from guard_core.replay import replay
from guard_core.rules.counters import LAST_TOTAL, checks_of, counts_at
from guard_core.sessions import Provenance, Sourced
from guard_core.windows.models import answers_of
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, user
from tests.guard_core.findings.cases import chat, replayed


def test_a_side_of_a_replay_that_is_in_use_is_not_made_again():
    facts, trace = replayed(chat(1_000, 2_000, 9_500, 9_800))
    side = facts.replay(trace)
    assert facts.replay(trace) is side
    _, other = replayed(chat(1_000, 2_000, 9_500, 9_800), profile="early")
    assert facts.replay(other) is not side
    assert facts.replay(other).trace is other


class Passes(tuple):
    """Calls that count how often they are gone through: a long stored session decodes them each time."""

    count = 0

    def __iter__(self):
        Passes.count += 1
        return super().__iter__()


def test_the_findings_of_another_replay_go_through_no_call_again():
    built = chat(*range(1_000, 9_000, 200))
    facts = Facts.of(msgspec.structs.replace(built, calls=Passes(built.calls)))
    windows = [6_000, 5_000]
    traces = [replay(facts.ledger, get_policy("contextguard"), window=at, usage=facts.usage) for at in windows]
    assert {"needed"} <= {item.kind for item in replayed_findings(facts, traces[0])}
    passes = Passes.count
    assert {"needed"} <= {item.kind for item in replayed_findings(facts, traces[1])}
    assert Passes.count == passes


def test_the_requests_over_a_window_are_those_of_the_case():
    facts, trace = replayed(chat(1_000, 2_000, 9_500, 9_800))
    narrow = replace(trace, window=5_000)
    assert facts.over(narrow).tolist() == facts.replay(narrow).over.tolist() == [2]


def test_what_is_said_of_a_recording_goes_through_its_calls_once():
    built = chat(*range(1_000, 9_000, 200))
    calls = Passes(msgspec.structs.replace(call, output_tokens=7) for call in built.calls)
    built = msgspec.structs.replace(built, calls=calls)
    ledger = Ledger.of(built)
    before = Passes.count
    answers = answers_of(built)
    facts = Facts(built, ledger, attribute(ledger), judge_session(built, None, answers), ())
    assert facts.counts.total == 0
    assert counts_at(built, ledger, checks_of(built, ledger), LAST_TOTAL).max() == 8_607
    assert Passes.count == before + 2  # judging looks whether one of them is counted, which the first is


RECOVERS = sorted(name for name in POLICIES if Point.ON_OVERFLOW in get_policy(name).points)


@pytest.mark.parametrize("name", RECOVERS)
def test_a_replay_in_an_assumed_window_has_no_request_refused_that_is_no_larger_than_an_answered_one(name):
    facts = Facts.of(chat(90_000, *range(150_000, 190_001, 1_000), source=Provenance.ASSUMED))
    assert facts.window.value < 150_000
    trace = replay(facts.ledger, get_policy(name), window=facts.window.value, usage=facts.usage)
    assert REFUSED not in {record.reason for record in trace.compactions}
    assert not trace.columns["overflow"][trace.columns["modelled_prompt_tokens"] <= 190_000].any()


def test_a_replay_in_an_assumed_window_has_larger_requests_refused():
    facts = Facts.of(chat(90_000, 150_000, 190_000, None, source=Provenance.ASSUMED))
    log = msgspec.structs.replace(facts.session, events=(*facts.session.events[:3], user("w" * 90_000), model("")))
    longer = Facts.of(log)
    assert longer.window.at_least == 190_000
    trace = replay(longer.ledger, get_policy("claude-code"), window=longer.window.value, usage=longer.usage)
    assert {(record.step, record.reason) for record in trace.compactions} == {(3, REFUSED)}


@pytest.mark.parametrize("window", [100_000, 128_000])
def test_a_replay_in_a_window_that_a_person_asks_for_has_requests_refused_that_are_larger(window):
    built = chat(90_000, 150_000, 190_000, source=Provenance.ASSUMED)
    facts = Facts.of(built, judge_session(built, Sourced(window, Provenance.USER, "typed in")))
    trace = replay(facts.ledger, get_policy("claude-code"), window=window, usage=facts.usage)
    assert [record.reason for record in trace.compactions][:1] == [REFUSED]
