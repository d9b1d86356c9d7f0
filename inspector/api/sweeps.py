"""Sweeps: the list, one with what follows from it, and its settings row by row."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest
from ninja import Router

from inspector.api import schemas
from inspector.api.asked import ERRORS, Limit, Offset, project_in
from inspector.models import Sweep
from inspector.pages.sweep import runs
from inspector.pages.sweep.document import cell_values, conclusions_of

router = Router()


@router.get("/sweeps", response={200: schemas.SweepList, **ERRORS}, summary="List the sweeps, the newest first")
def sweeps(request: HttpRequest, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """Those of the project, with how far each is."""
    rows = runs.sweeps_of(project_in(request)).order_by("-created", "pk")
    return {
        "count": rows.count(),
        "sweeps": [_row(row, runs.progress_of(row)) for row in rows[offset : offset + limit]],
    }


@router.get("/sweeps/{sweep_id}", response={200: schemas.SweepAnswer, **ERRORS}, summary="One sweep")
def sweep(request: HttpRequest, sweep_id: UUID) -> dict[str, Any]:
    """How far it is and, once it has ended, what follows: the recommended setting with its evidence, settings as good,
    trade-offs, the cross-over. `answer` is None before, and where it was cancelled."""
    row = _sweep(request, sweep_id)
    progress = runs.progress_of(row)
    answer = runs.ended(row, progress)
    conclusions = None if answer is None else msgspec.to_builtins(conclusions_of(answer))
    return {**_row(row, progress), "question": msgspec.to_builtins(runs.question_of(row)), "answer": conclusions}


@router.get(
    "/sweeps/{sweep_id}/rows", response={200: schemas.SweepRows, **ERRORS}, summary="Figures of each setting of a sweep"
)
def sweep_rows(request: HttpRequest, sweep_id: UUID, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """A row for each setting, with its windows and figures by session; 404 before the sweep has ended."""
    answer = runs.ended(_sweep(request, sweep_id))
    if answer is None:
        raise Http404("This sweep has no result: it is still running, or was cancelled.")
    cells = answer.result.cells
    return {
        "count": len(cells),
        "rows": [msgspec.to_builtins(cell_values(cell)) for cell in cells[offset : offset + limit]],
    }


def _sweep(request: HttpRequest, sweep_id: UUID) -> Sweep:
    row = runs.sweeps_of(project_in(request)).filter(pk=sweep_id).first()
    if row is None:
        raise Http404("There is no such sweep.")
    return row


def _row(row: Sweep, progress: runs.SweepProgress) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "settings": row.cells,
        "created": row.created,
        "url": row.get_absolute_url(),
        "under_way": progress.under_way,
        "cancelled": progress.cancelled > 0,
        "replays_done": progress.done,
        "replays": progress.total,
        "sessions_done": progress.sessions_done,
        "sessions": progress.sessions,
        "left_out": progress.left_out,
    }
