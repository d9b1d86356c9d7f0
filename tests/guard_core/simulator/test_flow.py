"""The simulator plays turns as the agent framework would: append-only, one step per request."""

from guard_core.events import Role, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.simulator.flow import NEVER_REPORTED, Simulation, Turn, play, sized_tool
from guard_core.tokens.heuristic import schema_json

PARALLEL = Turn(100, tools=(("a", 10), ("b", 20)))
CHAIN = Turn(100, tools=(("a", 10), ("b", 20)), sequential=True)


def test_parallel_calls_are_one_message_and_one_step():
    flow = play(Simulation(window=8_000, turns=(PARALLEL,)))
    assert flow.labels == ("user-msg", "tool-results")
    assert [len(event.parts) for event in flow.session.events] == [1, 2, 2, 1]
    assert [call.at for call in flow.session.calls] == [1, 3]


def test_a_chain_is_one_step_per_call():
    flow = play(Simulation(window=8_000, turns=(CHAIN,)))
    assert flow.labels == ("user-msg", "tool-chain-0", "tool-chain-1")
    kinds = [type(event.parts[0]) for event in flow.session.events[1:5]]
    assert kinds == [ToolCallPart, ToolResultPart] * 2
    assert flow.session.events[-1].role is Role.MODEL


def test_usage_is_reported_from_a_turn_on():
    turns = (PARALLEL, PARALLEL, PARALLEL)
    assert play(Simulation(8_000, turns, reported_from=1)).session.usage_reported_from == 2
    assert play(Simulation(8_000, turns, reported_from=None)).session.usage_reported_from == NEVER_REPORTED


def test_sizes_are_exact():
    session = play(Simulation(8_000, (Turn(801, 99),), system_bytes=333)).session
    assert len(session.events[0].parts[0].text) == 801
    assert Ledger.of(session).system_tokens == 83


def test_a_tool_definition_has_the_asked_for_schema_size():
    for size in (0, 1, 2, 3, 1_087):
        assert len(schema_json(sized_tool("t", 10, size).schema)) == size
