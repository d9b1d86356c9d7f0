"""The step list: a window of rows, each one model call with its marks, its name and its prompt tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from guard_core.ledger import Ledger
from inspector.figures.timeline import NO_STEPS, Ints, Timeline
from inspector.pages.shared.numbers import ABOUT, short, step_number
from inspector.replays.choice import Choice

ROW_HEIGHT = 28  # pixels, as in static/css/steps.css
WINDOW = 72  # rows sent at a time; with more, a page of steps of a long session has more than 2,000 elements
MARKS = {
    "overflow": ("✕", " is-overflow", "overflow"),
    "compaction": ("▼", " is-compaction", "compaction"),
    "near": ("○", " is-near", "near miss"),
    "turn": ("●", " is-turn", "user turn begins"),
    "": ("", "", ""),
}


class StepRows(NamedTuple):
    """The rows `start` to `stop` (exclusive) of a list of steps."""

    steps: Ints
    start: int
    stop: int

    @property
    def shown(self) -> Ints:
        """The steps of these rows."""
        return self.steps[self.start : self.stop]


def window_around(at: int, steps: Ints) -> StepRows:
    """The rows to send for a page that shows step `at`, which may be none of the list."""
    row = min(int(np.searchsorted(steps, at)), len(steps) - 1)
    return window_from(row - WINDOW // 3, steps)


def window_from(start: int, steps: Ints) -> StepRows:
    """The rows to send for a list that was scrolled to row `start`."""
    start = max(0, min(start, len(steps) - WINDOW))
    return StepRows(steps, start, min(len(steps), start + WINDOW))


def step_list(
    data: Timeline,
    ledger: Ledger,
    names: Mapping[int, str],
    window: StepRows,
    path: str,
    choice: Choice,
    side: str,
    kept: Mapping[str, str],
) -> dict[str, Any]:
    """The rows of a window and the heights of what is not sent. `names`: a word for each step's answer; `kept`: what
    else the addresses keep, as the step that is marked as A."""
    count, start, stop = len(window.steps), window.start, window.stop
    starts_turn = np.diff(ledger.steps["turn"], prepend=-2) > 0
    sets = {"overflow": set(data.overflows), "compaction": set(data.compactions), "near": set(data.near_misses)}
    if side == "replayed" and data.replayed is not None:
        sets = {"overflow": set(data.replayed.overflows), "compaction": set(data.replayed.compactions), "near": set()}
    rows = []
    for step in window.shown.tolist():
        kind = next((name for name in ("overflow", "compaction", "near") if step in sets[name]), "")
        kind = kind or ("turn" if starts_turn[step] else "")
        url = path + choice.query(at=step_number(step), side=side, **kept)
        rows.append(_row(data, step, side, kind, names.get(step, ""), url, is_turn=bool(starts_turn[step])))

    def beside(row: int) -> str:
        return path + choice.query(at=step_number(int(window.steps[row])), side=side, **kept)

    return {
        "rows": rows,
        "count": count,
        "first": step_number(start),
        "last": step_number(stop - 1),
        "above": start * ROW_HEIGHT,
        "below": (count - stop) * ROW_HEIGHT,
        "earlier": beside(max(0, start - WINDOW // 2)),
        "later": beside(min(count - 1, stop + WINDOW // 2)),
        "url": path + "/list" + choice.query(side=side, **kept),
    }


def filters(data: Timeline, ledger: Ledger, side: str, others: Mapping[str, Ints]) -> dict[str, Ints]:
    """The steps that each filter of the list leaves, ascending; those that leave none are left out. `others`: filters
    by what is not part of the chart."""
    fired = data.side(side).compactions
    known = {"turns": turn_starts(ledger), "compactions": fired, **others}
    return {name: steps for name, steps in known.items() if len(steps)}


def turn_starts(ledger: Ledger) -> Ints:
    """The steps that begin a turn of the user."""
    return np.flatnonzero(np.diff(ledger.steps["turn"], prepend=-2) > 0)


def _row(data: Timeline, step: int, side: str, kind: str, name: str, url: str, *, is_turn: bool) -> dict[str, Any]:
    value, counted = prompt_tokens(data, step, side)
    mark, mark_class, words = MARKS[kind]
    fill = 0.0 if np.isnan(value) else min(100.0, 100 * value / max(1, data.window))
    return {
        "step": step_number(step),
        "url": url,
        "mark": mark,
        "mark_class": mark_class,
        "label": name,
        "tokens": ("" if counted else ABOUT) + short(None if np.isnan(value) else value),
        "fill": f"{fill:.0f}",
        "classes": (" is-turn" if is_turn else "") + (" is-over" if kind == "overflow" else ""),
        "words": words,
    }


def prompt_tokens(data: Timeline, step: int, side: str) -> tuple[float, bool]:
    """Prompt tokens of a step on one side, and whether the provider counted them: those of a replay are modelled once
    its requests differ, and so is a recorded request where the provider reported nothing."""
    value = float(data.recorded[step])
    if side == "replayed" and data.replayed is not None:
        differs = data.replayed.divergence is not None and step >= data.replayed.divergence
        return float(data.replayed.prompt_tokens[step]), not (differs or np.isnan(value))
    return float(data.requests[step]), not np.isnan(value)


def neighbours(
    data: Timeline, ledger: Ledger, findings: list[int], at: int, side: str, matched: Ints = NO_STEPS
) -> dict[str, int | None]:
    """Where each key of the stepper leads from step `at`; None where there is no such step. `matched`: the steps with
    matches of a search."""
    last = len(data) - 1
    marks = data.compactions
    if side == "replayed" and data.replayed is not None:
        marks = data.replayed.compactions
    turns = turn_starts(ledger)
    steps = np.unique(np.array(findings, dtype=np.int64))
    return {
        "Home": 0 if at else None,
        "k": at - 1 if at else None,
        "j": at + 1 if at < last else None,
        "End": last if at < last else None,
        "K": _before(turns, at),
        "J": _after(turns, at),
        "[": _before(marks, at),
        "]": _after(marks, at),
        "{": _before(steps, at),
        "}": _after(steps, at),
        "N": _before(matched, at),
        "n": _after(matched, at),
    }


def _before(steps: Any, at: int) -> int | None:
    earlier = steps[steps < at]
    return int(earlier[-1]) if len(earlier) else None


def _after(steps: Any, at: int) -> int | None:
    later = steps[steps > at]
    return int(later[0]) if len(later) else None
