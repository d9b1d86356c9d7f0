"""Open todos of the agent's last list before a compaction: kept, paraphrased, lost, or made up for by another list."""

import sys

import msgspec
import pytest

from guard_core.checker import check
from guard_core.events import Role
from guard_core.facts.todos import OpenTodo, Todos, open_at
from guard_core.findings import Facts, recorded_findings, recorded_verdict, request_words
from guard_core.ledger import Ledger
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


@pytest.mark.parametrize(("again", "kind"), [(False, "todo_lost"), (True, "healthy")])
def test_a_lost_todo_that_was_not_written_again_leads_a_verdict_that_has_nothing_else_to_say(again, kind):
    built = with_todos(again=again)
    calls = tuple(msgspec.structs.replace(call, prompt_tokens=None) for call in built.calls)
    asked = tuple(msgspec.structs.replace(item, trigger="manual") for item in built.compactions)
    built = msgspec.structs.replace(built, calls=calls, compactions=asked)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert check(built, claims, facts.window, verdict) == []
    assert verdict.kind == kind
    if not again:
        words = (
            f'1 compaction; the agent\'s open todo "{ROLLBACK}" left the context at step 9; no later request quotes it.'
        )
        assert (verdict.severity, verdict.sentence) == ("warning", words)


def test_the_checklist_that_cline_adds_to_the_arguments_of_a_tool_is_followed():
    built = with_todos()
    events = [*built.events]
    listed = f"- [x] Write the parser\n- [ ] {ROLLBACK}\n- [ ] {MANUAL}"
    events[3] = tool_call("read_file", "t1", path="a.py", task_progress=listed)
    assert lost(msgspec.structs.replace(built, events=tuple(events))) == []  # another agent's argument of that name
    events[13] = tool_call("attempt_completion", "t9", result="Done.")
    (finding,) = lost(msgspec.structs.replace(built, events=tuple(events)))
    assert (finding.numbers["todo"], finding.count) == (ROLLBACK, 2)
    events[5] = tool_call("read_file", "t2", path="b.py")  # without it the list is as it was
    assert lost(msgspec.structs.replace(built, events=tuple(events))) == [finding]
    events[5] = tool_call("read_file", "t2", path="b.py", task_progress=listed.replace("[ ]", "[x]"))
    assert lost(msgspec.structs.replace(built, events=tuple(events))) == []


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
    assert finding.sentence.endswith("The agent updated its todos later (message 12).")


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


def tasks(*between, cut=9, summary="Half is done."):
    """Two tasks that Claude Code creates, so many events, and a compaction that keeps none of it."""
    events = [user(WORDS), tool_call("TaskCreate", "t1", subject=ROLLBACK, description="With a test")]
    events += [tool_result(f"Task #7 created successfully: {ROLLBACK}", "TaskCreate", "t1")]
    events += [tool_call("TaskCreate", "t2", subject=MANUAL, description="Briefly")]
    events += [tool_result(f"Task #8 created successfully: {MANUAL}", "TaskCreate", "t2"), *between]
    events += [model("working on it") for _ in range(12 - len(events))]
    ats = [at for at, event in enumerate(events) if event.role is Role.MODEL]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in ats)
    return session(*events, calls=calls, compactions=(compaction(cut, summary=summary),))


def updated(task, **fields):
    return tool_call("TaskUpdate", "u", taskId=task, **fields), tool_result(f"Updated task #{task}", "TaskUpdate", "u")


def test_tasks_that_are_created_one_by_one_are_lost_together():
    (finding,) = lost(tasks(*updated("7", status="in_progress")))
    assert (finding.severity, finding.count) == ("warning", 2)
    assert finding.sentence == (
        f'The agent\'s open todo "{ROLLBACK}" (message 2) left the context at step 6 (compaction 1): no request since '
        "quotes it, and no summary paraphrases it. The same holds for 1 more todo of that list."
    )


def test_tasks_that_are_closed_or_kept_are_not_lost():
    assert [item.numbers["todo"] for item in lost(tasks(*updated("7", status="completed")))] == [MANUAL]
    assert lost(tasks(*updated("7", status="deleted"), *updated("8", status="completed"))) == []
    assert lost(tasks(summary=f"Open: {ROLLBACK}; {MANUAL}.")) == []


def test_a_task_is_known_by_its_new_name_and_its_number_alone():
    (finding,) = lost(tasks(*updated("8", subject="Update the handbook"), *updated("7", status="completed")))
    assert (finding.numbers["todo"], finding.numbers["message"]) == ("Update the handbook", 5)


def test_tasks_of_which_no_number_is_known_are_not_followed():
    events = [tool_result("Refused", "TaskCreate", "t1"), tool_result("Refused", "TaskCreate", "t2")]
    built = tasks()
    log = (built.events[0], built.events[1], events[0], built.events[3], events[1], *built.events[5:])
    assert lost(msgspec.structs.replace(built, events=log)) == []


def test_a_task_that_is_closed_behind_the_compaction_is_a_note():
    (finding,) = lost(tasks(*(model("on it") for _ in range(4)), *updated("7", status="completed"), cut=8))
    assert (finding.severity, finding.numbers["later"]) == ("info", 9)
    assert finding.sentence.endswith("The agent updated its todos later (message 10).")


