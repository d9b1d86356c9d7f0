"""State that a recording holds is shown beside the recomputed one."""

import msgspec

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.contextguard.recorded import beside
from guard_core.sessions import GuardState
from tests.guard_core.policies.tools import run


def test_a_state_that_the_replay_meets_is_equal(tool_heavy):
    trace = run(get_policy("contextguard"), tool_heavy, window=20_000)
    step = trace.compactions[0].step
    state = GuardState(
        at=int(Ledger.of(tool_heavy).steps["at"][step]) + 1,
        agent="root",
        contents_at_compaction=int(trace.columns["watermark"][step]),
        last_heuristic=int(trace.columns["heuristic_sent"][step]),
        real_tokens=int(trace.columns["modelled_prompt_tokens"][step]),
        summarized_at=int(trace.columns["decision_tokens"][step]),
    )
    rows = beside(msgspec.structs.replace(tool_heavy, guard_states=(state,)), Ledger.of(tool_heavy), trace)
    assert [row.name for row in rows] == ["watermark", "real tokens", "last heuristic", "summarized at"]
    assert all(row.equal and row.step == step for row in rows)


def test_a_state_that_differs_shows_both_numbers(tool_heavy):
    trace = run(get_policy("contextguard"), tool_heavy)
    log = msgspec.structs.replace(tool_heavy, guard_states=(GuardState(at=2, agent="a", last_heuristic=99),))
    (row,) = beside(log, Ledger.of(log), trace)
    assert (row.recorded, row.equal, row.step) == (99, False, 0)
    assert row.recomputed == trace.columns["heuristic_sent"][0]
