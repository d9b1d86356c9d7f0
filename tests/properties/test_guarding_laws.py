"""A policy that guards a live agent decides as in a replay of the same conversation, step by step."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
from hypothesis import given

from guard_core.estimation.usage import RatioUsage
from guard_core.events import Role, ToolCallPart, ToolResultPart
from guard_core.guarding.log import GuardedLog
from guard_core.ledger import Ledger
from guard_core.policies.base import dump_state
from guard_core.replay import replay
from guard_core.requests import materialise
from tests.properties.strategies import sessions, summarizers, windows
from tests.properties.test_policy_laws import ids, listed_policies


def answered(session):
    """The session as a live one: no simulation, no recorded compactions, each call answered by the event behind it.

    A replay knows that a result will follow, a guard does not: requests between a call and its results are left out.
    """
    logs = [session.events[: call.at] for call in session.calls]
    whole = [ids(log, ToolCallPart, "id") == ids(log, ToolResultPart, "call_id") for log in logs]
    sent = [call for call, is_whole in zip(session.calls, whole, strict=True) if is_whole]
    calls = []
    for call, following in zip_longest(sent, sent[1:]):
        last = following is None or following.at > call.at
        has_answer = last and call.at < len(session.events) and session.events[call.at].role is Role.MODEL
        calls.append(msgspec.structs.replace(call, response=call.at if has_answer else None))
    return msgspec.structs.replace(session, calls=tuple(calls), compactions=(), side_calls=(), usage_ratio=None)


# Policies that take system prompt and tools, where a recording lacks them, to be as large as its first count requires:
# a guard has no such count yet, but is given both.
FIXED_BY_COUNT = ("cline-sdk", "kimi-code", "mistral-vibe")


@given(sessions(), listed_policies(), windows, summarizers)
def test_a_live_guard_decides_as_the_replay_of_its_conversation(session, policy, window, summarizer):
    session = answered(session)
    if policy.name in FIXED_BY_COUNT:
        session = msgspec.structs.replace(session, system=session.system or (), tools=session.tools or ())
    ledger = Ledger.of(session)
    usage = RatioUsage(1.7)
    trace = replay(ledger, policy, window=window, usage=usage, summarizer=summarizer, session=session)
    log = GuardedLog(policy, window, summarizer=summarizer, usage=usage, system=session.system, tools=session.tools)
    compactions = []
    for step, call in enumerate(session.calls):
        log.extend(session.events[len(log.events) : call.at])
        asked = log.ask()
        while usage.one(step, asked.decision.view, int(asked.decision.evidence["heuristic_sent"])).tokens > window:
            again = log.refused()
            if again is None:
                break
            asked = again
        asked = log.asked
        compactions += asked.all_compactions
        view = trace.view(step, call.at, ledger)
        assert materialise(asked.decision.view, session) == materialise(view, session), step
        assert asked.decision.evidence["heuristic_sent"] == trace.columns["heuristic_sent"][step]
        log.answered(log.counted().tokens, output_tokens=call.output_tokens)
    assert [record.after for record in compactions] == [record.after for record in trace.compactions]
    assert dump_state(log.state) == dump_state(trace.state)
