"""Lanes as rows of a table, and one lane as the list of its changes."""

from __future__ import annotations

from typing import Any

from guard_core.facts.lanes import HELD, STATE_WORDS, UNSURE, Lane, SnippetChange, SnippetState
from guard_core.facts.words import change_words, outcome_words, read_again_words
from inspector.pages.facts.picture import picture
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import compaction_number, counted, message_number, step_number
from inspector.pages.shared.parts import visible

QUOTED = 180  # characters of a snippet in a row
CHANGES = 60  # of a lane that are listed
BADGES = {
    SnippetState.GONE: "badge-overflow",
    **dict.fromkeys(UNSURE, "badge-outline"),
    SnippetState.VERBATIM: "",
}


def row(lane: Lane, page: Frame) -> dict[str, Any]:
    """One snippet: its words, its picture, and what became of it."""
    text = " ".join(lane.snippet.text.split())
    lost, event = lane.lost, lane.snippet.event
    origin = {"words": "system prompt", "url": ""}
    if event >= 0:
        ats = page.analysis.ledger.steps["at"]
        step = int((ats > event).argmax()) if len(ats) else 0
        origin = {"words": f"message {message_number(event):,}", "url": page.step_url(step)}
    return {
        "kind": lane.snippet.kind,
        "text": visible(text[:QUOTED]) + (" …" if len(text) > QUOTED else ""),
        "origin": origin,
        "paths": picture(lane),
        "label": label(lane),
        "state": lane.state_words,
        "badge": "badge-outline"
        if lane.withdrawn_at >= 0 or lane.is_unseen
        else BADGES.get(lane.last_state, "badge-compaction"),
        "last": step_link(lane.last_step, page),
        "lost": None if lost is None else step_link(lost.step, page),
        "first_lost": step_link(lane.losses[0].step, page) if lost is not None and len(lane.losses) > 1 else None,
        "compaction": compaction_link(lost, page) if lost is not None else None,
        "again": read_again_words(lane),
        "url": page.paths["facts"] + page.choice.query(q=lane.snippet.text[:300], side=page.shown_side) + "#lane",
    }


def label(lane: Lane) -> str:
    """A lane in one sentence, for those who do not see it."""
    known = lane.unseen_from if lane.is_unseen else lane.steps
    held = sum(max(0, min(stop, known) - start) for start, stop, state in lane.runs() if state in HELD)
    least = "at least " if lane.is_unseen else ""
    return f"In {least}{held:,} of {counted(lane.steps, 'request')}; {outcome_words(lane)}."


def step_link(step: int, page: Frame) -> dict[str, str] | None:
    """A step with its address; None where there is none."""
    return None if step < 0 else {"words": f"{step_number(step):,}", "url": page.step_url(step)}


def compaction_link(change: SnippetChange, page: Frame) -> dict[str, str] | None:
    """The compaction of a change with its address; None where it is an edit of the history, or none at all."""
    if change.compaction < 0:
        return None
    return {
        "words": f"compaction {compaction_number(change.compaction):,}",
        "url": page.compaction_url(change.compaction, page.side),
    }


def changes(lane: Lane, page: Frame) -> dict[str, Any]:
    """The table beside one lane: every change of its state, the first ones where there are many."""
    rows = [
        {
            "step": step_link(change.step, page),
            "state": STATE_WORDS[change.after],
            "words": change_words(change, lane.steps),
            "compaction": compaction_link(change, page),
        }
        for change in lane.changes[:CHANGES]
    ]
    return {"rows": rows, "more": f"{len(lane.changes) - CHANGES:,}" if len(lane.changes) > CHANGES else ""}
