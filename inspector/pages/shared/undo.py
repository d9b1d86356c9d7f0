"""The offer to bring back what was just deleted."""

from __future__ import annotations

from typing import Any

from inspector.storage import deleting


def undo(key: str) -> dict[str, Any]:
    """What `_undo.html` shows of a deletion, by its key: how many sessions would come back."""
    found = deleting.deleted_together(key) if key else None
    return {"undo": key, "undo_count": found.count() if found is not None else 0}
