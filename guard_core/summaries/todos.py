"""The todo list that ContextGuard reads from the agent's state. Source: its specification, section 7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.summaries.base import Todo


def load_todos(value: Any) -> tuple[Todo, ...] | None:
    """The items of a state value; None where it holds no list. Items without content are left out."""
    if not isinstance(value, list):
        return None
    items = [
        Todo(
            *(text if isinstance(text := item.get(name), str) else "" for name in ("content", "status", "active_form"))
        )
        for item in value
        if isinstance(item, Mapping)
    ]
    return tuple(item for item in items if item.content) or None