def test_each_task_is_lost_once_where_several_compactions_take_them_away():
    built = tasks(cut=4)
    built = msgspec.structs.replace(built, compactions=(*built.compactions, compaction(9, summary="Most is done.")))
    assert [(item.numbers["todo"], item.count) for item in lost(built)] == [(ROLLBACK, 1), (MANUAL, 1)]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("TodoWrite", {"todos": [{"content": ROLLBACK, "status": "pending", "activeForm": "Writing"}]}),
        ("update_plan", {"explanation": "next", "plan": [{"step": ROLLBACK, "status": "pending"}]}),
        ("write_todos", {"todos": [{"description": ROLLBACK, "status": "in_progress"}]}),
        ("todowrite", {"todos": [{"content": ROLLBACK, "status": "pending", "priority": "high", "id": "1"}]}),
        ("todo_write", {"todos": [{"content": ROLLBACK, "status": "pending", "id": "1"}]}),
        ("SetTodoList", {"todos": [{"title": ROLLBACK, "status": "pending"}]}),
        ("TodoList", {"todos": [{"title": ROLLBACK, "status": "in_progress"}]}),
        ("todo", {"todos": [{"id": "a", "content": ROLLBACK, "status": "pending"}], "merge": False}),
        ("todo", {"action": "write", "todos": [{"id": "a", "content": ROLLBACK, "status": "pending"}]}),
        ("task_tracker", {"command": "plan", "task_list": [{"title": ROLLBACK, "status": "todo", "notes": ""}]}),
        (
            "manage_todo_list",
            {"operation": "write", "todoList": [{"id": 1, "title": ROLLBACK, "status": "not-started"}]},
        ),
        ("update_todo_list", {"todos": f"[x] Plan it\n[-] {ROLLBACK}"}),
        ("update_todo", {"todos": f"- [x] Plan it\n- [ ] {ROLLBACK}"}),
        ("todo__todo_write", {"content": f"# Plan\n- [ ] {ROLLBACK}\n- [X] Plan it"}),
    ],
)
def test_the_todo_tool_of_each_agent_is_read(tool, arguments):
    todos = Todos()
    todos.read(3, tool_call(tool, "t", **arguments))
    assert todos.open == [OpenTodo(ROLLBACK, 3)]


@pytest.mark.parametrize("arguments", [{"action": "read"}, {"command": "view", "task_list": []}, {}])
def test_a_look_at_the_list_changes_nothing(arguments):
    todos = Todos()
    todos.read(3, tool_call("todo", "t", todos=[{"content": ROLLBACK, "status": "pending"}]))
    assert todos.read(4, tool_call("todo", "t", **arguments)) == []
    assert todos.open == [OpenTodo(ROLLBACK, 3)]


def test_a_part_of_a_list_that_is_merged_leaves_the_rest_as_it_was():
    todos = Todos()
    listed = [
        {"id": "a", "content": ROLLBACK, "status": "pending"},
        {"id": "b", "content": MANUAL, "status": "pending"},
    ]
    todos.read(3, tool_call("todo", "t", todos=listed))
    todos.read(5, tool_call("todo", "t", todos=[{"id": "a", "status": "completed"}], merge=True))
    assert todos.open == [OpenTodo(MANUAL, 3)]
    todos.read(7, tool_call("todo", "t", todos=[{"id": "b", "status": "in_progress"}], merge=True))
    assert todos.open == [OpenTodo(MANUAL, 3)]


def instructions(work):
    """How many instructions of Python a piece of work takes."""
    count, before = 0, sys.gettrace()

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys._getframe().f_trace_opcodes = True  # before the tracing begins: else Python 3.12.1 reports none the first time
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def kept_lists(lists):
    """So many lists, and a compaction behind each, which keeps all of them."""
    events = [user(WORDS)]
    for number in range(lists):
        events.append(tool_call("TodoWrite", f"t{number}", todos=[{"content": f"{MANUAL} of number{number}"}]))
        events += [tool_result("ok", "TodoWrite", f"t{number}"), model("working on it")]
    calls = tuple(ModelCall(at, at, 1_000 + at) for at in range(1, len(events)) if events[at].role is Role.MODEL)
    places = range(3, len(events), 3)
    return session(*events, calls=calls, compactions=tuple(compaction(at, (0, 1_000)) for at in places))


def followed(built):
    """The todos that were open at each compaction."""
    return open_at(enumerate(built.events), [item.at for item in built.compactions])


def work_on(built):
    """What it takes to look up the todos that compactions took away, and to follow all of them."""
    ledger = Ledger.of(built)

    def look_up():
        request_words(built, ledger, lambda: built.events)

    look_up()  # what is computed once for a ledger
    return instructions(look_up), instructions(lambda: followed(built))


def test_twice_as_many_compactions_and_lists_take_twice_the_work():
    first, second = (work_on(kept_lists(lists)) for lists in (20, 40))
    assert all(more < 2.5 * less for less, more in zip(first, second, strict=True)), (first, second)
    assert [todo.later for (todo,) in followed(kept_lists(3))] == [4, 7, -1]
