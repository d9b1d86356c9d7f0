"""The list of steps beside the stepper: its rows, and the filters that leave some of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from inspector.figures.timeline import Ints
from inspector.pages.session.frame import Frame
from inspector.pages.shared import parts
from inspector.pages.shared.numbers import step_index, step_number
from inspector.pages.steps import presenter
from inspector.pages.steps.addresses import marked
from inspector.storage import loading


def rows_around(page: Frame, around: int | None = None, start: int = 0) -> dict[str, Any]:
    """The rows around a step, or from a row on, of those that the filter of the address leaves."""
    analysis, (name, steps) = page.analysis, _filtered(page)
    window = presenter.window_from(start, steps) if around is None else presenter.window_around(around, steps)
    names = _names(page, window.shown)
    place = (page.paths["steps"], page.choice, page.shown_side)
    listed = presenter.step_list(analysis.data, analysis.ledger, names, window, *place, marked(page))
    for row in listed["rows"]:
        row["comments"] = page.commented_steps[step_index(row["step"])]
    return {**listed, "filter": name}


def _filter_steps(page: Frame) -> dict[str, Ints]:
    """The steps that each filter of the list leaves."""
    analysis = page.analysis
    others = {
        "findings": np.unique(np.array([step for step in finding_steps(page) if step < page.count], dtype=np.int64)),
        "comments": np.array(sorted(page.commented_steps), dtype=np.int64),
        "matches": page.matched_steps,
    }
    return presenter.filters(analysis.data, analysis.ledger, page.side, others)


def _filtered(page: Frame) -> tuple[str, Ints]:
    """The filter of the address and its steps; "" and all steps where there is no filter, or no step passes it."""
    name = page.request.GET.get("list", "")
    steps = _filter_steps(page).get(name) if name else None
    return ("", np.arange(page.count)) if steps is None else (name, steps)


def filter_links(page: Frame, at: int) -> list[dict[str, Any]]:
    """The filters of the list as links; the one that follows the current one has the key."""
    chosen, _ = _filtered(page)
    counts = {"": page.count, **{name: len(steps) for name, steps in _filter_steps(page).items()}}
    path, parameters = page.paths["steps"], {"at": step_number(at), "side": page.shown_side, **marked(page)}
    tabs = [
        {
            "label": f"{name or 'all'} {count:,}",
            "url": path + page.choice.query(**{**parameters, "list": name}),
            "current": name == chosen,
            "key": "",
        }
        for name, count in counts.items()
    ]
    following = list(counts).index(chosen) + 1
    tabs[following % len(tabs)]["key"] = "f"
    return tabs


def finding_steps(page: Frame) -> list[int]:
    """The steps of the findings, in no order."""
    analysis = page.analysis
    return [finding.step for finding in (*analysis.recorded_findings, *analysis.shown_replayed_findings)]


def _names(page: Frame, steps: Ints) -> dict[int, str]:
    """What each step answered, in a few words; a step that begins a user turn is named by the user's words."""
    columns = page.analysis.ledger.steps
    begins = np.diff(columns["turn"], prepend=-2) > 0
    chosen = np.where(begins & (columns["user_event"] >= 0), columns["user_event"], columns["response"])[steps]
    events = loading.load_some_events(page.row, sorted({int(seq) for seq in chosen if seq >= 0}))
    named = {step: events.get(int(seq)) for step, seq in zip(steps.tolist(), chosen, strict=True)}
    return {step: parts.summary_line(event) if event else "no answer recorded" for step, event in named.items()}
