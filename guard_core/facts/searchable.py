"""The text of a message as it is searched, by the engine and by the index of the web application."""

from __future__ import annotations

from typing import Any

from guard_core.events import MediaPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart


def text_of(parts: tuple[Part, ...]) -> str:
    """What is searched of a message: all of it that is text, tool calls and results too."""
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, TextPart | ReasoningPart):
            pieces.append(part.text)
        elif isinstance(part, ToolCallPart):
            pieces.append(part.name)
            pieces += leaves(part.arguments)
        elif isinstance(part, ToolResultPart):
            pieces.append(part.name)
            pieces += leaves(part.content)
        elif isinstance(part, MediaPart):
            pieces.append(part.uri[:2_000])
        else:
            pieces += leaves(part.value)
    return "\n".join(pieces)


def leaves(value: Any) -> list[str]:
    """The keys and values of a JSON value, in order. Not its JSON text, where a line break is a letter n."""
    if isinstance(value, str):
        return [value]
    texts: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            for key, inner in reversed(item.items()):
                waiting += [inner, key]
        elif isinstance(item, list | tuple):
            waiting += reversed(item)
        elif item is not None:
            texts.append(str(item))
    return texts
