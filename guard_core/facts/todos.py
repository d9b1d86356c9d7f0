"""The todos of an agent: lists that it writes as a whole, and tasks that it creates, changes and closes one by one.

Which tools those are, and what their arguments are called, is from the agents' own schemas: Claude Code (`TodoWrite`;
from 2.1.16 on `TaskCreate`, whose result has the number that `TaskUpdate` names), Codex (`update_plan`), Gemini CLI and
LangChain (`write_todos`), OpenCode, Amp, Cursor and Qwen Code, Kimi CLI and Kimi Code (`SetTodoList`, `TodoList`),
Mistral Vibe and Hermes (`todo`, of which Hermes may merge a part into its list), VS Code, OpenHands, Crush; Roo Code,
Copilot CLI and goose write theirs as a Markdown checklist. Cline adds one to the arguments of other tools
(`task_progress`, docs.cline.bot/features/focus-chain); in calls that it writes as XML in its text it is not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from guard_core.costs import CALL, RESULT, tool_key
from guard_core.events import Event, ToolCallPart, ToolResultPart, part_text
from guard_core.ledger import Ints, Ledger

MOST_TODO_EVENTS = 200  # the last ones that are read where not all are
CREATE, UPDATE = "TaskCreate", "TaskUpdate"
TODO_TOOLS = (
    *("TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "SetTodoList", "TodoList", "todo", "todos"),
    *("update_todo_list", "update_todo", "todo__todo_write", "manage_todo_list", "task_tracker", CREATE, UPDATE),
)
PROGRESS = "task_progress"
# The tools of Cline that may have it (src/core/prompts/system-prompt/tools): those that only it and its kin have, and
# those whose names other agents use, too.
ONLY_PROGRESS_TOOLS = (
    *("act_mode_respond", "ask_followup_question", "attempt_completion", "list_code_definition_names"),
    *("plan_mode_respond", "replace_in_file"),
)
PROGRESS_TOOLS = (
    *("access_mcp_resource", "apply_patch", "browser_action", "execute_command", "list_files"),
    *("load_mcp_documentation", "new_task", "read_file", "search_files", "use_mcp_tool", "use_skill"),
    *("web_fetch", "web_search", "write_to_file"),
)
LONGEST = 400  # characters of a todo that are compared
_DONE = {"completed", "complete", "done", "cancelled", "canceled", "deleted", "resolved"}
_TODO_TEXTS = ("content", "step", "title", "text", "task", "subject", "description")
_READS = {"read", "view", "list", "get"}  # the argument of a tool by which it shows the list and changes nothing
_COMMANDS = ("action", "command", "operation")
_CHECKBOX = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?\[([ xX~>/-])\]\s+(\S.*)$", re.MULTILINE)
_NUMBER = re.compile(r"#(\d+)")


class OpenTodo(NamedTuple):
    """An open todo, the message that wrote it, and the next message of the agent that writes, closes or renames it or
    the list that it is of, -1: none."""

    text: str
    message: int
    later: int = -1


class Todos:
    """The open todos of an agent, as of the last message that was read. Messages are read in the order of the log;
    those without a call of a todo tool, or its result, may be left out."""

    def __init__(self) -> None:
        self._open: dict[str, OpenTodo] = {}  # by id; of a list without ids by their place
        self._asked: dict[str, OpenTodo] = {}  # tasks that were asked for, by the call: their number is not known yet

    @property
    def open(self) -> list[OpenTodo]:
        return list(self._open.values())

    def read(self, index: int, event: Event) -> list[OpenTodo]:
        """Take up a message; the todos that were open before and that it writes anew, closes or renames."""
        spoken_of = []
        for part in event.parts:
            if isinstance(part, ToolCallPart) and part.name in TODO_TOOLS and isinstance(part.arguments, dict):
                spoken_of += self._take(index, part.name, part.id, part.arguments)
            elif isinstance(part, ToolCallPart) and isinstance(part.arguments, dict) and PROGRESS in part.arguments:
                spoken_of += self._take(index, part.name, part.id, {PROGRESS: part.arguments[PROGRESS]})
            elif isinstance(part, ToolResultPart) and (task := self._asked.pop(part.call_id, None)):
                number = _NUMBER.search(part_text(part))
                if number and not part.is_error:
                    self._open[number[1]] = task
        return spoken_of

    def _take(self, index: int, name: str, call: str, arguments: dict[str, Any]) -> list[OpenTodo]:
        if name == CREATE:
            self._asked[call] = OpenTodo(_words(arguments.get("subject")), index)
            return []
        if name == UPDATE:
            return self._update(index, str(arguments.get("taskId", "")).lstrip("#"), arguments)
        items = _items(arguments)
        if items is None:
            return []
        before = self._open
        if arguments.get("merge") is not True:
            self._open = _listed(index, items, before)
            return list(before.values())
        named = {str(item.get("id")): item for item in items if isinstance(item, dict) and "id" in item}
        self._open = {key: todo for key, todo in before.items() if key not in named}
        self._open |= _listed(index, list(named.values()), before)
        return [todo for key, todo in before.items() if key in named]

    def _update(self, index: int, task: str, arguments: dict[str, Any]) -> list[OpenTodo]:
        before, subject = self._open.get(task), _words(arguments.get("subject"))
        if before is None or not (_is_done(arguments) or subject):
            return []
        del self._open[task]
        if not _is_done(arguments):
            self._open[task] = OpenTodo(subject, index)
        return [before]


def open_at(events: Iterable[tuple[int, Event]], places: Sequence[int]) -> list[list[OpenTodo]]:
    """The todos that were open before each of some events, given in their order, with what is said of them later."""
    todos, states = Todos(), list[list[OpenTodo]]()
    spoken_of: defaultdict[OpenTodo, list[int]] = defaultdict(list)  # by which messages, in their order
    for index, event in events:
        while len(states) < len(places) and places[len(states)] <= index:
            states.append(todos.open)
        for todo in set(todos.read(index, event)):
            spoken_of[todo].append(index)
    states += [todos.open for _ in places[len(states) :]]
    return [
        [_with_later(todo, spoken_of[todo], place) for todo in state]
        for state, place in zip(states, places, strict=True)
    ]


def _with_later(todo: OpenTodo, spoken_of: Sequence[int], place: int) -> OpenTodo:
    """A todo that was open before an event, with the first message from there on that speaks of it."""
    later = bisect_left(spoken_of, place)
    return todo._replace(later=spoken_of[later]) if later < len(spoken_of) else todo


def todo_events(ledger: Ledger, stop: int) -> Ints:
    """The events before event `stop` that call a todo tool, or answer such a call, the last MOST_TODO_EVENTS, and as
    many of those that may have a checklist in their arguments."""
    listing, carrying = (_events_of(ledger, names) for names in (TODO_TOOLS, _carriers(ledger)))
    last = [events[events < stop][-MOST_TODO_EVENTS:] for events in (listing, carrying)]
    return np.union1d(*last)


def all_todo_events(ledger: Ledger) -> Ints:
    """All events that call a todo tool, or one that may have a checklist in its arguments, or answer such a call."""
    return _events_of(ledger, (*TODO_TOOLS, *_carriers(ledger)))


def _carriers(ledger: Ledger) -> tuple[str, ...]:
    """The tools whose arguments may have a checklist; none where nothing shows that the agent is one that adds it."""
    is_of_cline = np.isin(ledger.parts["tool"], [tool_key(name) for name in ONLY_PROGRESS_TOOLS]).any()
    return (*ONLY_PROGRESS_TOOLS, *PROGRESS_TOOLS) if is_of_cline else ()


def _events_of(ledger: Ledger, names: tuple[str, ...]) -> Ints:
    of_tools = np.isin(ledger.parts["tool"], [tool_key(name) for name in names])
    rows = of_tools & np.isin(ledger.parts["kind"], (CALL, RESULT))
    events: Ints = np.unique(ledger.parts["event"][rows])
    return events


def _items(arguments: dict[str, Any]) -> list[Any] | None:
    """What a call says is on the list; None of one that only asks for the list."""
    if any(str(arguments.get(name, "")).lower() in _READS for name in _COMMANDS):
        return None
    lists = [value for value in arguments.values() if isinstance(value, list)]
    if lists:
        return lists[0]
    boxes = [_CHECKBOX.findall(value) for value in arguments.values() if isinstance(value, str)]
    checklist = next(filter(None, boxes), None)
    return checklist and [{"content": text, "done": mark in "xX"} for mark, text in checklist]


def _listed(index: int, items: list[Any], before: dict[str, OpenTodo]) -> dict[str, OpenTodo]:
    """The open items of a list, by their ids or places; one that gives no text is the item of before."""
    listed = {}
    for place, item in enumerate(items):
        has_fields = isinstance(item, dict)
        key = str(item["id"]) if has_fields and "id" in item else f"place {place}"
        if has_fields and _is_done(item):
            continue
        if text := _text_of(item) if has_fields else _words(item):
            listed[key] = OpenTodo(text, index)
        elif has_fields and key in before:
            listed[key] = before[key]
    return listed


def _is_done(item: dict[str, Any]) -> bool:
    return str(item.get("status", "")).lower() in _DONE or item.get("done") is True


def _text_of(item: dict[str, Any]) -> str:
    """The text of a todo, by the first of its usual names that has one."""
    return next((text for name in _TODO_TEXTS if (text := _words(item.get(name)))), "")


def _words(text: Any) -> str:
    """A text on one line, of LONGEST characters at most; "" for what is no text."""
    return " ".join(text.split())[:LONGEST] if isinstance(text, str) else ""
