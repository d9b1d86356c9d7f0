"""What the summariser is sent: a system prompt and one user message.

The blocks and markers are as ContextGuard writes them (specification, section 7); the wording of the instructions is
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from guard_core.events import Event, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.summaries.base import Todo

_SYSTEM = """You hand over a running conversation to a colleague who will see nothing but your text.
Whatever you leave out is lost.

Write these four sections, in the language of the conversation:

## Current State
- what was asked, what is finished, what is being worked on, what remains

## Key Information
- facts, names, values, preferences and definitions that came up
- files, addresses and identifiers that will be needed again

## Context & Decisions
- what was decided and why
- which options were discarded, which assumptions hold, what blocks the work

## Exact Next Steps
- the concrete actions to take next, in order, nothing vague

Be specific and complete; a length limit follows."""
_ASK = "Summarise the conversation below so that the work can go on from the summary alone."
_MERGE = "Merge the summary above with what follows: keep what still holds, update what changed, add what is new."
_TODOS = (
    "Carry every item above, with its status, in a section `## Todo List`, and say that the list is to be restored "
    "with the `todos` tool."
)


def system_prompt(words: int) -> str:
    """The instruction with its length limit."""
    return f"{_SYSTEM}\n\nKeep the summary under {words} words."


def user_prompt(messages: Iterable[Event], previous: str = "", todos: tuple[Todo, ...] = ()) -> str:
    """The conversation as a transcript, with the previous summary and the todo list where there are any."""
    lines = [_ASK, ""]
    if previous:
        lines += ["[Previous summary for context]", previous, "[End previous summary]", "", _MERGE, ""]
    lines += ["[Conversation to summarize]", *transcript(messages), "[End of conversation]"]
    if todos:
        items = [f"- [{item.status}] {item.content}" for item in todos]
        lines += ["", "[Current todo list]", *items, "[End todo list]", "", _TODOS]
    return "\n".join(lines)


def transcript(messages: Iterable[Event]) -> Iterator[str]:
    """One line per text, call and result; arguments, payloads and media are left out, as the original does."""
    for event in messages:
        role = event.role.value or "unknown"
        for part in event.parts:
            match part:
                case TextPart() | ReasoningPart() if part.text:
                    yield f"{role}: {part.text}"
                case ToolCallPart():
                    yield f"{role}: [called tool: {part.name}]"
                case ToolResultPart():
                    yield f"{role}: [tool {part.name} returned a result]"
