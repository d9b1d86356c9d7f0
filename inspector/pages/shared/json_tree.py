"""A JSON value of a session as a tree that is opened level by level. A path names the place of each child, from 0."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import msgspec

from guard_core.events import OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.parts import visible

CHILDREN = 100  # of one level shown at a time
KEY_CHARS = 120
VALUE_CHARS = 300  # of a text beside its key; the whole of it has a page of its own
LONGEST_JSON = 20_000_000  # characters of a text that is read as JSON
LONGEST_PATH = 200  # characters of an address; no deeper tree is opened


class NoSuchPlace(LookupError):
    """A path leads nowhere in this value."""


def value_of(part: Part) -> Any:
    """The JSON value of a part; None where it is not an object or list, nor a text that holds one."""
    value: Any = None
    match part:
        case TextPart(text=value) | ReasoningPart(text=value):
            pass
        case ToolCallPart(arguments=value) | ToolResultPart(content=value) | OtherPart(value=value):
            pass
    if isinstance(value, str) and looks_like_json(value):
        try:
            value = msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return None
    return value if isinstance(value, dict | list) else None


def looks_like_json(text: str) -> bool:
    """Is the text worth reading as JSON: not read yet."""
    return text[:200].lstrip()[:1] in {"{", "["} and len(text) <= LONGEST_JSON


def at_path(value: Any, path: str) -> Any:
    """The value at a path such as "0.3.1". Errors: NoSuchPlace."""
    if len(path) > LONGEST_PATH:
        raise NoSuchPlace(path)
    for name in path.split(".") if path else ():
        if not (name.isascii() and name.isdigit() and len(name) <= 9 and isinstance(value, dict | list)):
            raise NoSuchPlace(path)
        if int(name) >= len(value):
            raise NoSuchPlace(path)
        value = next(islice(value.values(), int(name), None)) if isinstance(value, dict) else value[int(name)]
    return value


def level(value: dict[str, Any] | list[Any], path: str, start: int) -> list[dict[str, Any]]:
    """The children of an object or list from number `start` on: key, a short value or what is inside, path."""
    keyed = value.items() if isinstance(value, dict) else enumerate(value)
    rows = []
    for place, (key, child) in enumerate(islice(keyed, start, start + CHILDREN), start):
        name = visible(str(key)[:KEY_CHARS])
        row = {"key": name, "path": f"{path}.{place}" if path else str(place)}
        if isinstance(child, dict | list) and child:
            kind = "key" if isinstance(child, dict) else "item"
            row |= {"inside": counted(len(child), kind)}
        else:
            text = json.dumps(child, ensure_ascii=False) if not isinstance(child, str) else child
            row |= {"value": visible(text[:VALUE_CHARS]), "kind": "text" if isinstance(child, str) else "plain"}
            row |= {"left": f"{len(text):,}"} if len(text) > VALUE_CHARS else {}
        rows.append(row)
    return rows
