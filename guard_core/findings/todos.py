"""Open todos of the agent that a compaction took out of the context."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from guard_core.findings.claims import INFO, WARNING, Finding
from guard_core.findings.facts import Case, Facts
from guard_core.findings.presence import RequestWords, TodoWords, removes, shortened
from guard_core.findings.requests import RULE_CHARS, presence
from guard_core.findings.words import at_step, compactions_words, counted


def lost_todos(case: Case) -> list[Finding]:
    """Todos that were open and that no request has since a compaction: one finding for all that it took away first."""
    if not case.is_recorded:
        return []
    lists = [words for words in case.facts.words or () if words.todos]
    return [finding for words in lists if (finding := _lost(case.facts, words)) is not None]


def _lost(facts: Facts, words: RequestWords) -> Finding | None:
    """The open todos, of those that a compaction took away first, that are gone for good."""
    lost = [(step, index, todo) for todo in words.todos for step, index in _removal(facts, todo)]
    if not lost:
        return None
    step, index, first = min(lost, key=itemgetter(0, 1))
    count = sum(item[:2] == (step, index) for item in lost)
    todo = shortened(first.text, RULE_CHARS)
    numbers: dict[str, Any] = {
        "message": first.message,
        "todo": todo,
        "is_whole": todo == first.text,
        "compaction": index,
        "later": first.later,
    }
    cut = "" if numbers["is_whole"] else " …"
    more = "" if count == 1 else f" The same holds for {counted(count - 1, 'more todo')} of that list."
    later = "" if first.later < 0 else f" The agent updated its todos later (message {first.later + 1:,})."
    sentence = (
        f'The agent\'s open todo "{todo}{cut}" (message {first.message + 1:,}) left the context at {at_step(step)} '
        f"({compactions_words([index])}): no request since quotes it, and no summary paraphrases it.{more}{later}"
    )
    severity = WARNING if first.later < 0 else INFO
    return Finding("todo_lost", severity, step, sentence, numbers, (), (step,), count)


def _removal(facts: Facts, todo: TodoWords) -> list[tuple[int, int]]:
    """The first step since which no request has a todo, and the compaction that took it away; empty where the last
    request may have it, or the agent wrote, closed or renamed it before: what it says of the todo then is in the
    requests from then on, or nothing is left to do."""
    present, unread = presence(facts, todo)
    said = np.flatnonzero(present | np.isin(facts.ledger.steps["epoch"], list(unread)))
    first = int(said[-1]) + 1 if len(said) else 0
    is_over = first < len(present) and 0 <= todo.later < int(facts.ledger.steps["at"][first])
    if first >= len(present) or is_over:
        return []
    by = [
        item.index
        for item in facts.recording.fired
        if item.step <= first and item.counted is not None and removes(facts.ledger, item.counted, todo.message)
        if todo.later < 0 or facts.ledger.bases[item.counted.place].at <= todo.later
    ]
    return [(first, by[-1])] if by else []
