"""A trace is extended where its steps are still those of the longer session, and only there."""

import dataclasses

import msgspec
import numpy as np
import pytest

from guard_core.estimation.agents_view import ComparedCounts, ExceededWindow
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import AttributedUsage, usage_for
from guard_core.extension import basis, extended
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, get_summarizer
from tests.builders import model, tool_call, tool_result, user

POLICY = get_policy("contextguard")
SETTINGS = {"window": 5_000, "summarizer": FixedSummaries(400)}


def chat(turns: int, **fields: object) -> Session:
    """A simulated chat of so many turns, each of which adds some 260 tokens."""
    events = tuple(event for _ in range(turns) for event in (user("q" * 1_000), model("a" * 40)))
    calls = tuple(ModelCall(at=2 * turn + 1, response=2 * turn + 1) for turn in range(turns))
    return Session(events=events, calls=calls, usage_ratio=2.0, **fields)


def grow(before: Session, after: Session, **settings: object):
    """The extended trace of a session that has grown, and the one from its beginning."""
    settings = {**SETTINGS, **settings}
    short, long = Ledger.of(before), Ledger.of(after)
    trace = replay(short, POLICY, **settings)
    known = basis(short, POLICY, len(trace), **settings)
    return extended(trace, known, long, POLICY, **settings), replay(long, POLICY, **settings)


def test_only_the_new_steps_are_replayed():
    before, after = Ledger.of(chat(300)), Ledger.of(chat(310))
    trace = replay(before, POLICY, **SETTINGS)
    seen: list[int] = []
    extended(trace, basis(before, POLICY, 300, **SETTINGS), after, POLICY, each=seen.append, **SETTINGS)
    assert min(seen) == 300


def test_a_compaction_in_a_turn_that_goes_on_lasts_as_long_as_the_turn():
    texts = [user("q" * 9_000), *(event for _ in range(6) for event in (tool_call(), tool_result("r" * 900)))]
    calls = tuple(ModelCall(at=2 * step + 1, response=2 * step + 1) for step in range(6))
    before = Session(events=tuple(texts[:7]), calls=calls[:3], usage_ratio=2.0)
    longer, whole = grow(before, msgspec.structs.replace(before, events=tuple(texts), calls=calls))
    assert longer is not None
    assert whole.compactions
    assert longer.compactions == whole.compactions


@pytest.mark.parametrize("other", [{"window": 6_000}, {"summarizer": FixedSummaries(500)}, {"request": "what"}])
def test_other_settings_are_another_replay(other):
    before, after = Ledger.of(chat(20)), Ledger.of(chat(21))
    trace = replay(before, POLICY, **SETTINGS)
    known = basis(before, POLICY, 20, **SETTINGS)
    assert extended(trace, known, after, POLICY, **{**SETTINGS, **other}) is None


def test_a_log_that_begins_otherwise_is_replayed_from_its_beginning():
    before, after = chat(20), chat(21)
    changed = msgspec.structs.replace(after, events=(user("other"), *after.events[1:]))
    assert grow(before, changed)[0] is None


def test_a_late_result_changes_where_the_log_could_be_cut():
    waits = (tool_call("look", "c"), *(user("w" * 900) for _ in range(9)))
    calls = tuple(ModelCall(at=number) for number in range(1, 10))
    before = Session(events=waits, calls=calls, usage_ratio=2.0)
    longer, _ = grow(before, msgspec.structs.replace(before, events=(*waits, tool_result("seen", "look", "c"))))
    assert longer is None


def test_a_trace_without_its_last_state_is_not_extended():
    ledger = Ledger.of(chat(20))
    trace = dataclasses.replace(replay(ledger, POLICY, **SETTINGS), state=None)
    assert extended(trace, basis(ledger, POLICY, 20, **SETTINGS), Ledger.of(chat(21)), POLICY, **SETTINGS) is None


def test_nothing_is_known_of_a_provider_that_is_not_ours():
    class Other(AttributedUsage):
        """A provider whose counts rest on more than the attribution."""

    class Free:
        """A provider of another library."""

    ledger = Ledger.of(chat(3))
    assert basis(ledger, POLICY, 3, usage=Free(), **SETTINGS) is None
    assert basis(ledger, POLICY, 3, usage=Other(ledger, attribute(ledger)), **SETTINGS) is None


def test_recorded_prompts_count_as_long_as_they_say_the_same():
    events = tuple(event for _ in range(30) for event in (user("q" * 400), model("a" * 40)))
    calls = tuple(
        ModelCall(at=2 * turn + 1, response=2 * turn + 1, prompt_tokens=900 + 115 * turn) for turn in range(30)
    )
    ledger = Ledger.of(Session(events=events, calls=calls))
    settings = {**SETTINGS, "usage": usage_for(ledger, None), "summarizer": get_summarizer("share:nominal", ledger)}
    trace = replay(ledger, POLICY, **settings)
    known = basis(ledger, POLICY, 30, **settings)
    again = extended(trace, known, ledger, POLICY, **settings)
    assert again is not None
    assert again.digest() == trace.digest()
    fewer = msgspec.structs.replace(calls[9], prompt_tokens=1_900)
    other = Ledger.of(Session(events=events, calls=(*calls[:9], fewer, *calls[10:])))
    assert extended(trace, known, other, POLICY, **{**settings, "usage": usage_for(other, None)}) is None
    exceeded = usage_for(ledger, None, ExceededWindow(5_000, 5_500))  # another session has grown so that it shows this
    assert extended(trace, known, ledger, POLICY, **{**settings, "usage": exceeded}) is None


def test_a_trace_is_not_extended_where_the_agents_own_rule_counts_otherwise_by_now():
    ledger = Ledger.of(msgspec.structs.replace(chat(20), usage_ratio=None))

    def usage(counter):
        return usage_for(ledger, None, find_compared=lambda: ComparedCounts("pi", "", np.zeros(20), counter))

    trace = replay(ledger, POLICY, **SETTINGS, usage=usage("prompt"))
    known = basis(ledger, POLICY, 20, **SETTINGS, usage=usage("prompt"))
    assert extended(trace, known, ledger, POLICY, **SETTINGS, usage=usage("prompt")) is not None
    assert extended(trace, known, ledger, POLICY, **SETTINGS, usage=usage("prompt and output")) is None
