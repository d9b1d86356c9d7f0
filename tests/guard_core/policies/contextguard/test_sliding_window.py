"""The sliding window: it counts messages, and the exact profiles lose what they meant to keep."""

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.simulator.flow import Simulation, Turn, play
from guard_core.summaries.sizes import NoSummaries, ScriptedSummaries
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import check_compacts, check_passes_through, run

EXACT = get_policy("contextguard-sliding", max_turns=6)


def chat(count=20, size=40):
    return session(*(item for i in range(count) for item in (user(f"{i} " + "q" * size), model(f"{i} " + "a" * size))))


def test_it_leaves_a_short_chat_alone(short_chat):
    check_passes_through(EXACT, short_chat)


def test_it_compacts_once_too_many_messages_stand_after_the_watermark():
    trace = check_compacts(EXACT, chat(), at_step=3)  # seven messages
    assert trace.columns["threshold"][3] == -1  # tokens do not decide here
    record = trace.compactions[0]
    assert record.reason == "7 messages since the watermark > 6"
    assert [item for item in record.after if isinstance(item, Span)] == [Span(4, 7)]


def test_the_messages_it_keeps_are_lost_at_the_next_step():
    trace = run(EXACT, chat())
    assert "in no later request" in trace.compactions[0].notes[0]
    assert trace.view(4, 9) == (trace.compactions[0].carried[0], Span(7, 9))


def test_mend_tail_keeps_them():
    trace = run(get_policy("contextguard-sliding", max_turns=6, mend_tail=True), chat())
    assert trace.columns["watermark"][3] == 4
    assert trace.view(4, 9)[-1] == Span(4, 9)
    assert trace.compactions[0].notes == ()


def continuations(record):
    return sum(isinstance(item, Synthetic) and item.kind == "continuation" for item in record.after)


def test_mend_stacking_makes_one_continuation_of_three():
    log = chat(size=1_000)
    exact = run(EXACT, log, window=500, summary=5_000)
    mended = run(get_policy("contextguard-sliding", max_turns=6, mend_stacking=True), log, window=500, summary=5_000)
    assert continuations(exact.compactions[0]) > 1
    assert continuations(mended.compactions[0]) == 1


def test_a_failed_summariser_lets_the_whole_log_pass_again_and_again():
    trace = run(EXACT, chat(), summarizer=ScriptedSummaries((100, None)))
    assert trace.columns["held"][-1] == SUMMARISER_FAILED
    assert trace.columns["contents_sent"][-1] == trace.columns["contents_built"][-1]
    assert trace.view(len(trace) - 1, 39) == (Span(0, 39),)


def test_mend_failure_makes_the_mechanical_summary():
    policy = get_policy("contextguard-sliding", max_turns=6, mend_failure=True)
    trace = run(policy, chat(), summarizer=ScriptedSummaries((100, None)))
    assert SUMMARISER_FAILED not in trace.columns["held"]
    assert any(item.failed for record in trace.compactions for item in record.passes)


def test_an_empty_answer_is_no_error_here():
    trace = run(EXACT, chat(), summarizer=NoSummaries())
    assert all(item.empty for record in trace.compactions for item in record.passes)


def test_a_chain_walks_the_split_far_back():
    turns = (Turn(100), Turn(100, tools=(("t", 100),) * 10, sequential=True))
    trace = run(EXACT, play(Simulation(128_000, turns)).session, window=128_000)
    first = trace.compactions[0]
    assert first.passes[0].summariser_contents == 2  # up to the question that began the chain
    assert trace.columns["contents_sent"][first.step] > 5
    assert first.cut[0] > first.cut[1] == first.cut[2] == 2


def test_with_too_little_to_compact_it_says_so():
    log = session(user("a"), model("b"), user("c"), model("d"))
    trace = run(get_policy("contextguard-sliding", max_turns=2), log)
    assert trace.columns["held"].tolist() == [0, NOTHING_TO_COMPACT]


def test_mend_pairs_never_parts_a_call_from_its_result():
    events = [user("start")]
    for index in range(8):
        events += [tool_call("t", f"c{index}"), tool_result("r", "t", f"c{index}")]
    log = session(*events, model("end"))
    trace = run(get_policy("contextguard-sliding", max_turns=4, mend_pairs=True, mend_tail=True), log)
    ledger = Ledger.of(log)
    starts = [item.start for record in trace.compactions for item in record.after if isinstance(item, Span)]
    assert starts
    assert all(ledger.cut(start) == start for start in starts)
