"""The offer to bring back what was just deleted."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from inspector.pages.shared.project import project_of
from inspector.storage import deleting


def undo(request: HttpRequest) -> dict[str, Any]:
    """What `_undo.html` shows of the deletion that an address names: how many sessions would come back."""
    key = request.GET.get("undo", "")
    deleted = deleting.deleted_together(project_of(request), key) if key else None
    return {"undo": key, "undo_count": deleted.count() if deleted is not None else 0}
