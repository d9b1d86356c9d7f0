"""Lists of todos that agents write with a tool: where they are in a log, and what of them is not done."""

from __future__ import annotations

from typing import Any

import numpy as np

from guard_core.costs import CALL, tool_key
from guard_core.events import Event, ToolCallPart
from guard_core.ledger import Ints, Ledger

MOST_TODO_CALLS = 50  # the last ones
TODO_TOOLS = (  # tools that write a list of todos, by the agents that have them
    *("TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "SetTodoList", "todo", "update_todo_list"),
    *("TaskCreate", "TaskUpdate", "manage_todo_list"),
)
_DONE = {"completed", "complete", "done", "cancelled", "canceled", "deleted"}
_TODO_TEXTS = ("content", "step", "title", "text", "task", "subject", "description")


def todo_calls(ledger: Ledger, stop: int) -> Ints:
    """The events before event `stop` that call a todo tool, the last MOST_TODO_CALLS."""
    events = all_todo_calls(ledger)
    return events[events < stop][-MOST_TODO_CALLS:]


def all_todo_calls(ledger: Ledger) -> Ints:
    """All events that call a todo tool."""
    calls = (ledger.parts["kind"] == CALL) & np.isin(ledger.parts["tool"], [tool_key(name) for name in TODO_TOOLS])
    events: Ints = np.unique(ledger.parts["event"][calls])
    return events


def open_todos(event: Event) -> list[str] | None:
    """The todos that a message lists as not done, in their order; None where it lists none at all."""
    for part in event.parts:
        if isinstance(part, ToolCallPart) and part.name in TODO_TOOLS and isinstance(part.arguments, dict):
            lists = [value for value in part.arguments.values() if isinstance(value, list)]
            if lists:
                return [text for item in lists[0] if (text := _todo(item))]
    return None


def _todo(item: Any) -> str:
    """The text of a todo that is not done, on one line; "" of one that is, or of anything else."""
    if isinstance(item, str):
        return " ".join(item.split())[:400]
    if not isinstance(item, dict) or str(item.get("status", "")).lower() in _DONE or item.get("done") is True:
        return ""
    texts = (item[name] for name in _TODO_TEXTS if isinstance(item.get(name), str))
    return " ".join(next(texts, "").split())[:400]
