"""A sweep as plain values: what its file and the API say."""

from __future__ import annotations

from typing import Any

from guard_core import __version__, cli
from guard_core.sweep import fold_words
from guard_core.windows.prices import UNIT
from inspector.pages.sweep.runs import Answer


def conclusions_of(answer: Answer) -> dict[str, Any]:
    """The question, its sessions, and what follows; without the figures of each setting."""
    result = answer.result
    return {
        "numbering": cli.NUMBERING,
        "money": f"US$ / {UNIT * 1_000_000:,}",
        "engine_version": __version__,
        "question": answer.question,
        "axes": result.axes,
        "sessions": [{"id": key, "title": title} for key, title in answer.sessions],
        "left_out": [{"title": title, "reason": reason} for title, reason in answer.left_out],
        "steps": result.steps,
        "recommended": result.cells[result.recommended].values,
        "evidence": result.evidence,
        "equal": [result.cells[index].values for index in result.equal],
        "trade_offs": [result.cells[index].values for index in result.trade_offs],
        "cross_over": [
            {
                "chosen_on": fold.learnt,
                "judged_on": fold.judged,
                "chosen": result.cells[fold.chosen].values,
                "best": result.cells[fold.best].values,
                "sentence": fold_words(result, fold),
            }
            for fold in result.folds
        ],
    }


def document_of(answer: Answer) -> dict[str, Any]:
    """The same, with every setting over every session."""
    return {**conclusions_of(answer), "cells": answer.result.cells}
