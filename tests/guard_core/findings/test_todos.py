"""Open todos of the agent's last list before a compaction: kept, paraphrased, lost, or made up for by another list."""

import msgspec
import pytest

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import WORDS, with_todos
from tests.guard_core.findings.cases import compaction

ROLLBACK, MANUAL = "Write the rollback migration", "Update the manual"


def lost(built):
    """The findings of this kind, which the checker confirms."""
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    return [item for item in claims if item.kind == "todo_lost"]


def test_todos_that_a_summary_drops_are_lost_but_for_those_that_are_done():
    (finding,) = lost(with_todos())
    assert (finding.severity, finding.count) == ("warning", 2)
    assert finding.sentence == (
        f'The agent\'s open todo "{ROLLBACK}" (message 4) left the context at step 9 (compaction 1): no request since '
        "quotes it, and no summary paraphrases it. The same holds for 1 more todo of that list."
    )


@pytest.mark.parametrize(
    ("said", "todos"),
    [
        (f"{ROLLBACK}; {MANUAL}.", []),
        ("Open: the rollback migration is being written. The manual needs updates.", []),
        (f"Open: {MANUAL}.", [ROLLBACK]),
        ("Open: writing the rollback migration.", [MANUAL]),
    ],
)
def test_a_todo_that_the_summary_quotes_or_says_in_other_words_is_not_lost(said, todos):
    assert [item.numbers["todo"] for item in lost(with_todos(f"The task: {WORDS}. {said}"))] == todos


def test_where_the_agent_writes_another_list_the_loss_is_a_note():
    (finding,) = lost(with_todos(again=True))
    assert finding.severity == "info"
    assert finding.sentence.endswith("The agent wrote its next list later (message 12).")


def test_a_list_that_says_it_again_behind_the_compaction_has_it():
    built = with_todos(again=True)
    events = [*built.events]
    todos = [{"content": ROLLBACK, "status": "completed"}, {"content": MANUAL, "status": "pending"}]
    events[11] = tool_call("TodoWrite", "t2", todos=todos)
    assert lost(msgspec.structs.replace(built, events=tuple(events))) == []


def test_a_todo_that_is_done_before_a_later_compaction_takes_it_away_is_not_lost():
    """The requests behind the first compaction have it, in the agent's words, up to the list that says it is done."""
    events = [user(WORDS), tool_call("TodoWrite", "t1", todos=[{"content": ROLLBACK, "status": "pending"}])]
    events += [tool_result("ok", "TodoWrite", "t1"), *(model("working on it") for _ in range(3)), model(ROLLBACK)]
    events += [tool_call("TodoWrite", "t2", todos=[{"content": ROLLBACK, "status": "completed"}])]
    events += [tool_result("ok", "TodoWrite", "t2"), *(model("what is next") for _ in range(6))]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 3, 4, 5, 6, 7, *range(9, 15)))
    both = (compaction(5, summary="Half is done."), compaction(11, summary="All of it is done."))
    assert lost(session(*events, calls=calls, compactions=both)) == []


def test_only_the_last_list_before_a_compaction_counts():
    """What an earlier list had is done, or was dropped by the agent itself."""
    built = with_todos()
    events = [*built.events]
    events[6] = tool_call("TodoWrite", "t2", todos=[{"content": MANUAL, "status": "in_progress"}])
    (finding,) = lost(msgspec.structs.replace(built, events=tuple(events)))
    assert (finding.numbers["message"], finding.numbers["todo"], finding.count) == (6, MANUAL, 1)


def test_a_kept_list_loses_nothing():
    events = [user(WORDS), tool_call("update_plan", "p", plan=[{"step": ROLLBACK, "status": "pending"}])]
    events += [tool_result("ok", "update_plan", "p"), *(model("working on it") for _ in range(5))]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 3, 4, 5, 6, 7))
    cut = compaction(6, summary="Half is done.")
    assert [item.numbers["todo"] for item in lost(session(*events, calls=calls, compactions=(cut,)))] == [ROLLBACK]
    kept = msgspec.structs.replace(cut, base=(*cut.base, Span(1, 3)))
    assert lost(session(*events, calls=calls, compactions=(kept,))) == []
