"""A sweep as plain values: what its file and the API say."""

from __future__ import annotations

from typing import Any

from guard_core import __version__, cli
from guard_core.outcomes.values import MONEY
from guard_core.sweep import GridCell, conclusion_values, figure_values
from inspector.pages.sweep.runs import EndedSweep


def conclusions_of(answer: EndedSweep) -> dict[str, Any]:
    """The question, its sessions, and what follows; without the figures of each setting."""
    result = answer.result
    return {
        "numbering": cli.NUMBERING,
        "money": MONEY,
        "engine_version": __version__,
        "question": answer.question,
        "axes": result.axes,
        "sessions": [{"id": key, "title": title} for key, title in answer.sessions],
        "left_out": [{"title": title, "reason": reason} for title, reason in answer.left_out],
        **conclusion_values(result),
    }


def document_of(answer: EndedSweep) -> dict[str, Any]:
    """The same, with every setting over every session."""
    return {**conclusions_of(answer), "cells": [cell_values(cell) for cell in answer.result.cells]}


def cell_values(cell: GridCell) -> dict[str, Any]:
    """A setting over every session: `windows` and `figures` have one entry for each."""
    figures = [figure_values(item) for item in cell.figures]
    return {"values": cell.values, "windows": cell.windows, "figures": figures}
